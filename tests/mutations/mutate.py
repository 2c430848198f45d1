"""Do the tests notice mistakes? Makes those of `mutations.yaml` one by one, in copies.

    python tests/mutations/mutate.py        # exit code 0: every mutation made its test fail

Nothing is changed but copies in a temporary folder, one per processor. The named tests must pass
without a mutation; then, for each mutation, the one test named must fail (not merely break on
import). A mutation whose text no longer stands exactly once in its file is a failure too: move its
anchor.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("artist", "tests", "astra_configs", "templates", "traces", "pyproject.toml")
FAILED = 1  # pytest's exit code for tests that ran and failed; larger ones are broken runs
LIMIT_S = 300  # the longest run is that of all tests without a mutation

_T = TypeVar("_T")


class Mutation(BaseModel):
    """One mistake: `edits` of `file`, each text -> text, and the test that must notice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: str
    file: str
    edits: tuple[tuple[str, str], ...] = Field(min_length=1)
    test: str


def mutated(text: str, edits: Sequence[tuple[str, str]]) -> str:
    """The text with every edit made.

    Raises:
        ValueError: an edit's text does not stand there exactly once.
    """
    for old, new in edits:
        if (times := text.count(old)) != 1:
            raise ValueError(f"{old!r} stands there {times} times, expected once")
        text = text.replace(old, new)
    return text


def complaint(copy: Path, mutation: Mutation) -> str | None:
    """What is wrong with a mutation; None if its test failed, as it must."""
    file = copy / mutation.file
    try:
        text = mutated(file.read_text(), mutation.edits)
    except ValueError as cause:
        return f"no longer applies: {cause}"
    with _instead(file, text):
        code, output = _pytest(copy, [mutation.test])
    if code == 0:
        return f"survived {mutation.test}"
    return None if code == FAILED else f"broke the run instead of failing a test:\n{output}"


def check(root: Path, mutations: Sequence[Mutation]) -> Iterator[str]:
    """Complaints about mutations of copies of `root`, in the order of the mutations."""
    with tempfile.TemporaryDirectory(prefix="artist-mutations-") as folder:
        copies = [Path(folder) / str(number) for number in range(os.cpu_count() or 1)]
        for copy in copies:
            copy.mkdir()
            _copy(root, copy)
        idle = queue.SimpleQueue[Path]()
        for copy in copies:
            idle.put(copy)

        def ask(question: Callable[[Path], _T]) -> _T:
            copy = idle.get()
            try:
                return question(copy)
            finally:
                idle.put(copy)

        with ThreadPoolExecutor(len(copies)) as pool:
            tests = sorted({mutation.test for mutation in mutations})
            parts = [part for part in (tests[i :: len(copies)] for i in range(len(copies))) if part]
            asked = [partial(_pytest, tests=part) for part in parts]
            for code, output in pool.map(ask, asked):
                if code != 0:
                    yield f"the tests fail without any mutation:\n{output}"
                    return
            told = pool.map(ask, [partial(complaint, mutation=x) for x in mutations])
            for mutation, words in zip(mutations, told, strict=True):
                if words is not None:
                    yield f"{mutation.file}: {mutation.rule}: {words}"


def read(path: Path) -> list[Mutation]:
    """The mutations of a YAML file."""
    return [Mutation.model_validate(entry) for entry in yaml.safe_load(path.read_text())]


def main() -> int:
    """Check all mutations of `mutations.yaml`."""
    mutations = read(Path(__file__).with_name("mutations.yaml"))
    complaints = 0
    for words in check(ROOT, mutations):
        complaints += 1
        sys.stderr.write(f"{words}\n")
    sys.stdout.write(f"{len(mutations)} mutations of rules, {complaints} complaints\n")
    return 1 if complaints else 0


def _copy(root: Path, copy: Path) -> None:
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, copy / name)


@contextmanager
def _instead(file: Path, text: str) -> Iterator[None]:
    """Another text in a file for a while, and no bytecode left of either.

    Bytecode is told to be stale by size and second, which a quick change of `<` to `>` keeps.
    """
    original, bytecode = file.read_text(), Path(importlib.util.cache_from_source(str(file)))
    try:
        bytecode.unlink(missing_ok=True)
        file.write_text(text)
        yield
    finally:
        file.write_text(original)
        bytecode.unlink(missing_ok=True)


def _pytest(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of the tests of the copy, which import the copy's package."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())

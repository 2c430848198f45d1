"""Do the tests notice mistakes? Makes those of `mutations.yaml` one by one, in copies.

    python tests/mutations/mutate.py                      # all; exit code 0: every test noticed
    python tests/mutations/mutate.py sites FILE:NAME      # what each rule does to a definition

Only copies in a temporary folder change, one for each processor. The named tests must pass without
a mutation. Then each mutation must make its test fail, not merely break on import. A mutation
changes the syntax tree of one definition by a rule of `rules.py`. A definition that no longer
exists is a failure too.
"""

from __future__ import annotations

import ast
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
from itertools import islice
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field
from rules import RULES, mutants

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("artist", "tests", "astra_configs", "templates", "traces", "pyproject.toml")
FAILED = 1  # pytest's exit code for tests that ran and failed; larger ones are broken runs
LIMIT_S = 600  # the longest run is that of all tests without a mutation

_T = TypeVar("_T")


class Mutation(BaseModel):
    """One mistake: a rule applied at one position of a definition, and the test that must notice.

    `place` is FILE:NAME. `site` counts the positions of the rule in the definition, from 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mistake: str
    place: str
    rule: str
    site: int = Field(default=0, ge=0)
    test: str

    @property
    def file(self) -> str:
        """The file that is changed, relative to the repository."""
        return self.place.partition(":")[0]


def mutated(root: Path, mutation: Mutation) -> str:
    """The source of the mutation's file with its mistake.

    Raises:
        LookupError: the definition no longer exists, or the rule has fewer sites there.
    """
    text = (root / mutation.file).read_text()
    found = mutants(text, mutation.place.partition(":")[2], mutation.rule)
    changed = next(islice(found, mutation.site, None), None)
    if changed is None:
        raise LookupError(f"{mutation.rule} has no site {mutation.site} in {mutation.place}")
    return changed


def complaint(copy: Path, mutation: Mutation) -> str | None:
    """What is wrong with a mutation; None if its test failed, as it must."""
    file = copy / mutation.file
    try:
        text = mutated(copy, mutation)
    except (LookupError, FileNotFoundError) as cause:
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
                    yield f"{mutation.place}: {mutation.mistake}: {words}"


def read(path: Path) -> list[Mutation]:
    """The mutations of a YAML file."""
    return [Mutation.model_validate(entry) for entry in yaml.safe_load(path.read_text())]


def sites(place: str) -> Iterator[str]:
    """What each rule would change in a definition, as lines `rule site: before -> after`."""
    file, _, name = place.partition(":")
    text = (ROOT / file).read_text()
    before = ast.unparse(ast.parse(text)).splitlines()
    for rule in RULES:
        for site, changed in enumerate(mutants(text, name, rule)):
            pairs = zip(before, changed.splitlines(), strict=False)
            old, new = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
            yield f"{rule} {site}: {old.strip()} -> {new.strip()}"


def main(arguments: Sequence[str]) -> int:
    """Check all mutations of `mutations.yaml`, or print the sites of a definition."""
    if arguments:
        sys.stdout.writelines(f"{line}\n" for line in sites(arguments[-1]))
        return 0
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
    # Runs at the same time would clear each other's folders out of pytest's common one.
    folder = copy.with_name(f"{copy.name}-tests")
    # The tests of a row are run whatever their marks.
    plain = (sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider")
    command = [*plain, f"--basetemp={folder}", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

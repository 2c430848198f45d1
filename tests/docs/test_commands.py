"""Does every page work as written? The test writes its files and runs its commands, in order.

It does so in an empty folder with an empty home. Commands that cannot run there are listed below,
with the reason. An entry that no page contains any more is an error too.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from pages import COMMANDS, KNOWN, ROOT, Block, blocks, pages

# Pages that have a test of their own, which compares more than exit codes.
FOLLOWED_BY = {
    "docker/README.md": "tests/docker/test_batch.py",
    "docs/calibration.md": "tests/calibrate/test_calibration_page.py",
    "docs/report.md": "tests/report/test_report_docs.py",
    "docs/how-to/slurm.md": "tests/slurm/test_page.py",
    "docs/traces.md": "tests/trace/test_docs.py",
    "docs/write-a-policy.md": "tests/docs/test_write_a_policy.py",
    "traces/README.md": "tests/trace/test_samples.py",
}
# Pages that take longer or need more than Python.
MARKS = {
    "README.md": pytest.mark.slow,
    "docs/cassini.md": pytest.mark.slow,
    "docs/contention.md": pytest.mark.slow,
    "docs/data-placement.md": pytest.mark.slow,
    "docs/failures.md": pytest.mark.slow,
    "docs/how-to/experiments.md": pytest.mark.slow,
    "docs/how-to/own-fabric.md": pytest.mark.slow,
    "docs/how-to/ray.md": pytest.mark.ray,
    "docs/how-to/reproduce-the-paper.md": pytest.mark.slow,
    "docs/learning.md": pytest.mark.rl,
    "docs/mast.md": pytest.mark.slow,
    "examples/README.md": pytest.mark.slow,
}
# Prefixes of commands that this test does not run.
NOT_RUN = {
    "make sim": "sets up an environment from a registry; `artist sim` is run instead",
    "make test": "runs this very test",
    ". .venv/bin/activate": "`make sim` makes that environment",
    "make docs": "test_manual.py runs what it runs",
    "make slow": "runs this test, among others",
    "make docker-batch": "builds an image as root; tests/docker/test_batch.py runs what it runs",
    "docker/batch.sh": "needs that image; tests/docker/test_batch.py runs it",
    "docker run": "needs that image; docker/build-image.sh and tests/docker run it",
    "docker pull": "needs a registry",
    "artist sim --trace tiny-batch --racks 2 --backend astra-docker": "needs what is pulled there",
    "make bench": "takes a quarter of an hour, and installs what it needs",
    "python benchmarks/": "takes a quarter of an hour; tests/benchmarks checks its tools",
    "python hatch_build.py": "needs a C compiler; tests/packaging/test_compiled.py runs it",
    "make fuzz": "takes hours; tests/fuzz runs a slice",
    "make attack": "takes ten minutes; tests/experiments and tests/hostile run a slice",
    "make oracles": "takes half an hour; make slow runs a part",
    "make examples": "overwrites files of the checkout; tests/examples compares them",
    "artist train machines.yaml --steps 300000": "takes ten minutes; the page runs a short one",
    "artist train machines.yaml --steps 80000": "takes minutes; the page runs a short one",
    "artist sim machines.yaml --set contention=mean --policy learned": "runs what that one trains",
    "make reference": "needs recordings that artist does not ship; tests/validation compares them",
    "pip install": "needs a registry",
}


def followed() -> list[object]:
    return [
        pytest.param(page, marks=MARKS.get(page, ()), id=page)
        for page in pages()
        if page not in FOLLOWED_BY and any(_does_something(block) for block in blocks(page))
    ]


def _does_something(block: Block) -> bool:
    return bool(_script(block)) or block.language == "python"


def _script(block: Block) -> str:
    if block.language not in COMMANDS:
        return ""
    return "\n".join(line for line in block.commands if not line.startswith(tuple(NOT_RUN)))


@pytest.mark.parametrize("page", followed())
def test_a_page_works_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    _furnish(tmp_path)
    printed = ""
    for block in blocks(page):
        place = f"{page}:{block.line}"
        if block.name:
            target = tmp_path / block.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif block.language == "text":
            for line in map(_plain, block.text.splitlines()):
                assert line in printed, f"{place}: {line!r} was not printed, but\n{printed}"
        elif block.language == "python":
            printed += _run([sys.executable, "-c", block.text], tmp_path, place)
        elif script := _script(block):
            lines = script.splitlines()
            asked = [shlex.split(line, comments=True) for line in lines if _needs_no_shell(line)]
            if len(asked) < len(lines):
                asked = [["bash", "-euo", "pipefail", "-c", script]]
            for command in asked:
                printed += _run(command, tmp_path, place)


def _needs_no_shell(line: str) -> bool:
    bare = re.sub(r"'[^']*'|\"[^\"$`]*\"|#.*", "", line)
    return line.startswith("artist ") and not re.search(r"[\\|<>$`;&*?~{\[]", bare)


def _furnish(folder: Path) -> None:
    """Link the files of the repository that the pages name."""
    for name in ("examples", "studies", "docker", "docs", "Makefile", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)


def _run(command: list[str], folder: Path, place: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = folder / "home"
    env = {"PATH": path, "HOME": str(home), "ARTIST_CACHE_DIR": str(home / "cache")}
    if command[0] == "artist":
        ran = forked.run(*command[1:], cwd=folder, env=env)
    else:
        ran = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=900, check=False
        )
    assert ran.returncode == 0, f"{place}:\n{shlex.join(command)}\n{ran.stdout}{ran.stderr}"
    return "".join(f"{_plain(line)}\n" for line in ran.stdout.splitlines())


def _plain(line: str) -> str:
    return " ".join(line.split())


def test_every_fence_says_what_it_is() -> None:
    for page in pages():
        for block in blocks(page):
            assert block.language in KNOWN, f"{page}:{block.line}: fence {block.language!r}"


def test_pages_with_a_test_of_their_own_have_one() -> None:
    for page, test in FOLLOWED_BY.items():
        assert (ROOT / page).is_file()
        assert (ROOT / test).is_file()


def test_nothing_is_listed_that_is_not_written_anywhere() -> None:
    written = [line for page in pages() for block in blocks(page) for line in block.commands]
    for start in NOT_RUN:
        assert any(line.startswith(start) for line in written), f"no page has {start!r}: unlist it"
    for page in MARKS:
        assert any(_does_something(block) for block in blocks(page))

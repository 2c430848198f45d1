"""Is the README true? Its commands are run as written, in an empty home."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("artist ")])
def test_command_of_the_readme_works(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_make_targets_of_the_readme_exist() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [c.split()[1] for c in COMMANDS if c.startswith("make ")]
    assert named[:2] == ["sim", "test"]
    assert set(named) <= set(targets)


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"

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
README = (ROOT / "README.md").read_text()
BLOCKS = [
    [line.split("  #")[0].strip() for line in block.splitlines()]
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
]
COMMANDS = [command for block in BLOCKS for command in block]


@pytest.mark.parametrize("block", [b for b in BLOCKS if b[0].startswith("artist ")], ids=str)
def test_commands_of_the_readme_work_one_after_the_other(block: list[str], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in block:
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
        assert ran.stdout or ran.stderr


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

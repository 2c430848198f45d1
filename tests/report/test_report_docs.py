"""Do the commands in docs/report.md work as written? Do its pictures exist, and are they small?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "report.md").read_text()


def test_commands(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.S))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-euc", commands],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for name in ("one.html", "report.html", "figures/makespan.pdf", "trace.json"):
        assert (tmp_path / name).stat().st_size > 0


def test_pictures() -> None:
    names = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    assert names
    for name in names:
        assert (DOCS / name).stat().st_size < 300_000

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


def run(blocks: list[str], folder: Path) -> None:
    """Run the commands of a page in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-euc", "\n".join(blocks)],
        cwd=folder, env={"PATH": path, "HOME": str(folder / "home")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_the_commands_on_the_page_work(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run(re.findall(r"```sh\n(.*?)```", TEXT, re.S), tmp_path)
    for name in ("one.html", "report.html", "figures/makespan.pdf", "trace.json"):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.slow
def test_the_map_of_the_worked_example(tmp_path: Path) -> None:
    """The commands beside the picture make a picture with the same words, in a small file."""
    pytest.importorskip("matplotlib")
    text = (DOCS / "contention.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    made = next(i for i, block in enumerate(blocks) if "--figures pictures" in block)
    run(blocks[: made + 1], tmp_path)
    name = re.findall(r"# the map is (\S+)", blocks[made])[0]
    picture = DOCS / re.findall(r"!\[[^]]+\]\(([^)]+\.svg)\)", text)[0]
    words = [re.findall(r"<text[^>]*>([^<]+)", p.read_text()) for p in (tmp_path / name, picture)]
    assert words[0] == words[1]
    assert "rack 1" in words[0]
    assert picture.stat().st_size < 100_000


def test_the_pictures_exist_and_are_small() -> None:
    names = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    assert names
    for name in names:
        assert (DOCS / name).stat().st_size < 300_000

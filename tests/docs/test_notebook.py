"""Does each notebook run from top to bottom in a fresh kernel? Is it stored without outputs?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.ipynb"))
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=300, kernel_name="python3").execute()
print(sum(cell.execution_count is not None for cell in book.cells if cell.cell_type == "code"))
"""


def _code_cells(notebook: str) -> list[dict[str, object]]:
    cells = json.loads((EXAMPLES / notebook).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_no_outputs_are_stored(notebook: str) -> None:
    for cell in _code_cells(notebook):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_notebook_runs(notebook: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(EXAMPLES / notebook)],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(ran.stdout) == len(_code_cells(notebook))

"""Does docs/write-a-policy.md work as written?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "write-a-policy.md"


def test_the_policy_of_the_how_to_runs_and_passes_its_test(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == ["patience.py", "test_patience.py", "run_patience.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code)
    for command in (["-m", "pytest", "-q", "test_patience.py"], ["run_patience.py"]):
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

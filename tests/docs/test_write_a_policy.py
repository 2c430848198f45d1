"""Does docs/write-a-policy.md work as written?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "write-a-policy.md"


def test_the_commands_of_the_how_to_work_and_write_what_it_shows(tmp_path: Path) -> None:
    text = PAGE.read_text()
    commands = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0].splitlines()
    assert [command.split()[1] for command in commands] == ["policy", "policy", "sim", "compare"]
    for command in [*(line.split() for line in commands), ["pytest", "-q", "test_patience.py"]]:
        ran = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in blocks] == ["patience.py", "test_patience.py"]
    for name, code in blocks:
        assert (tmp_path / name).read_text() == code

"""Do workers on other machines get every file that a scenario names?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.config import Scenario
from artist.experiments.ray_worker import InputFiles


def test_policies_in_files_and_the_mapping_beside_a_trace_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "t.csv.columns.yaml", "quota.py", "mine.py"):
        Path(name).write_text(name)
    folder = tmp_path / "copies"
    folder.mkdir()
    policy = "quota.py:Quota(mine.py:Mine)"
    copied = InputFiles(folder).copied(Scenario(trace="t.csv", policy=policy))
    assert copied.policy == "inputs/1/quota.py:Quota(inputs/2/mine.py:Mine)"
    assert (folder / f"{copied.trace}.columns.yaml").read_text() == "t.csv.columns.yaml"
    for name in ("inputs/1/quota.py", "inputs/2/mine.py"):
        assert (folder / name).read_text() == Path(name).name

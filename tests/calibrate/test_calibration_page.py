"""`docs/calibration.md`: its commands run, and its numbers are those that the commands print."""

import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")
_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_runs_from_log_to_what_if(artist, tmp_path: Path) -> None:
    for language, name, text in _FENCE.findall(PAGE):
        if name:
            (tmp_path / name).write_text(text)
        elif language == "sh":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "artist"
                done = artist(*arguments)
                assert done.returncode == 0, f"{line}\n{done.stderr}"
    manifest = json.loads((tmp_path / "calibrated/manifest.json").read_text())
    assert manifest["scenario"]["calibration"] == "ours"
    assert "calibration" in manifest["inputs"]

    def comm_s(run: str) -> float:
        return float(json.loads((tmp_path / run / "summary.json").read_text())["comm_time_mean_s"])

    assert comm_s("calibrated") > comm_s("uncalibrated")


@pytest.mark.slow
def test_the_table_is_the_commands(artist) -> None:
    printed = json.loads(artist("calibrate", "--all", "--format", "json").stdout)
    for model in printed["models"]:
        after = [model["model"]]
        for level in model["levels"]:
            deviation = level["deviation"]
            shown = "" if level["role"] == "fitted" else f" ({100 * deviation:+.0f} %)"
            after.append(f"{level['measured_percent']:g}, {level['simulated_percent']:.4g}{shown}")
        assert f"| {' | '.join(after)} |" in PAGE

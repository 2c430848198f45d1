"""Does `artist place-data` plan from a folder to a folder, and print what programs read?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

KEYS = [
    "ratio_max_before",
    "ratio_max_after",
    "ratio_sd_before",
    "ratio_sd_after",
    "moved_bytes_share",
    "collocation_before",
    "collocation_after",
    "objective_before",
    "objective_after",
]


@pytest.fixture
def warehouse(artist, tmp_path: Path) -> Path:
    artist(
        *("trace", "synth", "--shape", "warehouse", "--jobs", "50", "--gpus", "1000"),
        *("--tables", "10", "--regions", "3", "--out", "w"),
        code=0,
    )
    return tmp_path / "w"


def test_json_has_the_chief_numbers_and_out_a_plan(artist, warehouse: Path, tmp_path: Path) -> None:
    ran = artist(
        "place-data", warehouse, "--out", "plan", "--set", "quota=0.5", "--format", "json", code=0
    )
    facts = json.loads(ran.stdout)
    assert list(facts) == KEYS
    assert facts["objective_after"] < facts["objective_before"]
    names = {path.name for path in (tmp_path / "plan").iterdir()}
    assert names == {"tables.csv", "moves.csv", "balance.csv", "days.csv", "plan.json"}
    again = artist("place-data", warehouse, "--out", "plan")
    assert (again.returncode, "holds a plan already" in again.stderr) == (2, True)
    artist("place-data", warehouse, "--out", "plan", "--overwrite", "--format", "json", code=0)
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["options"]["quota"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "quotum=1"), "unknown setting 'quotum': did you mean 'quota'?"),
        (("--set", "days=0"), "'days' is '0', expected at least 1"),
        (("--set", "days"), "--set 'days': expected KEY=VALUE"),
    ],
)
def test_a_wrong_option_ends_in_one_sentence(
    artist, tmp_path: Path, arguments: tuple[str, str], words: str
) -> None:
    ran = artist("place-data", tmp_path, *arguments, code=2)
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr

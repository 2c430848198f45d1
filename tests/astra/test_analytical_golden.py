"""Does every figure of the real ASTRA-sim come out exactly?

The whole table is not part of the repository; a sample of it is tested in any case
(see `test_case_table.py`).
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from artist.astra.files.case_table import run_cases

FIDELITY = Path(__file__).parents[3] / "shared" / "fidelity"
GOLDEN = FIDELITY / "golden_astra2.csv"
REFUSALS = {"endpoint_delay=0": "zero-endpoint-delay", "deadlock": "deadlock"}

pytestmark = pytest.mark.skipif(
    not GOLDEN.exists(), reason=f"the table of real ASTRA-sim runs is not at {GOLDEN}"
)


def wrong(row: dict[str, str]) -> bool:
    """Whether a result row differs from that of the real binary."""
    if row["backend"] == "aware":
        return row["artist_error"] != "unsupported-backend"
    if row["valid"] == "1":
        return (row["artist_finish_cycles_max"], row["artist_error"]) != (
            str(int(float(row["finish_cycles_max"]))),
            "",
        )
    expected = next(word for start, word in REFUSALS.items() if row["failure"].startswith(start))
    return row["artist_error"] != expected


def evaluated(rows: list[dict[str, str]], folder: Path) -> list[dict[str, str]]:
    cases, out = folder / "cases.csv", folder / "out.csv"
    with cases.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    run_cases(cases, FIDELITY / "workloads", out)
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def golden(*, trees: bool) -> list[dict[str, str]]:
    with GOLDEN.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if ("doubleBinaryTree" in row["all_reduce_impl"]) is trees]


def test_every_row_whose_npus_are_alike(tmp_path: Path) -> None:
    rows = evaluated(golden(trees=False), tmp_path)
    assert [row["case_id"] for row in rows if wrong(row)] == []
    exposed = [
        row["case_id"]
        for row in rows
        if row["artist_finish_cycles_max"]
        and int(row["artist_exposed_comm_cycles"]) != float(row["exposed_comm_cycles_sys0"])
    ]
    assert exposed == []


@pytest.mark.slow
def test_every_row_with_trees(tmp_path: Path) -> None:
    rows = evaluated(golden(trees=True), tmp_path)
    assert [row["case_id"] for row in rows if wrong(row)] == []

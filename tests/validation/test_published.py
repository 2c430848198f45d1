"""Does what `make reference` stored bear out docs/original-simulator.md?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from validation.original.tables import NEAR, RATIOS


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "published.json").read_text())


def test_everything_comes_out_in_the_originals_own_order(published) -> None:
    for row in published["replay"]:
        assert row["agree"] == row["same_gpus"] == row["decisions"]
    for row in published["jobs"]:
        assert row["agree"] == row["jobs"]
    for row in published["aggregates"]:
        for name in RATIOS:
            assert row[f"{name}_own_order"] == pytest.approx(1, abs=1e-5), row


def test_no_cell_strays_without_the_jobs_that_cannot_bear_distance(published) -> None:
    assert published["without"]
    for row in published["without"]:
        assert row["jct_mean_ratio"] == pytest.approx(1, abs=NEAR), row
        assert row["makespan_ratio"] == pytest.approx(1, abs=NEAR), row


def test_every_required_cell_is_there(published) -> None:
    cells = {(row["scheme"], row["racks"], row["trace"]) for row in published["aggregates"]}
    schemes = ("Dally-auto", "Dally-manual", "Dally-noWait", "Dally-fullyCons", "Tiresias")
    expected = {
        (scheme, racks, trace)
        for scheme in schemes
        for trace, sizes in (
            ("sensetime_500_batch", (2, 4, 8, 16)),
            ("sensetime_411_poisson_week", (2, 4, 8)),
        )
        for racks in sizes
    }
    assert cells == expected

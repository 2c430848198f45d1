"""Does the page about competing jobs say what its runs say, and do the runs still say it?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from artist.results.statistics.compare_values import (
    LESS,
    MORE,
    UNDECIDED,
    ComparedValues,
    compare_values,
)
from studies.contention.study import judging, observations


def test_every_planned_run_has_one_row() -> None:
    rows = observations.ROWS.read()
    places = [tuple(row[column] for column in observations.PLACE) for row in rows]
    planned = [
        observations.place_of(name, dict(run.point))
        for name in observations.FILES
        for run in observations.planned_runs(name)
    ]
    assert places == planned


def rows_of(gandiva_at_4: float) -> list[dict[str, str]]:
    """Six replicates in which Gandiva beats FIFO by a third without contention.

    With it, on 4:1 racks, its mean JCT is about `gandiva_at_4` times that.
    """
    jct = {"fifo": 300.0, "gandiva": 200.0}

    def row(seed: int, policy: str, ratio: int, contention: str) -> dict[str, str]:
        slowed = (policy, ratio, contention) == ("gandiva", 4, "mean")
        factor = gandiva_at_4 + seed / 100 if slowed else 1.0
        place = ("experiment", str(seed), policy, str(ratio), contention)
        values = dict.fromkeys(observations.METRICS, "1.0")
        values["jct_mean_s"] = str((jct.get(policy, 100.0) + seed) * factor)
        return dict(zip(observations.PLACE, place, strict=True)) | values

    return [
        row(seed, policy, ratio, contention)
        for seed in range(6)
        for policy in observations.POLICIES
        for ratio in observations.RATIOS
        for contention in ("none", "mean")
    ]


def test_a_pair_that_contention_reverses_is_reported() -> None:
    one = judging.Judged(rows_of(2.0))
    (change,) = one.changes()
    assert (change.ratio, change.ahead, change.behind) == (4, "gandiva", "fifo")
    assert change.kind == "surely reversed"
    assert one.reversals() == {("jct_mean_s", 4): [change]}
    cost = one.costs["jct_mean_s", 4, "gandiva"]
    assert cost.verdict == MORE
    assert cost.ratio == pytest.approx(2.025, abs=1e-3)


def test_no_change_is_reported_where_contention_costs_too_little() -> None:
    one = judging.Judged(rows_of(1.1))
    assert one.changes() == []
    assert one.reversals() == {}


def test_runs_without_contention_that_differ_between_fabrics_are_refused() -> None:
    rows = rows_of(1.1)
    odd = next(
        row for row in rows if row["contention"] == "none" and row["oversubscription"] == "2"
    )
    odd["jct_mean_s"] = "1"
    with pytest.raises(ValueError, match="without contention the fabrics give different runs"):
        judging.Judged(rows)


def test_a_missing_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks a seed"):
        judging.Judged(rows_of(1.1)[:-1])


SURELY_LESS = compare_values((100.0, 110, 95, 103, 99), (50.0, 56, 47, 52, 50))
SURELY_MORE = compare_values((50.0, 56, 47, 52, 50), (100.0, 110, 95, 103, 99))
PERHAPS_LESS = replace(SURELY_LESS, verdict=UNDECIDED)
PERHAPS_MORE = replace(SURELY_MORE, verdict=UNDECIDED)


@pytest.mark.parametrize(
    ("before", "after", "move", "kind"),
    [
        (SURELY_LESS, SURELY_MORE, SURELY_MORE, "surely reversed"),
        (SURELY_LESS, PERHAPS_MORE, PERHAPS_MORE, "a sure order is lost"),
        (PERHAPS_LESS, SURELY_MORE, PERHAPS_MORE, "a sure order appears"),
        (PERHAPS_LESS, PERHAPS_MORE, SURELY_MORE, "perhaps noise"),
        (PERHAPS_LESS, SURELY_LESS, SURELY_LESS, "a sure order appears"),
        (SURELY_LESS, PERHAPS_LESS, SURELY_MORE, "a sure order is lost"),
        (SURELY_LESS, PERHAPS_LESS, PERHAPS_MORE, ""),
        (SURELY_LESS, SURELY_LESS, SURELY_MORE, ""),
    ],
)
def test_how_an_order_changes(
    before: ComparedValues,
    after: ComparedValues,
    move: ComparedValues,
    kind: str,
) -> None:
    assert (SURELY_LESS.verdict, SURELY_MORE.verdict) == (LESS, MORE)
    assert judging.kind_of_change(before, after, move) == kind

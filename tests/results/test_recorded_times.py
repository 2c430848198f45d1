"""Does a run say how its run times compare with those that the trace records?"""

from __future__ import annotations

import pytest

from artist.results.caveats import run_to_recorded

JOBS = {
    "job_id": ["a", "b", "c"], "model": ["vgg11", "dlrm", "dlrm"],
    "run_s": [10.0, 30.0, 60.0], "ideal_s": [10.0, 15.0, 30.0], "jct_s": [90.0, 90.0, 90.0],
}  # fmt: skip


def test_the_median_and_the_first_of_the_largest() -> None:
    compared = run_to_recorded(JOBS)  # ratios 1, 2, 2
    assert compared == (2.0, 2.0, "b", "dlrm")
    assert compared.sentence() == (
        "Jobs run 2 x their recorded time (median), 2 x at most (job 'b', 'dlrm')."
    )


@pytest.mark.parametrize(("run_s", "much"), [(150.0, False), (150.1, True)])
def test_more_than_ten_times_is_much(run_s: float, much: bool) -> None:
    compared = run_to_recorded({**JOBS, "run_s": [10.0, run_s, 30.0]})
    assert compared.much is much
    assert ("counts as compute time" in compared.sentence()) is much

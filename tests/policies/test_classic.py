"""Do equal run times give equal ranks, and does `LastRanked` forget finished jobs?"""

from __future__ import annotations

import pytest
from support import cluster, job, make_policy, run

from artist.engine.job_state import JobState
from artist.policies.shared.ranking import LastRanked


@pytest.mark.parametrize("policy", ["sjf", "srtf", "srsf"])
def test_three_times_a_tenth_of_a_second_is_as_long_as_three_tenths(policy: str) -> None:
    first = job("first", iterations=3, compute_s=0.1)  # 0.30000000000000004 in floats
    second = job("second", iterations=1, compute_s=0.3)
    rows = run(cluster([1]), [first, second], make_policy(policy))
    assert [row.job.id for row in rows.jobs] == ["first", "second"]


def test_jobs_that_finished_do_not_pile_up() -> None:
    last = LastRanked()
    for handle in range(1000):
        last.add(handle, (float(handle),))
        last.forget(handle)
    last.add(1000, (5.0,))
    assert last.behind(((1.0,), 0), {}, lambda job: ()) == []
    assert len(last._heap) < 5


def test_a_forgotten_job_is_not_looked_at() -> None:
    last = LastRanked()
    for handle in range(4):
        last.add(handle, (5.0,))
    last.forget(2)
    running = {handle: JobState(job(f"job-{handle}"), handle, 0) for handle in range(4)}
    ranked = last.behind(((1.0,), 9), running, lambda job: (5.0,))
    assert [state.handle for _, state in ranked] == [0, 1, 3]

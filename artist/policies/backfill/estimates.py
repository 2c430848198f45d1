"""How long a scheduler believes that jobs will run (option `estimates`).

| estimate | a job is expected to hold its GPUs for |
| --- | --- |
| `exact` | as long as it will at its present rate; a waiting job: as long as it would alone |
| `limit` | its time limit, the column `hint_time_limit_s` of the trace |
| `factor:F` | F times `exact`, as in Mu'alem and Feitelson, section 5 |

A job that outlasts its estimate is expected to take twice as long, and twice that if it outlasts
this too. `exact` knows neither coming contention nor coming failures nor, before a job starts,
what its checkpoints will cost.
"""

from __future__ import annotations

from decimal import Decimal

from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.errors import TraceError, shortened
from artist.io.reading import as_float
from artist.policies.options import estimate_factor
from artist.units import MAX_TIME_S, Tick, exact_ticks, ticks
from artist.workload.job import Job

LIMIT = "hint_time_limit_s"
"""The column of a trace with time limits, in seconds."""


class RunEstimates:
    """Expected run times by one rule."""

    def __init__(self, rule: str) -> None:
        self._by_limit = rule == "limit"
        factor = estimate_factor(rule)
        self._num, self._den = Decimal(repr(factor)).as_integer_ratio()

    def duration(self, view: ClusterView, job: JobView, placement: Placement) -> Tick:
        """For how long a waiting job would hold these GPUs from now on."""
        return self._estimate(job.job, 0 if self._by_limit else _alone(view, job, placement))

    def end(self, job: JobView, now: Tick) -> Tick:
        """When a running job gives its GPUs back: a tick after now."""
        estimate = self._estimate(job.job, job.finish - job.started)
        while job.started + estimate <= now:
            estimate *= 2
        return job.started + estimate

    def _estimate(self, job: Job, exact: Tick) -> Tick:
        if self._by_limit:
            return time_limit(job)
        return max(1, -(-exact * self._num // self._den))


def _alone(view: ClusterView, job: JobView, placement: Placement) -> Tick:
    """For how long a job would hold GPUs if no other job used the network."""
    rate = view.alone(job.job, placement)
    num, den = exact_ticks(rate.submitted_iteration_s)
    left = job.job.iterations - job.iterations_done(view.now)
    restart = 0 if job.former_placement is None else ticks(job.job.restart_s)
    return restart - (-left * num // den)


def time_limit(job: Job) -> Tick:
    """The time limit of a job.

    Raises:
        TraceError: it has none, or one that is not a time.
    """
    limit_s = as_float(str(job.hints.get(LIMIT, "")))
    if not 0 < limit_s <= MAX_TIME_S:
        raise TraceError(
            f"job {shortened(job.id)}: {LIMIT} is {shortened(job.hints.get(LIMIT))}, and "
            "policy.estimates=limit needs the time limit of every job in seconds; name the "
            f"trace's column with --columns {LIMIT}=COLUMN, or choose exact or factor:F"
        )
    return max(1, ticks(limit_s))

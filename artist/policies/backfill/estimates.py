"""How long a scheduler believes that jobs will run (option `estimates`).

| estimate | a job is expected to hold its GPUs for |
| --- | --- |
| `exact` | as long as it will at its present rate; a waiting job: as long as it would alone |
| `limit` | its time limit, the column `hint_time_limit_s` of the trace |
| `factor:F` | F times `exact`, as in Mu'alem and Feitelson, section 5 |
| `learned` | the mean run time of the last two jobs of its user that finished, at most its limit |

The last rule is that of Tsafrir, Etsion and Feitelson, *Backfilling using system-generated
predictions* (TPDS 2007), section 4. It predicts when a reservation is made. For a user of whom no
job has finished it takes the limit, as they do. Ours: without a limit the last two jobs of anybody
count, and before any has finished an hour.

A job that outlasts its estimate is expected to take twice as long, and twice that if it outlasts
this too. `exact` knows neither coming contention nor coming failures nor, before a job starts,
what its checkpoints will cost.
"""

from __future__ import annotations

from collections import deque
from decimal import Decimal

from artist.cluster.kinds import several_kinds
from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.errors import TraceError, shortened
from artist.io.reading import as_float
from artist.policies.backfill.options import estimate_factor
from artist.units import MAX_TIME_S, Tick, exact_ticks, ticks
from artist.workload.job import Job, start_cost_s

LIMIT = "hint_time_limit_s"
"""The column of a trace with time limits, in seconds."""

_UNKNOWN = deque([ticks(3600)])


class RunEstimates:
    """Expected run times by one rule."""

    def __init__(self, rule: str) -> None:
        self._by_limit, self._learns = rule == "limit", rule == "learned"
        factor = estimate_factor(rule)
        self._num, self._den = Decimal(repr(factor)).as_integer_ratio()
        self._exact = rule == "exact"
        # By user, and of anybody (None): the last two run times.
        self._last: dict[str | None, deque[Tick]] = {}
        # Running jobs, by handle: user, start, and the run time that was expected then.
        self._running: dict[int, tuple[str, Tick, Tick]] = {}
        # By model and GPUs, where all GPUs are of one kind: the scale of the compute time.
        self._compute_scales: dict[tuple[str, int], float] = {}
        # By job in the system: `shortest` while it waits, once that is known.
        self._shortest: dict[int, Tick] = {}

    def learn(self, view: ClusterView) -> None:
        """Note how long the jobs ran that finished. Call it first at each question."""
        for handle in (*view.finished, *(job.handle for job in view.entered)):
            self._shortest.pop(handle, None)
        # Of jobs that finish at one instant, the one that arrived last counts as the last.
        for handle in sorted(view.finished) if self._learns else ():
            user, start, _ = self._running.pop(handle)
            for whose in (user, None):
                self._last.setdefault(whose, deque(maxlen=2)).append(view.now - start)

    def starts(self, job: JobView, now: Tick, duration: Tick) -> None:
        """Note that a job starts, and how long it is expected to run."""
        if self._learns:
            self._running[job.handle] = job.job.user, now, duration

    def duration(self, view: ClusterView, job: JobView, placement: Placement) -> Tick:
        """For how long a waiting job would hold these GPUs from now on."""
        if self._learns:
            return self._predicted(job.job)
        return self._estimate(job.job, 0 if self._by_limit else self._alone(view, job, placement))

    def shortest(self, view: ClusterView, job: JobView) -> Tick:
        """A lower bound of `duration` on any GPUs: of `exact`, the time without communication.

        It is a tick where that is not known, or GPUs are of several kinds.
        """
        if self._learns:
            return self._predicted(job.job)
        if self._by_limit:
            return time_limit(job.job)
        if job.handle in self._shortest:
            return self._shortest[job.handle]
        scale = self._compute_scales.get((job.job.model, job.job.gpus))
        if scale is None or job.job.goodput is not None:
            return 1
        left = job.job.iterations - job.iterations_done(view.now)
        num, den = exact_ticks(job.job.compute_s * scale)
        self._shortest[job.handle] = self._estimate(job.job, left * num // den)
        return self._shortest[job.handle]

    def end(self, job: JobView, now: Tick) -> Tick:
        """When a running job gives its GPUs back: a tick after now."""
        if self._exact and job.finish > now:
            return job.finish
        if self._learns:
            _, _, estimate = self._running[job.handle]
        else:
            estimate = self._estimate(job.job, job.finish - job.started)
        while job.started + estimate <= now:
            estimate *= 2
        return job.started + estimate

    def _alone(self, view: ClusterView, job: JobView, placement: Placement) -> Tick:
        """For how long a job would hold GPUs if no other job used the network."""
        rate = view.alone(job.job, placement)
        if job.job.goodput is None and not several_kinds(view.cluster):
            self._compute_scales[job.job.model, job.job.gpus] = rate.compute_scale
        num, den = exact_ticks(rate.submitted_iteration_s)
        left = job.job.iterations - job.iterations_done(view.now)
        starts = ticks(start_cost_s(job.job, again=job.former_placement is not None))
        return starts - (-left * num // den)

    def _predicted(self, job: Job) -> Tick:
        last = self._last.get(job.user)
        limited = bool(job.hints.get(LIMIT))
        if last is None and limited:
            return time_limit(job)
        last = last or self._last.get(None) or _UNKNOWN
        mean = max(1, sum(last) // len(last))
        return min(mean, time_limit(job)) if limited else mean

    def _estimate(self, job: Job, exact: Tick) -> Tick:
        if self._by_limit:
            return time_limit(job)
        return max(1, -(-exact * self._num // self._den))


def time_limit(job: Job) -> Tick:
    """The time limit of a job, rounded up as the engine rounds the ends of runs.

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
    num, den = exact_ticks(limit_s)
    return -(-num // den)

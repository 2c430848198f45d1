"""Iterations of jobs that share links: a model of contention decides shares, curves read them.

A model sees jobs that are Down and Up. What overlaps with computation makes an iteration longer by
less than the Up phase, and a curve says by how much. With B the Up time beside the others,

    share phi      busy(phi) = B: so long does the query take to send at that share
    iteration      iteration(phi), the same query's
    Down time      iteration(phi) - B, for the model's next round

Rounds go on until Down times stay. Without overlap the first round is the answer.

A job may fill an oversubscribed link by itself. Then it is slower than its query says even alone,
and what others cost it counts from there (decision 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artist.network.demand.curves import Curve, GrowingCurve
from artist.network.demand.ways import JobOnLinks, Way, contention
from artist.network.models.canonical import Model
from artist.network.models.patterns import InTurn

# A Down time that changes by a thousandth of an iteration changes no answer by a percent.
SETTLED = 1e-3
MOST_ROUNDS = 10

# Capacities are stated to three or four digits. A job that is slowed by less is not slowed.
SLOWED = 1e-3


@dataclass(frozen=True, slots=True)
class CurvedJob:
    """A job for a model of contention. `compute_s` is the compute time of its iteration.

    Only ratios come from a backend (Dally, section IV-C). So if the job computes k times as long as
    the query's iteration, it also sends k times as long and as much: rates are the query's.
    """

    ways: tuple[Way, ...]
    curve: Curve | GrowingCurve
    compute_s: float
    offset_s: float = 0.0
    turn: InTurn | None = None

    def iteration_s(self, share: float) -> float:
        """An iteration at a share of the bandwidth: compute time x (1 + comm ratio)."""
        return self.compute_s * (1.0 + self.curve.comm_ratio(share))

    def busy_s(self, share: float) -> float:
        """The time of an iteration in which the job sends over contended levels, at a share."""
        return self.compute_s * self.curve.busy_ratio(share)


@dataclass(frozen=True, slots=True)
class Shared:
    """A job's share of the bandwidth, and its iterations at this share and alone."""

    share: float
    iteration_s: float
    alone_s: float
    own_share: float = 1.0
    """Its share alone: below 1 if its own links cannot carry what it sends."""
    corrections_per_min: float = 0.0
    """How often it waits so that it keeps its turn."""


def shared(
    jobs: Sequence[CurvedJob],
    model: Model,
    *,
    eta: float = 1.0,
    fair_queued: frozenset[str] = frozenset(),
) -> tuple[Shared, ...]:
    """Iterations of jobs on the links that their ways cross; arguments as in `contention`."""
    shares, fills, corrections = _rounds(jobs, model, eta, fair_queued)
    answers = []
    for job, share, full, per_min in zip(jobs, shares, fills, corrections, strict=True):
        own = _rounds([job], model, eta, fair_queued)[0][0] if full and len(jobs) > 1 else 1.0
        own = share if full and len(jobs) == 1 else own
        share = min(share, own)
        times_s = job.iteration_s(share), job.iteration_s(own)
        answers.append(Shared(share, *times_s, own, per_min))
    return tuple(answers)


def _rounds(
    jobs: Sequence[CurvedJob], model: Model, eta: float, fair_queued: frozenset[str]
) -> tuple[list[float], list[bool], list[float]]:
    """The share of each job, whether it fills a link of its own by itself, and corrections."""
    shares = [1.0] * len(jobs)
    corrections = [0.0] * len(jobs)
    fills = [False] * len(jobs)
    seen = [seen_by_models(job, 1.0) for job in jobs]
    for _ in range(MOST_ROUNDS):
        before = seen
        slowed = model(contention(before, eta=eta, fair_queued=fair_queued))
        for index, (job, answer) in enumerate(zip(jobs, slowed, strict=True)):
            at_line_rate_s = answer.alone_s
            corrections[index] = answer.corrections_per_min
            if answer.alone_s > (1 + SLOWED) * before[index].iteration_s:
                at_line_rate_s, fills[index] = before[index].iteration_s, True
            if answer.iteration_s != at_line_rate_s:
                busy_s = before[index].busy_s + answer.iteration_s - at_line_rate_s
                shares[index] = job.curve.share_at(busy_s / job.compute_s)
            else:
                shares[index] = 1.0
        seen = [seen_by_models(job, share) for job, share in zip(jobs, shares, strict=True)]
        if all(
            abs(now.iteration_s - then.iteration_s) <= SETTLED * then.iteration_s
            for now, then in zip(seen, before, strict=True)
        ):
            break
    return shares, fills, corrections


def _down_s(job: CurvedJob, share: float) -> float:
    return max(job.iteration_s(share) - job.busy_s(share), 0.0)


def seen_by_models(job: CurvedJob, share: float) -> JobOnLinks:
    """A job with a share of the bandwidth, as a model sees it: Down and Up, alone."""
    busy_s = job.busy_s(1.0)
    times = job.compute_s / job.curve.compute_s
    ways = tuple(replace(way, volume_bytes=times * way.volume_bytes) for way in job.ways)
    iteration_s = _down_s(job, share) + busy_s
    return JobOnLinks(ways if busy_s else (), iteration_s, busy_s, job.offset_s, job.turn)

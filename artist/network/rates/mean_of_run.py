"""`mean` for the jobs of a run: chains of few joined jobs, and of crowds among many.

Up to `MOST_TOGETHER` joined jobs have one chain, as in `mean`. Among more, each job that is asked
has a chain of its own with the neighbours that weigh most; the others send at their mean rates.
There one round of the fixed point asks only some jobs. All other jobs keep the shares that
were found before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from artist.cluster.links import Link
from artist.contract import JobView
from artist.network.models.mean import (
    CONVERGED,
    MOST_ROUNDS,
    MOST_TOGETHER,
    Chain,
    Crowds,
    SendingJob,
)
from artist.network.models.patterns import Flow, SharedLink
from artist.network.rates.placed_job import LoneJob, PlacedJob
from artist.network.rates.uplinks import Uplinks
from artist.network.sharing import MOST_ROUNDS as MOST_CURVE_ROUNDS
from artist.network.sharing import SETTLED
from artist.units import Tick

MEAN = "mean"


class Mean:
    """The solver `mean`."""

    name = MEAN
    most_jobs = MOST_TOGETHER
    most_rounds = MOST_ROUNDS

    def __init__(self, uplinks: Uplinks) -> None:
        self._uplinks = uplinks

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        """Shares of few joined jobs, from the chain of all."""
        if len(jobs) > 1:
            return self._shares(jobs)
        # Most questions are about one job: what would it get without others? The answer depends on
        # nothing but the links that bind, so the job keeps it.
        (placed,) = jobs
        bound = tuple(self._uplinks.bound(placed))
        if bound not in placed.lone_shares:
            placed.lone_shares[bound] = self._shares(jobs)[placed.handle]
        return {placed.handle: placed.lone_shares[bound]}

    def _shares(self, jobs: Sequence[PlacedJob]) -> Mapping[int, float]:
        every = [self._uplinks.lone(placed) for placed in jobs]
        links, flows = self._numbered(every)
        shares = [1.0] * len(jobs)
        chain: Chain | None = None
        for _ in range(MOST_CURVE_ROUNDS):
            before = [x.curved.iteration_s(share) for x, share in zip(every, shares, strict=True)]
            sending = [
                _sending(x, share, of_job)
                for x, share, of_job in zip(every, shares, flows, strict=True)
            ]
            # Rounds differ in Down times only.
            chain = chain or Chain(links, sending)
            periods_s = chain.periods_s(sending).tolist()
            shares = [
                _share(x, job, period_s)
                for x, job, period_s in zip(every, sending, periods_s, strict=True)
            ]
            now_s = [x.curved.iteration_s(share) for x, share in zip(every, shares, strict=True)]
            if all(abs(x - y) <= SETTLED * y for x, y in zip(now_s, before, strict=True)):
                break
        return {placed.handle: share for placed, share in zip(jobs, shares, strict=True)}

    def round(
        self,
        asked: Sequence[PlacedJob],
        sharers: Callable[[PlacedJob], Sequence[PlacedJob]],
        shares: dict[int, float],
    ) -> set[int]:
        """One round of the fixed point about some jobs: handles of those that move.

        `shares` holds what former rounds found, and is changed. Half steps damp the swings.
        """
        before = dict(shares)
        near = _near(asked, sharers)
        jobs = [near[handle] for handle in sorted(near)]
        index = {placed.handle: number for number, placed in enumerate(jobs)}
        every = [self._uplinks.lone(placed) for placed in jobs]
        links, flows = self._numbered(every)
        now = [before.get(placed.handle, placed.share) for placed in jobs]
        sending = [
            _sending(x, share, of_job) for x, share, of_job in zip(every, now, flows, strict=True)
        ]
        periods_s = [
            x.curved.iteration_s(share) + x.busy_s - x.curved.busy_s(1.0)
            for x, share in zip(every, now, strict=True)
        ]
        after_s = Crowds(links, sending).periods_s(periods_s, [index[x.handle] for x in asked])
        moved: set[int] = set()
        for placed in asked:
            here = index[placed.handle]
            after = _share(every[here], sending[here], after_s[here])
            shares[placed.handle] = after
            then_s = every[here].curved.iteration_s(now[here])
            now_s = every[here].curved.iteration_s(after)
            if abs(now_s - then_s) > CONVERGED * then_s:
                moved.add(placed.handle)
        return moved

    def _numbered(
        self, every: Sequence[LoneJob]
    ) -> tuple[tuple[SharedLink, ...], list[tuple[Flow, ...]]]:
        """The links that bind, and the flows of each job that cross one."""
        number: dict[Link, int] = {}
        flows: list[tuple[Flow, ...]] = []
        for job in every:
            of_job: list[Flow] = []
            for flow, way in zip(job.flows, job.ways, strict=True):
                binding = [link for link in way if self._uplinks.binds(link)]
                if binding:
                    numbers = tuple(number.setdefault(link, len(number)) for link in binding)
                    of_job.append(replace(flow, links=numbers))
            flows.append(tuple(of_job))
        return tuple(self._uplinks.shared_link(link) for link in number), flows


def _near(
    asked: Sequence[PlacedJob], sharers: Callable[[PlacedJob], Sequence[PlacedJob]]
) -> dict[int, PlacedJob]:
    """Some jobs, those that share an uplink with one, and those that share one with these."""
    near = {placed.handle: placed for placed in asked}
    for _ in range(2):
        near |= {other.handle: other for placed in list(near.values()) for other in sharers(placed)}
    return near


def _sending(lone: LoneJob, share: float, flows: tuple[Flow, ...]) -> SendingJob:
    """The job with the Down time that its share leaves."""
    curved = lone.curved
    down_s = max(curved.iteration_s(share) - curved.busy_s(share), 0.0)
    return SendingJob(down_s, lone.busy_s, flows)


def _share(lone: LoneJob, sending: SendingJob, period_s: float) -> float:
    """The share at which the query sends as much longer as the model says (`sharing`)."""
    longer_s = max(period_s - sending.alone_s, 0.0)
    if longer_s == 0 and lone.busy_s == lone.curved.busy_s(1.0):
        return 1.0
    return lone.curved.curve.share_at((lone.busy_s + longer_s) / lone.curved.compute_s)

"""Solvers: what models of contention leave the jobs of a run of the bandwidth.

`Mean` has one chain for up to `MOST_TOGETHER` joined jobs. Among more, each job that is asked has a
chain of its own with the neighbours that weigh most; the others send at their mean rates. There one
round of the fixed point asks only some jobs. All other jobs keep the shares that were found before.

`Phases` asks an event simulation, from where each job is in its iteration now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from artist.cluster.links import Link
from artist.contract import JobView, Turn
from artist.network.co_located import MOST_ROUNDS as MOST_CURVE_ROUNDS
from artist.network.co_located import SETTLED, CurvedJob, shared
from artist.network.models.canonical import Model
from artist.network.models.mean import (
    CONVERGED,
    MOST_ROUNDS,
    MOST_TOGETHER,
    Chain,
    Crowds,
    SendingJob,
)
from artist.network.models.patterns import Flow, InTurn, SharedLink
from artist.network.models.phase import MOST_JOBS
from artist.network.rates.network_of_run import TurnsOfRun
from artist.network.rates.placed_job import LoneJob, PlacedJob
from artist.network.rates.uplinks import Uplinks
from artist.units import TICKS_PER_S, Tick

MEAN = "mean"


class Mean:
    """`mean`. `most_jobs` joined jobs have one chain."""

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
        sharers: Callable[[int], Sequence[PlacedJob]],
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
    asked: Sequence[PlacedJob], sharers: Callable[[int], Sequence[PlacedJob]]
) -> dict[int, PlacedJob]:
    """Some jobs, those that share an uplink with one, and those that share one with these."""
    near = {placed.handle: placed for placed in asked}
    for _ in range(2):
        near |= {other.handle: other for handle in list(near) for other in sharers(handle)}
    return near


def _sending(lone: LoneJob, share: float, flows: tuple[Flow, ...]) -> SendingJob:
    """The job with the Down time that its share leaves."""
    return SendingJob(lone.curved.down_s(share), lone.busy_s, flows)


def _share(lone: LoneJob, sending: SendingJob, period_s: float) -> float:
    """The share at which the query sends as much longer as the model says (`co_located`)."""
    longer_s = max(period_s - sending.alone_s, 0.0)
    if longer_s == 0 and lone.busy_s == lone.curved.busy_s(1.0):
        return 1.0
    return lone.curved.curve.share_at((lone.busy_s + longer_s) / lone.curved.compute_s)


class Phases:
    """`phase` or `fluid`, as `name` says; more than `most_jobs` joined jobs are left to `mean`."""

    most_jobs = MOST_JOBS

    def __init__(self, name: str, model: Model, uplinks: Uplinks, turns: TurnsOfRun) -> None:
        self.name = name
        self._model, self._uplinks, self._turns = model, uplinks, turns

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        """Shares of joined jobs from now on."""
        uplinks, since = self._uplinks, _common_start(jobs)
        # Groups are numbered throughout a run. Equal questions must have equal numbers.
        groups: dict[int, int] = {}
        curved = [
            replace(
                uplinks.curved(placed),
                offset_s=_start_s(placed.turn, now if since is None else since)
                if placed.turn is not None
                else self._offset_s(placed, running[placed.handle], now),
                turn=_in_turn(placed.turn, groups),
            )
            for placed in jobs
        ]
        answers = shared(curved, self._model, eta=uplinks.eta, fair_queued=uplinks.fair_queued)
        for placed, answer in zip(jobs, answers, strict=True):
            if placed.turn is not None:
                self._turns.takes(placed.handle, now, answer.corrections_per_min)
            else:
                self._turns.ends(placed.handle, now)
        return {placed.handle: answer.share for placed, answer in zip(jobs, answers, strict=True)}

    def _offset_s(self, placed: PlacedJob, view: JobView, now: Tick) -> float:
        """As `Member.offset_s`. A job that stands still goes on where it stopped."""
        still_s = max(view.productive_from - now, 0) / TICKS_PER_S
        return still_s - alone_s(self._uplinks.curved(placed), placed.share, view.phase(now))


def _common_start(jobs: Sequence[PlacedJob]) -> Tick | None:
    """The first start of jobs that all take turns with each other; None if some do not.

    Then the answer does not depend on the present time, so it is known the next time.
    """
    turns = [placed.turn for placed in jobs]
    first = turns[0]
    if first is None or any(turn is None or turn.group != first.group for turn in turns):
        return None
    return min(turn.start for turn in turns if turn is not None)


def _start_s(turn: Turn, since: Tick) -> float:
    """When a job's iterations start, counted from a tick: the first time."""
    return (turn.start - since) % turn.period / TICKS_PER_S


def _in_turn(turn: Turn | None, groups: dict[int, int]) -> InTurn | None:
    if turn is None:
        return None
    group = groups.setdefault(turn.group, len(groups))
    slack_s = None if turn.slack is None else turn.slack / TICKS_PER_S
    return InTurn(group, turn.period / TICKS_PER_S, slack_s)


def alone_s(curved: CurvedJob, share: float, phase: float) -> float:
    """How long a job in isolation takes to where one with a share is in its iteration.

    The Down time comes first. In the rest both have sent the same part of their bytes.
    """
    iteration_s, down_s = curved.iteration_s(share), curved.down_s(share)
    into_s = phase * iteration_s
    if into_s <= down_s:
        return into_s
    sent = (into_s - down_s) / (iteration_s - down_s)
    alone_down_s = curved.down_s(1.0)
    return alone_down_s + sent * (curved.iteration_s(1.0) - alone_down_s)

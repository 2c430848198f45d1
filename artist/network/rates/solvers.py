"""Solvers: the share of bandwidth that models of contention leave each job of a run.

`Mean` has one chain for up to `MOST_TOGETHER` joined jobs. Among more joined jobs,
`FixedPointRounds` gives each job in question a chain of its own with the neighbours that load its
links most; other jobs send at their mean rates. A round of this fixed point asks only some jobs,
and all others keep the shares that were found before.

`Phases` asks an event simulation, which starts from where each job is in its iteration now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from artist.cluster.links import Link
from artist.contract import JobView, Turn
from artist.network.co_located import MOST_ROUNDS as MOST_CURVE_ROUNDS
from artist.network.co_located import SETTLED, CurvedJob, Shared, shared
from artist.network.models.canonical import Model
from artist.network.models.mean import (
    CONVERGED,
    MOST_ROUNDS,
    MOST_TOGETHER,
    Chain,
    Crowds,
    SendingJob,
    Steps,
    lone_period_s,
)
from artist.network.models.patterns import Flow, InTurn, SharedLink
from artist.network.models.phase import MOST_JOBS
from artist.network.rates.network_of_run import TurnsOfRun
from artist.network.rates.placed_job import LoneJob, PlacedJob
from artist.network.rates.uplinks import Uplinks
from artist.units import TICKS_PER_S, Tick

MEAN = "mean"


class Mean:
    """`mean`: one chain for up to `most_jobs` joined jobs."""

    name = MEAN
    most_jobs = MOST_TOGETHER

    def __init__(self, uplinks: Uplinks) -> None:
        self._uplinks = uplinks

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        """Shares of few joined jobs, from their one chain."""
        if len(jobs) > 1:
            return self._shares(jobs)
        # Most questions are about one job: what would it get without others? The answer depends
        # only on the links that bind, so the job keeps it.
        (placed,) = jobs
        bound = tuple(self._uplinks.bound(placed))
        if bound not in placed.lone_shares:
            placed.lone_shares[bound] = self._shares(jobs)[placed.handle]
        return {placed.handle: placed.lone_shares[bound]}

    def own_share(self, placed: PlacedJob) -> float:
        """The share that a job would have without others."""
        return self.shares([placed], {}, 0)[placed.handle]

    def _shares(self, jobs: Sequence[PlacedJob]) -> Mapping[int, float]:
        """The fixed point: shares give Down times, and these give iterations and so shares."""
        every = [self._uplinks.lone(placed) for placed in jobs]
        links, flows = numbered(self._uplinks, every)
        shares = [1.0] * len(jobs)
        chain: Chain | None = None
        for _ in range(MOST_CURVE_ROUNDS):
            before = [x.curved.iteration_s(share) for x, share in zip(every, shares, strict=True)]
            sending = [
                _sending(x, share, of_job)
                for x, share, of_job in zip(every, shares, flows, strict=True)
            ]
            if len(jobs) == 1:
                periods_s = [lone_period_s(links, sending[0])]
            else:
                # Rounds differ in Down times only, so one chain serves all.
                chain = chain or Chain(links, sending)
                periods_s = chain.periods_s(sending)
            shares = [
                _share(x, job, period_s)
                for x, job, period_s in zip(every, sending, periods_s, strict=True)
            ]
            now_s = [x.curved.iteration_s(share) for x, share in zip(every, shares, strict=True)]
            if all(abs(x - y) <= SETTLED * y for x, y in zip(now_s, before, strict=True)):
                break
        return {placed.handle: share for placed, share in zip(jobs, shares, strict=True)}


class FixedPointRounds:
    """Rounds of the fixed point among many joined jobs. Each round asks some of them.

    `sharers` gives the jobs that share an uplink with the job of a handle.
    """

    most = MOST_ROUNDS

    def __init__(self, uplinks: Uplinks, sharers: Callable[[int], Sequence[PlacedJob]]) -> None:
        self._uplinks, self._sharers = uplinks, sharers
        self.shares: dict[int, float] = {}
        """The shares found so far, by handle. All other jobs keep theirs."""
        self._steps = Steps()
        self._near: dict[int, _Near] = {}
        """By handle, ascending: jobs in question, their sharers, and the sharers of these."""
        self._crowds: Crowds | None = None

    def next(self, asked: Sequence[PlacedJob]) -> set[int]:
        """One round about some jobs. Returns the handles of the jobs that moved."""
        crowds, every = self._look_near(asked), list(self._near.values())
        handles = [placed.handle for placed in asked]
        places = {handle: place for place, handle in enumerate(self._near)}
        after_s = crowds.periods_s(
            [job.sending for job in every],
            [job.period_s for job in every],
            [places[handle] for handle in handles],
        )
        moved: set[int] = set()
        for handle, whole_way_s in zip(handles, after_s, strict=True):
            job = self._near[handle]
            period_s = self._steps.next(handle, job.period_s, whole_way_s)
            now = _Near(job.lone, job.flows, _share(job.lone, job.sending, period_s))
            self.shares[handle], self._near[handle] = now.share, now
            if abs(whole_way_s - job.period_s) > CONVERGED * job.period_s:
                moved.add(handle)
        return moved

    def _look_near(self, asked: Sequence[PlacedJob]) -> Crowds:
        """Crowds of at least the jobs in question, their sharers, and the sharers of these.

        A job depends on the mean speeds of its sharers, which depend on those of their sharers.
        """
        near = {placed.handle: placed for placed in asked}
        for _ in range(2):
            near |= {
                other.handle: other for handle in list(near) for other in self._sharers(handle)
            }
        if self._crowds is None or not near.keys() <= self._near.keys():
            known = {handle: (job.lone, job.share) for handle, job in self._near.items()}
            new = {x.handle: (self._uplinks.lone(x), x.share) for x in near.values()}
            jobs = {**new, **known}
            handles = sorted(jobs)
            links, flows = numbered(self._uplinks, [jobs[handle][0] for handle in handles])
            self._near = {
                handle: _Near(jobs[handle][0], of_job, jobs[handle][1])
                for handle, of_job in zip(handles, flows, strict=True)
            }
            self._crowds = Crowds(links, [job.sending for job in self._near.values()])
        return self._crowds


class _Near:
    """A job at a share, as a chain sees it."""

    __slots__ = ("flows", "iteration_s", "lone", "period_s", "sending", "share")

    def __init__(self, lone: LoneJob, flows: tuple[Flow, ...], share: float) -> None:
        self.lone, self.flows, self.share = lone, flows, share
        self.sending = _sending(lone, share, flows)
        self.iteration_s = lone.curved.iteration_s(share)
        self.period_s = self.iteration_s + lone.busy_s - lone.curved.busy_s(1.0)


def numbered(
    uplinks: Uplinks, every: Sequence[LoneJob]
) -> tuple[tuple[SharedLink, ...], list[tuple[Flow, ...]]]:
    """The links that bind, numbered, and the flows of each job that cross one."""
    number: dict[Link, int] = {}
    flows: list[tuple[Flow, ...]] = []
    for job in every:
        of_job: list[Flow] = []
        for flow, way in zip(job.flows, job.ways, strict=True):
            binding = [link for link in way if uplinks.binds(link)]
            if binding:
                numbers = tuple(number.setdefault(link, len(number)) for link in binding)
                of_job.append(replace(flow, links=numbers))
        flows.append(tuple(of_job))
    return tuple(uplinks.shared_link(link) for link in number), flows


def _sending(lone: LoneJob, share: float, flows: tuple[Flow, ...]) -> SendingJob:
    """The job with the Down time that its share leaves."""
    return SendingJob(lone.curved.down_s(share), lone.busy_s, flows)


def _share(lone: LoneJob, sending: SendingJob, period_s: float) -> float:
    """The share at which the query's Up time grows by as much as the model says (`co_located`)."""
    longer_s = max(period_s - sending.alone_s, 0.0)
    if longer_s == 0 and lone.busy_s == lone.curved.busy_s(1.0):
        return 1.0
    return lone.curved.curve.share_at((lone.busy_s + longer_s) / lone.curved.compute_s)


class Phases:
    """`phase` or `fluid`, as `name` says, for up to `most_jobs` joined jobs."""

    most_jobs = MOST_JOBS

    def __init__(
        self,
        name: str,
        model: Model,
        uplinks: Uplinks,
        turns: TurnsOfRun,
        settled: float,
    ) -> None:
        self.name = name
        self._model, self._uplinks, self._turns = model, uplinks, turns
        self._settled = settled

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        """Shares of joined jobs from now on."""
        uplinks, since = self._uplinks, _common_start(jobs)
        curved = [
            replace(
                uplinks.curved(placed),
                offset_s=_start_s(placed.turn, now if since is None else since)
                if placed.turn is not None
                else self._offset_s(placed, running[placed.handle], now),
                turn=_in_turn(placed.turn),
                # The handle names the noise, so that runs under comparison share it.
                stream=placed.handle,
            )
            for placed in jobs
        ]
        answers = self._answers(curved)
        for placed, answer in zip(jobs, answers, strict=True):
            placed.held_s = answer.held_s
            if placed.turn is not None:
                self._turns.takes(placed.handle, now, answer.corrections_per_min)
            else:
                self._turns.ends(placed.handle, now)
        return {placed.handle: answer.share for placed, answer in zip(jobs, answers, strict=True)}

    def own_share(self, placed: PlacedJob) -> float:
        """The share that a job would have without others."""
        bound = tuple(self._uplinks.bound(placed))
        if bound not in placed.lone_shares:
            (answer,) = self._answers([self._uplinks.curved(placed)])
            placed.lone_shares[bound] = answer.share
        return placed.lone_shares[bound]

    def _answers(self, curved: Sequence[CurvedJob]) -> tuple[Shared, ...]:
        return shared(
            curved,
            self._model,
            eta=self._uplinks.eta,
            fair_queued=self._uplinks.fair_queued,
            settled=self._settled,
        )

    def _offset_s(self, placed: PlacedJob, view: JobView, now: Tick) -> float:
        """The job's `Member.offset_s`. A job that stands still goes on where it stopped."""
        still_s = max(view.productive_from - now, 0) / TICKS_PER_S
        return still_s - alone_s(self._uplinks.curved(placed), placed.share, view.phase(now))


def _common_start(jobs: Sequence[PlacedJob]) -> Tick | None:
    """The first start of jobs that all take turns with each other; None if some do not.

    Offsets from it do not depend on the present time, so models can reuse earlier answers.
    """
    turns = [placed.turn for placed in jobs]
    first = turns[0]
    if first is None or any(turn is None or turn.group != first.group for turn in turns):
        return None
    return min(turn.start for turn in turns if turn is not None)


def _start_s(turn: Turn, since: Tick) -> float:
    """Seconds from a tick to the next start of an iteration of a job in turn."""
    return (turn.start - since) % turn.period / TICKS_PER_S


def _in_turn(turn: Turn | None) -> InTurn | None:
    if turn is None:
        return None
    slack_s = None if turn.slack is None else turn.slack / TICKS_PER_S
    return InTurn(turn.group, turn.period / TICKS_PER_S, slack_s)


def alone_s(curved: CurvedJob, share: float, phase: float) -> float:
    """Seconds that an isolated job takes to reach the point of a job at `phase` of its iteration.

    The job at `phase` (0 to 1) has a share of the bandwidth. Both compute first, for their Down
    times; then both have sent the same part of their bytes. With measured Up phases, both are at
    the same part of their iterations.
    """
    if curved.phases is not None:
        return phase * curved.iteration_s(1.0)
    iteration_s, down_s = curved.iteration_s(share), curved.down_s(share)
    into_s = phase * iteration_s
    if into_s <= down_s:
        return into_s
    sent = (into_s - down_s) / (iteration_s - down_s)
    alone_down_s = curved.down_s(1.0)
    return alone_down_s + sent * (curved.iteration_s(1.0) - alone_down_s)

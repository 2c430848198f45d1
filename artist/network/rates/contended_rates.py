"""Rates of jobs that share links: which rates are computed again when jobs come and go.

When a job comes or goes, the rates of all jobs on its uplinks are computed again; then those on the
uplinks of each job whose iteration moved by more than `MOVED`, and so on. A job whose iteration
would move by less keeps its rate. So the work depends on how much changes, not on the cluster's
size.

A model of contention (`solvers`) gives shares, and curves turn them into iterations (`co_located`).
A job that shares no binding link gets its isolated rate, byte for byte.

Jobs that share GPUs slow each other down (`interference`), and send less per second. Iterations
here leave this stretch out: `interference` multiplies by it afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from pydantic import Field

from artist.cluster.placement import Placement
from artist.contract import JobView, Options, Rate
from artist.errors import ConfigError
from artist.io.documents import validate
from artist.network.co_located import SETTLED
from artist.network.demand.up_phases import read_up_phases
from artist.network.models.patterns import ETA
from artist.network.models.phase import FLUID, SAMPLED, PhaseModel, PhaseSettings
from artist.network.models.turns import JITTER
from artist.network.rates.expected import ExpectedLinks
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.placed_job import On, PlacedJob
from artist.network.rates.solvers import MEAN, FixedPointRounds, Mean, Phases
from artist.network.rates.uplinks import Uplinks
from artist.units import Tick
from artist.workload.job import Job

# Far below the errors of all models, which are a few percent (docs/contention.md).
MOVED = 1e-3


class ContentionOptions(Options):
    """Options of `mean`, `phase` and `fluid`."""

    eta: float = Field(
        default=ETA,
        gt=0,
        le=1,
        description="share of a link's capacity used while jobs queue for each other, where "
        "the fabric states none",
    )
    jitter: float = Field(
        default=JITTER,
        ge=0,
        le=0.1,
        description="standard deviation of an iteration, as a share of it, of jobs that take turns "
        "(CASSINI); `mean` ignores it",
    )
    up_phases_file: str | None = Field(
        default=None,
        description="file with measured Up phases of models; without one a job sends once, at the "
        "end of its iteration; `mean` ignores it",
    )


class ContendedRates:
    """A rate function under a model of contention.

    `phases`, if given, answers about jobs joined by links, up to its limit. `mean` answers about
    all others.
    """

    def __init__(
        self, network: NetworkOfRun, uplinks: Uplinks, phases: Phases | None = None
    ) -> None:
        self._alone, self._turns, self._taken = network.alone, network.turns, network.taken
        self._sharing = network.sharing
        self._uplinks = uplinks
        self._solver = phases or Mean(uplinks)
        self._placed: dict[int, PlacedJob] = {}
        self.links = ExpectedLinks(uplinks, self._placed, self._alone, phases is not None)
        """Answers about jobs that are not there yet."""

    @property
    def facts(self) -> list[object]:
        """What copies of a run may share: estimates, and what is known of placements."""
        return [*self._alone.facts, *self._uplinks.facts(self._placed.values()), *self.links.facts]

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs that run, and of jobs whose speed they change."""
        self.links.forget()
        touched: set[On] = set()
        rates: dict[int, Rate] = {}
        for view in changed:
            touched |= self._moved_on(view, running, now)
            if view.placement is not None:
                rates[view.handle] = self._rate_of(view, now)
        affected = self._uplinks.changed(touched)
        for handle in self._asked_again(affected, running, now):
            rates[handle] = self._rate_of(running[handle], now)
        return rates

    def _rate_of(self, view: JobView, now: Tick) -> Rate:
        placed = self._placed[view.handle]
        if view.job.goodput is None:
            return placed.rate
        return self._alone.stretched(view, placed.rate, placed.alone, now)

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job on some GPUs if no other job used the network."""
        return self._alone.alone(job, placement)

    def _moved_on(self, view: JobView, running: Mapping[int, JobView], now: Tick) -> set[On]:
        """Note where a changed job is now. Returns the uplinks that the job has entered or left."""
        former, stays = self._placed.get(view.handle), False
        stretch = 1.0 if self._sharing is None else self._sharing.stretch(view, running)
        if former is not None:
            stays = former.placement == view.placement and former.started == view.started
            if stays and (former.batch, former.stretch) == (view.batch, stretch):
                # The job was held, or its rate came to its end.
                same, former.turn = former.turn == view.turn, view.turn
                return set() if same else set(former.gpus_in_a_part)
            self._uplinks.leave(former)
            self._turns.ends(view.handle, now)
            del self._placed[view.handle]
        touched = set(former.gpus_in_a_part) if former is not None else set()
        if view.placement is not None:
            crossed = self._uplinks.traffic.crossed(view.placement)
            job, alone = self._alone.on_links(view.job, view.placement, view.batch)
            placed = PlacedJob(view.handle, job, view.placement, view.started, alone, crossed)
            placed.turn, placed.batch, placed.stretch = view.turn, view.batch, stretch
            if former is not None and stays and former.batch == view.batch:
                placed.share = former.share  # the job goes on where it is in its iteration
            self._placed[view.handle] = placed
            self._uplinks.enter(placed, former.taken if former is not None and stays else None)
            touched |= placed.gpus_in_a_part.keys()
            if placed.taken is not None:
                self._taken.note(view.handle, view.started, placed.taken)
        return touched

    # -- which rates are computed again -----------------------------------------------------

    def _asked_again(
        self, affected: set[int], running: Mapping[int, JobView], now: Tick
    ) -> list[int]:
        """Give affected jobs new rates. Returns the handles of all jobs with changed rates."""
        others: list[int] = []
        left = set(affected)
        while left:
            first = min(left)
            joined = self._uplinks.joined([first], self._placed, self._solver.most_jobs)
            if len(joined) == 1 and not self._uplinks.bound(self._placed[first]):
                left.discard(first)
                self._waits_for_nobody(first, now)
                others += self._spread([first], {first: 1.0}, self._solver.name)
            elif len(joined) <= self._solver.most_jobs:
                jobs = [self._placed[handle] for handle in joined]
                shares = self._solver.shares(jobs, running, now)
                others += self._spread(sorted(left & shares.keys()), shares, self._solver.name)
                left -= shares.keys()
            else:
                # `first` is among the joined jobs, so `left` shrinks.
                several = left.intersection(joined)
                for handle in several:
                    self._waits_for_nobody(handle, now)
                others += self._settled(sorted(several))
                left -= several
        return others

    def _waits_for_nobody(self, handle: int, now: Tick) -> None:
        self._placed[handle].held_s = 0.0
        self._turns.ends(handle, now)

    def _spread(self, first: Sequence[int], shares: Mapping[int, float], name: str) -> list[int]:
        """Apply answers to `first`, and to the sharers of each job whose rate changes.

        Returns the handles of the jobs whose rates have changed.
        """
        others: list[int] = []
        reached, front = set(first), list(first)
        while front:
            placed = self._placed[front.pop(0)]
            if self._apply(placed, shares[placed.handle], name):
                others.append(placed.handle)
                sharers = self._uplinks.sharers(placed) - reached
                reached |= sharers
                front += sorted(sharers)
        return others

    def _settled(self, first: Sequence[int]) -> list[int]:
        """Ask `mean` about jobs in crowds until none moves.

        Returns the handles of the jobs whose rates have changed.
        """

        @cache
        def sharers(handle: int) -> list[PlacedJob]:
            others = sorted(self._uplinks.sharers(self._placed[handle]))
            return [self._placed[other] for other in others]

        rounds, front = FixedPointRounds(self._uplinks, sharers), list(first)
        for _ in range(rounds.most):
            moved = rounds.next([self._placed[handle] for handle in front])
            if not moved:
                break
            front = sorted({other.handle for handle in moved for other in sharers(handle)})
        return [
            handle
            for handle in sorted(rounds.shares)
            if self._apply(self._placed[handle], rounds.shares[handle], MEAN)
        ]

    def _apply(self, placed: PlacedJob, share: float, name: str) -> bool:
        """Give a job the rate that a share of the bandwidth means. Returns whether it changed."""
        before = placed.rate
        placed.share = share
        after = self._rate(placed, share, name)
        isolated_s = placed.alone.iteration_s
        slowed_both = after.iteration_s != isolated_s and before.iteration_s != isolated_s
        barely_moved = abs(after.iteration_s - before.iteration_s) <= MOVED * before.iteration_s
        # A job that becomes slowed, or is slowed no longer, always gets its new rate.
        if slowed_both and barely_moved:
            return False
        placed.rate = after
        return after != before

    def _rate(self, placed: PlacedJob, share: float, name: str) -> Rate:
        alone, iteration_s, own_s = placed.alone, placed.alone.iteration_s, 0.0
        if share != 1.0:
            curved = self._uplinks.curved(placed)
            iteration_s = curved.iteration_s(share) / placed.stretch
            if self._uplinks.overfills(placed):
                # A job's own links never cost it more than all its contention does; answers about
                # crowds are less precise, and might say so.
                own_share = max(self._solver.own_share(placed), share)
                own_s = curved.iteration_s(own_share) / placed.stretch - alone.iteration_s
        iteration_s += placed.held_s
        if iteration_s <= alone.iteration_s:
            return alone
        return alone._replace(
            iteration_s=iteration_s,
            source=f"{alone.source}+{name}",
            own_longer_s=max(own_s, 0.0),
        )


def mean_rates(argument: str, options: Mapping[str, Any], network: NetworkOfRun) -> ContendedRates:
    """`mean`: random phases."""
    chosen = _options(MEAN, argument, options)
    return ContendedRates(network, _uplinks(MEAN, chosen, network))


def _simulated(
    name: str,
    settings: PhaseSettings,
    argument: str,
    options: Mapping[str, Any],
    network: NetworkOfRun,
) -> ContendedRates:
    chosen = _options(name, argument, options)
    uplinks = _uplinks(name, chosen, network)
    model = PhaseModel(replace(settings, jitter=chosen.jitter, seed=network.seed))
    settled = SAMPLED if settings.sigma else SETTLED
    return ContendedRates(network, uplinks, Phases(name, model, uplinks, network.turns, settled))


phase_rates = partial(_simulated, "phase", PhaseSettings())
"""`phase`: event simulation as packets share links."""

fluid_rates = partial(_simulated, "fluid", FLUID)
"""`fluid`: event simulation with exact max-min shares."""


def _options(name: str, argument: str, options: Mapping[str, Any]) -> ContentionOptions:
    if argument:
        raise ConfigError(f"contention {name}:{argument}: {name} takes no argument; write {name}")
    return validate(options, ContentionOptions, f"contention {name}")


def _uplinks(name: str, chosen: ContentionOptions, network: NetworkOfRun) -> Uplinks:
    curves = network.curves(f"contention {name}")
    network.check_uplinks(name)
    file = chosen.up_phases_file
    return Uplinks(network, curves, chosen.eta, None if file is None else read_up_phases(file))

"""What jobs would lose on links if a policy placed them there, for policies before they decide.

Phases of jobs that have not started are not known, so `mean` answers under any model of contention.
A loss is relative to the job's iteration alone on the same links. So what a job loses to its own
uplinks is not charged to other jobs, and a lone job never loses anything. Jobs that would come or
move are assumed to share no GPU; jobs that stay keep what sharing GPUs costs them.

Up to `MOST_TOGETHER` joined jobs have one chain. Among more, one round of the fixed point of
`solvers` asks the job and its sharers, while all others keep their shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artist.cluster.placement import Placement
from artist.contract import LinkPattern, Moves, Slowdowns, Uplink
from artist.network.rates.isolated import AloneRates
from artist.network.rates.placed_job import PlacedJob
from artist.network.rates.solvers import FixedPointRounds, Mean
from artist.network.rates.uplinks import Uplinks
from artist.workload.goodput import Batch
from artist.workload.job import Job

# A handle for the job in question, where its own has no effect. Handles of jobs are at least 0.
_ASKED = -1

MOST_ENTERED = 1000
"""Jobs that are remembered; policies ask about the same ones again and again."""


class ExpectedLinks:
    """`SharedLinks` of a run whose rates come from a model of contention."""

    def __init__(
        self,
        uplinks: Uplinks,
        placed: Mapping[int, PlacedJob],
        alone: AloneRates,
        phases_count: bool,
    ) -> None:
        self._uplinks, self._placed, self._alone = uplinks, placed, alone
        self.phases_count = phases_count
        self._known: dict[object, Slowdowns] = {}
        self._entered: dict[tuple[int, str, float, Placement], PlacedJob] = {}
        """Jobs of earlier questions, with what is known of each on its own."""

    @property
    def facts(self) -> tuple[object, ...]:
        """What copies of a run may share."""
        return (self._entered,)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for other instants, for which present answers do not hold."""
        return {**self.__dict__, "_known": {}}

    def forget(self) -> None:
        """Jobs have come or gone, so earlier answers no longer hold."""
        self._known.clear()

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """By uplink: mean bytes/s that its jobs would send in isolation, over its capacity."""
        return dict(self._after(moves)[0].busy())

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """Slowdowns by `mean`. Equal questions at one instant are answered once."""
        moved = [(other, move and (move[0].model, move[1])) for other, move in moves.items()]
        asked = _ASKED if handle is None or not self._uplinks.routed else handle
        key = (asked, job.model, job.compute_s, placement, *moved)
        if key not in self._known:
            without = {**moves, asked: None}
            self._known[key] = self._slowdowns(self._entering(asked, job, placement), without)
        return self._known[key]

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """What a job does in isolation on its uplinks, or on the links that its hash gives it."""
        asked = self._entering(_ASKED if handle is None else handle, job, placement, batch)
        return self._uplinks.traffic.pattern(self._uplinks.foreseen(asked))

    def capacity(self, uplink: Uplink) -> float:
        """Nominal bytes per second in one direction."""
        return self._uplinks.traffic.capacity(uplink)

    def _slowdowns(self, asked: PlacedJob, moves: Moves) -> Slowdowns:
        if not asked.gpus_in_a_part:
            return Slowdowns(0.0, {})
        uplinks, jobs = self._after(moves, asked)
        sharers = uplinks.sharers(asked)
        if len(sharers) == 1:
            return Slowdowns(0.0, {})
        shares = _shares(uplinks, jobs, sorted(sharers))
        slowed = {
            handle: _slowdown(uplinks, jobs[handle], shares[handle]) for handle in sorted(sharers)
        }
        return Slowdowns(slowed.pop(asked.handle), slowed)

    def _after(self, moves: Moves, *asked: PlacedJob) -> tuple[Uplinks, Mapping[int, PlacedJob]]:
        """The uplinks after some moves, and all jobs by handle."""
        gone = [self._placed[handle] for handle in moves if handle in self._placed]
        come = [self._entering(handle, *move) for handle, move in moves.items() if move]
        if not (gone or come or asked):
            return self._uplinks, self._placed
        come += asked
        jobs = {**self._placed, **{placed.handle: placed for placed in come}}
        return self._uplinks.after(gone, come), jobs

    def _entering(
        self, handle: int, job: Job, placement: Placement, batch: Batch | None = None
    ) -> PlacedJob:
        # Ask for the estimate also of a known job: a run counts its estimates.
        sends, alone = self._alone.on_links(job, placement, batch)
        key = (handle, sends.model, sends.compute_s, placement)
        if key not in self._entered:
            if len(self._entered) >= MOST_ENTERED:
                self._entered.clear()
            crossed = self._uplinks.traffic.crossed(placement)
            self._entered[key] = PlacedJob(handle, sends, placement, 0, alone, crossed)
        return self._entered[key]


def _shares(
    uplinks: Uplinks, jobs: Mapping[int, PlacedJob], sharers: Sequence[int]
) -> Mapping[int, float]:
    """Bandwidth shares of `sharers`, all of which share an uplink with one of them."""
    mean = Mean(uplinks)
    joined = uplinks.joined(sharers, jobs, mean.most_jobs)
    if len(joined) <= mean.most_jobs:
        return mean.shares([jobs[handle] for handle in joined], {}, 0)

    def sharers_of(handle: int) -> list[PlacedJob]:
        return [jobs[other] for other in sorted(uplinks.sharers(jobs[handle]))]

    rounds = FixedPointRounds(uplinks, sharers_of)
    rounds.next([jobs[handle] for handle in sharers])
    return rounds.shares


def _slowdown(uplinks: Uplinks, placed: PlacedJob, share: float) -> float:
    """The iteration at a share over the iteration alone on the same links, less 1."""
    own = Mean(uplinks).shares([placed], {}, 0)[placed.handle]
    curved = uplinks.curved(placed)
    return max(curved.iteration_s(share) / curved.iteration_s(own) - 1.0, 0.0)

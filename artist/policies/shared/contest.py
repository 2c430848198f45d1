"""One round of competition for GPUs between waiting jobs and running ones.

**The rule.** Jobs come forward in rank order. Running jobs that are *contestable* (their
lease ended, or the policy preempts at once) put their GPUs into the pool, together
with the GPUs that nobody holds. A waiting job takes GPUs that nobody holds unless
the pool offers it a better level. A contestable job keeps its GPUs if nobody before it took
them (moving only if it asks for a better level and the pool has one, and then rather to GPUs
that nobody holds); otherwise it comes forward like a waiting job, what is left of its own GPUs
being nobody's, and moves or waits.

The GPUs of one leaf are alike, so what nobody holds is a number per leaf: what is left in the
pool beyond what the contestable jobs hold there that have not come forward yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.contract import Decision, JobView, Migrate, Preempt, Start
from artist.policies.shared.ranking import Rank, RankedQueue

Place: TypeAlias = Callable[[JobView, FreeGpus], "Placement | None"]


class Contest:
    """State of one round. `place` is the policy's rule for one job.

    With `spare_first` a job takes GPUs that nobody holds whenever it accepts them, even if
    the pool has a better level: nobody loses GPUs for the sake of consolidation.

    Copying what is free costs as much as the cluster is large, so it is put off until somebody
    looks at it after a claim: a round in which nobody, or only the last one, gets GPUs is cheap.
    """

    __slots__ = (
        "_held",
        "_improve",
        "_owned",
        "_place",
        "_pool",
        "_spare",
        "_spare_first",
        "_unclaimed",
        "decisions",
    )

    def __init__(
        self,
        free: FreeGpus,
        contestable: Iterable[JobView],
        place: Place,
        improve: Callable[[JobView, FreeGpus], Placement | None] | None = None,
        *,
        spare_first: bool = False,
    ) -> None:
        self.decisions: list[Decision] = []
        self._spare_first = spare_first
        self._place = place
        self._improve = improve
        self._spare = self._pool = free
        self._owned = False
        self._unclaimed: Placement | None = None
        self._held: dict[int, int] = {}
        self.contend(contestable)

    def contend(self, contestable: Iterable[JobView]) -> None:
        """Put the GPUs of running jobs that have yet to come forward into the pool."""
        placements = [view.placement for view in contestable if view.placement is not None]
        if not placements:
            return
        pool = self.pool.copy()
        held = self._held
        for placement in placements:
            pool.release(placement)
            for leaf, count in zip(placement.leaves, placement.counts, strict=True):
                held[leaf] = held.get(leaf, 0) + count
        self._pool = pool

    @property
    def spare(self) -> FreeGpus:
        """What nobody holds."""
        if self._unclaimed is not None:
            self._settle(self._unclaimed)
        return self._spare

    @property
    def pool(self) -> FreeGpus:
        """What can still be had in this round."""
        if self._unclaimed is not None:
            self._settle(self._unclaimed)
        return self._pool

    def offer(self, view: JobView) -> bool:
        """A job's turn; whether it ends up with GPUs."""
        if view.placement is None:
            placement = self._best(view, self._place)
            if placement is None:
                return False
            self.start(view, placement)
            return True
        return self._offer_running(view, view.placement)

    def start(self, view: JobView, placement: Placement) -> None:
        """Give a waiting job GPUs of the pool."""
        self._claim(placement)
        self.decisions.append(Start(view.handle, placement))

    def _offer_running(self, view: JobView, current: Placement) -> bool:
        pool = self.pool
        keeps = pool.has(current)
        if keeps and (self._improve is None or self._improve(view, pool) is None):
            pool.claim(current)  # its own: what nobody holds stays as it is
            self._come_forward(current)
            return True
        self._come_forward(current)
        better = self._best(view, self._improve if keeps and self._improve else self._place)
        if better is None:
            self.decisions.append(Preempt(view.handle))
            return False
        self._claim(better)
        self.decisions.append(Migrate(view.handle, better))
        return True

    def _come_forward(self, current: Placement) -> None:
        """A contestable job holds nothing from now on but what it claims."""
        for leaf, count in zip(current.leaves, current.counts, strict=True):
            self._held[leaf] -= count
        self._balance(current)

    def _best(self, view: JobView, place: Place) -> Placement | None:
        """From the GPUs nobody holds, unless the pool offers a better level."""
        spare, pool = self.spare, self._pool
        unheld = place(view, spare)
        if pool is spare:
            return unheld
        tree = pool.tree
        if unheld and (self._spare_first or tier(tree, unheld) == tree.machine):
            return unheld
        pooled = place(view, pool)
        if unheld and pooled and tier(tree, unheld) <= tier(tree, pooled):
            return unheld
        return pooled

    def _settle(self, unclaimed: Placement) -> None:
        """Make up for a claim that was put off."""
        if not self._owned:
            self._spare = self._pool = self._pool.copy()
            self._owned = True
        self._pool.claim(unclaimed)
        self._unclaimed = None

    def _claim(self, placement: Placement) -> None:
        if self._spare is self._pool:
            if self._unclaimed is not None:
                self._settle(self._unclaimed)
            self._unclaimed = placement
            return
        self._pool.claim(placement)
        self._balance(placement)

    def _balance(self, placement: Placement) -> None:
        """Of what the pool has on these leaves, nobody holds what is beyond `_held`."""
        pool, spare, held = self._pool.leaves, self._spare.leaves, self._held
        taken, left = {}, {}
        for leaf in placement.leaves:
            change = max(0, pool[leaf] - held.get(leaf, 0)) - spare[leaf]
            if change < 0:
                taken[leaf] = -change
            elif change:
                left[leaf] = change
        if (taken or left) and not self._owned:
            self._spare = self._spare.copy()
            self._owned = True
        if taken:
            self._spare.claim(Placement.of(taken))
        if left:
            self._spare.release(Placement.of(left))


def run_contest(
    contest: Contest,
    queue: RankedQueue,
    contestable: Collection[tuple[Rank, JobView]],
    possible: Callable[[int], bool],
    *,
    strict: bool = False,
) -> Sequence[Decision]:
    """Let the jobs come forward in rank order and answer the decisions.

    `strict`: after the first job that goes without, be it one that loses its GPUs, no waiting
    job gets anything; contestable jobs behind it still keep their GPUs or move.
    The queue drops the jobs that start.
    """
    before = len(contest.decisions)
    blocked = False
    to_come = sorted(contestable, key=_key, reverse=True)
    for rank, view in queue.walk(possible):
        while to_come and _key(to_come[-1]) < (rank, view.handle):
            served = contest.offer(to_come.pop()[1])
            blocked = blocked or (strict and not served)
        if blocked:
            break
        served = contest.offer(view)
        if strict and not served:
            break
    for _, view in reversed(to_come):
        contest.offer(view)
    for decision in contest.decisions[before:]:
        if isinstance(decision, Start):
            queue.remove(decision.handle)
    return contest.decisions


def _key(pair: tuple[Rank, JobView]) -> tuple[Rank, int]:
    rank, view = pair
    return rank, view.handle

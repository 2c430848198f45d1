"""One round of competition for GPUs between waiting and running jobs.

**Words.** A running job is *contestable* if its GPUs may go to another job in this round: its
lease ended, or the policy preempts at once. The *pool* holds the free GPUs and the GPUs of the
contestable jobs.

**The rule.** Waiting and contestable jobs come forward one by one, in rank order.

1. A waiting job takes free GPUs. It takes other GPUs of the pool only if these give it a better
   level, or if the free GPUs do not suffice.
2. A contestable job keeps its GPUs if no job before it took any of them. If the policy lets
   running jobs improve, and the pool has a better placement, the job moves. It prefers free
   GPUs for that, as in 1.
3. A contestable job that lost GPUs to a job before it acts like a waiting job. What is left of
   its own GPUs is free then. The job moves, or is preempted.

**How free GPUs are counted.** The GPUs of one leaf are alike, so only their number matters:

    free = max(0, pool - GPUs of the contestable jobs that have not come forward yet)

Example: a contestable job holds 2 GPUs of a leaf, and the other 2 are free. The pool has 4. A
waiting job takes 2: the pool has 2, and none is free. The contestable job comes forward and moves
to another leaf: the pool still has 2, and both are free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import partial
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.gpu_shares import SharedGpus
from artist.cluster.host_resources import FreeHosts, Shortage
from artist.cluster.placement import Placement, tier
from artist.contract import Decision, JobView, Migrate, Preempt, Start
from artist.policies.shared.ranking import Rank, RankedQueue, by_rank
from artist.policies.shared.usable import lacking
from artist.workload.job import Job

Place: TypeAlias = Callable[[JobView, FreeGpus], "Placement | None"]
"""A policy's rule for one job: which of these GPUs the job takes; None if it takes none."""


class Contest:
    """State of one round.

    `place` is the policy's rule for a job without GPUs. `improve`, if given, is its rule for a
    running job: a better placement, or None. With `free_first` a job takes free GPUs whenever it
    accepts them, even if the pool has a better level. Then no job loses GPUs only because another
    job wants GPUs that are closer together.

    Copying the free GPUs takes time in proportion to the cluster. So a claim is put off until the
    free GPUs or the pool are read. Without contestable jobs, a round copies nothing if no job gets
    GPUs, or if only the last one does.
    """

    __slots__ = (
        "_free",
        "_free_first",
        "_hosts_reserved",
        "_improve",
        "_owned",
        "_place",
        "_pool",
        "_reserved",
        "_unclaimed",
        "claims",
        "decisions",
        "refused",
        "starved",
    )

    def __init__(
        self,
        free: FreeGpus,
        contestable: Collection[JobView],
        place: Place,
        improve: Place | None = None,
        *,
        free_first: bool = False,
    ) -> None:
        self.decisions: list[Decision] = []
        # Jobs that came forward and got no GPUs although enough were left (`refusals.py`).
        self.refused: list[JobView] = []
        # By handle, for the refused jobs that would have GPUs if machines lacked nothing: the lack.
        self.starved: dict[int, Shortage] = {}
        # Jobs that came forward and have GPUs, with their ranks.
        self.claims: list[tuple[Rank, JobView]] = []
        self._free_first = free_first
        self._place = place
        self._improve = improve
        # Free GPUs and pool are one object as long as no job is contestable.
        self._free = self._pool = free
        # Whether `_free` is this contest's own copy, which it may change.
        self._owned = False
        # The placement of a claim that was put off, and its job.
        self._unclaimed: tuple[Placement, Job] | None = None
        # GPUs by leaf of the contestable jobs that have not come forward yet, and what these jobs
        # hold of their hosts (CPU cores, memory).
        self._reserved: dict[int, int] = {}
        self._hosts_reserved: FreeHosts | None = None
        self.contend(contestable)

    def contend(self, contestable: Collection[JobView]) -> None:
        """Put the GPUs of running jobs into the pool. The jobs have yet to come forward."""
        placements = [job.placement for job in contestable if job.placement is not None]
        if not placements:
            return
        pool = self.pool.copy()
        held: dict[int, int] = {}
        for placement in placements:
            for leaf, count in zip(placement.leaves, placement.counts):
                held[leaf] = held.get(leaf, 0) + count
        # All in one release, so that each unit above the leaves changes once, not once per job.
        pool.release(placements[0] if len(placements) == 1 else Placement.of(held))
        reserved = self._reserved
        for leaf, count in held.items():
            reserved[leaf] = reserved.get(leaf, 0) + count
        if pool.hosts is not None:
            if self._hosts_reserved is None:
                self._hosts_reserved = pool.hosts.nothing()
            for job in contestable:
                if job.placement is not None:
                    pool.hosts.release(job.placement, job.job)
                    self._hosts_reserved.release(job.placement, job.job)
        self._pool = pool
        if isinstance(pool, SharedGpus):
            self._link(pool)

    def _link(self, pool: SharedGpus) -> None:
        """Let the free GPUs and the pool have the same shares, since jobs keep theirs."""
        if not self._owned:
            self._free, self._owned = self._free.copy(), True
        assert isinstance(self._free, SharedGpus)
        self._free.shares = pool.shares

    @property
    def free(self) -> FreeGpus:
        """The free GPUs, after all decisions so far."""
        if self._unclaimed is not None:
            self._settle(*self._unclaimed)
        return self._free

    @property
    def free_total(self) -> int:
        """The number of free GPUs after all decisions so far. Reading it copies nothing."""
        unclaimed = self._unclaimed
        return self._free.total - (unclaimed[0].gpus if unclaimed is not None else 0)

    @property
    def pool(self) -> FreeGpus:
        """The GPUs that a job can still get in this round."""
        if self._unclaimed is not None:
            self._settle(*self._unclaimed)
        return self._pool

    def copy(self) -> Contest:
        """A contest in the same state, which goes on without changing this one."""
        free, pool = self.free, self.pool
        other = copy(self)
        other.decisions, other.refused = [*self.decisions], [*self.refused]
        other.claims, other._reserved = [*self.claims], {**self._reserved}
        other.starved = {**self.starved}
        if self._hosts_reserved is not None:
            other._hosts_reserved = self._hosts_reserved.copy()
        other._free = free.copy()
        other._pool = other._free if pool is free else pool.copy()
        other._owned = True
        if isinstance(other._pool, SharedGpus):
            other._link(other._pool)
        return other

    def offer(self, rank: Rank, job: JobView) -> bool:
        """Let a job come forward. Returns whether it has GPUs afterwards."""
        if job.placement is None:
            placement = self._best(job, self._place)
            served = placement is not None
            if placement is not None:
                self.start(job, placement)
        else:
            served = self._offer_running(job, job.placement)
        if served:
            self.claims.append((rank, job))
        elif self._pool.total >= job.job.demand:  # the search for GPUs has settled all claims
            self._refuse(job)
        return served

    def _refuse(self, job: JobView) -> None:
        """Note a job that got no GPUs, unless no GPU has enough left for its share."""
        if self._pool.room < job.job.demand:
            return
        self.refused.append(job)
        lacks = lacking(self._pool, job.job, partial(self._place, job))
        if lacks is not None:
            self.starved[job.handle] = lacks

    def ran_out(self, gpus: int) -> tuple[Rank, int] | None:
        """Rank and handle of the job whose claim left fewer than `gpus` GPUs in the pool.

        None if that many are still left. An entry before all jobs, ((), -1), if there were fewer
        from the start.
        """
        unclaimed = self._unclaimed
        left = self._pool.total - (unclaimed[0].gpus if unclaimed is not None else 0)
        if left >= gpus:
            return None
        for rank, job in reversed(self.claims):
            left += job.job.gpus
            if left >= gpus:
                return rank, job.handle
        return (), -1

    @property
    def leaves_all(self) -> bool:
        """Whether every contestable job that has yet to come forward finds its GPUs in the pool.

        If so, all of them keep their GPUs, and unless they may improve, none need come forward.
        """
        leaves, hosts = self.pool.leaves, self._pool.hosts
        reserved = self._hosts_reserved
        if hosts is not None and reserved is not None and hosts.is_less(reserved):
            return False
        return all(leaves[leaf] >= count for leaf, count in self._reserved.items())

    def would_get(self, job: JobView) -> Placement | None:
        """The GPUs that a waiting job would get if it came forward now; None if it would wait."""
        return self._best(job, self._place)

    def start(self, job: JobView, placement: Placement) -> None:
        """Give a waiting job GPUs of the pool."""
        self._claim(placement, job.job)
        self.decisions.append(Start(job.handle, placement))

    def _offer_running(self, job: JobView, current: Placement) -> bool:
        """Let a contestable job come forward: it keeps its GPUs, moves, or is preempted."""
        pool = self.pool
        keeps = pool.has(current, job.job)
        if keeps and (self._improve is None or self._improve(job, pool) is None):
            pool.claim(current, job.job)  # its own GPUs: the free ones stay as they are
            self._come_forward(current, job.job)
            return True
        # Free the job's own GPUs before it chooses, so that it may choose some of them.
        self._come_forward(current, job.job)
        better = self._best(job, self._improve if keeps and self._improve else self._place)
        if better is None:
            self.decisions.append(Preempt(job.handle))
            return False
        self._claim(better, job.job)
        self.decisions.append(Migrate(job.handle, better))
        return True

    def _come_forward(self, current: Placement, job: Job) -> None:
        """From now on, reserve nothing for a contestable job: it holds only what it claims."""
        if self._hosts_reserved is not None:
            self._hosts_reserved.claim(current, job)
        for leaf, count in zip(current.leaves, current.counts):
            self._reserved[leaf] -= count
        self._balance(current)

    def _best(self, job: JobView, place: Place) -> Placement | None:
        """A placement on free GPUs, unless the pool offers a better level."""
        free, pool = self.free, self._pool
        of_free = place(job, free)
        if pool is free:
            return of_free
        tree = pool.tree
        if of_free and (self._free_first or tier(tree, of_free) == tree.machine):
            return of_free  # no level is better than a machine, so skip the search in the pool
        of_pool = place(job, pool)
        if of_free and of_pool and tier(tree, of_free) <= tier(tree, of_pool):
            return of_free
        return of_pool

    def _settle(self, unclaimed: Placement, job: Job) -> None:
        """Make the claim that was put off."""
        if not self._owned:
            self._free = self._pool = self._pool.copy()
            self._owned = True
        self._pool.claim(unclaimed, job)
        self._unclaimed = None

    def _claim(self, placement: Placement, job: Job) -> None:
        if self._free is self._pool:
            if self._unclaimed is not None:
                self._settle(*self._unclaimed)
            self._unclaimed = placement, job
            return
        self._pool.claim(placement, job)
        self._balance(placement)

    def _balance(self, placement: Placement) -> None:
        """Recount the free GPUs of these leaves: those of the pool beyond `_reserved`."""
        pool, free, reserved = self._pool, self._free, self._reserved
        taken: dict[int, int] = {}
        left: dict[int, int] = {}
        for leaf in placement.leaves:
            change = max(0, pool.of(0, leaf) - reserved.get(leaf, 0)) - free.of(0, leaf)
            if change < 0:
                taken[leaf] = -change
            elif change:
                left[leaf] = change
        hosts, reserved_hosts = pool.hosts, self._hosts_reserved
        if (taken or left or hosts is not None) and not self._owned:
            self._free = free = self._free.copy()
            self._owned = True
        if free.hosts is not None and hosts is not None and reserved_hosts is not None:
            free.hosts.become(hosts, reserved_hosts)
        if taken:
            self._free.claim(Placement.of(taken))
        if left:
            self._free.release(Placement.of(left))


def run_contest(
    contest: Contest,
    queue: RankedQueue,
    contestable: Collection[tuple[Rank, JobView]],
    possible: Callable[[int], bool],
    *,
    strict: bool = False,
) -> Sequence[Decision]:
    """Let the jobs come forward in rank order, and return the decisions.

    `contestable` are the jobs that the contest was given. `possible(gpus)` is False only if no
    job with that demand can start (`RankedQueue.walk`). With `strict`, the first job, waiting or
    preempted, that has no GPUs after its turn blocks the waiting jobs behind it. The contestable
    jobs behind it still keep their GPUs or move. Jobs that start leave the queue.
    """
    before = len(contest.decisions)
    blocked = False
    # Sorted backwards: `pop` takes the next one from the end at no cost.
    to_come = sorted(contestable, key=by_rank, reverse=True)
    for rank, job in queue.walk(possible):
        while to_come and by_rank(to_come[-1]) < (rank, job.handle):
            served = contest.offer(*to_come.pop())
            blocked = blocked or (strict and not served)
        if blocked:
            break
        served = contest.offer(rank, job)
        if strict and not served:
            break
    for rank, job in reversed(to_come):
        contest.offer(rank, job)
    # Jobs may not be removed during the walk.
    for decision in contest.decisions[before:]:
        if isinstance(decision, Start):
            queue.remove(decision.handle)
    return contest.decisions

"""Which waiting jobs a rule of the policy kept from GPUs, so that it can say why they wait.

At its turn in a contest a job is *refused* if enough GPUs are left for it but it gets none, because
of a delay timer or because the GPUs are too far apart. Without that rule it would start. A job
whose turn comes when too few GPUs are left is not refused.

A walk drops all waiting jobs of a GPU demand at once (`RankedQueue.walk`), so refused jobs need not
come forward one by one. A policy names such demands (`drops`), and this module finds their jobs.
Each job is reported once per wait, and again when the reason given for it lapses. So a question
takes little more time than writing its rows.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import GPU_MEMORY, MIG, Shortage
from artist.cluster.kinds import most_of_one_kind
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView, Preempt, Start, Wait
from artist.policies.shared.contest import Contest
from artist.policies.shared.ranking import Rank, RankedQueue, by_rank, gpus_held
from artist.policies.shared.sharing import Sharing
from artist.policies.shared.usable import free_after, of_other_kinds
from artist.units import Tick, counted

Widest: TypeAlias = Callable[[ClusterTree, int], int]
"""The outermost level that a job may span, from the cluster and the job's number of GPUs."""

Reason: TypeAlias = Callable[[JobView], "Wait | None"]
"""Why a refused job waits; None if no rule of the policy refused it."""

TOO_FAR_APART = "enough GPUs were free, but it waits until enough of them lie in"

_Entry: TypeAlias = tuple[Rank, int]

# With more new jobs of one demand than this, those that have left the queue are forgotten.
_MOST_NEW = 100

_NOBODY: Mapping[int, Shortage] = MappingProxyType({})


class Refusals:
    """The reasons that were given for the waiting jobs of one queue."""

    __slots__ = ("_dropped", "_lapses", "_new", "_queue", "_starved", "_told", "_untold")

    def __init__(self, queue: RankedQueue) -> None:
        self._queue = queue
        # GPU demands that this contest has dropped although enough GPUs were left.
        self._dropped: dict[int, None] = {}
        # Per GPU demand: jobs without a reason. New ones are sorted in when someone asks for them.
        self._new: dict[int, list[_Entry]] = {}
        self._untold: dict[int, list[_Entry]] = {}
        # Handle -> until when its reason holds, None for the whole wait; and a heap of these ticks.
        self._told: dict[int, Tick | None] = {}
        self._lapses: list[tuple[Tick, int]] = []
        # The jobs of `_told` whose reason is that machines lack CPU cores or memory.
        self._starved: set[int] = set()

    def entered(self, gpus: int, rank: Rank, handle: int) -> None:
        """Note that a job on `gpus` GPUs entered the queue."""
        if self._told:
            self._told.pop(handle, None)
            self._starved.discard(handle)
        new = self._new.get(gpus)
        if new is None:
            new = self._new[gpus] = []
        new.append((rank, handle))
        if len(new) > _MOST_NEW and len(new) > 2 * len(self._queue):
            self._new[gpus] = [entry for entry in new if self._queue.holds(entry)]

    def drops(self, gpus: int) -> None:
        """Note that a rule drops a GPU demand from the walk, although enough GPUs are left."""
        self._dropped[gpus] = None

    def refused(self, contest: Contest, now: Tick) -> list[JobView]:
        """The jobs that a contest refused, without jobs whose reason was given before.

        Jobs that started must have left the queue.
        """
        if not contest.refused and not self._dropped:
            return []
        self._lapse(now)
        told = self._told
        found = {x.handle: x for x in contest.refused if x.placement or x.handle not in told}
        if contest.starved or self._starved:
            found |= {
                x.handle: x
                for x in contest.refused
                if (x.handle in contest.starved) != (x.handle in self._starved)
            }
        for gpus in self._dropped:
            found |= {job.handle: job for job in self._before(gpus, contest.ran_out(gpus))}
        self._dropped.clear()
        return list(found.values())

    def has_news(self, contestable: Sequence[tuple[Rank, JobView]], free: int, now: Tick) -> bool:
        """Whether a contest in which no job gets other GPUs would refuse a job without a reason.

        The contestable jobs keep their GPUs, and `free` others are free. Such a contest refuses
        every job whose turn comes while enough GPUs are left for it.
        """
        self._lapse(now)
        total = free + gpus_held(job for _, job in contestable)
        ranked = sorted(contestable, key=by_rank, reverse=True)
        for gpus in self._queue.demands:
            if gpus <= total:
                left, last = free, None
                for rank, job in ranked:
                    if left >= gpus:
                        break
                    left, last = left + job.gpus, (rank, job.handle)
                if self._has_untold(gpus, last):
                    return True
        return False

    def _has_untold(self, gpus: int, last: _Entry | None) -> bool:
        """Whether some job of a demand has no reason: a job before `last`, or any if it is None."""
        untold = self._sorted_in(gpus)
        stale = 0
        for entry in untold:
            if last is not None and entry >= last:
                break
            if self._queue.holds(entry) and entry[1] not in self._told:
                return True
            stale += 1
        del untold[:stale]
        return False

    def waits(
        self, jobs: Sequence[JobView], reason: Reason, starved: Mapping[int, Shortage] = _NOBODY
    ) -> list[Decision]:
        """Say why refused jobs wait: for what `starved` says machines lack, else for `reason`."""
        waits: list[Decision] = []
        for job in jobs:
            lacks = starved.get(job.handle)
            self._starved.discard(job.handle)
            if lacks is None:
                wait = reason(job)
            else:
                wait = too_little(job.handle, job.job.gpus, lacks)
                self._starved.add(job.handle)
            if wait is not None:
                waits.append(wait)
                self._told[job.handle] = wait.until
                if wait.until is not None:
                    heapq.heappush(self._lapses, (wait.until, job.handle))
        return waits

    def _before(self, gpus: int, last: _Entry | None) -> list[JobView]:
        """The jobs of a demand without a reason: those before `last`, or all if it is None."""
        queue, untold = self._queue, self._sorted_in(gpus)
        end = len(untold) if last is None else bisect_left(untold, last)
        found = [
            queue.job(entry[1])
            for entry in untold[:end]
            if queue.holds(entry) and entry[1] not in self._told
        ]
        del untold[:end]
        return found

    def _sorted_in(self, gpus: int) -> list[_Entry]:
        """The jobs of a demand without a reason, after new ones have been sorted in."""
        untold = self._untold.setdefault(gpus, [])
        for entry in self._new.pop(gpus, ()):
            if self._queue.holds(entry):
                insort(untold, entry)
        return untold

    def _lapse(self, now: Tick) -> None:
        """Forget reasons that do not hold any more."""
        while self._lapses and self._lapses[0][0] <= now:
            until, handle = heapq.heappop(self._lapses)
            if self._told.get(handle) == until:
                del self._told[handle]
                entry = self._queue.entry(handle)
                if entry is not None:
                    self.entered(self._queue.job(handle).job.gpus, *entry)


class OtherKinds:
    """Reports jobs that the kinds of free GPUs keep waiting.

    It is for policies that choose numbers of GPUs, so that no contest refuses a job. `one_kind`:
    the policy gives no job GPUs of several kinds.
    """

    def __init__(self, *, one_kind: bool = False) -> None:
        self._one_kind = one_kind
        # By handle: the beginning of the wait that was last reported.
        self._told: dict[int, Tick] = {}

    def waits(
        self, view: ClusterView, decisions: Sequence[Decision], free: FreeGpus | None = None
    ) -> list[Decision]:
        """Report jobs that wait after these decisions: once, and again when the reason ends.

        `free` is what is free after them, if the caller knows.
        """
        if view.free.hosts is None and not self._one_kind:
            return []
        waits = list[Decision]()
        free = free_after(view, decisions) if free is None else free
        started = {x.handle for x in decisions if isinstance(x, Start)}
        for handle, state in view.waiting.items():
            if handle not in started:
                waits += self.news(free, state)
        for decision in decisions:  # those that lose their GPUs begin to wait now
            if isinstance(decision, Preempt):
                state = view.running[decision.handle]
                if (wait := self._why(free, state)) is not None:
                    self._told[decision.handle] = view.now
                    waits.append(wait)
        return waits

    def news(self, free: FreeGpus, state: JobView) -> list[Decision]:
        """The change to report of a waiting job while these GPUs are free, if any."""
        wait = self._why(free, state)
        if (wait is not None) == self.told(state):
            return []
        if wait is not None:
            self._told[state.handle] = state.entered
            return [wait]
        del self._told[state.handle]
        return [Wait(state.handle, "")]

    def told(self, state: JobView) -> bool:
        """Whether kinds were reported to keep the job waiting."""
        return self._told.get(state.handle) == state.entered

    def _why(self, free: FreeGpus, state: JobView) -> Wait | None:
        job, handle = state.job, state.handle
        if free.total < job.gpus_min:
            return None
        if (lacks := of_other_kinds(free, job)) is not None:
            return too_little(handle, free.total, lacks)
        if not self._one_kind or (most := most_of_one_kind(free.fed(job))) >= job.gpus_min:
            return None
        were = f"{free.total} GPUs were free, but at most {most} of one kind"
        return Wait(handle, f"{were}, and the policy mixes no kinds", "gpu_kind")


def too_little(handle: int, gpus: int, lacks: Shortage) -> Wait:
    """The reason of a job that waits because free GPUs or their machines lack what it needs."""
    if lacks.resource.cause == "gpu_kind":
        were = f"{lacks.left} of {counted(gpus, 'GPU')} with room were {lacks.resource.unit}"
        return Wait(handle, f"{were}, and it accepts no other", lacks.resource.cause)
    if lacks.resource is MIG:
        return Wait(handle, "1 GPU had room, but MIG keeps the job off it", MIG.cause)
    if lacks.resource is GPU_MEMORY:
        had = f"{counted(gpus, 'GPU')} with room had {lacks} that it needs"
        return Wait(handle, had if gpus == 1 else f"{had} on each", lacks.resource.cause)
    whose = "1 GPU was free, but its machine"
    if gpus > 1:
        whose = f"{gpus} GPUs were free, but their machines"
    return Wait(handle, f"{whose} had {lacks} that it needs there", lacks.resource.cause)


def far_apart(
    widest: Widest | None, view: ClusterView, sharing: Sharing, job: JobView
) -> Wait | None:
    """Why a job waits that a placer refused; None if links kept it from GPUs.

    `widest` is None for a placer that takes GPUs anywhere.
    """
    if widest is None or job.handle in sharing.refused:
        return None
    return one_unit(widest, view.cluster, job.handle, job.job.gpus)


def one_unit(widest: Widest, tree: ClusterTree, handle: int, gpus: int) -> Wait:
    """The reason of a job that waits for GPUs in one unit of the widest level that it may span."""
    level = tree.levels[widest(tree, gpus)].name
    return Wait(handle, f"{TOO_FAR_APART} one {level}", "consolidation")

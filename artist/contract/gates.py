"""What is left of an answer when a gate or a wrapper turns down a part of it.

Gates stand between policy and engine, and policies need not know of them. They enforce rules about
where jobs may run: near their data (`data/gate.py`), and not on units that will leave service
(`failures/notice_gate.py`). `quota(HOST)` turns down starts that quotas forbid.

- A refused start: the job waits. To the policy it looks as if the job had started and lost its GPUs
  at once. The same holds for jobs that were to share its GPUs.
- A refused move: the job stays where it is. But if other decisions of the answer need its GPUs, or
  let a job share them, it loses them, as in an outage.
- A job keeps its GPUs if it would lose or leave them only for a refused decision. To the policy
  nothing has happened to the job: it is among the running jobs of the next view, and has not
  entered the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artist.cluster.host_resources import FreeHosts
from artist.cluster.placement import Placement
from artist.contract import ClusterView, Decision, Hold, Migrate, Preempt, SetBatch, Start, Wait
from artist.workload.job import Job

_ON_GPUS = (Start, Migrate, Hold, SetBatch)
"""Decisions that are void if their job does not get the GPUs that the answer gives it."""

_OF_A_STAY = (Preempt, Migrate, Hold, SetBatch, Wait)
"""Decisions that are void if their job keeps its GPUs."""


def without(
    decisions: Sequence[Decision],
    refused: Collection[int],
    view: ClusterView,
    reason: str,
) -> tuple[list[Decision], list[int]]:
    """The decisions that are left if the starts and moves of the `refused` jobs are turned down.

    Returns these decisions and the handles of the jobs that do not start. `reason` is given for the
    preemptions that become necessary.
    """
    refused = _with_those_beside(decisions, refused)
    kept = [
        decision
        for decision in decisions
        if not (isinstance(decision, _ON_GPUS) and decision.handle in refused)
    ]
    stay = [x.handle for x in decisions if isinstance(x, Migrate) and x.handle in refused]
    kept += [Preempt(handle, reason) for handle in _displaced(stay, decisions, kept, view)]
    put_off = [x.handle for x in decisions if isinstance(x, Start) and x.handle in refused]
    spared = _spared(decisions, kept, view)
    if spared:
        kept = [x for x in kept if not (isinstance(x, _OF_A_STAY) and x.handle in spared)]
    return kept, put_off


def _with_those_beside(decisions: Sequence[Decision], refused: Collection[int]) -> set[int]:
    """The refused jobs, and the jobs that were to share GPUs with one of them."""
    together, placed = set(refused), set[int]()
    for x in decisions:
        if isinstance(x, Start | Migrate):
            if x.beside in placed and x.beside in together:
                together.add(x.handle)
            placed.add(x.handle)
    return together


def _displaced(
    stay: Sequence[int], decisions: Sequence[Decision], kept: Sequence[Decision], view: ClusterView
) -> list[int]:
    """Jobs whose move is refused and that lose their GPUs, because others need or share these.

    Of jobs that were all to leave the GPUs that they share, either all lose them or none.
    """
    displaced: list[int] = []
    if not stay:
        return displaced
    leaving = {x.handle for x in decisions if isinstance(x, Preempt | Migrate)}
    hosts = {x.beside for x in kept if isinstance(x, Start | Migrate)}
    left, fed = gpus_left(kept, view), _hosts_left(kept, view)
    for handle in stay:
        state = view.running.get(handle)
        if state is None or state.placement is None or handle in displaced:
            continue  # the engine refuses to move a job without GPUs
        if leaving.issuperset(state.beside):
            goes = any(left.get(leaf, 0) < 0 for leaf in state.placement.leaves)
            goes = goes or (fed is not None and fed.lack(state.placement))
        else:
            goes = not hosts.isdisjoint(state.beside)
        if goes:
            displaced += [x for x in stay if x == handle or x in state.beside]
            now = [*kept, *map(Preempt, displaced)]
            left, fed = gpus_left(now, view), _hosts_left(now, view)
    return displaced


def _spared(decisions: Sequence[Decision], kept: Sequence[Decision], view: ClusterView) -> set[int]:
    """Jobs that keep their GPUs, because only refused starts and moves would have taken them.

    As many jobs as possible stay. The last decision is looked at first, because an answer names the
    most urgent job first.
    """
    if not any(isinstance(x, Preempt | Migrate) for x in kept):
        return set()
    spared: set[int] = set()
    joined = {x.beside for x in kept if isinstance(x, Start | Migrate)}
    before, left = gpus_left(decisions, view), gpus_left(kept, view)
    hosts_before, hosts = _hosts_left(decisions, view), _hosts_left(kept, view)
    for x in reversed(kept):
        if not isinstance(x, Preempt | Migrate) or x.handle not in view.running:
            continue
        placement = view.running[x.handle].placement
        if placement is None:
            continue
        if view.running[x.handle].beside or x.handle in joined:
            continue  # it shares its GPUs, or another job comes beside it
        change = counts_of(placement)
        if isinstance(x, Migrate) and x.beside is None:
            for leaf, count in counts_of(x.placement).items():
                change[leaf] = change.get(leaf, 0) - count
        job = view.running[x.handle].job
        taken = hosts_before is not None and not _could_feed(hosts_before, x, placement, job)
        if all(before.get(leaf, 0) >= count for leaf, count in change.items()) and not taken:
            continue  # no job was to get its GPUs, or the CPU cores and memory beside them
        stays = all(left.get(leaf, 0) >= count for leaf, count in change.items())
        if stays and (hosts is None or _feeds_again(hosts, x, placement, job)):
            spared.add(x.handle)
            for leaf, count in change.items():
                left[leaf] = left.get(leaf, 0) - count
    return spared


def counts_of(placement: Placement) -> dict[int, int]:
    """The GPUs of a placement by leaf."""
    return dict(zip(placement.leaves, placement.counts, strict=True))


def _could_feed(hosts: FreeHosts, x: Preempt | Migrate, held: Placement, job: Job) -> bool:
    """Whether machines have the CPU cores and memory for a job to stay, without its decision."""
    if not isinstance(x, Migrate):
        return hosts.shortage(held, job) is None
    hosts.release(x.placement, job)
    feeds = hosts.shortage(held, job) is None
    hosts.take(x.placement, job)
    return feeds


def _feeds_again(hosts: FreeHosts, x: Preempt | Migrate, held: Placement, job: Job) -> bool:
    """As `_could_feed`; and if so, give the job these CPU cores and memory in `hosts`."""
    feeds = _could_feed(hosts, x, held, job)
    if feeds:
        if isinstance(x, Migrate):
            hosts.release(x.placement, job)
        hosts.take(held, job)
    return feeds


def _hosts_left(decisions: Sequence[Decision], view: ClusterView) -> FreeHosts | None:
    """Free CPU cores and memory once decisions are applied; None if jobs do not ask for them.

    They are below 0 where decisions claim too much.
    """
    if view.free.hosts is None:
        return None
    left = view.free.hosts.copy()
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate) and decision.handle in view.running:
            state = view.running[decision.handle]
            if state.placement is not None:
                left.release(state.placement, state.job)
        if isinstance(decision, Start | Migrate):
            job = view.waiting.get(decision.handle) or view.running[decision.handle]
            left.take(decision.placement, job.job)
    return left


def gpus_left(decisions: Sequence[Decision], view: ClusterView) -> dict[int, int]:
    """Free GPUs by leaf once decisions are applied, below 0 where they claim too many.

    Leaves that no decision touches are missing.
    """
    left: dict[int, int] = {}
    free = view.free.leaves
    leaving = {x.handle for x in decisions if isinstance(x, Preempt | Migrate)}
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate) and decision.handle in view.running:
            state = view.running[decision.handle]
            held = state.placement
            # Shared GPUs are free if all their jobs leave. The job with the least handle counts
            # them.
            if held is not None and all(x in leaving and x > state.handle for x in state.beside):
                for leaf, count in zip(held.leaves, held.counts, strict=True):
                    left[leaf] = left.get(leaf, free[leaf]) + count
        if isinstance(decision, Start | Migrate) and decision.beside is None:
            for leaf, count in zip(*decision.placement, strict=True):
                left[leaf] = left.get(leaf, free[leaf] if leaf < len(free) else 0) - count
    return left

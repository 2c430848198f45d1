"""Laws that hold after every event and answer. `--check` and property tests verify them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.gpu_shares import FreeShares, memory_of
from artist.cluster.host_resources import FreeHosts, Needy
from artist.cluster.kinds import several_kinds
from artist.cluster.mig import ALL, alike, slices
from artist.cluster.placement import machine_counts
from artist.cluster.tree import ClusterTree, gpus_by_kind
from artist.engine.holdings import Holdings
from artist.engine.job_state import PARTS, JobState
from artist.engine.rows import PlacementRow, Rows
from artist.engine.shared_holdings import SharedHoldings
from artist.errors import InvariantError
from artist.units import GPU_MILLI, Tick


def check(holdings: Holdings) -> None:
    """Check that every GPU is free, held or withdrawn, every job in one place, and indexes right.

    Raises:
        InvariantError: naming the law that is broken.
    """
    tree, free = holdings.tree, holdings.free
    both = holdings.waiting.keys() & holdings.running.keys()
    if both:
        raise InvariantError(f"jobs {sorted(both)} wait and run at once")
    leaves = list(holdings.withdrawn)
    counts = list(holdings.withdrawn.values())
    for state in holdings.running.values():
        if state.placement is None:
            raise InvariantError(f"job {state.job.id!r} runs without GPUs")
        if state.beside:
            _check_beside(holdings, state)
            if state.handle > state.beside[0]:
                continue  # the job with the least handle counts their GPUs
        leaves += state.placement.leaves
        counts += state.placement.counts
    taken = np.bincount(leaves, weights=counts, minlength=len(tree.levels[0]))
    for state in holdings.waiting.values():
        if state.placement is not None or state.beside:
            raise InvariantError(f"job {state.job.id!r} waits and holds GPUs")
    if not np.array_equal(taken + free.counts(0), tree.leaf_gpus):
        raise InvariantError("free + held + withdrawn differs from the GPUs that exist")
    for leaf in holdings.on_notice:
        if free.leaves[leaf]:
            raise InvariantError(f"{tree.levels[0].name} {leaf} is on notice and has free GPUs")
    for leaf, count in holdings.kept_out.items():
        if count > holdings.withdrawn.get(leaf, 0):
            raise InvariantError(f"a notice keeps {count} GPUs of leaf {leaf} out that are in")
    _check_index(tree, free)
    _check_hosts(holdings)
    _check_shares(holdings)


def _check_shares(holdings: Holdings) -> None:
    """Check that shares held + what is left = 1, for every GPU of which jobs hold shares."""
    if not isinstance(holdings, SharedHoldings):
        return
    shares = holdings.shared.shares
    held: set[str] = set()
    idle = 0
    memory = shares.memory
    for (leaf, _), (left, jobs) in shares.gpus().items():
        own = sum(job.gpu_milli for job in jobs)
        if left < 0 or own + left != GPU_MILLI or not jobs:
            raise InvariantError(f"jobs hold {own} thousandths of a GPU of which {left} are left")
        if any(job.mig for job in jobs):
            _check_instances(jobs, shares)
        elif memory and (most := memory[leaf]) is not None and memory_of(jobs) > most:
            raise InvariantError(f"jobs hold {memory_of(jobs)} MiB of a GPU that has {most}")
        held.update(job.id for job in jobs)
        idle += left
        together = sorted(holdings.handle(job.id) for job in jobs)
        for handle in together:
            state = holdings.running[handle]
            if state.placement != ((leaf,), (1,)) or sorted((handle, *state.beside)) != together:
                raise InvariantError(f"job {state.job.id!r} does not share the GPU that it holds")
    if held != {holdings.running[handle].job.id for handle in holdings.sharing}:
        raise InvariantError("jobs run on shares of GPUs that they do not hold")
    if idle != shares.idle:
        raise InvariantError("what is left of GPUs does not add up")


def _check_instances(jobs: Sequence[Needy], shares: FreeShares) -> None:
    """Check a GPU in MIG mode: instances begin where they may, and no slice belongs to two."""
    held = 0
    for job in jobs:
        own = shares.instance(job)
        profile = ALL.get(job.mig)
        if profile is None or own not in [slices(profile, start) for start in profile.starts]:
            raise InvariantError(f"job {job.id!r} has no valid MIG instance on a GPU in MIG mode")
        if own & held or not alike(job.mig, jobs[0].mig):
            raise InvariantError(f"the MIG instance of job {job.id!r} is not its own")
        held |= own


def _check_hosts(holdings: Holdings) -> None:
    """Check that free + held = all CPU cores and memory of every machine."""
    hosts = holdings.free.hosts
    if hosts is None:
        return
    idle = FreeHosts.of_idle(holdings.tree)
    assert idle is not None  # else there would be nothing to hold
    held = hosts.nothing()
    for state in holdings.running.values():
        if state.placement is not None:
            held.release(state.placement, state.job)
            if (lacks := idle.shortage(state.placement, state.job)) is not None:
                raise InvariantError(f"job {state.job.id!r} runs on GPUs that have {lacks}")
    left = hosts.nothing()
    if idle.is_less(held):
        raise InvariantError("jobs hold more CPU cores or memory than a machine has")
    left.become(idle, held)
    if left != hosts:
        raise InvariantError("free + held differs from the CPU cores or memory that exist")


def _check_beside(holdings: Holdings, state: JobState) -> None:
    together = sorted((state.handle, *state.beside))
    for handle in state.beside:
        other = holdings.running.get(handle)
        if other is None or sorted((handle, *other.beside)) != together:
            raise InvariantError(f"job {state.job.id!r} shares GPUs with jobs that do not with it")
        if other.placement != state.placement:
            raise InvariantError(f"jobs {together} share GPUs and hold different ones")


def _check_index(tree: ClusterTree, free: FreeGpus) -> None:
    for level in range(1, len(tree.levels)):
        above = np.add.reduceat(free.counts(level - 1), tree.levels[level].first_child[:-1])
        if not np.array_equal(above, free.counts(level)):
            raise InvariantError(f"free GPUs per {tree.levels[level].name} do not add up")
    if free.total != int(free.counts(tree.root)[0]):
        raise InvariantError("free GPUs of the cluster do not add up")
    for level in range(tree.machine, len(tree.levels)):
        if not free.index_is_true(level):
            raise InvariantError(f"the index of {tree.levels[level].name}s is wrong")


def check_rows(rows: Rows) -> None:
    """Check that GPU-ticks held by jobs = integral of the timeline, and a job is in one place.

    On shared GPUs, each job has held its share.

    Raises:
        InvariantError: naming the law that is broken.
    """
    shares = (row.placement.gpus * (row.end - row.start) * _parts(row) for row in rows.placements)
    by_job = Fraction(sum(shares), PARTS)
    held_parts = sum(
        row.gpus_held * (after.tick - row.tick) for row, after in pairwise(rows.timeline)
    )
    integral = Fraction(held_parts, rows.timeline.gpu_parts)
    if by_job != integral:
        raise InvariantError(
            f"jobs held {by_job} GPU-ticks, but the timeline's integral is {integral}"
        )
    held: dict[int, Tick] = {}
    until: dict[int, Tick] = {}
    for row in rows.placements:
        if row.start < until.get(row.handle, 0) or row.end < row.start:
            raise InvariantError(f"job of handle {row.handle} is in two places at tick {row.start}")
        until[row.handle] = row.end
        held[row.handle] = held.get(row.handle, 0) + row.end - row.start
    for job in rows.jobs:
        if job.start < job.arrival or until[job.handle] != job.finish:
            raise InvariantError(f"job {job.job.id!r} ran when it was not there")
        if job.run != held[job.handle]:
            raise InvariantError(f"job {job.job.id!r} ran {job.run} ticks, its rows say otherwise")


def _parts(row: PlacementRow) -> int:
    """What a job holds of each of its GPUs, in units of 1 / `PARTS`."""
    if row.gpu_milli < GPU_MILLI:
        return PARTS * row.gpu_milli // GPU_MILLI
    return PARTS // (1 + len(row.beside))


def check_kinds(rows: Rows, tree: ClusterTree) -> None:
    """Check that jobs never hold more GPUs of a kind than there are, and in the end none.

    Raises:
        InvariantError: naming the kind.
    """
    if not several_kinds(tree):
        return
    changes: list[tuple[Tick, int, str]] = []
    for row in rows.placements:
        if not row.first:
            continue
        for machine, count in machine_counts(tree, row.placement).items():
            kind = tree.kinds[machine]
            changes += [(row.start, count, kind), (row.end, -count, kind)]
    gpus, held = gpus_by_kind(tree), dict.fromkeys(tree.kinds, 0)
    for tick, count, kind in sorted(changes):  # releases come first: their counts are negative
        held[kind] += count
        if held[kind] > gpus[kind]:
            raise InvariantError(
                f"jobs hold {held[kind]} GPUs of kind {kind} at tick {tick}, of {gpus[kind]}"
            )
    if any(held.values()):
        raise InvariantError(f"jobs have kept GPUs: {held}")

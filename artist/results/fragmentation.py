"""How many free GPUs the job mix cannot use, because of the machines that the GPUs are in.

    fragmented(t) = sum over machines of free(t) x share of jobs that need more than free(t)

Source: Weng et al., *Beware of fragmentation: Scheduling GPU-sharing workloads with fragmentation
gradient descent* (USENIX ATC 2023). There a job is drawn from the workload at random, and the free
GPUs of a machine are fragments with the probability that this job cannot use them.

If jobs hold shares of a GPU, the rest of it is a fragment with the probability that a job asks for
more of one GPU. Memory and MIG do not count.

One thing differs from the paper: a job may be larger than a machine. A job of g GPUs (at least g,
if it is elastic) fills machines of m GPUs, and the rest must fit into one more machine. So the job
needs (g - 1) mod m + 1 GPUs of a machine: a job of 12 can use 4 GPUs of a machine of 8. Why this
measure: docs/decisions/0007-fragmentation.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.engine.rows import Rows
from artist.units import GPU_MILLI, Tick

Ticks = npt.NDArray[np.int64]


class _Span(NamedTuple):
    """GPUs that are not free for a while."""

    placement: Placement
    start: Tick
    end: Tick


def fragmented_gpus(rows: Rows, tree: ClusterTree) -> tuple[Ticks, npt.NDArray[np.float64]]:
    """Rising ticks, and the fragmented GPUs from each tick to the next; 0 before the first tick.

    The job mix is the finished jobs, and each counts once.
    """
    if not rows.placements:
        return np.empty(0, dtype=np.int64), np.empty(0)
    # GPUs that several jobs share are counted once, for the first job.
    taken = (_Span(x.placement, x.start, x.end) for x in rows.placements if x.first)
    machine, tick, free = _free([*taken, *_withdrawn(rows)], tree)
    sizes, size_index = np.unique(tree.levels[tree.machine].gpus, return_inverse=True)
    demands = [row.job.gpus_min for row in rows.jobs]
    fragments = _fragments(sizes, demands)[size_index[machine], free]
    # The change at each row. A machine without jobs has no fragments, so its first row starts at 0.
    first = np.concatenate([[True], machine[1:] != machine[:-1]])
    before = np.where(first, 0, np.concatenate([[0], fragments[:-1]]))
    ticks, at = np.unique(tick, return_inverse=True)
    total = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(total, at, fragments - before)
    fragmented = np.cumsum(total) / len(rows.jobs)
    if left := _left_of_shared(rows):
        # Each start and end is also one of `taken`, so `ticks` has it.
        change = np.zeros(len(ticks), dtype=np.int64)
        for start, end, fragment in left:
            change[np.searchsorted(ticks, start)] += fragment
            change[np.searchsorted(ticks, end)] -= fragment
        fragmented += np.cumsum(change) / (GPU_MILLI * len(rows.jobs))
    return ticks, fragmented


def _left_of_shared(rows: Rows) -> list[tuple[Tick, Tick, int]]:
    """The intervals in which jobs hold shares of a GPU: start, end, and the fragment.

    The fragment is the thousandths left x the jobs that ask for more.
    """
    held = {row.handle: row.gpu_milli for row in rows.placements if row.gpu_milli < GPU_MILLI}
    asked = sorted(row.job.gpu_milli for row in rows.jobs)
    spans = []
    for row in rows.placements:
        if row.handle in held and row.first:
            left = GPU_MILLI - sum(held[x] for x in (row.handle, *row.beside))
            spans.append((row.start, row.end, left * (len(asked) - bisect_right(asked, left))))
    return spans


def _withdrawn(rows: Rows) -> Iterator[_Span]:
    """GPUs out of service, and when. GPUs that do not come back stay away until the last finish."""
    end = max(row.finish for row in rows.jobs)
    since: dict[int, list[Tick]] = {}
    for row in rows.outages:
        for leaf, count in zip(row.placement.leaves, row.placement.counts, strict=True):
            away = since.setdefault(leaf, [])
            for _ in range(count):  # which of a leaf's GPUs it is makes no difference
                if not row.back:
                    away.append(row.tick)
                else:
                    yield _Span(Placement((leaf,), (1,)), away.pop(), row.tick)
    for leaf, away in since.items():
        for begin in away:
            yield _Span(Placement((leaf,), (1,)), begin, max(begin, end))


def _free(placements: Sequence[_Span], tree: ClusterTree) -> tuple[Ticks, Ticks, Ticks]:
    """Machine, tick, and the machine's free GPUs from this tick on; sorted by machine and tick."""
    taken = [row.placement for row in placements]
    lengths = [len(placement.leaves) for placement in taken]
    leaves = np.fromiter(chain.from_iterable(p.leaves for p in taken), np.int64)
    counts = np.fromiter(chain.from_iterable(p.counts for p in taken), np.int64)
    machine = np.tile(np.array(tree.machine_of)[leaves], 2)
    tick = np.concatenate(
        [
            _repeated([row.start for row in placements], lengths),
            _repeated([row.end for row in placements], lengths),
        ]
    )
    change = np.concatenate([-counts, counts])
    order = np.lexsort((tick, machine))
    machine, tick = machine[order], tick[order]
    # Each interval gives back the GPUs that it takes. So the running sum is zero at the end of each
    # machine's rows, and one sum over all rows is enough.
    change = np.cumsum(change[order])
    # If a machine has several rows at one tick, the last one has all changes.
    last = np.concatenate([(machine[1:] != machine[:-1]) | (tick[1:] != tick[:-1]), [True]])
    machine, tick = machine[last], tick[last]
    return machine, tick, np.asarray(tree.levels[tree.machine].gpus)[machine] + change[last]


def _repeated(ticks: Sequence[Tick], lengths: Sequence[int]) -> Ticks:
    return np.repeat(np.array(ticks, dtype=np.int64), lengths)


def _fragments(sizes: npt.NDArray[np.int64], demands: Sequence[int]) -> npt.NDArray[np.int64]:
    """Free GPUs x jobs that need more, by machine size (row) and free GPUs (column)."""
    free = np.arange(sizes.max() + 1)
    wanted = np.array(demands)
    needed = (wanted - 1) % sizes[:, np.newaxis] + 1
    fragments: Ticks = free * (needed[:, :, np.newaxis] > free).sum(axis=1)
    return fragments

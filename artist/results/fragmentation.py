"""How many free GPUs the job mix cannot use, because of the machines they lie in.

Source: Weng et al., *Beware of fragmentation: Scheduling GPU-sharing workloads with fragmentation
gradient descent* (USENIX ATC 2023), where a machine's free GPUs are fragments to the extent
that a job drawn from the workload could not use them:

    fragmented(t) = sum over machines of free(t) x share of jobs that need more than free(t)

Whole GPUs only, and gangs larger than a machine (both other than in the paper): a job of g GPUs,
or g at least if it is elastic, fills machines of m GPUs but for a rest, and it is the rest
that a machine must hold: it needs (g - 1) mod m + 1. A job of 12 can use 4 GPUs of a machine of 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.engine.rows import PlacementRow, Rows
from artist.units import Tick

Ticks = npt.NDArray[np.int64]


def fragmented_gpus(rows: Rows, tree: ClusterTree) -> tuple[Ticks, npt.NDArray[np.float64]]:
    """Ticks, rising, and the fragmented GPUs from each of them to the next; 0 before the first.

    The mix is that of the finished jobs, each counting once.
    """
    if not rows.placements:
        return np.empty(0, dtype=np.int64), np.empty(0)
    machine, tick, free = _free(rows.placements, tree)
    sizes, kind = np.unique(tree.levels[tree.machine].gpus, return_inverse=True)
    fragments = _fragments(sizes, [row.job.gpus_min for row in rows.jobs])[kind[machine], free]
    first = np.concatenate([[True], machine[1:] != machine[:-1]])
    before = np.where(first, 0, np.concatenate([[0], fragments[:-1]]))  # an empty machine has none
    ticks, at = np.unique(tick, return_inverse=True)
    total = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(total, at, fragments - before)
    return ticks, np.cumsum(total) / len(rows.jobs)


def _free(placements: Sequence[PlacementRow], tree: ClusterTree) -> tuple[Ticks, Ticks, Ticks]:
    """Machine, tick and the machine's free GPUs from then on, sorted by machine and tick."""
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
    # What a stay takes it gives back, so that the sum starts each machine at zero.
    change = np.cumsum(change[order])
    last = np.concatenate([(machine[1:] != machine[:-1]) | (tick[1:] != tick[:-1]), [True]])
    machine, tick = machine[last], tick[last]
    return machine, tick, np.asarray(tree.levels[tree.machine].gpus)[machine] + change[last]


def _repeated(ticks: Sequence[Tick], lengths: Sequence[int]) -> Ticks:
    return np.repeat(np.array(ticks, dtype=np.int64), lengths)


def _fragments(sizes: npt.NDArray[np.int64], demands: Sequence[int]) -> npt.NDArray[np.int64]:
    """By machine size and free GPUs: free GPUs x jobs that need more in such a machine."""
    free = np.arange(sizes.max() + 1)
    wanted = np.array(demands)
    needed = (wanted - 1) % sizes[:, np.newaxis] + 1
    fragments: Ticks = free * (needed[:, :, np.newaxis] > free).sum(axis=1)
    return fragments

"""GPU fragmentation: how much of the idle GPUs the next pod is expected to be unable to use.

    F(machine) = sum over typical pods of frequency x idle(machine, pod)

If the machine cannot take the pod (for CPU, GPUs or kind of GPU), idle(machine, pod) is all that
its GPUs have left. If it can, it is what is left on the GPUs that have less than the pod asks of
each.
A pod without GPUs can use none, so all is a fragment to it. Memory does not count. Of a GPU in MIG
mode only the number of free slices counts, not their places: slices on which no instance can begin
count as useful, so F is too small there.
Source: Weng et al., USENIX ATC 2023, section 4.1, and `pkg/utils/frag.go` of their program.

Typical pods are the most frequent demands that make up 95 % of a list. Their frequencies are counts
here, so F is a whole number of thousandths of a GPU x pods.

What a pod that fits can use is a sum over GPUs. So F needs two tables, for each kind of GPU and
for each range of free CPU in which the same typical pods fit. One has what pods on one GPU or a
part of it can use of a GPU, by what it has left. The other has what pods on several GPUs can use of
whole GPUs, by their number.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from artist.pods.machines import PodMachines
from artist.pods.pod_list import WHOLE_MILLI, Demand, Ints, PodList

TYPICAL_SHARE = 0.95
"""`pod-popularity-threshold` in the experiments' `generate_config_and_run.py`."""


def typical_pods(pods: PodList) -> dict[Demand, int]:
    """The most frequent demands with their counts, until these make up 95 % of the pods.

    Demands that differ only in memory count as one. Of equally frequent ones the larger comes
    first.
    """
    counts: Counter[Demand] = Counter()
    for which, count in enumerate(np.bincount(pods.which, minlength=len(pods.demands)).tolist()):
        counts[pods.demands[which]._replace(memory_mib=0)] += count
    ranked = sorted(
        counts,
        key=lambda one: (counts[one], one.cpu_milli, one.gpu_milli, one.gpus, "|".join(one.kinds)),
        reverse=True,
    )
    typical: dict[Demand, int] = {}
    for demand in ranked:
        if sum(typical.values()) >= TYPICAL_SHARE * len(pods.which):
            break
        typical[demand] = counts[demand]
    return typical


class Fragmentation:
    """F of machines under the typical pods of a list. `pods` is their number."""

    def __init__(self, pods: PodList, machines: PodMachines) -> None:
        typical = typical_pods(pods)
        self.pods = sum(typical.values())
        self._steps = np.unique([one.cpu_milli for one in typical])
        width = machines.gpu_milli.shape[1]
        shape = (len(machines.kinds), len(self._steps) + 1)
        single = np.zeros((*shape, WHOLE_MILLI + 1), np.int64)
        several = np.zeros((*shape, width + 1), np.int64)
        for demand, count in typical.items():
            if not demand.gpus:
                continue
            kinds = machines.allowed(demand)
            enough = slice(int(np.searchsorted(self._steps, demand.cpu_milli)) + 1, None)
            if demand.gpus == 1:
                single[kinds, enough, demand.gpu_milli :] += count
            else:
                several[kinds, enough, demand.gpus :] += count
        self._single = (single * np.arange(WHOLE_MILLI + 1)).ravel()
        self._several = (several * WHOLE_MILLI * np.arange(width + 1)).ravel()
        self._width = width + 1

    def row(self, kind: Ints, cpu_milli: Ints) -> Ints:
        """The row of the tables for machines of this kind with this much free CPU."""
        rank = np.searchsorted(self._steps, cpu_milli, side="right")
        return kind * (len(self._steps) + 1) + rank

    def of_gpus(self, row: Ints, gpu_milli: Ints) -> Ints:
        """What pods on one GPU can use of GPUs with `gpu_milli` left, in thousandths x pods."""
        found: Ints = self._single[row * (WHOLE_MILLI + 1) + gpu_milli]
        return found

    def of_whole(self, row: Ints, whole: Ints) -> Ints:
        """What pods on several GPUs can use of `whole` free GPUs, in thousandths x pods."""
        found: Ints = self._several[row * self._width + whole]
        return found

    def of(self, machines: PodMachines, index: Ints) -> Ints:
        """F of the machines `index`, in thousandths of a GPU x pods."""
        row = self.row(machines.kind[index], machines.cpu_milli[index])
        usable: Ints = self.of_gpus(row[:, np.newaxis], machines.gpu_milli[index]).sum(axis=1)
        usable += self.of_whole(row, machines.whole[index])
        fragments: Ints = self.pods * machines.idle_milli[index] - usable
        return fragments

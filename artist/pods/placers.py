"""Placers: which machine a pod gets, and which GPU if it shares one.

A placer scores the machines that can take a pod, in whole numbers. The highest score wins; ties go
to the first machine in the visiting order. Pods on whole GPUs get the first free ones. Source: Weng
et al., USENIX ATC 2023, sections 4.2 and 6.1, and the plugins of their program
(`pkg/simulator/plugin`), which settle what the paper leaves open: roundings, and that shares go to
the fullest GPU that has room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from artist.pods.fragmentation import Fragmentation
from artist.pods.machines import PodMachines
from artist.pods.pod_list import WHOLE_MILLI, Demand, Ints
from artist.registry import Entry, Registry

BEST = 100
"""The highest score, as in Kubernetes' scheduler (`MaxNodeScore`)."""

_NONE = np.iinfo(np.int64).min


class PodPlacer(ABC):
    """A rule that places pods. It reads the machines and changes nothing."""

    def __init__(
        self, machines: PodMachines, fragmentation: Fragmentation, draws: np.random.Generator
    ) -> None:
        self.machines = machines
        self.fragmentation = fragmentation
        self.draws = draws

    @abstractmethod
    def scores(self, index: Ints, demand: Demand) -> Ints:
        """The scores, at least 0, of the machines `index`, all of which can take the pod."""

    def pick(self, scores: npt.NDArray[np.int32]) -> int:
        """The machine with the highest score. Scores are -1 where the pod does not fit."""
        return int(scores.argmax())

    def gpu(self, machine: int, demand: Demand) -> int:
        """The GPU of a machine for a pod that shares one: the fullest GPU that has room."""
        left = self.machines.gpu_milli[machine]
        room = self.machines.room(demand, np.array([machine]))[0]
        return int(np.argmin(np.where(room, left, WHOLE_MILLI + 1)))


class Random(PodPlacer):
    """Any machine, any GPU."""

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """All alike."""
        del demand
        return np.zeros(len(index), np.int64)

    def pick(self, scores: npt.NDArray[np.int32]) -> int:
        """Any machine where the pod fits."""
        room = np.flatnonzero(scores >= 0)
        return int(room[self.draws.integers(len(room))]) if room.size else 0

    def gpu(self, machine: int, demand: Demand) -> int:
        """Any GPU that has room."""
        room = np.flatnonzero(self.machines.room(demand, np.array([machine]))[0])
        return int(room[self.draws.integers(len(room))])


class BestFit(PodPlacer):
    """The machine that has least CPU and GPUs left afterwards, as shares of the largest machine."""

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """100 x (1 - the mean share left)."""
        machines = self.machines
        most_cpu, most_milli = _largest(machines)
        cpu = (machines.cpu_milli[index] - demand.cpu_milli) / most_cpu * 0.5
        gpus = (machines.idle_milli[index] - demand.milli) / most_milli * 0.5
        score: Ints = ((1.0 - (cpu + gpus)) * BEST).astype(np.int64)
        return score


class DotProduct(PodPlacer):
    """The machine whose free CPU and GPUs have the smallest dot product with the pod's demand.

    Grandl et al., *Multi-resource packing for cluster schedulers* (Tetris, SIGCOMM 2014), take the
    largest product. Weng et al. take the smallest, and so does this placer.
    """

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """100 x (1 - the dot product of free and asked / 2), as shares of the largest machine."""
        machines = self.machines
        most_cpu, most_milli = _largest(machines)
        product = machines.cpu_milli[index] / most_cpu * (demand.cpu_milli / most_cpu)
        product += machines.idle_milli[index] / most_milli * (demand.milli / most_milli)
        return ((1.0 - product / 2) * BEST).astype(np.int64)


class GpuPacking(PodPlacer):
    """GPUs in use first, then free GPUs of machines in use, then GPUs of empty machines."""

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """Three ranges: from 50 if a GPU is in use, from 33 if the machine is, else below."""
        if not demand.gpus:
            return np.zeros(len(index), np.int64)
        machines = self.machines
        whole = machines.whole[index]
        if demand.is_share:
            left = machines.gpu_milli[index]
            room = machines.room(demand, index)
            tightest = np.where(room, left, WHOLE_MILLI + 1).min(axis=1)
            shared = np.maximum(BEST - tightest // 10 // 10, BEST // 2)
            score = np.where(tightest < WHOLE_MILLI, shared, BEST // 2 - 1)
        else:
            score = np.full(len(index), max(BEST // 2 - demand.gpus, BEST // 3))
        return np.where(whole == machines.gpus[index], np.maximum(BEST // 3 - whole, whole), score)


class GpuClustering(PodPlacer):
    """Pods beside pods with the same number of GPUs, shares beside shares; full machines first."""

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """Four ranges of 25, from the top: only pods like it, some like it, none, only others."""
        if not demand.gpus:
            return np.zeros(len(index), np.int64)
        machines = self.machines
        _, most_milli = _largest(machines)
        held = machines.tenants[index] > 0
        sorts, has_its_like = held.sum(axis=1), held[:, 0 if demand.is_share else demand.gpus]
        quarter = BEST // 4
        base = np.where(has_its_like, np.where(sorts == 1, 3, 2), np.where(sorts == 0, 1, 0))
        fullness = quarter * (most_milli - machines.idle_milli[index]) // most_milli
        score: Ints = fullness + quarter * base
        return score


class Fgd(PodPlacer):
    """Fragmentation gradient descent: the place where F grows least or falls most.

    A share of a GPU is tried on every GPU of a machine. On the best machine it gets the first GPU
    with the highest score.
    """

    def __init__(
        self, machines: PodMachines, fragmentation: Fragmentation, draws: np.random.Generator
    ) -> None:
        super().__init__(machines, fragmentation, draws)
        # The falls x of F in GPUs at which score(x) = floor(100 / (1 + exp(-x))) reaches 1 to 99.
        step = np.arange(1, BEST)
        falls = WHOLE_MILLI * fragmentation.pods * np.log(step / (BEST - step))
        self._steps = np.ceil(falls).astype(np.int64)

    def scores(self, index: Ints, demand: Demand) -> Ints:
        """100 x sigmoid(fall of F in GPUs), on the best GPU."""
        machines, fragmentation = self.machines, self.fragmentation
        left, whole = machines.gpu_milli[index], machines.whole[index]
        kind, cpu = machines.kind[index], machines.cpu_milli[index]
        before = fragmentation.row(kind, cpu)
        after = fragmentation.row(kind, cpu - demand.cpu_milli)
        gain = fragmentation.of_gpus(after[:, np.newaxis], left).sum(axis=1)
        gain -= fragmentation.of_gpus(before[:, np.newaxis], left).sum(axis=1)
        gain -= fragmentation.of_whole(before, whole)
        if demand.is_share:
            gain = (gain[:, np.newaxis] + self._on_each_gpu(after, index, demand)).max(axis=1)
        else:
            found = fragmentation.of_gpus(after, np.full_like(after, WHOLE_MILLI))
            gain += fragmentation.of_whole(after, whole - demand.gpus) - demand.gpus * found
        return self._score(gain + fragmentation.pods * demand.milli)

    def gpu(self, machine: int, demand: Demand) -> int:
        """The first GPU with the highest score."""
        machines, fragmentation = self.machines, self.fragmentation
        one = np.array([machine])
        kind, cpu = machines.kind[one], machines.cpu_milli[one]
        left = machines.gpu_milli[one]
        after = fragmentation.row(kind, cpu - demand.cpu_milli)
        others = fragmentation.of_gpus(after[:, np.newaxis], left).sum()
        gain = others + self._on_each_gpu(after, one, demand)[0]
        before = fragmentation.pods * machines.idle_milli[one] - fragmentation.of(machines, one)
        score = self._score(gain - before + fragmentation.pods * demand.milli)
        return int(np.argmax(np.where(machines.room(demand, one)[0], score, -1)))

    def _on_each_gpu(self, row: Ints, index: Ints, demand: Demand) -> Ints:
        """By machine and GPU: how much more pods could use if this pod went to the GPU."""
        left, whole = self.machines.gpu_milli[index], self.machines.whole[index]
        row = row[:, np.newaxis]
        fits = self.machines.room(demand, index)
        found = self.fragmentation.of_gpus(row, np.where(fits, left - demand.gpu_milli, 0))
        found -= self.fragmentation.of_gpus(row, left)
        is_whole = left == WHOLE_MILLI
        found += self.fragmentation.of_whole(row, whole[:, np.newaxis] - is_whole)
        return np.where(fits, found, _NONE // 2)

    def _score(self, fall: Ints) -> Ints:
        score: Ints = np.searchsorted(self._steps, fall, side="right")
        return score


def _largest(machines: PodMachines) -> tuple[int, int]:
    """CPU and thousandths of GPUs of the largest machine; at least 1."""
    return max(1, int(machines.all_cpu_milli.max())), WHOLE_MILLI * int(machines.gpus.max())


_PAPER = "Weng et al., USENIX ATC 2023"

PLACERS = Registry(
    "placer",
    "artist list placers",
    [
        Entry("fgd", f"{__name__}:Fgd", "the place where fragmentation grows least", _PAPER),
        Entry("best-fit", f"{__name__}:BestFit", "the machine with least left", _PAPER),
        Entry(
            "dot-product",
            f"{__name__}:DotProduct",
            "the machine whose free resources point least where the demand does",
            _PAPER,
        ),
        Entry("gpu-packing", f"{__name__}:GpuPacking", "GPUs and machines in use first", _PAPER),
        Entry(
            "gpu-clustering",
            f"{__name__}:GpuClustering",
            "pods beside pods that hold the same number of GPUs",
            _PAPER,
        ),
        Entry("random", f"{__name__}:Random", "any machine, any GPU that has room", _PAPER),
    ],
)
"""`artist list placers` prints them. A placer is a class in this file and a row here."""

"""Pods on machines under one placer: where each pod goes, what is held, what is fragmented."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import InvariantError
from artist.pods.fragmentation import Fragmentation
from artist.pods.machine_file import MachineFile
from artist.pods.machines import PodMachines
from artist.pods.placers import PLACERS, PodPlacer
from artist.pods.pod_list import Demand, Ints, PodList

_NO_ROOM = -1

_WITHOUT: dict[str, dict[str, Any]] = {
    "cpu": {"cpu_milli": 0},
    "memory": {"memory_mib": 0},
    "gpus": {"gpus": 0, "gpu_milli": 0, "kinds": (), "mig": ""},
    "kind": {"kinds": ()},
}
"""By resource, the changes to a demand that make the resource no obstacle."""

SEVERAL = "several"
"""No resource alone is the obstacle."""


class Board:
    """The scores of all machines for each demand: which is best, and why a pod fits nowhere.

    A machine is rescored only after it changed. `tell` it of every change.
    """

    def __init__(self, machines: PodMachines, placer: PodPlacer) -> None:
        self._machines, self._placer = machines, placer
        self._scores: dict[Demand, npt.NDArray[np.int32]] = {}
        self._seen: dict[Demand, int] = {}
        self._changed = np.zeros(len(machines), np.int64)
        self._changes = 0
        self._lacking: dict[Demand, tuple[int, tuple[str, ...]]] = {}

    def tell(self, machine: int) -> None:
        """Note that a machine has changed."""
        self._changes += 1
        self._changed[machine] = self._changes

    def best(self, demand: Demand) -> int:
        """The machine that the placer picks; -1 if the pod fits nowhere."""
        scores = self._scores.get(demand)
        if scores is None:
            scores = self._scores[demand] = np.empty(len(self._machines), np.int32)
            stale = np.arange(len(self._machines))
        else:
            stale = np.flatnonzero(self._changed > self._seen[demand])
        self._seen[demand] = self._changes
        if stale.size:
            scores[stale] = _NO_ROOM
            room = stale[self._machines.fit(demand, stale)]
            if room.size:
                scores[room] = self._placer.scores(room, demand)
        machine = self._placer.pick(scores)
        return machine if scores[machine] > _NO_ROOM else -1

    def lacking(self, demand: Demand) -> tuple[str, ...]:
        """What keeps a pod from fitting: each resource without whose demand alone it would fit."""
        at, names = self._lacking.get(demand, (-1, ()))
        if at < self._changes:
            every = np.arange(len(self._machines))
            names = tuple(
                name
                for name, less in _WITHOUT.items()
                if demand != (other := demand._replace(**less))
                and self._machines.fit(other, every).any()
            )
            self._lacking[demand] = (self._changes, names)
        return names or (SEVERAL,)


class Place(NamedTuple):
    """Where a pod is: the machine by its place in the visiting order, and the GPUs there.

    `start` is the memory slice where its MIG instance begins.
    """

    machine: int
    gpus: list[int]
    start: int


class Placing:
    """Places pods and takes them away, and keeps the sums that runs record.

    `held_milli` is what pods hold, thousandths of GPUs; `fragmented` is F of all machines,
    thousandths x `typical`, the count of typical pods.
    """

    def __init__(
        self,
        file: MachineFile,
        pods: PodList,
        placer: str,
        order: Ints,
        draws: np.random.Generator,
    ) -> None:
        """Everything is free. `order` is the visiting order of machines; `draws` is for the placer.

        Raises:
            UnknownNameError: no such placer.
        """
        self.machines = PodMachines(file.machines, order)
        self._fragmentation = Fragmentation(pods, self.machines)
        self._rule: PodPlacer = PLACERS[placer].load()(self.machines, self._fragmentation, draws)
        self.board = Board(self.machines, self._rule)
        self._of_machine = self._fragmentation.of(self.machines, np.arange(len(self.machines)))
        self.typical = self._fragmentation.pods
        self.held_milli = 0
        self.fragmented = int(self._of_machine.sum())

    def place(self, demand: Demand) -> Place | None:
        """Place a pod where the placer says; None if it fits nowhere."""
        machine = self.board.best(demand)
        if machine < 0:
            return None
        if demand.is_share:
            gpus = [self._rule.gpu(machine, demand)]
        else:
            gpus = self.machines.whole_gpus(machine, demand.gpus)
        start = self.machines.claim(machine, demand, gpus)
        self._changed(machine, demand.milli)
        return Place(machine, gpus, start)

    def leave(self, place: Place, demand: Demand) -> None:
        """Take back what a pod holds."""
        self.machines.release(place.machine, demand, place.gpus, place.start)
        self._changed(place.machine, -demand.milli)

    def _changed(self, machine: int, milli: int) -> None:
        self.board.tell(machine)
        self.held_milli += milli
        now = int(self._fragmentation.of(self.machines, np.array([machine]))[0])
        self.fragmented += now - int(self._of_machine[machine])
        self._of_machine[machine] = now


def check(machines: PodMachines, pods: PodList, which: Ints, place: Ints) -> None:
    """Check that free + held = all on every machine, and that no GPU is held beyond its capacity.

    Pod i asks for demand `which[i]` and is on machine `place[i]`; on none if that is below 0.

    Raises:
        InvariantError: the check fails.
    """
    placed = place >= 0
    for all_, free, asked in (
        (machines.all_cpu_milli, machines.cpu_milli, [one.cpu_milli for one in pods.demands]),
        (machines.all_memory_mib, machines.memory_mib, [one.memory_mib for one in pods.demands]),
        (
            machines.all_gpu_milli.sum(axis=1),
            machines.gpu_milli.sum(axis=1),
            [one.milli for one in pods.demands],
        ),
    ):
        held = np.zeros(len(machines), np.int64)
        np.add.at(held, place[placed], np.array(asked, np.int64)[which[placed]])
        if (free + held != all_).any() or (free < 0).any() or (machines.gpu_milli < 0).any():
            raise InvariantError("free and held resources of a machine are not all that it has")

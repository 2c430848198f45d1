"""The scores of all machines for each demand. A machine is scored anew only after it changed.

Also why a pod fits nowhere: which resource it could do without, and would fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from artist.pods.machines import Machines
from artist.pods.placers import Placer
from artist.pods.pod_list import Demand

_NO_ROOM = -1

_WITHOUT: dict[str, dict[str, Any]] = {
    "cpu": {"cpu_milli": 0},
    "memory": {"memory_mib": 0},
    "gpus": {"gpus": 0, "gpu_milli": 0, "kinds": (), "mig": ""},
    "kind": {"kinds": ()},
}
"""What is left out of a demand, by the resource that is then no obstacle."""

SEVERAL = "several"
"""No resource alone is the obstacle."""


class Board:
    """Answers which machine is best for a demand. Tell it of every machine that changes."""

    def __init__(self, machines: Machines, placer: Placer) -> None:
        self._machines, self._placer = machines, placer
        self._scores: dict[Demand, npt.NDArray[np.int32]] = {}
        self._seen: dict[Demand, int] = {}
        self._changed = np.zeros(len(machines), np.int64)
        self._changes = 0
        self._lacking: dict[Demand, tuple[int, tuple[str, ...]]] = {}

    def tell(self, machine: int) -> None:
        """A machine has claimed or released something."""
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
        """What a pod that fits nowhere lacks: each resource without which alone it would fit."""
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

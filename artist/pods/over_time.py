"""Pods arrive, wait, run and leave. Records allocation, fragmentation and waits.

A pod that does not fit waits. Whenever pods leave or arrive, waiting pods are tried in the order of
arrival, and each that fits starts. A pod that does not fit does not block the pods behind it, and
nothing is kept free for it. This is what the scheduler of Kubernetes does: its queue puts pods that
do not fit aside and tries them again when something leaves (kubernetes.io, *Scheduling framework*).
A pod that would not fit into the empty cluster is refused.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from artist.pods.machine_file import MachineFile
from artist.pods.machines import PodMachines
from artist.pods.placing import Place, Placing, check
from artist.pods.pod_list import Demand, Ints
from artist.pods.pod_times import TimedPods
from artist.rng import stream

WAITING, REFUSED = -1, -2
"""In place of a start: the pod waits at the end, or no machine can ever take it."""


@dataclass(frozen=True, slots=True)
class Stay:
    """What happened under one placer.

    `start` is the tick at which each pod started, or `WAITING` or `REFUSED`. `lacking` counts, by
    resource, the pods that had to wait because of it alone when they arrived (`Board.lacking`). The
    other columns have a row for each instant `tick` at which something happened, with the state
    after it: thousandths of GPUs held, F in thousandths x `typical`, and the number of waiting
    pods.
    """

    capacity_milli: int
    typical: int
    start: Ints
    lacking: Mapping[str, int]
    tick: Ints
    held_milli: Ints
    fragmented: Ints
    waiting: Ints


def over_time(file: MachineFile, timed: TimedPods, placer: str, seed: int) -> Stay:
    """Run pods through machines until `timed.end`. Ties are broken as in `fill`.

    Raises:
        UnknownNameError: no such placer.
    """
    draws = stream(seed, "placement")
    return over_time_in_order(file, timed, placer, draws.permutation(file.count), draws)


def over_time_in_order(
    file: MachineFile, timed: TimedPods, placer: str, order: Ints, draws: np.random.Generator
) -> Stay:
    """As `over_time`, with the visiting order of machines given.

    Raises:
        UnknownNameError: no such placer.
    """
    placing = Placing(file, timed.of, placer, order, draws)
    pods, machines = timed.pods, placing.machines
    every = np.arange(len(machines))
    possible = [bool(machines.fit(one, every).any()) for one in pods.demands]
    which, arrival, duration = pods.which.tolist(), timed.arrival.tolist(), timed.duration.tolist()
    line = _WaitingPods(machines, pods.demands)
    start = np.where([possible[number] for number in which], WAITING, REFUSED)
    places: dict[int, Place] = {}
    leaving: list[tuple[int, int]] = []
    lacking = Counter[str]()
    rows = [array("q") for _ in range(4)]
    coming = now = 0
    while (coming < len(which) or line.count) and (timed.end is None or now < timed.end):
        now = min(arrival[coming : coming + 1] + [tick for tick, _ in leaving[:1]])
        freed = set()
        while leaving and leaving[0][0] == now:
            pod = heapq.heappop(leaving)[1]
            place = places.pop(pod)
            placing.leave(place, pods.demands[which[pod]])
            freed.add(place.machine)
        may_fit = line.fitting(freed)
        first = coming
        while coming < len(which) and arrival[coming] == now:
            if possible[which[coming]] and line.add(coming, which[coming]):
                may_fit.add(which[coming])
            coming += 1
        heads = [(line.first(number), number) for number in may_fit]
        heapq.heapify(heads)
        while heads:
            pod, number = heads[0]
            if (found := placing.place(pods.demands[number])) is None:
                heapq.heappop(heads)
                continue
            start[pod], places[pod] = now, found
            heapq.heappush(leaving, (now + duration[pod], pod))
            if line.start(number):
                heapq.heapreplace(heads, (line.first(number), number))
            else:
                heapq.heappop(heads)
        for pod in range(max(first, timed.there), coming):
            if start[pod] == WAITING:
                lacking.update(placing.board.lacking(pods.demands[which[pod]]))
        for column, value in zip(
            rows, (now, placing.held_milli, placing.fragmented, line.count), strict=True
        ):
            column.append(value)
    at = np.full(len(which), -1, np.int64)
    at[list(places)] = [place.machine for place in places.values()]
    check(machines, pods, pods.which, at)
    return Stay(
        file.capacity_milli,
        placing.typical,
        start,
        dict(lacking.most_common()),
        *(np.array(column, np.int64) for column in rows),
    )


class _WaitingPods:
    """The waiting pods of each demand, in their order of arrival.

    A waiting pod fits nowhere, so one can start only where something was freed.
    """

    def __init__(self, machines: PodMachines, demands: Sequence[Demand]) -> None:
        self._machines = machines
        self._wishes = machines.wishes(demands)
        self._waits = np.zeros(len(demands), np.bool_)
        self._pods: list[deque[int]] = [deque() for _ in demands]
        self.count = 0

    def add(self, pod: int, number: int) -> bool:
        """Add a pod. Returns whether it is the first of its demand."""
        self.count += 1
        self._waits[number] = True
        self._pods[number].append(pod)
        return len(self._pods[number]) == 1

    def first(self, number: int) -> int:
        """The pod of a demand that has waited longest."""
        return self._pods[number][0]

    def start(self, number: int) -> bool:
        """Remove the first pod of a demand, which starts. Returns whether others of it wait."""
        self.count -= 1
        self._pods[number].popleft()
        self._waits[number] = bool(self._pods[number])
        return bool(self._pods[number])

    def fitting(self, freed: Iterable[int]) -> set[int]:
        """The numbers of the demands of waiting pods that fit on one of these machines."""
        found: set[int] = set()
        if self.count:
            for machine in freed:
                fits = self._machines.fits_on(machine, self._wishes) & self._waits
                found.update(np.flatnonzero(fits).tolist())
        return found

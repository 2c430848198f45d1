"""Does `easy` start shares of GPUs when its rules say? Compared with a program that recomputes all.

One GPU in each machine, so that a placement names GPUs. Nothing slows a job, so all ends are known.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

from engine.gpu_sharing import machines, part, ran
from hypothesis import given, settings
from hypothesis import strategies as st
from support import job

from artist.units import GPU_MILLI, seconds
from artist.workload.job import Job

MIB = 16


class Running(NamedTuple):
    """A job, when it ends, and its GPUs."""

    end: int
    handle: int
    gpus: tuple[int, ...]


class Cluster:
    """On each GPU the jobs that hold some of it."""

    def __init__(self, gpus: int) -> None:
        self.on: list[list[Job]] = [[] for _ in range(gpus)]

    def has(self, gpu: int, asks: Job) -> bool:
        """Whether a GPU has enough left."""
        there = [*self.on[gpu], asks]
        memory = sum(x.gpu_memory_mib for x in there) <= MIB or not asks.gpu_memory_mib
        return sum(x.gpu_milli for x in there) <= GPU_MILLI and memory

    def place(self, asks: Job) -> tuple[int, ...] | None:
        """The fullest GPU that others hold with room for a share, else the first free ones."""
        held = [sum(x.gpu_milli for x in there) for there in self.on]
        beside = [gpu for gpu, milli in enumerate(held) if milli and self.has(gpu, asks)]
        if beside:
            return (max(beside, key=lambda gpu: (held[gpu], -gpu)),)
        free = [gpu for gpu, milli in enumerate(held) if not milli]
        return tuple(free[: asks.gpus]) if len(free) >= asks.gpus else None

    def claim(self, gpus: Sequence[int], asks: Job) -> None:
        """Give GPUs to a job."""
        for gpu in gpus:
            self.on[gpu].append(asks)

    def release(self, gpus: Sequence[int], asks: Job) -> None:
        """Take them back."""
        for gpu in gpus:
            self.on[gpu].remove(asks)


def naively(gpus: int, jobs: Sequence[Job]) -> dict[int, tuple[float, tuple[int, ...]]]:
    """When each job starts, and where."""
    cluster, starts = Cluster(gpus), {}
    running: list[Running] = []
    waiting: list[int] = []
    ticks = {int(x.arrival_s) for x in jobs}
    while ticks:
        now = min(ticks)
        ticks.remove(now)
        for one in [x for x in running if x.end == now]:
            running.remove(one)
            cluster.release(one.gpus, jobs[one.handle])
        waiting += [handle for handle, x in enumerate(jobs) if x.arrival_s == now]
        later: Cluster | None = None
        head, at = None, None
        for handle in waiting:
            asks = jobs[handle]
            found = cluster.place(asks)
            if found is None and head is None:
                head, later = asks, copy.deepcopy(cluster)
                for end in sorted({x.end for x in running}):
                    for one in running:
                        if one.end == end:
                            later.release(one.gpus, jobs[one.handle])
                    if later.place(head) is not None:
                        at = end
                        break
            if found is None:
                continue
            end = now + asks.iterations
            if head is not None and end > at:
                assert later is not None
                if not all(later.has(gpu, asks) for gpu in found):
                    continue
                later.claim(found, asks)
                if later.place(head) is None:
                    later.release(found, asks)
                    continue
            cluster.claim(found, asks)
            running.append(Running(end, handle, found))
            starts[handle] = float(now), found
            ticks.add(end)
        waiting = [handle for handle in waiting if handle not in starts]
    return starts


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[Job]]:
    """Up to twenty jobs on a few GPUs of 16 MiB; most ask for shares."""
    gpus = draw(st.integers(1, 4))
    arrivals = draw(st.lists(st.integers(0, 12), min_size=3, max_size=20))
    jobs = []
    for index, arrival in enumerate(sorted(arrivals)):
        name, iterations = f"j{index}", draw(st.integers(1, 25))
        mib = draw(st.sampled_from([0, 0, 3, 9, 16]))
        fields = {"arrival_s": float(arrival), "gpu_memory_mib": mib}
        if draw(st.integers(0, 3)):
            milli = draw(st.sampled_from([100, 250, 400, 500, 750]))
            jobs.append(part(name, milli, iterations, **fields))
        else:
            jobs.append(job(name, draw(st.integers(1, gpus)), iterations, **fields))
    return gpus, jobs


@settings(max_examples=400)
@given(case=cases())
def test_every_start_follows_from_the_rules(case: tuple[int, list[Job]]) -> None:
    gpus, jobs = case
    rows = ran(machines(*[MIB / 1024] * gpus), jobs, "easy")
    got = {
        row.handle: (seconds(row.start), row.placement.leaves)
        for row in rows.placements
        if row.start < row.end
    }
    first = {row.handle: seconds(row.start) for row in rows.jobs}
    expected = naively(gpus, jobs)
    assert first == {handle: start for handle, (start, _) in expected.items()}
    assert {x: y[1] for x, y in got.items()} == {x: y[1] for x, y in expected.items()}

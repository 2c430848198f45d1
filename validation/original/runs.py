"""Whole runs by the original's rules, on its cluster and at its speeds, in worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from artist.cluster.tree import ClusterTree, regular
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from validation.original.astra1 import Astra1
from validation.original.files import ReferenceTrace
from validation.original.rates import RecordedRates
from validation.original.schemes import scheduler
from validation.original.speeds import RecordedSpeeds


@dataclass(frozen=True, slots=True)
class Latencies:
    """Where speeds come from: the recording, and workloads for what it lacks."""

    golden: Path
    workloads: Path

    def speeds(self) -> RecordedSpeeds:
        """Read them."""
        return RecordedSpeeds(self.golden, Astra1(self.workloads))


def cluster(racks: int) -> ClusterTree:
    """The original's: 8 machines of 2 sockets of 4 GPUs per rack."""
    return regular(racks=racks, machines_per_rack=8, gpus_per_machine=8, gpus_per_socket=4)


def simulate(
    trace: ReferenceTrace, scheme: str, racks: int, seed: int | None, speeds: RecordedSpeeds
) -> Rows:
    """One run with the original's rules; `seed` None for its own machine order."""
    tree = cluster(racks)
    simulator = Simulator(tree, trace.jobs, RecordedRates(tree, speeds))
    return simulator.run(scheduler(scheme, seed))


# What a worker process needs for every run; set once per process, not per task.
_traces: Mapping[str, ReferenceTrace] = {}
_speeds: list[RecordedSpeeds] = []


def workers(
    count: int, traces: Mapping[str, ReferenceTrace], latencies: Latencies
) -> ProcessPoolExecutor:
    """Processes in which `run` knows these traces by name."""
    return ProcessPoolExecutor(count, initializer=_prepare, initargs=(traces, latencies))


def run(trace: str, scheme: str, racks: int, seed: int | None) -> Rows:
    """`simulate`, in a process of `workers`."""
    return simulate(_traces[trace], scheme, racks, seed, _speeds[0])


def _prepare(traces: Mapping[str, ReferenceTrace], latencies: Latencies) -> None:
    global _traces
    _traces = traces
    _speeds[:] = [latencies.speeds()]

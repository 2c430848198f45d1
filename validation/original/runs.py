"""Whole runs with the original's rules, cluster and speeds, in worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from artist.cluster.tree import ClusterTree, regular
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from validation.original.astra1 import Astra1
from validation.original.files import RecordedTrace
from validation.original.rates import RecordedRates
from validation.original.schemes import scheduler
from validation.original.speeds import RecordedSpeeds


@dataclass(frozen=True, slots=True)
class Latencies:
    """Sources of speeds: the recording, and workload files to compute what it lacks."""

    golden: Path
    workloads: Path

    def speeds(self) -> RecordedSpeeds:
        """Read the recording."""
        return RecordedSpeeds(self.golden, Astra1(self.workloads))


def cluster(racks: int) -> ClusterTree:
    """The original's cluster: 8 machines per rack, 2 sockets per machine, 4 GPUs per socket."""
    return regular(racks=racks, machines_per_rack=8, gpus_per_machine=8, gpus_per_socket=4)


def simulate(
    trace: RecordedTrace, scheme: str, racks: int, seed: int | None, speeds: RecordedSpeeds
) -> Rows:
    """One run with the original's rules. `seed` None means its own order of machines."""
    tree = cluster(racks)
    simulator = Simulator(tree, trace.jobs, RecordedRates(tree, speeds))
    return simulator.run(scheduler(scheme, seed))


# What a worker process needs for every run. It is set once per process, not sent with each task.
_traces: Mapping[str, RecordedTrace] = {}
_speeds: list[RecordedSpeeds] = []


def workers(
    count: int, traces: Mapping[str, RecordedTrace], latencies: Latencies
) -> ProcessPoolExecutor:
    """Processes in which `run` knows these traces by name."""
    return ProcessPoolExecutor(count, initializer=_prepare, initargs=(traces, latencies))


def run(trace: str, scheme: str, racks: int, seed: int | None) -> Rows:
    """`simulate`, in a process of `workers`."""
    return simulate(_traces[trace], scheme, racks, seed, _speeds[0])


def _prepare(traces: Mapping[str, RecordedTrace], latencies: Latencies) -> None:
    global _traces
    _traces = traces
    _speeds[:] = [latencies.speeds()]

"""How fast the original runs a job on some GPUs: the recorded answers of its ASTRA-sim 1.0.

The original describes a placement to ASTRA-sim by the numbers of distinct racks, machines and
sockets of the whole job, not per parent (`network`). The answers were recorded per model and
network. `astra1.py` computes an answer that is missing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree
from artist.errors import BackendError
from artist.workload.models import canonical

SOURCES = frozenset({"java-run", "systematic"})
"""Sources of the rows that were recorded with the original's own bandwidths and workloads."""


class Dim(NamedTuple):
    """A dimension of the original's network description."""

    topology: str
    kind: str
    units: int
    bandwidth: int
    """GiB/s per link."""
    latency_ns: int


Network: TypeAlias = tuple[Dim, ...]
"""Innermost first."""

Missing: TypeAlias = Callable[[str, float, Network], tuple[float, float]]
"""(model, compute scale, network) -> compute and exposed communication in microseconds."""


def network(racks: int, machines: int, sockets: int, gpus: int) -> Network:
    """The original's mapping from numbers of distinct units to dimensions.

    If the GPUs cannot be divided evenly at a level, the rest is one dimension at this level. Below
    racks with one GPU each, a rack dimension of one unit is kept.
    """
    dims: list[Dim] = []
    if racks > 1:
        if gpus % racks:
            return (_switch(gpus),)
        dims.append(_switch(racks))
        gpus //= racks
        if gpus == 1:
            return (_rack(1), *dims)
    for count, level in ((machines, _rack), (sockets, _socket)):
        if count <= 1:
            continue
        if gpus % count or gpus == count:
            return (level(gpus), *reversed(dims))
        dims.append(level(count))
        gpus //= count
    return (_gpus(gpus), *reversed(dims)) if gpus > 1 else tuple(reversed(dims))


def network_of(tree: ClusterTree, placement: Placement) -> Network:
    """The network of a placement on a cluster of sockets, machines and racks."""
    racks = len(unit_counts(tree, placement, tree.machine + 1))
    machines = len(unit_counts(tree, placement, tree.machine))
    return network(racks, machines, len(placement.leaves), placement.gpus)


class RecordedSpeeds:
    """compute / (compute + communication) per model and network."""

    def __init__(self, path: Path, missing: Missing) -> None:
        self._missing = missing
        self._speeds: dict[tuple[str, Network], float] = {}
        self._scales: dict[str, float] = {}
        self.computed: set[tuple[str, Network]] = set()
        """Models and networks that had to be computed."""
        with path.open(encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["source"] in SOURCES:
                    self._add(row)

    def speed(self, model: str, dims: Network) -> float:
        """The speed of a model on a network; 1 on a single GPU.

        Raises:
            BackendError: the recording has no row of the model.
        """
        if not dims:
            return 1.0
        if (model, dims) not in self._speeds:
            if model not in self._scales:
                raise BackendError(f"the recording has no row of model {model}")
            self.computed.add((model, dims))
            answer = self._missing(model, self._scales[model], dims)
            self._speeds[model, dims] = as_speed(*answer)
        return self._speeds[model, dims]

    def _add(self, row: Mapping[str, str]) -> None:
        """Take a row of the recording."""
        model = canonical(row["model"])
        columns = ("topologies", "dim_types", "units", "bw_GBps", "latency_ns")
        dims = tuple(
            Dim(topology, kind, int(units), int(bandwidth), int(latency))
            for topology, kind, units, bandwidth, latency in zip(
                *(row[column].split() for column in columns), strict=True
            )
        )
        speed = as_speed(float(row["total_comp_us"]), float(row["exposed_comm_us"]))
        self._speeds[model, dims] = speed
        self._scales[model] = float(row["compute_scale"])


def as_speed(compute: float, communication: float) -> float:
    """The speed from two times. The original reads both as single-precision numbers."""
    comp, comm = float(np.float32(compute)), float(np.float32(communication))
    return comp / (comp + comm)


# Bandwidths (GiB/s per link) and latencies (ns) of the original's configuration and code.
def _gpus(units: int) -> Dim:
    return Dim("FullyConnected", "N", units, 600, 0)


def _socket(units: int) -> Dim:
    return Dim("Ring", "N", units, 600, 500)


def _rack(units: int) -> Dim:
    return Dim("Ring", "P", units, 200, 5000)


def _switch(units: int) -> Dim:
    return Dim("Switch", "PP", units, 400, 50000)

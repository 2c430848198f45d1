"""The data of a run: from a scenario's settings to the gate, copies and remote reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from artist.cluster.cluster_file import Cluster
from artist.cluster.tree import ClusterTree
from artist.contract import Policy, RateFunction
from artist.data.catalogue import load_catalogue
from artist.data.gate import DataGate, DataOptions
from artist.data.remote_reads import RemoteReads
from artist.data.store import Store
from artist.data.wide_area import Copies
from artist.errors import ConfigError, TraceError, did_you_mean, shortened
from artist.io.documents import validate
from artist.units import GIB
from artist.workload.job import Job


@dataclass(frozen=True, slots=True)
class Data:
    """The tables of a run, before it starts."""

    options: DataOptions
    store: Store
    capacity: Fraction | None
    """Bytes per second of a region's link, each way; None without a wide-area network."""

    def gate(self, policy: Policy) -> DataGate:
        """The policy inside a gate, which shows it the data and enforces the rules of data."""
        copies = None
        if self.options.remote == "refuse" and self.options.replicate == "on-demand":
            assert self.capacity is not None
            copies = Copies(self.capacity)
        return DataGate(policy, self.options, self.store, copies)

    def rates(self, inside: RateFunction) -> RateFunction:
        """The rate function of the run, with slower reads if jobs may run without their data."""
        if self.options.remote == "refuse":
            return inside
        assert self.capacity is not None
        return RemoteReads(inside, self.store, self.capacity)


def open_data(
    file: str,
    options: Mapping[str, Any],
    cluster: Cluster | None,
    tree: ClusterTree,
    jobs: Sequence[Job],
) -> Data:
    """The data of a scenario, checked against its cluster file and its jobs.

    Raises:
        ConfigError: no regions, no wide-area network where one is needed, or a bad option.
        TraceError: a bad data file, or a job that names an unknown table or can run nowhere.
    """
    chosen = validate(options, DataOptions, "data")
    if cluster is None:
        raise ConfigError(
            f"data {shortened(file)} needs regions; give a cluster file with --cluster "
            "(artist list clusters)"
        )
    level = tree.level_names.index(cluster.file.levels[0])
    catalogue = load_catalogue(Path(file), cluster)
    copies = chosen.replicate == "on-demand"
    moves = chosen.remote == "slow" or copies
    wide = cluster.file.wide_area
    if moves and wide is None:
        raise ConfigError(
            f"data {shortened(file)}: cluster {cluster.file.name!r} states no wide_area, so no "
            "data can move; state it, or set data.replicate=never"
        )
    store = Store(catalogue, tree, level, copied=copies and chosen.remote == "refuse")
    _check_tables(jobs, store, file)
    if chosen.remote == "refuse":
        for job in jobs:
            store.check(job)
    capacity = None if wide is None else Fraction(round(wide.bandwidth_gib_per_s * GIB))
    return Data(chosen, store, capacity)


def _check_tables(jobs: Sequence[Job], store: Store, file: str) -> None:
    known = store.catalogue.by_name
    for job in jobs:
        for name in job.tables:
            if name not in known:
                hint = did_you_mean(name, known)
                raise TraceError(
                    f"job {job.id!r} reads table {shortened(name)}, which {file} lacks: {hint}"
                )

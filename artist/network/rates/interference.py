"""Rates of jobs that share GPUs: how much longer iterations take beside other jobs.

    iteration_s = iteration_s without the others x slowdown
    slowdown    = 1 + sum over the others of (1 / speed beside that one - 1)

The speed of a job beside another one is its throughput there over its throughput on GPUs of its
own. A table of measured pairs gives it. If the table lacks a pair, each job has the speed that it
has beside a job of its own model; if that is missing too, the two take turns, at 1/2. The costs of
the other jobs add up, so n jobs that take turns have a speed of 1/n each, as in fair time-slicing.

How far this is from measurements (`tests/network/test_interference_rules.py`): the speed beside a
job of the same model is off by 2.6 % in the median on an H200 that the networks kept busy, and by
19 % on an H100 that waited for its host. Groups of three are 5 and 13 % slower than the sum says.
On the H100, the table of the H200 is off by 12 % in the median, and taking turns by 25 %: measure
your own.

A job that asks for a share of a GPU runs at the speed of that share. A table may say that it is
slower beside others:

    slowdown of a share = max(1, share x slowdown)

A MIG instance has its part of the GPU to itself, so other jobs do not slow it.

This rate function wraps another one. Compute and communication slow down equally: a job of speed s
sends s times its bytes per second, which is what models of contention count.

A table is a CSV file with the columns `model_a`, `model_b`, `speed_a`, `speed_b` and, where speeds
depend on it, `gpu_kind`; other columns, such as the `source`, are for readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import Placement
from artist.cluster.tree import ONE_KIND, ClusterTree
from artist.contract import MOST_JOBS_PER_GPU, JobView, Rate, RateFunction, RatesAround
from artist.contract.rates import SHARED
from artist.errors import ConfigError, TraceError, shortened
from artist.io.csv_rows import csv_rows
from artist.io.reading import as_float, decode, read_bytes
from artist.io.shipped import document_names, document_path
from artist.units import Tick
from artist.workload.job import Job

FOLDER = "interference"
"""The folder of shipped tables of pairs, in `astra_configs`."""

TIME_SLICING = "time-slicing"
"""The name for no table: every pair takes turns."""

TAKING_TURNS = 0.5
"""Speed of a job in a pair that nobody has measured."""

COLUMNS = ("model_a", "model_b", "speed_a", "speed_b")
KIND = "gpu_kind"

_LEAST, _MOST = 1e-3, 1.1
"""Bounds of a speed in a table. Measured speeds may exceed 1 by their scatter."""

_Pair = tuple[str, str, str]
"""Model, the model beside it, kind of GPUs; the kind is empty where it makes no difference."""

_Row = TypeVar("_Row", bound=tuple[str, ...])


class PairSpeeds:
    """Measured speeds of pairs; without any, jobs take turns."""

    def __init__(self, tree: ClusterTree, speeds: Mapping[_Pair, float]) -> None:
        self._tree, self._speeds = tree, speeds

    def slowdown(self, job: Job, placement: Placement, others: Iterable[Job]) -> float:
        """How many times longer an iteration takes beside others, on the slowest of the GPUs."""
        kinds = kinds_of(self._tree, placement) if self._speeds else ("",)
        return max(self._on_kind(job, others, kind) for kind in kinds)

    def stretch(self, view: JobView, running: Mapping[int, JobView]) -> float:
        """How many times longer a job's iterations take beside the jobs on its GPUs now, if any."""
        if not view.beside or view.placement is None or view.job.mig:
            return 1.0
        slowdown = self.slowdown(view.job, view.placement, [running[x].job for x in view.beside])
        share = view.job.gpu_share
        return slowdown if share is None else max(1.0, share * slowdown)

    def _on_kind(self, job: Job, others: Iterable[Job], kind: str) -> float:
        return 1.0 + sum(1.0 / self._speed(job.model, x.model, kind) - 1.0 for x in others)

    def _speed(self, model: str, other: str, kind: str) -> float:
        # A run in which no GPU is shared reads no catalogue of models.
        from artist.workload.models import canonical_if_known

        one, beside = canonical_if_known(model), canonical_if_known(other)
        plain = one.partition("@")[0]
        # First the pair, with and without settings such as the batch, then two jobs of this model.
        pairs = ((one, beside), (plain, beside.partition("@")[0]), (one, one), (plain, plain))
        for pair in pairs:
            for of_kind in (kind, ""):
                if (*pair, of_kind) in self._speeds:
                    return self._speeds[*pair, of_kind]
        return TAKING_TURNS


def gains(interference: str) -> tuple[float, float]:
    """The most that sharing can gain: the best speed of one job, and of all jobs on a GPU together.

    Both are relative to a job alone. Jobs that take turns gain nothing. With a table, each other
    job costs a job at least what it costs in the fastest pair.
    """
    if interference == TIME_SLICING:
        return 1.0, 1.0
    cost = 1.0 / max(read_speeds(table_path(interference)).values()) - 1.0
    speeds = [(jobs, 1.0 / (1.0 + (jobs - 1) * cost)) for jobs in range(1, MOST_JOBS_PER_GPU + 1)]
    return max(speed for _, speed in speeds), max(jobs * speed for jobs, speed in speeds)


class InterferedRates(RatesAround):
    """Another rate function, extended to jobs that share GPUs."""

    def __init__(self, inside: RateFunction, pairs: PairSpeeds) -> None:
        super().__init__(inside, pairs)
        self._pairs = pairs

    def slowdown(self, job: Job, placement: Placement, others: Sequence[Job]) -> float:
        """How many times longer an iteration takes beside others (`ClusterView.slowdown`)."""
        return self._pairs.slowdown(job, placement, others)

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """The rates of the function inside, slowed."""
        rates = dict(self._inside(now, running, changed))
        for handle, rate in rates.items():
            if running[handle].beside:
                rates[handle] = _slowed(rate, self._pairs.stretch(running[handle], running))
        return rates


def _slowed(rate: Rate, stretch: float) -> Rate:
    return rate._replace(
        iteration_s=rate.iteration_s * stretch,
        source=rate.source + SHARED,
        compute_scale=rate.compute_scale * stretch,
        stretch=stretch,
    )


def interfered(
    inside: RateFunction, interference: str, tree: ClusterTree, jobs_per_gpu: int
) -> RateFunction:
    """`inside`, wrapped if several jobs may share a GPU. Raises as `open_pairs`."""
    pairs = open_pairs(interference, tree, jobs_per_gpu)
    return inside if pairs is None else InterferedRates(inside, pairs)


def open_pairs(interference: str, tree: ClusterTree, jobs_per_gpu: int) -> PairSpeeds | None:
    """The speeds of pairs in a run; None if `jobs_per_gpu` is 1.

    Raises:
        ConfigError: an unknown name, or a table whose kinds of GPUs do not fit the cluster's.
        TraceError: the file is not a table of speeds.
    """
    speeds = {} if interference == TIME_SLICING else read_speeds(table_path(interference))
    if jobs_per_gpu == 1:
        return None
    kinds = sorted({kind for _, _, kind in speeds if kind})
    if kinds and set(tree.kinds) == {ONE_KIND}:
        if len(kinds) > 1:
            raise ConfigError(
                f"{interference}: speeds on {shortened(', '.join(kinds))}, and the cluster does "
                "not say which GPUs it has; name their kind in a cluster file, or keep one kind"
            )
        # Speeds of the kind come last, so they override speeds without a kind.
        ranked = sorted(speeds.items(), key=lambda row: row[0][2] != "")
        speeds = {(one, other, ""): speed for (one, other, _), speed in ranked}
    elif not {kind for *_, kind in speeds} & {*tree.kinds, ""} and speeds:
        raise ConfigError(
            f"{interference}: speeds on {shortened(', '.join(kinds))}, but the cluster has "
            f"{shortened(', '.join(sorted(set(tree.kinds))))}; give speeds of these"
        )
    return PairSpeeds(tree, speeds)


def interference_names() -> list[str]:
    """What `interference` may name, besides a file."""
    return [TIME_SLICING, *document_names(FOLDER, ".csv")]


def table_path(name: str) -> Path:
    """The file of a table that a user names, by its path or by its name.

    Raises:
        ConfigError: the name is unknown.
    """
    path = document_path(FOLDER, name, ".csv")
    if path is None:
        raise ConfigError(
            f"interference {shortened(name)}: expected one of {', '.join(interference_names())}, "
            "or a CSV file"
        )
    return path


def read_speeds(path: Path) -> dict[_Pair, float]:
    """The speeds of a table.

    Raises:
        TraceError: columns are missing, a speed is out of range, or a pair has two of them; names
            file and line.
    """
    from artist.workload.models import canonical_if_known

    columns, rows = csv_rows(path, decode(path, read_bytes(path)), commented=True)
    if lacking := [name for name in COLUMNS if name not in columns]:
        raise TraceError(
            f"{path}:1: columns {', '.join(columns)}, expected {', '.join(COLUMNS)}; add "
            f"{', '.join(lacking)}"
        )
    speeds: dict[_Pair, float] = {}
    for where, cells in rows:
        one, other = (canonical_if_known(cells[name]) for name in COLUMNS[:2])
        kind = cells.get(KIND, "")
        both = [_checked(where, name, cells[name]) for name in COLUMNS[2:]]
        if one == other:  # measured twice
            both = [fmean(both)] * 2
        for pair, value in zip(((one, other, kind), (other, one, kind)), both, strict=True):
            add_pair(speeds, pair, value, where)
    return speeds


def add_pair(values: dict[_Row, float], pair: _Row, value: float, where: str) -> None:
    """Add the value that a row has for two models, which come first in `pair`.

    Raises:
        TraceError: a model is missing, or a row above has another value for the pair.
    """
    one, other = pair[:2]
    if not one or not other:
        raise TraceError(f"{where}: a row without two models; name both")
    if values.setdefault(pair, value) != value:
        raise TraceError(
            f"{where}: {one} beside {other} is {value:g}, but {values[pair]:g} above; keep one of "
            "them"
        )


def _checked(where: str, name: str, cell: str) -> float:
    value = as_float(cell)
    if not _LEAST <= value <= _MOST:
        raise TraceError(
            f"{where}: {name} {shortened(cell)}, expected a number from {_LEAST} to {_MOST} "
            "(throughput beside the other job over that alone)"
        )
    return value

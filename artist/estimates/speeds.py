"""How fast models train on kinds of GPUs: tables of measured speeds, as data with sources.

    compute time on a kind = compute time of the trace x scale
    scale                  = speed on the reference kind / speed on this kind

The compute times of a trace were measured on the table's `reference` kind, and models of the
catalogue compute on it. Only ratios of speeds matter, so a row may have any unit, such as steps per
second. A speed may depend on the job's number of GPUs. Where either kind lacks that number, the
ratio is that on the next smaller number that both have.

A gang on several kinds of GPUs runs as fast as on the slowest: its GPUs compute the same step and
wait for each other (decision 32). Bytes and links are the same on every kind. So backends are asked
with scaled compute times, and hide as much communication as these allow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError, shortened
from artist.estimates.calibration import ModelCalibration
from artist.io.documents import Document, load_yaml
from artist.registry import named_document
from artist.workload.job import Job
from artist.workload.layers import Workload

ANY_MODEL = "any"
"""The row of models that have no row of their own."""

_SCALED = " (compute time x "


def _by_gpus(value: Any) -> Any:
    """A plain number is the speed on one GPU."""
    return value if isinstance(value, Mapping) else {1: value}


_Gpus = Annotated[int, Field(ge=1)]
_Speed = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]

Speeds = Annotated[dict[_Gpus, _Speed], BeforeValidator(_by_gpus), Field(min_length=1)]
"""Speed by number of GPUs."""


class SpeedTable(Document):
    """A table of speeds as its file has it."""

    name: str
    summary: str
    reference: str = Field(description="the kind on which the trace's compute times were measured")
    source: str = Field(min_length=1, description="who measured, and where it is published")
    speeds: dict[str, dict[str, Speeds]] = Field(
        min_length=1,
        description="model (any: those without a row) -> kind -> speed, or GPUs -> speed",
    )

    @model_validator(mode="after")
    def _has_reference(self) -> SpeedTable:
        for model, row in self.speeds.items():
            if self.reference not in row:
                raise ValueError(
                    f"model {shortened(model)} has no speed on the reference kind "
                    f"{self.reference!r}; add it or name another reference"
                )
            known = row[self.reference]
            for kind, speeds in row.items():
                if not known.keys() & speeds.keys():
                    raise ValueError(
                        f"model {shortened(model)} has speeds on {_numbers(known)} of kind "
                        f"{self.reference!r} and on {_numbers(speeds)} of kind {kind!r}; state "
                        "both on one number of GPUs at least"
                    )
        return self

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, Speeds]]:
        """The rows by the canonical names of their models, where the catalogue knows them."""
        from artist.workload.models import canonical_if_known

        return {canonical_if_known(model): row for model, row in self.speeds.items()}

    def row(self, model: str) -> Mapping[str, Speeds] | None:
        """The speeds of a model in any spelling, or else those of `any` model; None without both.

        The row of `resnet50` also serves `resnet50@batch=64`, unless that has a row of its own.
        """
        if model in self.speeds:
            return self.speeds[model]
        from artist.workload.models import canonical_if_known

        name, rows = canonical_if_known(model), self._rows
        return rows.get(name) or rows.get(name.partition("@")[0]) or rows.get(ANY_MODEL)


class SpeedsOfRun:
    """The compute times of a run's jobs on the kinds of its cluster."""

    def __init__(self, table: SpeedTable, tree: ClusterTree) -> None:
        self.table, self._tree = table, tree
        self._scales: dict[tuple[str, int], Mapping[str, float]] = {}

    def check(self, jobs: Sequence[Job], where: Callable[[int], str]) -> None:
        """Refuse models without a speed on a kind of GPUs that one of their jobs may get.

        `where(i)` says where job i stands in its file.

        Raises:
            ConfigError: names the first such job, its model and the kind.
        """
        kinds, known = tuple(dict.fromkeys(self._tree.kinds)), set()
        self._check_kinds(jobs, where, kinds)
        for index, job in enumerate(jobs):
            if job.goodput is not None or (key := (job.model, job.gpu_kinds)) in known:
                continue
            known.add(key)
            row = self.table.row(job.model)
            lacking = [kind for kind in job.gpu_kinds or kinds if kind not in (row or ())]
            if row is None or lacking:
                on = f" on {lacking[0]}, which the cluster has" if row is not None else ""
                raise ConfigError(
                    f"{where(index)}: job {job.id!r} is of model {shortened(job.model)}, and "
                    f"speeds {self.table.name!r} has no speed of it{on}; add it to a table of your "
                    f"own (speeds=FILE), or a row {ANY_MODEL!r}"
                )

    def _check_kinds(
        self, jobs: Sequence[Job], where: Callable[[int], str], kinds: Sequence[str]
    ) -> None:
        """Refuse a kind that no row of the table has, since more rows for models would not help."""
        of_table = list(dict.fromkeys(kind for row in self.table.speeds.values() for kind in row))
        for index, job in enumerate(jobs):
            for kind in () if job.goodput is not None else job.gpu_kinds or kinds:
                if kind not in of_table:
                    raise ConfigError(
                        f"{where(index)}: job {job.id!r} may get GPUs of kind {shortened(kind)}, "
                        f"which the cluster has, and speeds {self.table.name!r} has "
                        f"{', '.join(of_table)} only; let jobs require one of these (gpu_kinds), "
                        "or use a table of your own with that kind (speeds=FILE)"
                    )

    def scale(self, model: str, gpus: int, kind: str) -> float:
        """Compute time of a model on `gpus` GPUs of a kind, over that on the reference kind."""
        return self._scales_of(model, gpus)[kind]

    def scale_on(self, job: Job, placement: Placement) -> float:
        """The scale of a job's compute time on some GPUs: that of the slowest kind."""
        scales = self._scales_of(job.model, placement.gpus)
        return max([scales[kind] for kind in kinds_of(self._tree, placement)])

    def least_scale(self, job: Job) -> float:
        """The smallest scale that a job can have on this cluster."""
        row = self.table.row(job.model)
        assert row is not None  # `check`
        counts = {1, *(count for of_kind in row.values() for count in of_kind)}
        kinds: Collection[str] = job.gpu_kinds or dict.fromkeys(self._tree.kinds)
        return min(self.scale(job.model, gpus, kind) for gpus in counts for kind in kinds)

    def _scales_of(self, model: str, gpus: int) -> Mapping[str, float]:
        scales = self._scales.get((model, gpus))
        if scales is None:
            row = self.table.row(model)
            assert row is not None  # `check`
            reference = row[self.table.reference]
            scales = {kind: _ratio(reference, row[kind], gpus) for kind in row}
            self._scales[model, gpus] = scales
        return scales


def _ratio(reference: Speeds, speeds: Speeds, gpus: int) -> float:
    """Speed on the reference kind over that on another, on as many GPUs of either.

    Of the numbers that were measured on both it is the next smaller one, else the smallest.
    """
    measured = sorted(reference.keys() & speeds.keys())
    at = measured[max(bisect_right(measured, gpus) - 1, 0)]
    return reference[at] / speeds[at]


def _numbers(speeds: Speeds) -> str:
    return f"{', '.join(map(str, sorted(speeds)))} GPU{'' if speeds.keys() == {1} else 's'}"


def scaled_name(model: str, scale: float) -> str:
    """The name for estimates of a model with scaled compute time (`ScaledModels`)."""
    return model if scale == 1.0 else f"{model}{_SCALED}{scale!r})"


@dataclass(frozen=True, slots=True)
class ScaledModels:
    """Workloads and constant shares of models, also by scaled names. A class, so it pickles."""

    workload_of: Callable[[str], Workload]
    constant_share_of: Callable[[str], float]

    def workload(self, name: str) -> Workload:
        """The model's iteration with scaled compute times; bytes stay the same."""
        model, scale = _parts(name)
        return ModelCalibration(compute_scale=scale).apply(self.workload_of(model))

    def constant_share(self, name: str) -> float:
        """The constant share of the scaled compute time; in seconds the constant stays the same."""
        model, scale = _parts(name)
        return self.constant_share_of(model) / scale


def _parts(name: str) -> tuple[str, float]:
    model, found, scale = name.rpartition(_SCALED)
    return (model, float(scale[:-1])) if found else (name, 1.0)


def load_speeds(name: str) -> SpeedTable:
    """A table of speeds by its file or by its name (`named_document`).

    Raises:
        ConfigError: the name is unknown, or the file is bad; names file and line.
    """
    return load_yaml(named_document("speeds", name, "table of speeds"), SpeedTable)

"""The file that says what fails: kinds of units at random, and outages at known times.

A file that ends in `.csv` is a log of outages (`outage_log.py`).

machine: {distribution: exponential, mtbf_s: 5.0e5, repair_s: 600}
link: {level: rack, distribution: weibull, shape: 0.7, mtbf_s: 4.0e6, repair_s: 3600}
outages:
  - {kind: rack, unit: 0, at_s: 7200, duration_s: 3600}
maintenance:
  - {kind: machine, unit: 3, at_s: 86400, duration_s: 1800, notice_s: 3600}
slow:
  - {kind: machine, unit: 5, speed: 0.8}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from artist.cluster.tree import MACHINE
from artist.errors import ConfigError
from artist.failures.checkpoints import CheckpointOptions
from artist.failures.outage_log import read_outage_log
from artist.io.documents import Document, Duration, NonNegative, line_in, load_yaml
from artist.io.shipped import document_names, document_path
from artist.registry import UnknownNameError
from artist.units import ticks

NONE = "none"
"""The name that means: nothing fails."""

FOLDER = "failures"

GPU, LINK = "gpu", "link"

_EXAMPLE = "machine: {distribution: exponential, mtbf_s: 3d, repair_s: 10min}"


class UnitFailures(Document):
    """How units of one kind fail and come back."""

    distribution: Literal["exponential", "weibull"] = Field(
        description="of the time in service until a failure: exponential, or weibull with a shape"
    )
    mtbf_s: Annotated[float, Field(ge=1.0)] = Field(
        description="mean time in service between two failures of a unit, at least 1 s"
    )
    repair_s: NonNegative = Field(description="how long a unit is out of service after a failure")
    shape: float | None = Field(
        default=None,
        ge=0.1,
        le=100.0,
        description="of weibull: below 1 new units fail most, above 1 old ones; 1 is exponential",
    )
    source: str = Field(default="", description="where the numbers come from")

    @model_validator(mode="after")
    def _shape_of_weibull(self) -> Self:
        if (self.distribution == "weibull") != (self.shape is not None):
            raise ValueError("give a shape with distribution weibull, and with no other")
        return self


class LinkFailures(UnitFailures):
    """How the uplinks of one level fail. A failing uplink cuts its unit off."""

    level: str = Field(default=MACHINE, description="the level whose units the links lead out of")


class PlannedOutage(Document):
    """One unit, out of service at a known time."""

    kind: str = Field(description="gpu, link, machine, rack or another level of the cluster")
    unit: int = Field(ge=0, description="its number; units of a kind are numbered from 0")
    at_s: NonNegative = Field(description="when it leaves service, seconds of simulated time")
    duration_s: Duration = Field(description="how long it is away")
    level: str = Field(default=MACHINE, description="of a link: the level that it leads out of")

    @property
    def end_s(self) -> float:
        """When it comes back."""
        return self.at_s + self.duration_s


class Maintenance(PlannedOutage):
    """Planned work on one unit. With a notice, no job is placed on it for a while before."""

    # No source: without a notice, jobs are placed on a unit until its maintenance begins.
    notice_s: NonNegative = Field(
        default=0.0,
        description="time before it in which no job is placed there; jobs may finish or leave",
    )

    @model_validator(mode="after")
    def _units_of_a_machine(self) -> Self:
        if self.kind == GPU and self.notice_s:
            raise ValueError(
                "a notice is for machines and larger units, as a job does not say which of a "
                "machine's GPUs it holds; give it to the machine"
            )
        return self


class SlowUnit(Document):
    """One unit whose GPUs compute more slowly for a while, or for the whole run."""

    kind: str = Field(description="machine, rack or another level of the cluster")
    unit: int = Field(ge=0, description="its number; units of a kind are numbered from 0")
    speed: float = Field(ge=0.01, lt=1, description="of its GPUs, as a part of their usual speed")
    at_s: NonNegative = Field(default=0.0, description="when it becomes slow")
    duration_s: Duration | None = Field(
        default=None, description="how long it stays slow; left out: to the end of the run"
    )


class Spares(Document):
    """Units that stand by, outside the cluster, and take the places of units that fail.

    A unit that was replaced is a spare once it is repaired.
    """

    count: Annotated[int, Field(ge=1)] = Field(description="how many stand by at the start")
    swap_s: NonNegative = Field(description="how long a place is empty until a spare is in it")
    level: str = Field(default=MACHINE, description="machine, rack or another level")


class FailureModel(Document):
    """What fails in a cluster."""

    summary: str = Field(default="", description="one line for artist list failures")
    machine: UnitFailures | None = Field(default=None, description="failures of machines")
    rack: UnitFailures | None = Field(default=None, description="failures of whole racks")
    link: LinkFailures | None = Field(default=None, description="failures of uplinks of a level")
    gpu: UnitFailures | None = Field(default=None, description="failures of single GPUs")
    levels: dict[str, UnitFailures] = Field(
        default_factory=dict, description="failures of units of other levels, by level"
    )
    outages: tuple[PlannedOutage, ...] = Field(
        default=(), description="failures at known times, as from a log"
    )
    maintenance: tuple[Maintenance, ...] = Field(
        default=(),
        description="planned work: jobs save before their GPUs leave; from notice_s before it, "
        "no job starts there",
    )
    slow: tuple[SlowUnit, ...] = Field(
        default=(),
        description="units that compute more slowly; a job runs as fast as its slowest GPU",
    )
    spares: Spares | None = Field(default=None, description="units that replace failed ones")
    checkpoint: CheckpointOptions | None = Field(
        default=None, description="for jobs, unless they or the scenario say otherwise"
    )

    @property
    def random(self) -> Iterator[tuple[str, UnitFailures]]:
        """Kinds that fail at random, in a fixed order."""
        kinds = {"machine": self.machine, "rack": self.rack, LINK: self.link, GPU: self.gpu}
        for kind, one in {**kinds, **dict(sorted(self.levels.items()))}.items():
            if one is not None:
                yield kind, one


def failure_names() -> list[str]:
    """The failure models that are known by name."""
    return document_names(FOLDER)


def is_log(path: Path) -> bool:
    """Whether a file of failures is a log of outages."""
    return path.suffix == ".csv"


def failure_file(name: str) -> Path:
    """The file of a failure model, by name or path.

    Raises:
        ConfigError: no model of this name.
    """
    path = Path(name) if is_log(Path(name)) else document_path(FOLDER, name)
    if path is None:
        raise UnknownNameError(
            "failure model",
            name,
            [NONE, *failure_names()],
            f"artist list failures, or a FILE.yaml with {_EXAMPLE}",
        )
    return path


@dataclass(frozen=True)
class FailureFile:
    """A failure model, and the file that it is from."""

    path: Path
    model: FailureModel
    places: Sequence[str] = ()
    """Of a log: file and line of each outage."""

    def place(self, *location: int | str) -> str:
        """The file and line of a part of it, as messages name it."""
        if self.places:
            return self.places[int(location[1])]
        return f"{self.path}:{line_in(self.path, location)}"

    @property
    def planned(self) -> Iterator[tuple[str, int, PlannedOutage]]:
        """Outages and maintenance: section, position in it, and the outage."""
        for section in ("outages", "maintenance"):
            for index, one in enumerate(getattr(self.model, section)):
                yield section, index, one


def load_failures(name: str) -> FailureFile:
    """A failure model by name or file, or a log of outages.

    Raises:
        ConfigError: unknown name, or a file that is none; names file and line.
        TraceError: a bad log; names file and line.
    """
    path = failure_file(name)
    file = _of_log(path) if is_log(path) else FailureFile(path, load_yaml(path, FailureModel))
    _check_overlaps(file)
    return file


def _of_log(path: Path) -> FailureFile:
    logged = read_outage_log(path)
    outages = tuple(
        PlannedOutage(kind=x.kind, unit=x.unit, at_s=x.from_s, duration_s=x.until_s - x.from_s)
        for x in logged
    )
    return FailureFile(path, FailureModel(outages=outages), [x.place for x in logged])


def _check_overlaps(file: FailureFile) -> None:
    """Refuse a unit that leaves service while it is away."""
    last: dict[tuple[str, str, int], PlannedOutage] = {}
    for section, index, one in sorted(file.planned, key=lambda planned: planned[2].at_s):
        key = (one.kind, one.level if one.kind == LINK else "", one.unit)
        if key in last and ticks(one.at_s) < ticks(last[key].end_s):
            raise ConfigError(
                f"{file.place(section, index)}: {one.kind} {one.unit} leaves service at "
                f"{one.at_s:g} s, but is away from {last[key].at_s:g} s to {last[key].end_s:g} s; "
                "join the two outages or move one"
            )
        last[key] = one

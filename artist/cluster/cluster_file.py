"""Cluster files: regions, datacenters, clusters, racks and machines, as data with sources.

A cluster file lists its levels, outermost first, and describes its units from the outside in:

    levels: [region, rack, machine]
    tree:
      - name: east
        storage: 40PB
        rack: {count: 16, machine: {count: 8, gpus: 8, kind: h100}}
      - name: west
        rack: {count: 4, machine: {count: 8, gpus: 8, kind: a100}}

The units inside a unit are described under the name of their level, by one description or a list of
descriptions. `count` makes several units of one description. `kind` holds for all machines inside.
`cluster_links.py` describes the links between the units, and `tree.py` the tree that they form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from artist.cluster.fabric_options import LevelOptions
from artist.cluster.mig import Mode, memory_gib
from artist.cluster.tree import MACHINE, MAX_GPUS, ONE_KIND, ClusterTree, HostSizes, Nested, nested
from artist.cluster.with_units import (
    Bandwidth,
    Bytes,
    Latency,
    LinkLatency,
    LinkSpeed,
    Storage,
    WithUnits,
    either_spelling,
    with_unit,
)
from artist.errors import ConfigError, did_you_mean, shortened
from artist.io.documents import NAME, Document, Positive, explain, line_in, load_yaml, validate
from artist.io.shipped import document_names
from artist.registry import named_document
from artist.slurm.facts import SlurmFacts
from artist.units import CORE_MILLI, GIB_MIB, MOST_CORES, MOST_GIB

Location = tuple[int | str, ...]


def _one_bandwidth_and_latency(schema: dict[str, Any]) -> None:
    either_spelling(schema)


class WideArea(WithUnits):
    """The wide-area network: what joins the units of the outermost level, such as regions."""

    model_config = ConfigDict(json_schema_extra=_one_bandwidth_and_latency)
    TAKE_UNITS: ClassVar[tuple[str, ...]] = ("bandwidth", "latency")

    bandwidth: Bandwidth = with_unit("bandwidth")
    latency: Latency = with_unit("latency")
    bandwidth_gib_per_s: LinkSpeed = Field(
        description="of each region's link to all others, in each direction, GiB/s"
    )
    latency_ns: LinkLatency = Field(description="from one region to another, ns")
    source: str = Field(min_length=1, description="where the numbers come from")


class ClusterFile(Document):
    """A cluster as its file describes it. `load_cluster` reads the units of `tree`."""

    name: str = Field(pattern=NAME)
    summary: str
    # A name and no path: it means the same wherever the run is done, also on another machine.
    fabric: str | None = Field(
        default=None,
        pattern=NAME,
        description="the fabric of its racks and machines, unless the scenario names another",
    )
    levels: tuple[str, ...] = Field(
        min_length=1, description="levels from the outermost to 'machine', e.g. region, machine"
    )
    links: dict[str, LevelOptions] = Field(
        default_factory=dict,
        description="level -> how the children of its units are connected, where the fabric does "
        "not say so",
    )
    wide_area: WideArea | None = Field(
        default=None, description="what joins the units of the outermost level"
    )
    tree: Any = Field(description="the units of the outermost level, and what is inside them")
    source: str = Field(default="", description="where the sizes come from")
    slurm: SlurmFacts | None = Field(
        default=None,
        description="what artist cluster import --slurm found; no run reads it yet",
    )

    @field_validator("levels")
    @classmethod
    def _end_at_machines(cls, levels: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(levels)) != len(levels) or levels[-1] != MACHINE:
            raise ValueError(f"names must differ and the last one must be '{MACHINE}'")
        reserved = sorted(set(levels) & (UnitEntry.model_fields.keys() | {"socket", "network", ""}))
        if reserved:
            raise ValueError(f"{reserved[0]!r} cannot be the name of a level; choose another")
        return levels

    @field_validator("links")
    @classmethod
    def _of_levels(
        cls, links: dict[str, LevelOptions], info: ValidationInfo
    ) -> dict[str, LevelOptions]:
        levels = info.data.get("levels", links)  # bad levels have an error of their own
        for level in links:
            if level not in levels:
                raise ValueError(f"unknown level {shortened(level)}: {did_you_mean(level, levels)}")
        return links

    @model_validator(mode="after")
    def _wide_area_outside_machines(self) -> ClusterFile:
        if self.wide_area is not None and len(self.levels) == 1:
            raise ValueError("wide_area needs a level outside machines, such as region")
        return self


class UnitEntry(WithUnits):
    """One description in a tree: what a unit is, without the units inside it."""

    TAKE_UNITS: ClassVar[tuple[str, ...]] = ("storage",)

    name: str | None = Field(default=None, pattern=NAME)
    count: int = Field(default=1, ge=1, le=MAX_GPUS, description="units of this description")
    kind: str | None = Field(default=None, pattern=NAME, description="of all machines inside")
    gpus: int | None = Field(default=None, ge=1, le=MAX_GPUS, description="of a machine")
    cpu_cores: Positive | None = Field(
        default=None, le=MOST_CORES, description="of a machine, for jobs that state theirs"
    )
    memory_gib: Positive | None = Field(
        default=None, le=MOST_GIB, description="of a machine, for jobs that state theirs"
    )
    gpu_memory_gib: Positive | None = Field(
        default=None,
        le=MOST_GIB,
        description="of each GPU of a machine, for jobs that state theirs; mig sets it, too",
    )
    mig: Mode | None = Field(
        default=None, description="the sort of a machine's GPUs, which jobs may ask instances of"
    )
    storage: Storage = with_unit("storage")
    storage_bytes: Bytes | None = Field(default=None, description="for tables, bytes")

    @model_validator(mode="after")
    def _one_gpu_memory(self) -> UnitEntry:
        of_mode = None if self.mig is None else memory_gib(self.mig)
        if of_mode is not None and self.gpu_memory_gib not in (None, of_mode):
            raise ValueError(
                f"gpu_memory_gib is {self.gpu_memory_gib:g}, but GPUs {self.mig} have {of_mode}; "
                "leave gpu_memory_gib out"
            )
        return self

    @property
    def memory_of_gpus_gib(self) -> float | None:
        """Memory of each GPU in GiB; None if the entry does not say."""
        return self.gpu_memory_gib if self.mig is None else memory_gib(self.mig)


@dataclass(frozen=True)
class Cluster:
    """A cluster file with its units counted and named.

    As in a `ClusterTree`, units of a level are numbered from 0 in the order of the file.
    """

    file: ClusterFile
    machines: Nested
    """GPUs of each machine, nested like the levels, outermost first."""
    gpus: int
    kinds: tuple[str, ...]
    """The kind of each machine."""
    hosts: HostSizes | None
    """CPU cores and memory of each machine; None if none states any."""
    names: Mapping[str, tuple[str, ...]]
    """Level -> names of its units. A unit without a name has its level and number: `rack-7`."""
    storage_bytes: Mapping[str, tuple[int | None, ...]]
    """Level -> storage of each unit; None where the file does not say."""

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the units of the outermost level."""
        return self.names[self.file.levels[0]]

    def tree(self, level_names: tuple[str, ...], gpus_per_socket: int | None) -> ClusterTree:
        """The cluster's tree, with the levels of its fabric (`cluster_links.fabric_of_cluster`)."""
        units = self.machines
        if gpus_per_socket is not None:
            units = _with_sockets(units, gpus_per_socket)
        wide_area = self.file.wide_area is not None
        return nested(level_names, units, self.kinds, wide_area=wide_area, hosts=self.hosts)


def cluster_names() -> list[str]:
    """Names of the cluster files in `./astra_configs/clusters` and of the shipped ones."""
    return document_names("clusters")


def load_cluster(name: str) -> Cluster:
    """Read a cluster by its file or by its name (`named_document`).

    Raises:
        ConfigError: the name is unknown, or the file is bad; names file and line.
    """
    path = named_document("clusters", name, "cluster")
    file = load_yaml(path, ClusterFile)
    try:
        return _UnitsReader(file).cluster()
    except _MisfitError as misfit:
        line = line_in(path, misfit.location)
        raise ConfigError(f"{path}:{line}: {misfit}") from misfit.__cause__


def cluster_from(document: Mapping[str, Any], where: str) -> Cluster:
    """A cluster from the content of its file, which need not exist.

    Raises:
        ConfigError: the content is bad; begins with `where`.
    """
    try:
        return _UnitsReader(validate(document, ClusterFile, where)).cluster()
    except _MisfitError as misfit:
        raise ConfigError(f"{where}: {misfit}") from misfit.__cause__


class _MisfitError(Exception):
    """A description that does not fit, and its location in the file."""

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location


@dataclass
class _UnitsReader:
    """Reads the units of a file, from the outside in."""

    file: ClusterFile
    names: dict[str, list[str | None]] = field(default_factory=dict)
    places: dict[str, dict[str, Location]] = field(default_factory=dict)
    storage: dict[str, list[int | None]] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    cpu_milli: list[int | None] = field(default_factory=list)
    memory_mib: list[int | None] = field(default_factory=list)
    gpu_memory_mib: list[int | None] = field(default_factory=list)
    mig: list[Mode | None] = field(default_factory=list)
    gpus: int = 0
    read: dict[Location, UnitEntry] = field(default_factory=dict)
    """Descriptions by location, so that a description inside many units is checked once."""

    def cluster(self) -> Cluster:
        for level in self.file.levels:
            self.names[level], self.places[level], self.storage[level] = [], {}, []
        machines = self._units(0, self.file.tree, ("tree",), None)
        return Cluster(
            self.file,
            machines,
            self.gpus,
            tuple(self.kinds),
            self._hosts(),
            {level: self._named(level) for level in self.file.levels},
            {level: tuple(stated) for level, stated in self.storage.items()},
        )

    def _units(self, depth: int, given: Any, where: Location, kind: str | None) -> list[Nested]:
        """All units of one description, or of a list of them."""
        if not isinstance(given, list):
            return self._described(depth, given, where, kind)
        if not given:
            raise _MisfitError(where, f"a list without a {self.file.levels[depth]}; describe one")
        return [
            unit
            for index, description in enumerate(given)
            for unit in self._described(depth, description, (*where, index), kind)
        ]

    def _described(self, depth: int, given: Any, where: Location, kind: str | None) -> list[Nested]:
        """The units of one description."""
        level, inner = self.file.levels[depth], self.file.levels[depth + 1 : depth + 2]
        if not isinstance(given, Mapping):
            raise _MisfitError(
                where, f"a {level} is {shortened(given)}, expected a mapping such as count: 8"
            )
        if where not in self.read:
            self.read[where] = self._unit(given, level, inner, where)
        unit = self.read[where]
        kind = unit.kind or kind
        units: list[Nested] = []
        for number in range(unit.count):
            self._note(level, unit, number, where)
            if inner:
                units.append(self._units(depth + 1, given[inner[0]], (*where, inner[0]), kind))
            else:
                assert unit.gpus is not None
                self._count(unit.gpus, where)
                self.kinds.append(kind or ONE_KIND)
                self.cpu_milli.append(parts(unit.cpu_cores, CORE_MILLI))
                self.memory_mib.append(parts(unit.memory_gib, GIB_MIB))
                self.gpu_memory_mib.append(parts(unit.memory_of_gpus_gib, GIB_MIB))
                self.mig.append(unit.mig)
                units.append(unit.gpus)
        return units

    def _unit(
        self, given: Mapping[Any, Any], level: str, inner: tuple[str, ...], where: Location
    ) -> UnitEntry:
        """What a description says about the unit itself, checked."""
        known = [name for name in UnitEntry.model_fields if inner or name not in _NOT_OF_MACHINES]
        known = [*inner, *(name for name in known if not inner or name not in _OF_MACHINES)]
        for key in given:
            if key not in known:
                hint = did_you_mean(str(key), known)
                hint = hint.replace("known: ", f"this entry is a {level}, which takes ")
                if key in _OF_MACHINES:
                    hint += f"; {key} is for its {MACHINE}s"
                message = f"unknown setting {shortened(key)} of a {level}: {hint}"
                raise _MisfitError((*where, str(key)), message)
        for key in inner or ("gpus",):
            if given.get(key) is None:
                raise _MisfitError(where, f"a {level} without '{key}'; say what is inside it")
        own = {key: value for key, value in given.items() if key not in inner}
        try:
            return UnitEntry.model_validate(own)
        except ValidationError as cause:
            at = (*where, *cause.errors()[0]["loc"])
            raise _MisfitError(at, f"a {level}: {explain(cause, UnitEntry)}") from cause

    def _hosts(self) -> HostSizes | None:
        of_gpus = tuple(self.gpu_memory_mib), tuple(self.mig)
        sizes = HostSizes(tuple(self.cpu_milli), tuple(self.memory_mib), *of_gpus)
        return sizes if any(x is not None for of_machines in sizes for x in of_machines) else None

    def _count(self, gpus: int, where: Location) -> None:
        self.gpus += gpus
        if self.gpus > MAX_GPUS:
            raise _MisfitError(where, f"more than {MAX_GPUS} GPUs; make the cluster smaller")

    def _note(self, level: str, unit: UnitEntry, number: int, where: Location) -> None:
        """Write down a unit's name and storage. Units of one description get numbered names."""
        name = unit.name
        if name is not None and unit.count > 1:
            name = f"{name}-{number}"
        if name is not None:
            self._once(level, name, where)
        self.names[level].append(name)
        self.storage[level].append(unit.storage_bytes)

    def _once(self, level: str, name: str, where: Location) -> None:
        if name in self.places[level]:
            raise _MisfitError(where, f"a second {level} called {name!r}; give each its own name")
        self.places[level][name] = where

    def _named(self, level: str) -> tuple[str, ...]:
        return tuple(
            name or self._numbered(level, index) for index, name in enumerate(self.names[level])
        )

    def _numbered(self, level: str, index: int) -> str:
        name = f"{level}-{index}"
        if (where := self.places[level].get(name)) is not None:
            raise _MisfitError(
                where, f"{name!r} is what {level} {index} is called without a name; choose another"
            )
        return name


_NOT_OF_MACHINES = ("storage", "storage_bytes")
_OF_MACHINES = ("gpus", "cpu_cores", "memory_gib", "gpu_memory_gib", "mig")


def parts(amount: float | None, in_one: int) -> int | None:
    """Whole parts of an amount, rounded down."""
    return None if amount is None else math.floor(round(amount * in_one, 6))


def _with_sockets(units: Nested, gpus_per_socket: int) -> Nested:
    """The units with their machines split into sockets, of which the last may be smaller."""
    if isinstance(units, int):
        full, rest = divmod(units, gpus_per_socket)
        return [gpus_per_socket] * full + ([rest] if rest else [])
    return [_with_sockets(unit, gpus_per_socket) for unit in units]

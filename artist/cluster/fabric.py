"""Fabrics: what the links of each cluster level can do, as data with sources.

A fabric is a YAML file with one entry per level, inner to outer. An entry describes how the
children of a unit of that level are connected, in ASTRA-sim's terms: topology, bandwidth per GPU
and direction, latency. `shared_by` says that the GPUs of a unit share the bandwidth, as those of a
machine share its network card (`artist/estimates/dimensions.py` has the rule). For models of
contention, an entry may also describe the physical links out of a unit of the level (`uplink`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from artist.cluster.tree import ClusterTree, regular
from artist.cluster.uplink import Uplink
from artist.cluster.with_units import (
    Bandwidth,
    Latency,
    LinkLatency,
    LinkSpeed,
    WithUnits,
    either_spelling,
    with_unit,
)
from artist.errors import ConfigError, shortened
from artist.io.digests import sha256
from artist.io.documents import NAME, Document, Positive, load_yaml, validate
from artist.io.shipped import document_names
from artist.registry import named_document


def _one_bandwidth_and_latency(schema: dict[str, Any]) -> None:
    either_spelling(schema)


# Numbers of data sheets are rounded to three or four digits.
ROUNDING = 1e-3

TopologyName = Literal["Ring", "FullyConnected", "Switch"]

# The names that ASTRA-sim knows (artist/astra/messages/groups.py reads them).
_ALGORITHMS = (
    r"^(ring|oneRing|halvingDoubling|oneHalvingDoubling|doubleBinaryTree"
    r"|(direct|oneDirect)([1-9][0-9]{0,4})?)$"
)


def _an_algorithm(name: str) -> str:
    if not re.fullmatch(_ALGORITHMS, name):
        raise ValueError(
            "expected ring, direct, directN (N peers at a time), halvingDoubling, "
            "doubleBinaryTree, oneRing, oneDirect or oneHalvingDoubling"
        )
    return name


AlgorithmName = Annotated[
    str, AfterValidator(_an_algorithm), Field(json_schema_extra={"pattern": _ALGORITHMS})
]


class FabricLevel(WithUnits):
    """How the children of a unit of this level are connected."""

    model_config = ConfigDict(json_schema_extra=_one_bandwidth_and_latency)
    TAKE_UNITS: ClassVar[tuple[str, ...]] = ("bandwidth", "latency")

    name: str = Field(min_length=1)
    topology: TopologyName
    bandwidth: Bandwidth = with_unit("bandwidth")
    latency: Latency = with_unit("latency")
    bandwidth_gib_per_s: LinkSpeed = Field(
        description="per GPU and direction, GiB/s; with shared_by, of all GPUs together"
    )
    latency_ns: LinkLatency = Field(description="ns per hop; a Switch counts two hops")
    collective: AlgorithmName = Field(
        default="ring", description="ASTRA-sim's algorithm on this level"
    )
    gpus: int | None = Field(
        default=None, ge=1, description="GPUs of one unit; only for a level inside machines"
    )
    shared_by: str | None = Field(
        default=None,
        description="an inner level, such as machine: the GPUs of one of its units share the "
        "bandwidth, as they share a machine's network card",
    )
    pair_share: Positive = Field(
        default=1.0,
        le=1,
        description="share of the bandwidth for a job on just two machines, or parts of one",
    )
    uplink: Uplink | None = None
    source: str = Field(description="where the numbers come from")

    @model_serializer(mode="wrap")
    def _omit_unshared(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit an unset `shared_by`, so that digests stay those from before the setting existed."""
        level: dict[str, Any] = serialise(self)
        if self.shared_by is None:
            level.pop("shared_by", None)  # a dump may have left it out already
        return level


class FabricSystem(Document):
    """What ASTRA-sim is asked on this fabric, and its system settings.

    The first seven decide what is asked (docs/decisions/0015-what-astra-sim-is-asked.md).
    """

    rings: Literal["per-level", "one"] = Field(
        default="per-level",
        description="one ring per level of the cluster, or one through all GPUs of a job",
    )
    uneven: Literal["wider", "bounded", "flat"] = Field(
        default="wider",
        description="an uneven shape costs as the fastest regular shape that spreads as far, as "
        "the slower of its regular neighbours, or as one ring at its outermost uneven level",
    )
    collectives: Literal["per-layer", "bucketed"] = Field(
        default="per-layer", description="data-parallel gradients: one per layer, or in buckets"
    )
    # PyTorch's DistributedDataParallel: bucket_cap_mb 25; its first bucket is 1 MiB.
    bucket_mib: Positive = Field(default=25.0, description="size that fills a bucket, MiB")
    first_bucket_mib: Positive = Field(default=1.0, description="the same of the first one, MiB")
    hidden_share: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="the share of the backward pass that communication can hide behind",
    )
    groups: Literal["cut", "flat"] = Field(
        default="cut",
        description="the groups of a divided job are cut out of the levels, or each is one flat "
        "ring as in ASTRA-sim, which charges a message to the innermost level that it crosses",
    )
    scheduling_policy: Literal["LIFO", "FIFO"] = "LIFO"
    collective_optimization: Literal["baseline", "localBWAware"] = "localBWAware"
    preferred_dataset_splits: int = Field(default=4, ge=1)
    active_chunks_per_dimension: int = Field(default=1, ge=1)
    endpoint_delay_ns: int = Field(default=10, ge=1)
    local_mem_bandwidth_gb_per_s: Positive = 1600.0
    all_to_all: AlgorithmName = Field(
        default="direct1",
        description="algorithm of all-to-alls on every level; direct1 sends each part straight to "
        "its GPU, one after the other, as NCCL does; a ring of n GPUs takes n/2 times as long",
    )
    source: str = "ASTRA-sim's shipped examples"

    @model_serializer(mode="wrap")
    def _omit_later(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit defaults of later settings, so that digests stay those from before they existed."""
        system: dict[str, Any] = serialise(self)
        if self.groups == "cut":
            system.pop("groups", None)
        if self.all_to_all == "direct1":
            system.pop("all_to_all", None)
        return system


class Machine(Document):
    """The machine whose links the fabric's numbers describe."""

    gpus: int = Field(ge=1, description="GPUs in it")
    kind: str | None = Field(
        default=None,
        pattern=NAME,
        description="kind of its GPUs, such as h100; it changes no compute time (gpu= in the name "
        "of a model does), but results say on which GPU models compute",
    )
    source: str = Field(min_length=1, description="where the number comes from")


class FabricOrigin(Document):
    """Where a fabric's figures come from, in half a sentence."""

    kind: Literal["measured", "vendor", "imitates"] = Field(
        description="fitted to steps or collectives of real machines, taken from data sheets, or "
        "made like the simulator or testbed of a paper"
    )
    of: str = Field(min_length=1, description="what was measured, sold or imitated")
    error: str = Field(default="", description="how far predictions are from measurements")

    @property
    def words(self) -> str:
        """`measured: steps of ResNet-50 (median error 5 %)`; `imitates the Dally paper`."""
        error = f" ({self.error})" if self.error else ""
        start = {"measured": "measured: ", "vendor": "vendors' figures: ", "imitates": "imitates "}
        return f"{start[self.kind]}{self.of}{error}"


class Fabric(Document):
    """A named set of levels with the system settings that go with them."""

    name: str
    summary: str
    levels: tuple[FabricLevel, ...] = Field(min_length=2)
    origin: FabricOrigin | None = Field(
        default=None, description="where the figures come from; shown with every result"
    )
    machine: Machine | None = Field(
        default=None,
        description="the machine that was described; it sets no size, but a run whose machines "
        "have other numbers of GPUs says so",
    )
    system: FabricSystem = FabricSystem()
    # A name and no path: it means the same wherever the run is done, also on another machine.
    calibration: str | None = Field(
        default=None,
        pattern=NAME,
        description="the calibration that belongs to the fabric; --calibration auto takes it",
    )

    @model_validator(mode="after")
    def _levels_named_once(self) -> Fabric:
        """Refuse level names that repeat, and settings of a level that cannot have them."""
        names = [level.name for level in self.levels]
        if len(set(names)) != len(names) or "machine" not in names[:-1]:
            raise ValueError(
                f"levels {', '.join(names)}: names must differ and 'machine' must be "
                "one of them, inside the outermost"
            )
        if names[0] != "machine" and self.levels[0].gpus is None:
            raise ValueError(f"level {names[0]}: 'gpus' must say how many GPUs one holds")
        for level in self.levels[1:] if names[0] != "machine" else self.levels:
            if level.gpus is not None:
                raise ValueError(f"level {level.name}: 'gpus' belongs to a level inside machines")
        if self.levels[-1].uplink is not None:
            raise ValueError(f"level {names[-1]}: the outermost level can have no 'uplink'")
        return self

    @model_validator(mode="after")
    def _shared_inside(self) -> Fabric:
        """Refuse a `shared_by` that names no inner level. `_check_sharing` has the other rules."""
        for index, level in enumerate(self.levels):
            if level.shared_by is None:
                continue
            inner = self.level_names[:index]
            if level.shared_by not in inner:
                raise ValueError(
                    f"level {level.name}: shared_by {shortened(level.shared_by)} is not a level "
                    f"inside it; {'inside are ' + ', '.join(inner) if inner else 'none is'}"
                )
        return self

    @model_validator(mode="after")
    def _one_flow_fits(self) -> Fabric:
        """Refuse an uplink that is slower than a flow across it (decision 20)."""
        for index, level in enumerate(self.levels):
            together = level.uplink.links_gib_per_s if level.uplink is not None else None
            if level.uplink is None or together is None:
                continue
            routed = level.uplink.routed_links
            carried, what = together / routed, "uplink" if routed == 1 else "one link of its uplink"
            for outer in self.levels[index + 1 :]:
                if outer.shared_by in self.level_names[index + 1 :]:
                    continue
                if outer.bandwidth_gib_per_s > carried * (1 + ROUNDING):
                    raise ValueError(
                        f"level {level.name}: its {what} carries {carried:g} GiB/s, but level "
                        f"{outer.name} gives one flow {outer.bandwidth_gib_per_s:g} GiB/s; state "
                        "more or faster links, oversubscription in their place, or less bandwidth"
                    )
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of the links, the settings and the kind of GPU, which decide results.

        The calibration has a digest of its own.
        """
        kind = self.machine.kind if self.machine is not None else None
        links = self.model_dump_json(exclude={"calibration", "machine", "origin"})
        return sha256(f"{links} {kind}" if kind is not None else links)

    @property
    def origin_words(self) -> str:
        """Where the figures come from, for people."""
        return "its own figures" if self.origin is None else self.origin.words

    @property
    def level_names(self) -> tuple[str, ...]:
        """Level names, inner to outer."""
        return tuple(level.name for level in self.levels)

    @property
    def uplink_levels(self) -> tuple[int, ...]:
        """The levels whose units have uplinks, inner to outer."""
        return tuple(index for index, level in enumerate(self.levels) if level.uplink is not None)

    @property
    def gpus_per_socket(self) -> int | None:
        """GPUs of the innermost unit inside a machine; None if machines have no inner level."""
        return self.levels[0].gpus if self.levels[0].name != "machine" else None

    def shared_outside_machines(self, level: int) -> bool:
        """Whether a unit outside machines, such as a region, shares a level's bandwidth."""
        sharing = self.levels[level].shared_by
        names = self.level_names
        return sharing is not None and names.index(sharing) > names.index("machine")

    def cluster(self, *, racks: int, machines_per_rack: int, gpus_per_machine: int) -> ClusterTree:
        """A regular cluster of these sizes, with the levels of this fabric.

        Raises:
            ConfigError: a size is out of range, or the fabric has other levels than
                (socket,) machine, rack and network.
        """
        tree = regular(
            racks=racks,
            machines_per_rack=machines_per_rack,
            gpus_per_machine=gpus_per_machine,
            gpus_per_socket=self.gpus_per_socket,
        )
        if tree.level_names != self.level_names:
            raise ConfigError(
                f"fabric {self.name!r} has levels {', '.join(self.level_names)}, but a cluster of "
                f"racks and machines has {', '.join(tree.level_names)}; give it these levels, or "
                "describe the cluster in a file (--cluster FILE)"
            )
        return tree


def fabric_names() -> list[str]:
    """Names of the fabrics in `./astra_configs/fabrics` and of the shipped ones."""
    return document_names("fabrics")


def load_fabric(name: str) -> Fabric:
    """A fabric by its file or by its name (`named_document`).

    Raises:
        ConfigError: the name is unknown, or the file is bad.
    """
    return load_yaml(named_document("fabrics", name, "fabric"), Fabric)


def with_system(fabric: Fabric, changes: Mapping[str, Any]) -> Fabric:
    """A fabric with some of its system settings replaced, checked for use.

    Raises:
        ConfigError: an unknown setting or a bad value, or levels whose bandwidth is shared in a way
            that ASTRA-sim cannot be asked about under these settings.
    """
    if "source" in changes:
        raise ConfigError("system.source is not a setting")
    if changes:
        merged = fabric.system.model_dump() | dict(changes)
        system = validate(merged, type(fabric.system), "system settings")
        fabric = fabric.model_copy(update={"system": system})
    for level in fabric.levels:
        if level.shared_by is not None:
            _check_sharing(level, fabric)
    return fabric


def _check_sharing(level: FabricLevel, fabric: Fabric) -> None:
    """Refuse settings under which a unit's traffic is not one all-reduce of the job's bytes.

    Under `rings: one`, other algorithms than a ring would pass a unit several times. With rings per
    level and `baseline`, each GPU of a unit sends all bytes outwards, so a shared card would carry
    them once per GPU. No library does that: on the T4 machines it doubles the error of BERT
    (docs/decisions/0015-what-astra-sim-is-asked.md).
    """
    system, where = fabric.system, f"fabric {fabric.name!r}, level {level.name}"
    flat = level.collective.startswith("one")
    if level.collective != "ring" and (flat or system.rings == "one"):
        raise ConfigError(
            f"{where}: shared_by {level.shared_by} and collective {level.collective!r} with rings "
            f"{system.rings!r} cannot be combined; take collective 'ring'"
        )
    if system.rings == "per-level" and system.collective_optimization == "baseline":
        raise ConfigError(
            f"{where}: shared_by {level.shared_by} needs system.rings=one, or "
            "system.collective_optimization=localBWAware: with baseline every GPU sends all bytes"
        )

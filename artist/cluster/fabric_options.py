"""Changes of a fabric's levels that a scenario makes: `--set fabric.network.bandwidth=100Gbit/s`.

The fabric file stays the same. `with_options` makes the fabric that a run uses, once, where the
fabric is loaded. The run's digest and queries are those of the changed links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidatorFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from artist.cluster.fabric import AlgorithmName, Fabric, FabricLevel, TopologyName
from artist.cluster.uplink import Routing, Uplink
from artist.cluster.with_units import (
    Bandwidth,
    Latency,
    LinkLatency,
    LinkSpeed,
    WithUnits,
    with_unit,
)
from artist.errors import ConfigError, nearest, shortened
from artist.io.documents import Positive, validate
from artist.units import bandwidth_texts, latency_text, ratio_text

UPLINK = {
    "oversubscription": "oversubscription",
    "eta": "eta",
    "links": "count",
    "routing": "routing",
    "queue_pairs": "queue_pairs",
}
"""Settings of a level's uplink that a scenario may change -> their names in a fabric file."""


class LevelOptions(WithUnits):
    """What a scenario changes of one level. Keys and meanings are those of a fabric file."""

    TAKE_UNITS: ClassVar[tuple[str, ...]] = ("bandwidth", "latency")

    bandwidth: Bandwidth = with_unit("bandwidth")
    latency: Latency = with_unit("latency")
    bandwidth_gib_per_s: LinkSpeed | None = Field(default=None, description="GiB/s")
    latency_ns: LinkLatency | None = Field(default=None, description="ns per hop")
    topology: TopologyName | None = None
    collective: AlgorithmName | None = Field(default=None, description="ASTRA-sim's algorithm")
    pair_share: Positive | None = Field(default=None, le=1)
    shared_by: str | None = Field(default=None, description="an inner level, such as machine")
    oversubscription: Positive | None = Field(
        default=None, description="of the links out of a unit of this level, 2 for 2:1"
    )
    eta: Positive | None = Field(
        default=None, le=1, description="share of these links that is used while jobs share them"
    )
    links: int | None = Field(default=None, ge=1, description="number of these links")
    routing: Routing | None = Field(
        default=None,
        description="how connections share these links: pooled (as ideal packet spraying does), "
        "ecmp or static",
    )
    queue_pairs: int | None = Field(
        default=None, ge=1, le=64, description="of a connection, each put on one of these links"
    )

    @model_validator(mode="wrap")
    @classmethod
    def _a_mapping(cls, data: Any, handler: ValidatorFunctionWrapHandler) -> LevelOptions:
        if not isinstance(data, Mapping | LevelOptions):
            raise ValueError("expected KEY: VALUE, such as bandwidth: 100Gbit/s")
        options: LevelOptions = handler(data)
        return options

    @model_serializer(mode="wrap")
    def _given(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump only the settings that were given, as a user would write them."""
        return {key: value for key, value in serialise(self).items() if value is not None}

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that were given, in the fabric's own units."""
        return self.model_dump()


def normal_form(options: Mapping[str, LevelOptions]) -> dict[str, LevelOptions]:
    """The changes in one form for all spellings: levels sorted, none without a change."""
    return {level: options[level] for level in sorted(options) if options[level].changes}


def with_options(
    fabric: Fabric, options: Mapping[str, LevelOptions], cluster: str | None = None
) -> Fabric:
    """A fabric with some settings of its levels replaced; `cluster` as in `level_of`.

    Raises:
        ConfigError: the fabric has no such level, or its levels do not go together.
    """
    if not options:
        return fabric
    for name in options:
        level_of(fabric, name, cluster)
    changed = [
        _changed(level, options[level.name].changes if level.name in options else {})
        for level in fabric.levels
    ]
    _raise_uplinks(changed, options)
    return validate(fabric.model_dump() | {"levels": changed}, Fabric, f"fabric {fabric.name!r}")


def _changed(level: FabricLevel, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A level with changes. Changes in `UPLINK` are settings of its uplink."""
    of_uplink = {UPLINK[key]: value for key, value in changes.items() if key in UPLINK}
    of_level = {key: value for key, value in changes.items() if key not in UPLINK}
    changed = level.model_dump() | of_level
    if not of_uplink:
        return changed
    stated = dict(changed["uplink"] or {})
    if "oversubscription" in of_uplink:
        kept = (
            ("eta", "count", "routing", "queue_pairs")
            if "routing" in {**stated, **of_uplink}
            else ("eta",)
        )
        stated = {key: value for key, value in stated.items() if key in kept}
        stated["source"] = "chosen in the scenario"
    elif not stated:
        key = next(key for key in changes if key in UPLINK)
        raise ConfigError(
            f"fabric.{level.name}.{key}: this level states no uplink; give "
            f"fabric.{level.name}.oversubscription too"
        )
    uplink = stated | of_uplink
    if "oversubscription" in uplink and ("count" in uplink) != ("routing" in uplink):
        has, lacks = ("links", "routing=ecmp") if "count" in uplink else ("routing", "links=4")
        raise ConfigError(
            f"fabric.{level.name}.{has}: beside an oversubscription, the number of links and their "
            f"routing go together; give fabric.{level.name}.{lacks} too"
        )
    validate(uplink, Uplink, f"fabric.{level.name}")
    return changed | {"uplink": uplink}


def _raise_uplinks(levels: Sequence[dict[str, Any]], options: Mapping[str, LevelOptions]) -> None:
    """Let the links out of inner units carry one flow of each level that was made faster.

    A user who doubles a network's bandwidth means the network cards too: no flow is faster than the
    uplink by which it leaves its machine.
    """
    for index, level in enumerate(levels):
        uplink = level["uplink"]
        if uplink is None or "rate_gib_per_s" not in uplink:
            continue
        pooled = 1 if Uplink(**uplink).routed_links > 1 else uplink["count"]
        inside = [inner["name"] for inner in levels[: index + 1]]
        flows = [
            outer["bandwidth_gib_per_s"]
            for outer in levels[index + 1 :]
            if outer["name"] in options
            and options[outer["name"]].bandwidth_gib_per_s is not None
            and outer.get("shared_by") in (None, *inside)
        ]
        if max(flows, default=0.0) > uplink["rate_gib_per_s"] * pooled:
            rate = max(flows) / pooled
            level["uplink"] = uplink | {"rate_gib_per_s": rate, "source": "one flow, as chosen"}


def level_of(fabric: Fabric, name: str, cluster: str | None = None) -> FabricLevel:
    """A level of a fabric by its name. `cluster` names the cluster file that chose its levels.

    Raises:
        ConfigError: the fabric has no such level; the message names its levels.
    """
    for level in fabric.levels:
        if level.name == name:
            return level
    if name in LevelOptions.model_fields:
        raise ConfigError(
            f"fabric.{name}: which level? Write fabric.LEVEL.{name}, where LEVEL is one of "
            f"{', '.join(fabric.level_names)}"
        )
    near = nearest(name, fabric.level_names, least=0.7)
    raise ConfigError(
        f"fabric.{shortened(name)[1:-1]}: fabric {fabric.name!r} has the levels "
        f"{', '.join(fabric.level_names)}"
        + (f" of the cluster file {cluster!r}" if cluster else "")
        + (f"; did you mean {near!r}?" if near else "")
    )


def changes_text(options: Mapping[str, Any]) -> str:
    """Changes in words: `network bandwidth 100 Gbit/s, rack shared_by machine`; empty if none.

    `options` are those of a scenario, or of the scenario in a run's manifest.
    """
    return ", ".join(
        f"{level} {_setting_text(key, value)}"
        for level, changes in sorted(options.items())
        for key, value in (
            changes.changes if isinstance(changes, LevelOptions) else changes
        ).items()
    )


def _setting_text(key: str, value: Any) -> str:
    if key == "bandwidth_gib_per_s":
        return f"bandwidth {bandwidth_texts(value)[0]}"
    if key == "latency_ns":
        return f"latency {latency_text(value)}"
    if key == "oversubscription":
        return f"oversubscription {ratio_text(value)}"
    return f"{key} {value}"

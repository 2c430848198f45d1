"""Values of a setting relative to the one that a scenario has: `x2`, `+2`, `+100Gbit/s`.

`racks=+2` means two more racks, `fabric.network.bandwidth=x2` twice the bandwidth. `x1` and `+0`
leave the setting unchanged. In a grid, a value is relative to what the other settings of the point
give: for example, twice the bandwidth of each fabric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from artist import settings
from artist.cluster.fabric import FabricSystem
from artist.cluster.fabric_options import UPLINK, LevelOptions, level_of
from artist.cluster.links import oversubscription
from artist.cluster.with_units import QUANTITIES, read_quantity
from artist.config import ARRIVALS, Scenario
from artist.data.gate import DataOptions
from artist.errors import ConfigError, did_you_mean, shortened
from artist.failures.checkpoints import CheckpointOptions
from artist.network.rates.contended_rates import ContentionOptions
from artist.policies.option_places import own_options
from artist.policies.own_file import entry_in_file, is_in_a_file
from artist.policies.table import POLICIES
from artist.run import asked_fabric, build_cluster, build_fabric, build_trace, cluster_of
from artist.settings import GROUPS, assign, checked
from artist.workload.division.job_parallelism import JobParallelism

_RELATIVE = re.compile(r"(x|\+) *(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(.*)")


def is_relative(value: object) -> bool:
    """Whether a value is written as `x2` or `+2`."""
    return isinstance(value, str) and _RELATIVE.fullmatch(value) is not None


def load_scenario(path: Path | None, flags: Mapping[str, Any], sets: Sequence[str]) -> Scenario:
    """As `artist.settings.load_scenario`, with relative values of `--set` too.

    They are relative to what the file, the flags and the other values of `--set` give.

    Raises:
        ConfigError: as `artist.settings.load_scenario` and `scenario_at`.
    """
    pairs = {text: text.partition("=") for text in sets}
    values = {text: value.strip() for text, (_, _, value) in pairs.items()}
    relative = [(pairs[text][0], values[text]) for text in sets if is_relative(values[text])]
    plain = [text for text in sets if not is_relative(values[text])]
    scenario = settings.load_scenario(path, flags, plain)
    if not relative:
        return scenario
    where = " ".join(f"--set {key}={value}" for key, value in relative)
    return scenario_at(scenario.model_dump(exclude_unset=True), relative, where)


def scenario_at(
    settings: Mapping[str, Any], point: Sequence[tuple[str, Any]], where: str
) -> Scenario:
    """The scenario of these settings with the values of a point of a grid.

    Raises:
        ConfigError: an unknown setting, a bad value, or a relative one of a setting that is no
            number. The message starts with `where`.
    """
    try:
        changed = dict(settings)
        for key, value in point:
            if not is_relative(value):
                changed = assign(changed, key, value)
        relative = [(key, value) for key, value in point if is_relative(value)]
        if relative:
            scenario = checked(changed, where)
            for key, text in relative:
                for own_key, value in _absolute(scenario, key, text).items():
                    changed = assign(changed, own_key, value)
    except ConfigError as cause:
        reason = str(cause).removeprefix(f"{where}: ")
        if len(point) == 1 and where.endswith(one := "=".join(map(str, point[0]))):
            reason = reason.removeprefix(f"{one}: ")
        raise ConfigError(f"{where}: {reason}") from cause
    return checked(changed, where)


def _absolute(scenario: Scenario, key: str, text: str) -> Mapping[str, Any]:
    """The setting with its absolute value; empty if the text changes nothing.

    Bandwidth and latency of a level get the key that has the unit in its name, since the sum is a
    plain number.
    """
    now = _present(scenario, key)
    match = _RELATIVE.fullmatch(text)
    assert match is not None
    sign, number, unit = match[1], float(match[2]), match[3].strip()
    name, where = key.rpartition(".")[2], f"{key}={shortened(text)[1:-1]}"
    if unit and (sign == "x" or name not in QUANTITIES):
        raise ConfigError(f"{where}: expected x2, +2 or a value without sign")
    if number == (1.0 if sign == "x" else 0.0):
        return {}
    if unit:
        number = read_quantity(f"{match[2]}{unit}", name)
    elif sign == "+" and name in QUANTITIES:
        example = QUANTITIES[name].example
        raise ConfigError(f"{where}: the number needs a unit, such as +{example}")
    prefix = ""
    if key == "arrivals":
        rate = ARRIVALS.fullmatch(str(now))
        prefix, now = ("poisson:", float(rate[1])) if rate and rate[1] else ("", now)
    if now is None:
        raise ConfigError(
            f"{where}: {key} is not set, and only a number takes +2 or x2; give the "
            f"value itself, {key}=NUMBER"
        )
    if isinstance(now, bool) or not isinstance(now, int | float):
        raise ConfigError(f"{where}: {key} is {shortened(now)}, and only a number takes +2 or x2")
    value: Any = _changed(now, sign, number, where)
    if name in QUANTITIES:
        key = key.removesuffix(name) + QUANTITIES[name].own_unit
    return {key: f"{prefix}{value:.12g}" if prefix else value}


def changed_number(now: float, text: str, where: str) -> float:
    """What `x2` or `+2` makes of a number; a whole number stays one.

    Raises:
        ConfigError: the text has a unit, or the outcome is not whole; begins with `where`.
    """
    match = _RELATIVE.fullmatch(text)
    assert match is not None
    if match[3].strip():
        raise ConfigError(f"{where}: expected x2, +2 or a value without sign")
    return _changed(now, match[1], float(match[2]), where)


def _changed(now: float, sign: str, number: float, where: str) -> float:
    value = now * number if sign == "x" else now + number
    if not isinstance(now, int):
        return value
    if value != int(value):
        raise ConfigError(f"{where}: of {now}, that is not a whole number")
    return int(value)


def _present(scenario: Scenario, key: str) -> Any:
    """The value of a setting in a scenario; None if it has none.

    Raises:
        ConfigError: no such setting.
    """
    assign({}, key, None)  # is it known?
    group, _, option = key.partition(".")
    if key == "jobs" and scenario.jobs is None:
        return len(build_trace(scenario, build_cluster(scenario, build_fabric(scenario))).jobs)
    if not option:
        return getattr(scenario, key)
    chosen = getattr(scenario, GROUPS[group])
    if group == "fabric":
        return _of_level(scenario, *option.split(".", 1))
    if group in (known := fields_of_groups()):
        _check_known(key, option, known[group])
    if group == "checkpoint":
        return getattr(chosen, option, None)
    if group == "policy":
        defaults = _policy_defaults(scenario.policy)
        if "(" not in scenario.policy:  # or the option may be one of the policy inside
            _check_known(key, option, defaults)
        chosen = {**defaults, **chosen}
    if group == "system" and option not in chosen:
        return getattr(asked_fabric(scenario, build_fabric(scenario)).system, option, None)
    for part in option.split("."):
        chosen = chosen.get(part) if isinstance(chosen, Mapping) else None
    return chosen


def fields_of_groups() -> dict[str, Mapping[str, FieldInfo]]:
    """The keys of the groups of settings other than `policy`, with what describes them."""
    return {
        "checkpoint": CheckpointOptions.model_fields,
        "fabric": LevelOptions.model_fields,
        "contention": ContentionOptions.model_fields,
        "data": DataOptions.model_fields,
        "parallelism": JobParallelism.model_fields,
        "system": FabricSystem.model_fields,
    }


def _check_known(key: str, option: str, known: Iterable[str]) -> None:
    """Refuse a misspelt option, which would otherwise look like one that is not set."""
    if option not in (names := list(known)):
        raise ConfigError(f"unknown setting {shortened(key)} ({did_you_mean(option, names)})")


def _of_level(scenario: Scenario, name: str, key: str = "") -> Any:
    """A setting of a level of the fabric, after the scenario's changes."""
    fabric = build_fabric(scenario)
    cluster = cluster_of(scenario)
    level = level_of(fabric, name, None if cluster is None else cluster.file.name)
    _check_known(f"fabric.{name}.{key}", key, LevelOptions.model_fields)
    if key == "oversubscription":
        index = fabric.level_names.index(name)
        return oversubscription(build_cluster(scenario, fabric), fabric, index, 0)
    if key in UPLINK:
        return getattr(level.uplink, UPLINK[key], None)
    own_key = QUANTITIES[key].own_unit if key in QUANTITIES else key
    return getattr(level, own_key, None)


def _policy_defaults(name: str) -> dict[str, Any]:
    """The options of a policy that a scenario need not give."""
    outer = name.partition("(")[0].strip()
    entry = entry_in_file(name) if is_in_a_file(outer) else POLICIES[outer]
    defaults = {key: field.get_default() for key, field in own_options(entry).items()}
    return defaults | dict(entry.preset)

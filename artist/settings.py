"""From settings to a scenario: those of a file, then flags such as `--racks`, then `--set`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.cluster.with_units import without_other_spelling
from artist.config import Scenario
from artist.errors import ConfigError, nearest, shortened
from artist.io.documents import in_seconds, load_yaml, validate
from artist.io.reading import read_text
from artist.io.safe_yaml import parse_yaml
from artist.policies.option_places import ESTIMATES, about_unknown
from artist.policies.table import POLICIES

# How `--set` names the settings that are mappings: `policy.KEY` is in `policy_options`.
# `fabric.LEVEL.KEY` is the key of a level.
GROUPS = {
    "policy": "policy_options",
    "system": "system",
    "fabric": "fabric_options",
    "contention": "contention_options",
    "checkpoint": "checkpoint",
    "data": "data_options",
    "parallelism": "parallelism",
}


def load_scenario(path: Path | None, flags: Mapping[str, Any], sets: Sequence[str]) -> Scenario:
    """A scenario file (or the defaults), overridden by flags and then by `--set` (`KEY=VALUE`).

    A flag that is None was not given.

    Raises:
        ConfigError: unreadable file, unknown key or bad value.
    """
    base = _of_file(path).model_dump(exclude_unset=True) if path else {}
    base |= {key: value for key, value in flags.items() if value is not None}
    for assignment in sets:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"--set {shortened(assignment)}: expected KEY=VALUE, e.g. policy.lease_s=1800"
            )
        if text.strip().startswith("+"):
            raise ConfigError(
                f"--set {shortened(assignment)}: relative values are for commands that "
                "simulate; give the value itself"
            )
        _, value = parse_yaml(text, f"--set {shortened(assignment)}")
        base = assign(base, key, value)
    try:
        return checked(base, "scenario")
    except ConfigError as cause:
        reason = str(cause).removeprefix("scenario: ")
        for assignment in reversed(sets):
            if f"'{assignment.partition('=')[0]}'" in reason:
                raise ConfigError(f"--set {shortened(assignment)}: {reason}") from cause
        raise


def _of_file(path: Path) -> Scenario:
    """The scenario of a file; the message about a file of another kind says what takes it."""
    try:
        return load_yaml(path, Scenario)
    except ConfigError as cause:
        _, data = parse_yaml(read_text(path), str(path))
        for keys, what in _OTHER_FILES.items():
            if isinstance(data, dict) and keys <= data.keys():
                raise ConfigError(f"{path}: this is {what}, not a scenario") from cause
        for key in data if isinstance(data, dict) else ():
            unknown = f"unknown setting '{key}': "
            where, found, _ = str(cause).partition(unknown)
            if found and (instead := _in_a_group(str(key), data)):
                raise ConfigError(f"{where}{unknown}write {instead}") from cause
            if found and key == ESTIMATES:
                raise ConfigError(f"{where}{unknown}{about_unknown(key, ())}") from cause
        raise


def _in_a_group(key: str, data: Mapping[str, Any]) -> str:
    """How a file sets what `--set` calls `key`, or an option of its policy; else an empty text."""
    group, _, option = key.partition(".")
    policy = data.get("policy", Scenario.model_fields["policy"].default)
    if key in _options_of(policy):
        group, option = "policy", key
    if group not in GROUPS or not option:
        return ""
    opened, closed = option.replace(".", ": {"), "}" * (option.count(".") + 1)
    return f"{GROUPS[group]}: {{{opened}: VALUE{closed}"


_OTHER_FILES = {
    frozenset({"name", "grid"}): "an experiment (artist sweep FILE)",
    frozenset({"levels", "tree"}): "a cluster (--cluster FILE)",
    frozenset({"name", "levels"}): "a fabric (--fabric FILE)",
}
"""Keys of other files that a user may take for a scenario, and what the file is."""


def checked(settings: Mapping[str, Any], where: str) -> Scenario:
    """The scenario of settings that flags and `--set` give.

    Raises:
        ConfigError: a setting is unknown or out of range; starts with `where`, and names
            `fabric.network.bandwidth` as `--set` does.
    """
    try:
        return validate(settings, Scenario, where)
    except ConfigError as cause:
        named = str(cause)
        for group, field in GROUPS.items():
            named = named.replace(f"'{field}.", f"'{group}.")
        raise ConfigError(named) from cause


def assign(base: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of scenario settings with one changed.

    `policy.KEY` sets an option of the policy, `system.KEY` of ASTRA-sim, `fabric.LEVEL.KEY` of a
    level of the fabric, and so on for the other `GROUPS`. In a policy that takes another policy
    inside, `policy.host.KEY` sets an option of the inner one; so does `policy.KEY` if the outer
    one has none of that name.

    Times in seconds (`..._s`) may have another unit: `10min`.

    Raises:
        ConfigError: no such setting.
    """
    try:
        value = in_seconds(key, value)
    except ValueError as cause:
        raise ConfigError(f"{key}={shortened(value)}: {cause}") from None
    group, _, option = key.partition(".")
    if group in GROUPS and option:
        field = GROUPS[group]
        options = base.get(field, {})
        if field in ("checkpoint", "parallelism") and options in (None, "published", "none"):
            options = {}
        if not isinstance(options, Mapping):
            raise ConfigError(f"{field} is {shortened(options)}, expected options as KEY: VALUE")
        if group == "fabric":
            options = without_other_spelling(options, option)
        return {**base, field: _with(options, option, value)}
    groups = {*GROUPS.values()} - {"checkpoint", "parallelism"}  # which are also set as a whole
    known = [name for name in Scenario.model_fields if name not in groups]
    if key in known:
        return {**base, key: value}
    own = _options_of(base.get("policy", Scenario.model_fields["policy"].default))
    near = nearest(key, [*own, *known])
    if near in own and (key != ESTIMATES or near == key):
        raise ConfigError(f"unknown setting {shortened(key)} (did you mean 'policy.{near}'?)")
    of_groups = ["fabric.LEVEL.*" if group == "fabric" else f"{group}.*" for group in GROUPS]
    hint = about_unknown(key, [*of_groups, *known])
    raise ConfigError(f"unknown setting {shortened(key)} ({hint})")


def _options_of(policy: object) -> list[str]:
    """The options of a policy of the table; none of any other."""
    name = str(policy).partition("(")[0].strip()
    return [key for one in POLICIES if one.id == name for key in one.load().Options.model_fields]


def _with(options: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of options with one changed; `host.KEY` is the option KEY of the mapping `host`."""
    outer, dot, inner = key.partition(".")
    if not dot:
        return {**options, key: value}
    inner_options = options.get(outer, {})
    if not isinstance(inner_options, Mapping):
        raise ConfigError(f"option {key}: {outer} is {shortened(inner_options)}, expected options")
    return {**options, outer: _with(inner_options, inner, value)}

"""What a comparison compares: variants of one scenario, each with a label.

A variant is the scenario under one policy, or with one value of the setting that varies. All other
settings are equal, so a difference between two variants comes from that setting.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from artist.config import Scenario, assign
from artist.errors import ConfigError, shortened
from artist.io.documents import validate
from artist.io.safe_yaml import parse_yaml
from artist.run import build_calibration, build_cluster, build_fabric, build_policy

POLICY = "policy"
_REPLICATES = ("seed", "permutation")


class Variant(NamedTuple):
    """A scenario of a comparison, and what tables and sentences call it."""

    label: str
    scenario: Scenario


def of_policies(scenario: Scenario, policies: Sequence[str]) -> list[Variant]:
    """The scenario under each policy; the label is the policy's name.

    Raises:
        ConfigError: fewer than two policies, one of them twice, or one that is not known or does
            not take the options.
    """
    if len(set(policies)) < 2 or len(set(policies)) != len(policies):
        raise ConfigError(
            f"--policies {','.join(policies)}: give at least two different policies, "
            "the first is the baseline; or one policy and --vary SETTING=A,B"
        )
    variants = [Variant(name, scenario.model_copy(update={POLICY: name})) for name in policies]
    for one in variants:
        build_policy(one.scenario)
    return variants


def of_setting(scenario: Scenario, key: str, values: Sequence[Any]) -> list[Variant]:
    """The scenario with each value of one setting; `key` is spelled as in `--set`.

    The label is the last part of the key and the value: `bandwidth=100Gbit/s`. Each variant's
    fabric, cluster, policy and calibration are made once here, so that a bad value of the last
    variant is told before the first one runs.

    Raises:
        ConfigError: an unknown setting, a bad value, fewer than two values, two values that are one
            setting, or a setting that replicates vary.
    """
    where = f"--vary {key}"
    if key in _REPLICATES:
        raise ConfigError(
            f"{where}: seeds and permutations are the replicates of a comparison; "
            "choose how many with --seeds and --permutations"
        )
    if isinstance(values, str) or len(values) < 2:
        raise ConfigError(
            f"{where}: give at least two values, such as {key}=A,B; the first is the baseline"
        )
    variants = [_with_value(scenario, key, value) for value in values]
    for index, one in enumerate(variants):
        for earlier in variants[:index]:
            if one.label == earlier.label or one.scenario == earlier.scenario:
                raise ConfigError(
                    f"{where}: {earlier.label} and {one.label} are the same scenario; give each "
                    "value once"
                )
    for one in variants:
        _check(one.scenario)
    return variants


def parse_vary(text: str) -> tuple[str, list[Any]]:
    """Key and values of `KEY=A,B`; commas in brackets belong to a value.

    Raises:
        ConfigError: no key, no equals sign, or values that cannot be read.
    """
    where = f"--vary {shortened(text)}"
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{where}: expected SETTING=A,B, e.g. racks=2,4")
    _, parsed = parse_yaml(f"[{values}]", where)
    return key.strip(), parsed


def _with_value(scenario: Scenario, key: str, value: Any) -> Variant:
    told = value if isinstance(value, str) else json.dumps(value, default=str)
    label = told if key == POLICY else f"{key.rpartition('.')[2]}={told}"
    try:
        settings = assign(scenario.model_dump(exclude_unset=True), key, value)
    except ConfigError as cause:
        raise ConfigError(f"--vary {key}: {cause}") from cause
    return Variant(label, validate(settings, Scenario, f"--vary {key}={told}"))


def _check(scenario: Scenario) -> None:
    fabric = build_fabric(scenario)
    build_cluster(scenario, fabric)
    build_policy(scenario)
    build_calibration(scenario, fabric)

"""What a comparison compares: variants of one scenario, each with a label.

A variant is the scenario under one policy, or with one value of the setting that varies. All other
settings are equal, so a difference between two variants comes from that setting.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from artist.config import Scenario
from artist.errors import ConfigError, shortened
from artist.experiments.experiment import MAX_RUNS, faults
from artist.experiments.relative_values import is_relative, scenario_at
from artist.io.safe_yaml import parse_yaml
from artist.policies.option_places import about_unknown, known_options, takes_option
from artist.policies.table import POLICIES
from artist.results.terms.number_text import listed
from artist.run import build_cluster, build_fabric

POLICY = "policy"
SETTINGS = "settings"
"""What varies, if several settings do."""
_REPLICATES = ("seed", "permutation")

AS_GIVEN = "as given"
"""The label of a variant that changes nothing."""


class Variant(NamedTuple):
    """A scenario of a comparison, and what tables and sentences call it."""

    label: str
    scenario: Scenario
    point: Mapping[str, str] = MappingProxyType({})
    """Setting -> its value as the user wrote it, for each setting that the variant changes."""


def of_policies(scenario: Scenario, policies: Sequence[str]) -> list[Variant]:
    """The scenario under each policy; the label is the policy's name.

    Raises:
        ConfigError: fewer than two policies, one of them twice, or one that is not known or does
            not take the options.
    """
    if len(set(policies)) < 2 or len(set(policies)) != len(policies):
        raise ConfigError(
            f"policies {','.join(policies)}: give at least two different policies (the first "
            "is the baseline), or one and a setting that varies (--vary SETTING=A,B, or "
            "vary= in Python)"
        )
    options = _own_options(scenario, policies)
    variants = [
        Variant(
            name,
            scenario.model_copy(update={POLICY: name, "policy_options": options[name]}),
            {POLICY: name},
        )
        for name in policies
    ]
    _refuse_faults(variants)
    return variants


def _own_options(scenario: Scenario, policies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Policy -> the options of the scenario that the policy takes.

    An option whose value no policy takes stays with all of them, so that it is refused later.

    Raises:
        ConfigError: an option that none of them has.
    """
    options = scenario.policy_options
    if options and policies:
        _check_known(options, policies)
    having = {
        name: {key for key, value in options.items() if takes_option(name, key, value)}
        for name in policies
    }
    known = set().union(*having.values())
    return {
        name: {
            key: value for key, value in options.items() if key in having[name] or key not in known
        }
        for name in policies
    }


def _check_known(options: Iterable[str], policies: Sequence[str]) -> None:
    """Refuse an option that none of the policies has."""
    known = dict.fromkeys(name for policy in policies for name in known_options(policy))
    for key in options:
        if key not in known:
            raise ConfigError(
                f"policies {', '.join(policies)}: unknown setting {f'policy.{key}'!r}: "
                f"{about_unknown(key, known)}"
            )


def partly_taken(scenario: Scenario, policies: Iterable[str]) -> Iterator[str]:
    """A sentence for each option of the scenario that some of the policies take, but not all."""
    every = list(dict.fromkeys(policies))
    for key, value in scenario.policy_options.items():
        without = [one for one in every if not takes_option(one, key, value)]
        if without and len(without) < len(every):
            with_it = sorted(set(every) - set(without))
            yield f"policy.{key}={_told(value)} is for {listed(with_it)} alone"


def of_settings(scenario: Scenario, vary: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """The scenario with each combination of values; keys are spelled as in `--set`.

    The values of the last setting change fastest. If all values of a setting are relative
    (`racks=+2`), the scenario as given comes first. The label has the last part of each key and the
    value: `bandwidth=100Gbit/s`.

    Raises:
        ConfigError: an unknown setting, a bad value, fewer than two values, two combinations that
            are one scenario, or a setting that replicates vary.
    """
    where = f"--vary {' --vary '.join(vary)}"
    choices = [_choices(key, values) for key, values in vary.items()]
    if (count := math.prod(map(len, choices))) > MAX_RUNS:
        raise ConfigError(f"{where}: {count} variants, at most {MAX_RUNS}")
    short = _short_names(vary)
    settings = scenario.model_dump(exclude_unset=True)
    options = _own_options(scenario, [str(one) for one in vary.get(POLICY, ())])
    variants: list[Variant] = []
    seen: dict[str, str] = {}
    for values in itertools.product(*choices):
        point = [pair for pair in zip(vary, values, strict=True) if pair[1] is not AS_GIVEN]
        told = {key: _told(value) for key, value in point}
        label = ", ".join(
            value if key == POLICY else f"{short[key]}={value}" for key, value in told.items()
        )
        if (policy := told.get(POLICY)) is not None:
            settings = {**settings, "policy_options": options[policy]}
        made = scenario_at(
            settings, point, f"--vary {', '.join(f'{k}={v}' for k, v in told.items())}"
        )
        variants.append(Variant(label or AS_GIVEN, made, told))
        same = seen.setdefault(made.model_dump_json(), variants[-1].label)
        if same != variants[-1].label or len({one.label for one in variants}) < len(variants):
            if same == AS_GIVEN:
                raise ConfigError(
                    f"{where}: {variants[-1].label} is the scenario as given; leave it out"
                )
            raise ConfigError(
                f"{where}: {same} and {variants[-1].label} are the same scenario; give each value "
                "once"
            )
    _refuse_faults(variants)
    return variants


def _refuse_faults(variants: Iterable[Variant]) -> None:
    """Make the named parts of each variant once, so that a bad one is refused before any run."""
    checked: set[str] = set()
    for one in variants:
        for fault in faults(one.scenario, checked):
            raise fault.cause
        build_cluster(one.scenario, build_fabric(one.scenario))


def _choices(key: str, values: Sequence[Any]) -> list[Any]:
    """The values of a setting; if all are relative, the scenario's own value comes first."""
    where = f"--vary {key}"
    if key in _REPLICATES:
        raise ConfigError(
            f"{where}: seeds and permutations are the replicates of a comparison; "
            "choose how many with --seeds and --permutations"
        )
    if not isinstance(values, str) and values and all(map(is_relative, values)):
        return [AS_GIVEN, *values]
    if isinstance(values, str) or len(values) < 2:
        raise ConfigError(
            f"{where}: give at least two values, such as {key}=A,B; the first is the baseline"
        )
    return list(values)


def _short_names(keys: Iterable[str]) -> dict[str, str]:
    """The last part of each key; the whole key where that is the last part of two."""
    last = {key: key.rpartition(".")[2] for key in keys}
    counts = Counter(last.values())
    return {key: name if counts[name] == 1 else key for key, name in last.items()}


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


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
    if key.startswith("checkpoint.") and any(isinstance(one, bool) for one in parsed):
        parsed = [one.strip() for one in values.split(",")]  # YAML reads off as false
    return key.strip(), parsed


def everyday_policies() -> list[str]:
    """The policies that `artist compare` runs by default, in the order of the table."""
    return [entry.id for entry in POLICIES if entry.everyday and not entry.wraps]

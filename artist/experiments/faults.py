"""Settings with which a run cannot even begin: names that nobody knows, options that do not fit.

A sweep or comparison asks before its first run. Else each of its runs would fail for itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from artist.config import Scenario
from artist.errors import ArtistError
from artist.estimates.backends import BACKENDS
from artist.failures.model_file import NONE, load_failures
from artist.network.rates.rate_functions import CONTENTION
from artist.run import build_calibration, build_fabric, build_policy
from artist.trace.named import builtin, is_trace_file


class Fault(NamedTuple):
    """What is wrong with a setting."""

    setting: str
    cause: ArtistError


def _calibration(scenario: Scenario) -> object:
    return build_calibration(scenario, build_fabric(scenario))


def _backend(scenario: Scenario) -> object:
    return BACKENDS[scenario.backend.partition(":")[0]]


def _contention(scenario: Scenario) -> object:
    return CONTENTION[scenario.contention.partition(":")[0]]


def _failures(scenario: Scenario) -> object:
    return None if scenario.failures == NONE else load_failures(scenario.failures)


def _trace(scenario: Scenario) -> object:
    """A file is read with the first run, and may be long."""
    return None if is_trace_file(scenario.trace) else builtin(scenario.trace)


_CHECKS: dict[str, tuple[Callable[[Scenario], object], tuple[str, ...]]] = {
    "fabric": (build_fabric, ("fabric", "fabric_options", "cluster")),
    "calibration": (
        _calibration,
        ("fabric", "fabric_options", "cluster", "calibration", "backend"),
    ),
    "policy": (build_policy, ("policy", "policy_options", "tenants")),
    "backend": (_backend, ("backend",)),
    "contention": (_contention, ("contention",)),
    "failures": (_failures, ("failures",)),
    "trace": (_trace, ("trace",)),
}
"""Setting -> how to check it, and the settings that decide the outcome."""


def faults(scenario: Scenario, checked: set[str]) -> Iterator[Fault]:
    """What is wrong with a scenario's names and options. `checked` holds what was asked before."""
    for setting, (check, about) in _CHECKS.items():
        key = json.dumps([setting, *(getattr(scenario, name) for name in about)], default=str)
        if key in checked:
            continue
        checked.add(key)
        try:
            check(scenario)
        except ArtistError as cause:
            yield Fault(setting, cause)
            return

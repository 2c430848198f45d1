"""An experiment: a base scenario and a grid of the settings that vary, with name and version.

`runs` turns it into scenarios, one for each combination of the grid's values. `sweep.py` runs
them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from artist.cluster.kinds import prices_of
from artist.config import SIZES, Scenario
from artist.errors import ArtistError, ConfigError, shortened
from artist.estimates.backends import BACKENDS
from artist.estimates.speeds import load_speeds
from artist.experiments.relative_values import is_relative, scenario_at
from artist.failures.model_file import NONE, load_failures
from artist.io.documents import NAME, Document, line_in, load_yaml, validate
from artist.network.rates.interference import gains
from artist.network.rates.rate_functions import CONTENTION
from artist.run import build_calibration, build_cluster, build_fabric, build_policy
from artist.settings import assign, checked
from artist.trace.named import builtin, is_trace_file

# A sweep of more runs would take days; such a grid is a mistake.
MAX_RUNS = 100_000


class Experiment(Document):
    """What `artist sweep` reads."""

    name: str = Field(
        pattern=NAME,
        description="also a folder name",
        examples=["my-sweep"],
    )
    version: int = Field(
        default=1, ge=1, description="raise it when results are meant to change", examples=[1]
    )
    summary: str = Field(default="", description="what the experiment asks")
    base: dict[str, Any] = Field(default_factory=dict, description="scenario settings of all runs")
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="setting -> values, in any spelling of --set, or relative (x2, +2); all "
        "combinations are run",
    )


@dataclass(frozen=True, slots=True)
class Run:
    """One cell of the grid. `id` names the run's folder and depends on the scenario alone."""

    id: str
    point: tuple[tuple[str, Any], ...]
    """(setting, value) of each setting of the grid."""
    scenario: Scenario


def load_experiment(path: Path) -> Experiment:
    """Read an experiment file.

    Raises:
        ConfigError: unreadable, unknown key or bad value, also in base and grid; with file and
            line.
    """
    experiment = load_yaml(path, Experiment)
    for location, key, value in _settings(experiment):
        section = str(location[0])
        try:
            # Keys of the base are settings by their plain names, those of the grid as in --set.
            if section == "base":
                validate({key: value}, Scenario, section)
            else:
                settings = assign({}, key, value)
                if not is_relative(value):
                    checked(settings, section)
        except ConfigError as cause:
            reason = str(cause).removeprefix(f"{section}: ")
            line = line_in(path, location)
            raise ConfigError(f"{path}:{line}: {section}: {reason}") from cause
    _check_names(experiment, path)
    return experiment


class _SameScenarioError(ConfigError):
    """Two cells of the grid are the same scenario."""


def _check_names(experiment: Experiment, path: Path) -> None:
    """Refuse names and options that would make each run fail for the same reason."""
    checked: set[str] = set()
    try:
        made = runs(experiment)
    except ConfigError as cause:
        reason = str(cause).removeprefix(f"experiment {experiment.name!r}: ")
        grid = f":{line_in(path, ('grid',))}: grid" if isinstance(cause, _SameScenarioError) else ""
        raise ConfigError(f"{path}{grid}: {reason}") from cause
    for run in made:
        for fault in faults(run.scenario, checked):
            places = list(_places(experiment, run, fault))
            line = f":{line_in(path, places[0])}" if places else ""
            raise ConfigError(f"{path}{line}: {fault.cause}; no run was started") from fault.cause


def _places(experiment: Experiment, run: Run, fault: Fault) -> Iterator[tuple[str | int, ...]]:
    """The places in the file that a run's fault may come from: named options, then the setting."""
    value, point = getattr(run.scenario, fault.setting), dict(run.point)
    for at, key, one in _settings(experiment):
        group, _, option = key.partition(".")
        named = f"'{option}'" in str(fault.cause)
        if option and group == fault.setting and named and point.get(key, one) == one:
            yield at
    for at, key, one in _settings(experiment):
        if (key, one) == (fault.setting, value):
            yield at


def _settings(experiment: Experiment) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """The place of each setting of base and grid in the file, its key and its value."""
    for key, value in experiment.base.items():
        yield ("base", key), key, value
    for key, values in experiment.grid.items():
        for index, value in enumerate(values):
            yield ("grid", key, index), key, value


def runs(experiment: Experiment) -> list[Run]:
    """All runs, in the order of the file: the last setting of the grid varies fastest.

    Raises:
        ConfigError: a cell is not a valid scenario, or two cells are the same.
    """
    size = math.prod(len(values) for values in experiment.grid.values())
    if size > MAX_RUNS:
        raise ConfigError(f"experiment {experiment.name!r}: {size} runs, at most {MAX_RUNS}")
    by_id: dict[str, Run] = {}
    for run in _cells(experiment):
        if run.id in by_id:
            twice = " and ".join(_in_words(one.point) for one in (by_id[run.id], run))
            raise _SameScenarioError(
                f"experiment {experiment.name!r}: {twice} are the same scenario; leave one out"
            )
        by_id[run.id] = run
    return list(by_id.values())


def _in_words(point: tuple[tuple[str, Any], ...]) -> str:
    return " ".join(f"{key}={shortened(value)}" for key, value in point)


def _cells(experiment: Experiment) -> Iterator[Run]:
    where = f"experiment {experiment.name!r}"
    for values in itertools.product(*experiment.grid.values()):
        point = tuple(zip(experiment.grid, values, strict=True))
        scenario = scenario_at(experiment.base, point, where)
        yield Run(_run_id(point, scenario), point, scenario)


def _run_id(point: tuple[tuple[str, Any], ...], scenario: Scenario) -> str:
    """The values of the grid, readable, and a digest of the scenario that makes the id unique.

    At most 120 characters long, as it names a folder; each value gives at most its last 24.
    """
    digest = hashlib.sha256(scenario.model_dump_json().encode()).hexdigest()[:8]
    words = [re.sub(r"[^A-Za-z0-9.-]+", "-", str(value)).strip("-")[-24:] for _, value in point]
    return "_".join([*filter(None, words), digest])[-120:]


class Fault(NamedTuple):
    """What is wrong with a setting."""

    setting: str
    cause: ArtistError


_CHECKS: dict[str, tuple[Callable[[Scenario], object], tuple[str, ...]]] = {
    "fabric": (build_fabric, ("fabric", "fabric_options", "cluster")),
    "calibration": (
        lambda one: build_calibration(one, build_fabric(one)),
        ("fabric", "fabric_options", "cluster", "calibration", "backend"),
    ),
    "policy": (build_policy, ("policy", "policy_options", "tenants")),
    "backend": (lambda one: BACKENDS[one.backend.partition(":")[0]], ("backend",)),
    "contention": (lambda one: CONTENTION[one.contention.partition(":")[0]], ("contention",)),
    "failures": (lambda one: one.failures == NONE or load_failures(one.failures), ("failures",)),
    "speeds": (lambda one: one.speeds is None or load_speeds(one.speeds), ("speeds",)),
    "interference": (lambda one: gains(one.interference), ("interference",)),
    "prices": (
        lambda one: (
            one.prices is None or prices_of(build_cluster(one, build_fabric(one)), one.prices)
        ),
        ("fabric", "fabric_options", "cluster", "tree", *SIZES, "prices"),
    ),
    # A file is read with the first run, and may be long.
    "trace": (lambda one: is_trace_file(one.trace) or builtin(one.trace), ("trace",)),
}
"""Setting -> how to check it, and the settings that decide the outcome."""


def faults(scenario: Scenario, checked: set[str]) -> Iterator[Fault]:
    """The first fault in a scenario's names and options that would keep its run from starting.

    Sweeps and comparisons ask before their first run, so that one error appears instead of one per
    run. `checked` collects what has been checked, so that nothing is checked twice.
    """
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

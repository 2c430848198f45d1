"""The library: what `import artist` offers, on top of what the command line uses.

Names are loaded when they are first used, so that `import artist` stays cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from artist import run, settings
from artist.config import Scenario, check_scenario
from artist.default_fabric import MEASURED_FABRIC
from artist.errors import (
    ArtistError,
    BackendError,
    ConfigError,
    InvariantError,
    PolicyError,
    TraceError,
)
from artist.estimates.cache import open_store
from artist.estimates.calibration import CalibratedModels, choose_calibration
from artist.estimates.divided.with_split import with_split
from artist.estimates.query import Estimate
from artist.estimates.query_from_text import on_placement, parse_system
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.comparison_result import Comparison
from artist.io.documents import validate
from artist.registry import UnknownNameError
from artist.results.result import Result
from artist.results.statistics.compare_values import ComparedValues, compare_values
from artist.run.load_run import load_run

__all__ = [
    "ArtistError", "BackendError", "ComparedValues", "Comparison", "ConfigError", "Estimate",
    "InvariantError", "PolicyError", "Result", "Scenario", "TraceError", "UnknownNameError",
    "compare", "compare_values", "latency", "load", "load_scenario", "simulate",
]  # fmt: skip


def load_scenario(path: str | Path, **changes: Any) -> Scenario:
    """A scenario file, some of its settings changed by name.

    Raises:
        ConfigError: unreadable file, unknown setting or bad value; names file and line.
    """
    return settings.load_scenario(Path(path), changes, ())


def load(run: str | Path) -> Result:
    """A run directory of `artist sim --out` or `Result.save`, as the result that was written.

    Raises:
        ConfigError: no run directory.
        TraceError: its manifest or summary is damaged; later, a table of it is.
    """
    return load_run(Path(run))


def simulate(
    scenario: Scenario, *, check: bool = False, cache: bool = True, links: bool = False
) -> Result:
    """Run a scenario, as `artist sim` does.

    `check` verifies the simulator's invariants after every event. `cache` keeps estimates on
    disk between runs; the rows are the same with and without it. `links` adds the table `links`:
    what each physical link carried.

    Raises:
        ArtistError: whatever is wrong with the scenario, by the kind of mistake.
    """
    check_scenario(scenario)
    with open_store(enabled=cache and scenario.backend != "none") as store:
        return run.simulate(scenario, check=check, store=store, links=links)


def latency(
    model: str,
    placement: str,
    *,
    fabric: str = MEASURED_FABRIC,
    backend: str = "analytical",
    calibration: str = "none",
    fabric_options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    system: Mapping[str, Any] = MappingProxyType({}),
    gpus_per_machine: int | None = None,
    split: bool = False,
) -> Estimate:
    """One training iteration of a model on a placement such as `8,8/2`, as `artist latency`.

    `fabric` is a name or a file; `calibration` is `auto` (the fabric's own), `none`, a name or a
    file; `fabric_options` replaces settings of the fabric's levels, e.g. `{"network": {"bandwidth":
    "100Gbit/s"}}`; `system` replaces ASTRA-sim settings, e.g. `{"scheduling_policy": "FIFO"}`;
    `gpus_per_machine` is by default that of the machines that the fabric describes, else 8. The
    answer is in nanoseconds. Its `comm_ratio` is what a run with the same calibration uses, but a
    run divides some large models along published axes if their names say none. With `split`, its
    `split` says where the time goes (`artist.estimates.iteration_split`).

    Raises:
        ConfigError: an unknown name, a bad file, or no placement of that fabric.
        BackendError: the backend cannot answer.
    """
    changes = parse_system([f"{key}={value}" for key, value in system.items()])
    chosen = {"fabric": fabric, "fabric_options": fabric_options}
    on_fabric = run.build_fabric(validate(chosen, Scenario, "latency"))
    models = CalibratedModels.on(on_fabric, choose_calibration(calibration, on_fabric))
    machine = run.machine_gpus(on_fabric, gpus_per_machine)
    # 8 is what many write for GPUs of one machine.
    question = on_placement(models.workload(model), str(placement), on_fabric, changes, machine)
    opened = run.open_backend(backend)
    answer = question.answer(opened)
    query = question.asked[answer.index].query
    estimate = models.complete(model, query, answer.estimate)
    return with_split(opened, query, estimate) if split else estimate

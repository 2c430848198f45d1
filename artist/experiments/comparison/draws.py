"""What another seed draws: the jobs of a trace, or failures."""

from __future__ import annotations

from collections.abc import Sequence

from artist.config import ABOUT_THE_TRACE, Scenario
from artist.errors import ConfigError
from artist.failures.failures_of_run import open_failures
from artist.run import build_cluster, build_fabric, build_trace


def of_each_trace(scenarios: Sequence[Scenario], also: Sequence[str] = ()) -> list[Scenario]:
    """The first scenario for each combination of a trace and values of the settings `also`."""
    names = ("trace", "arrivals", "jobs", "restart_s", "first_start_s", *ABOUT_THE_TRACE, *also)
    by_trace: dict[str, Scenario] = {}
    for one in scenarios:
        by_trace.setdefault(repr([getattr(one, name) for name in names]), one)
    return list(by_trace.values())


def is_drawn(scenario: Scenario) -> bool:
    """Whether the next seed would draw another trace."""
    tree = build_cluster(scenario, build_fabric(scenario))
    one, other = (
        build_trace(scenario.model_copy(update={"seed": scenario.seed + step}), tree).jobs
        for step in (0, 1)
    )
    return one != other


def draws_failures(scenario: Scenario) -> bool:
    """Whether the next seed would draw other failures."""
    if scenario.failures == "none":
        return False
    tree = build_cluster(scenario, build_fabric(scenario))
    units = open_failures(scenario.failures, scenario.checkpoint, tree).units
    return units is not None and bool(units.kinds)


def check_seeds(scenarios: Sequence[Scenario], seeds: int) -> None:
    """Refuse copies of one run that would count as replicates.

    Raises:
        ConfigError: no scenario draws failures, and a trace is the same for every seed.
    """
    if any(map(draws_failures, scenarios)):
        return
    for one in of_each_trace(scenarios):
        if not is_drawn(one):
            raise ConfigError(
                f"--seeds {seeds}: trace {one.trace!r} is the same for every seed; vary "
                "--permutations, or draw arrivals with --arrivals poisson:JOBS_PER_HOUR, or "
                "failures with --failures"
            )

"""Compares policies on the same work, and tells their differences from noise.

Every policy runs on the same **replicates**. A replicate is a seed (for a trace that is drawn) and
a permutation of the order in which machines and simultaneous arrivals are visited. That order has
no meaning, yet it changes a makespan by tens of percent. So a difference between two policies
counts only if it is larger than the effect of the order.

Differences are paired by replicate and judged by `artist.results.compare_values`. Replicates of one
seed are a cluster where several seeds are drawn. The verdicts on all policies and metrics hold
together (Holm): if no policy differed, one `less` or `more` would appear in at most 5 % of cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.executors import run_all
from artist.experiments.experiment import MAX_RUNS
from artist.results.compare_values import ComparedValues, compare_values, holm
from artist.run import build_cluster, build_trace, simulate

METRICS = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of all policies on all replicates, and the differences to the first policy."""

    policies: tuple[str, ...]
    replicates: tuple[tuple[int, int], ...]
    """(seed, permutation) of each replicate."""
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    """Policy -> metric -> value on each replicate."""
    differences: Mapping[str, Mapping[str, ComparedValues]]
    """Policy, except the first -> metric -> how it compares with the first policy."""


def compare(
    scenario: Scenario,
    policies: Sequence[str],
    *,
    seeds: int,
    permutations: int,
    workers: int = 1,
    on_done: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run every policy on every replicate. The first policy is the baseline.

    `on_done(done, all)` is called after each run, with numbers of runs.

    Raises:
        ConfigError: fewer than two policies, a policy twice, no replicate, too many runs, or
            several seeds for a trace of which no seed draws anything.
    """
    _check(policies, seeds, permutations)
    if seeds > 1:
        _check_seeds(scenario, seeds)
    replicates = tuple(
        (scenario.seed + seed, scenario.permutation + permutation)
        for seed in range(seeds)
        for permutation in range(permutations)
    )
    tasks = [
        scenario.model_copy(update={"policy": policy, "seed": seed, "permutation": permutation})
        for policy in policies
        for seed, permutation in replicates
    ]
    summaries: dict[int, Mapping[str, Any]] = {}
    for index, summary in run_all(_summary, tasks, workers):
        summaries[index] = summary
        if on_done:
            on_done(len(summaries), len(tasks))
    count = len(replicates)  # a policy's summaries follow one another in `summaries`
    values = {
        policy: {
            metric: tuple(summaries[start * count + i][metric] for i in range(count))
            for metric in METRICS
        }
        for start, policy in enumerate(policies)
    }
    clusters = [seed for seed, _ in replicates] if seeds > 1 else None
    compared = {
        (policy, metric): compare_values(
            values[policies[0]][metric], values[policy][metric], clusters
        )
        for policy in policies[1:]
        for metric in METRICS
    }
    verdicts = dict(zip(compared, holm(list(compared.values())), strict=True))
    differences = {
        policy: {metric: verdicts[policy, metric] for metric in METRICS} for policy in policies[1:]
    }
    return Comparison(tuple(policies), replicates, values, differences)


def _check(policies: Sequence[str], seeds: int, permutations: int) -> None:
    if len(set(policies)) < 2 or len(set(policies)) != len(policies):
        raise ConfigError(
            f"--policies {','.join(policies)}: give at least two different policies, "
            "the first is the baseline"
        )
    if seeds < 1 or permutations < 1:
        raise ConfigError(f"--seeds {seeds} --permutations {permutations}: at least 1 of each")
    if (count := len(policies) * seeds * permutations) > MAX_RUNS:
        raise ConfigError(
            f"--seeds {seeds} --permutations {permutations}: {count} runs, at most {MAX_RUNS}"
        )


def _summary(scenario: Scenario) -> Mapping[str, Any]:
    return simulate(scenario).summary


def _check_seeds(scenario: Scenario, seeds: int) -> None:
    """Refuse copies of one run that would count as replicates."""
    tree = build_cluster(scenario, load_fabric(scenario.fabric))
    one, other = (
        build_trace(scenario.model_copy(update={"seed": scenario.seed + step}), tree).jobs
        for step in (0, 1)
    )
    if one == other:
        raise ConfigError(
            f"--seeds {seeds}: trace {scenario.trace!r} is the same for every seed; vary "
            "--permutations, or draw arrivals with --arrivals poisson:JOBS_PER_HOUR"
        )

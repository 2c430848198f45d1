"""Compares policies on the same work, and tells their differences from noise.

Every policy runs on the same **replicates**. A replicate is a seed (for a trace that is drawn) and
a permutation of the order in which machines and simultaneous arrivals are visited. That order has
no meaning, yet it changes a makespan by tens of percent. So a difference between two policies
counts only if it is larger than the effect of the order.

Differences are paired: on replicate i

    difference_i = (policy_i - baseline_i) / baseline_i

and the 95 % interval of their mean is a percentile bootstrap over replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.executors import run_all
from artist.experiments.experiment import MAX_RUNS
from artist.rng import stream
from artist.run import simulate

METRICS = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")
CONFIDENCE = 0.95
# Enough for two stable digits of a 95 % interval (Efron and Tibshirani, 1993, section 13.3).
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """A policy against the baseline in one metric, relative: -0.1 is ten percent less."""

    metric: str
    mean: float
    low: float
    """Lower end of the 95 % interval of the mean; NaN for one replicate."""
    high: float

    @property
    def verdict(self) -> str:
        """`less`, `more`, `within noise`, or `one replicate`, which decides nothing."""
        if np.isnan(self.low):
            return "one replicate"
        if self.low <= 0 <= self.high:
            return "within noise"
        return "less" if self.high < 0 else "more"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of all policies on all replicates, and the differences to the first policy."""

    policies: tuple[str, ...]
    replicates: tuple[tuple[int, int], ...]
    """(seed, permutation) of each replicate."""
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    """Policy -> metric -> value on each replicate."""
    differences: Mapping[str, tuple[Difference, ...]]
    """Policy, except the first -> difference in each metric."""


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
        ConfigError: fewer than two policies, a policy twice, no replicate, or too many runs.
    """
    _check(policies, seeds, permutations)
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
    baseline = values[policies[0]]
    differences = {
        policy: tuple(_difference(metric, values[policy], baseline) for metric in METRICS)
        for policy in policies[1:]
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


def _difference(
    metric: str,
    values: Mapping[str, tuple[float, ...]],
    baseline: Mapping[str, tuple[float, ...]],
) -> Difference:
    mine, base = np.array(values[metric]), np.array(baseline[metric])
    # A baseline of 0 (no queueing, say) has no relative difference: the absolute one stands.
    relative = (mine - base) / np.where(base == 0, 1.0, base)
    low, high = bootstrap(relative, metric)
    return Difference(metric, float(relative.mean()), low, high)


def bootstrap(sample: npt.NDArray[np.float64], name: str) -> tuple[float, float]:
    """Percentile bootstrap interval (95 %) of a sample's mean; NaN for fewer than two values.

    `name` selects the stream of random numbers. So the interval is the same in every run.
    """
    if len(sample) < 2:
        return float("nan"), float("nan")
    drawn = stream(0, f"bootstrap.{name}").integers(0, len(sample), (RESAMPLES, len(sample)))
    means = sample[drawn].mean(axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)

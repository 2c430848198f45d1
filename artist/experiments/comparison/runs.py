"""The runs of a comparison: every variant on every replicate, each made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.comparison import Comparison, Replicate, Values
from artist.experiments.comparison.metrics import BOUND
from artist.experiments.comparison.variants import Variant
from artist.experiments.executors import run_all
from artist.results.caveats import preempts_freely
from artist.results.jct_parts import PARTS
from artist.run import simulate


class Runs:
    """The runs of a comparison. Replicates are added, and no run is made twice."""

    def __init__(
        self,
        variants: Sequence[Variant],
        metrics: Sequence[str],
        workers: int,
        on_done: Callable[[int, int], None] | None,
    ) -> None:
        self._scenarios = dict(variants)
        self._metrics = tuple(metrics)
        self._workers = workers
        self._on_done = on_done
        self._summaries: dict[tuple[str, Replicate], Mapping[str, Any]] = {}

    def replicates(self, seeds: int, permutations: int) -> tuple[Replicate, ...]:
        """Seed by seed, from those of the scenarios on; one permutation each where one is asked."""
        base = next(iter(self._scenarios.values()))
        if permutations == 1:
            return tuple((base.seed + step, base.permutation + step) for step in range(seeds))
        return tuple(
            (base.seed + seed, base.permutation + permutation)
            for seed in range(seeds)
            for permutation in range(permutations)
        )

    def values(self, seeds: int, permutations: int) -> Values:
        """The metrics on so many seeds and permutations; runs what is missing.

        Raises:
            ConfigError: the runs do not have one of the metrics.
        """
        replicates = self.replicates(seeds, permutations)
        self._run(replicates)
        return {
            label: {metric: self._column(label, metric, replicates) for metric in self._metrics}
            for label in self._scenarios
        }

    def with_parts(self, comparison: Comparison) -> Comparison:
        """The comparison with what its runs tell beside the metrics."""
        replicates = comparison.replicates
        parts = {
            label: {part: self._column(label, name, replicates) for part, name in PARTS.items()}
            for label in self._scenarios
        }
        bounds_s = {label: self._column(label, BOUND, replicates) for label in self._scenarios}
        freely = preempts_freely(
            self._summaries[label, one] for label in self._scenarios for one in replicates
        )
        return replace(comparison, parts=parts, bounds_s=bounds_s, preempts_freely=freely)

    def _column(
        self, label: str, metric: str, replicates: Sequence[Replicate]
    ) -> tuple[float, ...]:
        return tuple(self._summaries[label, one][metric] for one in replicates)

    def _run(self, replicates: Sequence[Replicate]) -> None:
        missing = [
            (label, replicate)
            for label in self._scenarios
            for replicate in replicates
            if (label, replicate) not in self._summaries
        ]
        tasks = [
            self._scenarios[label].model_copy(update={"seed": seed, "permutation": order})
            for label, (seed, order) in missing
        ]
        total = len(self._summaries) + len(tasks)
        for index, summary in run_all(_summary, tasks, self._workers):
            _check_has(summary, self._metrics)
            self._summaries[missing[index]] = summary
            if self._on_done:
                self._on_done(len(self._summaries), total)


def _summary(scenario: Scenario) -> Mapping[str, Any]:
    return simulate(scenario).summary


def _check_has(summary: Mapping[str, Any], metrics: Sequence[str]) -> None:
    for metric in metrics:
        if metric not in summary:
            raise ConfigError(
                f"--metrics {metric}: runs on this cluster and backend do not have it; leave it out"
            )

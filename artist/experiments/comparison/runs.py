"""The runs of a comparison. Replicates are added, and no run is made twice.

A **runner** makes runs of scenarios: in this process or in workers (`in_memory`), or in a folder
that keeps them (`kept_runs.py`). It may end early when a time budget is over (`TimeBudget`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeAlias

from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.experiments.comparison.comparison_result import Comparison, Failed, Replicate, Values
from artist.experiments.comparison.variants import Variant
from artist.experiments.executors import run_all
from artist.results.caveats import preempts_freely
from artist.results.terms.chief_metrics import BOUND, parts_of
from artist.run import simulate

Summary: TypeAlias = Mapping[str, Any]
Runner: TypeAlias = Callable[[Sequence[Scenario]], Iterator[tuple[int, Summary]]]
"""Yields position and summary of each scenario's run when it is done."""


def in_memory(workers: int, go_on: Callable[[], bool] = lambda: True) -> Runner:
    """A runner with `workers` processes that keeps no files. It starts runs while `go_on()`."""
    return lambda scenarios: run_all(_summary, scenarios, workers, go_on=go_on)


def _summary(scenario: Scenario) -> Summary:
    if scenario.backend == "none":
        return simulate(scenario).summary
    with open_store() as store:  # contention asks for hundreds of estimates
        return simulate(scenario, store=store).summary


class RememberedRuns:
    """A runner that keeps the runs of another, so that they can be judged after an interruption."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._made: dict[str, Summary] = {}

    def __call__(self, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, Summary]]:
        """Make the runs."""
        for index, summary in self._runner(scenarios):
            self._made[scenarios[index].model_dump_json()] = summary
            yield index, summary

    def again(self, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, Summary]]:
        """Yield the kept runs among these scenarios; make no others."""
        for index, scenario in enumerate(scenarios):
            if (summary := self._made.get(scenario.model_dump_json())) is not None:
                yield index, summary


class BudgetEndedError(ConfigError):
    """The time budget ended before one replicate of all variants was done."""


class Runs:
    """The summaries of a comparison's runs."""

    def __init__(
        self,
        variants: Sequence[Variant],
        metrics: Sequence[str],
        runner: Runner,
        on_done: Callable[[int, int], None] | None,
    ) -> None:
        self._variants = tuple(variants)
        self._labels = [one.label for one in variants]
        self._metrics = tuple(metrics)
        self._runner = runner
        self._on_done = on_done
        self._summaries: dict[tuple[str, Replicate], Summary] = {}

    def replicates(self, seeds: int, permutations: int) -> tuple[Replicate, ...]:
        """All replicates, seed by seed, counting from the seed and permutation of the scenarios.

        With one permutation, each seed has its own.
        """
        base = self._variants[0].scenario
        if permutations == 1:
            return tuple((base.seed + step, base.permutation + step) for step in range(seeds))
        return tuple(
            (base.seed + seed, base.permutation + permutation)
            for seed in range(seeds)
            for permutation in range(permutations)
        )

    def complete(self, replicates: Sequence[Replicate]) -> tuple[Replicate, ...]:
        """Make the runs of these replicates; returns the replicates that every variant then has.

        Raises:
            BudgetEndedError: there is none.
            ConfigError: the runs do not have one of the metrics.
        """
        self._run(replicates)
        done = tuple(
            one
            for one in replicates
            if all((label, one) in self._summaries for label in self._labels)
        )
        if not done:
            raise BudgetEndedError(
                "the time budget ended before one replicate of all variants was done "
                f"({len(self._summaries)} of {len(self._labels)} runs); give it more time, or "
                "compare fewer variants"
            )
        return done

    @property
    def made(self) -> int:
        """How many runs there are."""
        return len(self._summaries)

    def values(self, replicates: Sequence[Replicate]) -> Values:
        """The metrics of each variant on these replicates."""
        return {
            label: {metric: self._column(label, metric, replicates) for metric in self._metrics}
            for label in self._labels
        }

    def cancelled(self, replicates: Sequence[Replicate]) -> dict[str, float]:
        """How many jobs a run of each variant cancelled on average; empty if none did."""
        found = {
            label: fmean(self._summaries[label, one].get("jobs_cancelled", 0) for one in replicates)
            for label in self._labels
        }
        return found if any(found.values()) else {}

    def with_parts(self, comparison: Comparison) -> Comparison:
        """The comparison with what its runs report in addition to the metrics."""
        replicates, labels = comparison.replicates, self._labels
        ran = [self._summaries[label, one] for label in labels for one in replicates]
        first = {label: self._summaries[label, replicates[0]] for label in labels}
        parts = parts_of(ran)
        return replace(
            comparison,
            parts={
                label: {part: self._column(label, name, replicates) for part, name in parts.items()}
                for label in labels
            },
            bounds_s={label: self._column(label, BOUND, replicates) for label in labels},
            preempts_freely=preempts_freely(ran),
            contention_idle="contention" in ran[0]
            and not any(one.get("contention_lost_job_h") for one in ran),
            policy=self._variants[0].scenario.policy,
            points={one.label: one.point for one in self._variants},
            gpus={label: int(one["gpus"]) for label, one in first.items()},
            jobs={label: int(one["jobs_total"]) for label, one in first.items()},
            traces={label: str(one["trace"]) for label, one in first.items()},
            makespan_h={
                label: tuple(x / 3600 for x in self._column(label, "makespan_s", replicates))
                for label in labels
            },
            held_gpu_h={
                label: tuple(_held_gpu_h(self._summaries[label, one]) for one in replicates)
                for label in labels
            },
            failed={
                label: _failed([self._summaries[label, one] for one in replicates])
                for label in labels
                if "outages" in first[label]
            },
            intervals_s=self._intervals_s(replicates),
        )

    def _intervals_s(self, replicates: Sequence[Replicate]) -> dict[str, tuple[float, float]]:
        """The checkpoint intervals that were chosen, where any were."""
        found = {}
        for label in self._labels:
            ran = [self._summaries[label, one] for one in replicates]
            ends = [
                [one[name] for one in ran if name in one]
                for name in ("checkpoint_interval_min_s", "checkpoint_interval_max_s")
            ]
            if all(ends):
                found[label] = (min(ends[0]), max(ends[1]))
        return found

    def _column(
        self, label: str, metric: str, replicates: Sequence[Replicate]
    ) -> tuple[float, ...]:
        # The metrics were checked; a part of the JCT may be missing, such as checkpoints.
        return tuple(self._summaries[label, one].get(metric, 0.0) for one in replicates)

    def _run(self, replicates: Sequence[Replicate]) -> None:
        """Make the missing runs, replicate by replicate, so that replicates are complete early."""
        missing = [
            (one, replicate)
            for replicate in replicates
            for one in self._variants
            if (one.label, replicate) not in self._summaries
        ]
        tasks = [
            one.scenario.model_copy(update={"seed": seed, "permutation": order})
            for one, (seed, order) in missing
        ]
        total = len(self._summaries) + len(tasks)
        for index, summary in self._runner(tasks):
            one, replicate = missing[index]
            self._check_has(summary, one.label)
            self._summaries[one.label, replicate] = summary
            if self._on_done:
                self._on_done(len(self._summaries), total)

    def _check_has(self, summary: Summary, label: str) -> None:
        for metric in self._metrics:
            if metric not in summary:
                raise ConfigError(
                    f"--metrics {metric}: runs of {label} do not have it; leave it out, or see: "
                    f"artist explain {metric}"
                )


def _failed(summaries: Sequence[Summary]) -> Failed:
    outages, stopped = (
        fmean(one.get(name, 0.0) for one in summaries) for name in ("outages", "failures")
    )
    lost, slowed, checkpoint, cost, out = (
        fmean(one.get(f"{name}_gpu_s", 0.0) for one in summaries) / 3600
        for name in ("lost", "slowed", "checkpoint", "preemption_cost", "withdrawn")
    )
    # Lost work is a part of preemption_cost, so the restarts are the rest.
    return Failed(outages, stopped, lost, slowed, checkpoint, cost - lost, out)


def _held_gpu_h(summary: Summary) -> float:
    """GPU time that jobs held, in hours."""
    return float(summary["gpu_allocated_share"] * summary["gpus"] * summary["makespan_s"] / 3600)

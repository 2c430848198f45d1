"""Compares policies on the same work, and tells their differences from noise.

Every policy runs on the same **replicates**. A replicate is a seed (for a trace that is drawn) and
a permutation of the order in which machines and simultaneous arrivals are visited. That order has
no meaning, yet it changes a makespan by tens of percent. So a difference between two policies
counts only if it is larger than the effect of the order.

Where several seeds and one permutation are asked for, replicate i has seed i **and** permutation i.
Else all of them would have the natural order, in which clocks start at the first arrival. Several
seeds and permutations make a grid.

Differences are paired by replicate and judged by `artist.results.compare_values`. Replicates of one
seed are a cluster where several seeds are drawn. The verdicts on all policies and metrics hold
together (Holm): if no policy differed, one `less` or `more` would appear in at most 5 % of cases.
A `no difference` is said of each comparison alone.

With `until`, replicates are added until all intervals are that narrow (`until.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.executors import run_all
from artist.experiments.experiment import MAX_RUNS
from artist.experiments.until import BUDGET, FIRST_LOOK, enough_for, half_width, next_count
from artist.results.compare_values import (
    EQUIVALENCE,
    TOO_FEW,
    ComparedValues,
    clusters_of,
    compare_values,
    holm,
    kind_of,
)
from artist.run import OnTrace, build_cluster, build_trace, simulate
from artist.trace.named import is_trace_file

METRICS = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")


Replicate: TypeAlias = tuple[int, int]
"""Seed and permutation."""
Values: TypeAlias = Mapping[str, Mapping[str, tuple[float, ...]]]
"""Policy -> metric -> value on each replicate."""
Differences: TypeAlias = Mapping[str, Mapping[str, ComparedValues]]
"""Policy, except the first -> metric -> how it compares with the first policy."""


class Widest(NamedTuple):
    """The widest interval of a comparison."""

    policy: str
    metric: str
    half_width: float
    """As in `until.py`: 0.02 is two percent."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of all policies on all replicates, and the differences to the first policy."""

    policies: tuple[str, ...]
    replicates: tuple[Replicate, ...]
    """(seed, permutation) of each replicate."""
    values: Values
    """Policy -> metric -> value on each replicate."""
    differences: Differences
    """Policy, except the first -> metric -> how it compares with the first policy."""
    widest: Widest
    independent: int
    """Independent replicates: seeds if there are several, else permutations."""
    until: float | None = None
    """The half-width that was asked for."""

    @property
    def missing(self) -> int | None:
        """How many independent replicates more would make all intervals that narrow.

        None: there would have to be more than `compare_values.MOST_REPLICATES` of them.
        """
        if self.until is None or self.widest.half_width <= self.until:
            return 0
        enough = enough_for(self.independent, self.widest.half_width, self.until)
        return None if enough is None else enough - self.independent

    @property
    def kind(self) -> str:
        """What independent replicates are, in words."""
        return kind_of(self.replicates)

    @property
    def design(self) -> str:
        """The replicates in words."""
        seeds, orders = (len({one[i] for one in self.replicates}) for i in (0, 1))
        independent = _counted(self.independent, "independent replicate")
        if seeds > 1 and len(self.replicates) == seeds:
            return f"{seeds} seeds, each with a permutation of its own = {independent}"
        made = f"{_counted(seeds, 'seed')} x {_counted(orders, 'permutation')}"
        return f"{made} = {independent}"

    @property
    def without_interval(self) -> int:
        """How many comparisons have no interval, since their replicates are copies of one."""
        every = [one for metrics in self.differences.values() for one in metrics.values()]
        return sum(one.verdict == TOO_FEW and one.replicates == 1 for one in every)


def compare(
    scenario: Scenario,
    policies: Sequence[str],
    *,
    seeds: int,
    permutations: int,
    equivalence: float = EQUIVALENCE,
    until: float | None = None,
    budget: int = BUDGET,
    workers: int = 1,
    on_done: Callable[[int, int], None] | None = None,
    on_trace: OnTrace | None = None,
) -> Comparison:
    """Run every policy on every replicate. The first policy is the baseline.

    Policies that surely differ by less than `equivalence`, a share, get `no difference`.

    With several seeds and one permutation, replicate i has seed i and permutation i.

    `until` adds replicates until the half-width of every interval is at most that share, or there
    are `budget` independent ones. It adds seeds, each with all permutations, if there are several
    seeds, and else permutations. It begins with 8 of them at least (`until.FIRST_LOOK`).

    `on_done(done, all)` is called after each run, with numbers of runs. `on_trace` is told a trace
    that is read from a file, of the first seed, before anything is simulated.

    Raises:
        ConfigError: fewer than two policies, a policy twice, no replicate, too many runs, several
            seeds for a trace of which no seed draws anything, a share out of bounds, or a budget
            below the replicates to begin with.
    """
    _check_sizes(seeds, permutations)
    if not 0 <= equivalence < 1:
        raise ConfigError(
            f"--equivalence {equivalence:g}: expected a share from 0 to below 1, such as 2%"
        )
    begin = (seeds, permutations)
    if until is not None:
        begin = _grown(begin, max(FIRST_LOOK, _independent(begin)))
        _check_until(until, budget, _independent(begin))
    _check(policies, *(begin if until is None else _grown(begin, budget)))
    if seeds > 1:
        _check_seeds(scenario, seeds)
    if on_trace is not None and is_trace_file(scenario.trace):
        on_trace(build_trace(scenario, build_cluster(scenario, load_fabric(scenario.fabric))))
    runs = _Runs(scenario, policies, workers, on_done)
    while True:
        comparison = _compared(runs.values(*begin), runs.replicates(*begin), equivalence, until)
        count = _independent(begin)
        if until is None:
            return comparison
        wanted = next_count(count, comparison.widest.half_width, until, budget)
        if wanted == count:
            return comparison
        begin = _grown(begin, wanted)


def _independent(size: tuple[int, int]) -> int:
    """Independent replicates among so many seeds and permutations."""
    seeds, permutations = size
    return seeds if seeds > 1 else permutations


def _grown(size: tuple[int, int], count: int) -> tuple[int, int]:
    """Seeds and permutations with so many independent replicates of the same kind."""
    seeds, permutations = size
    return (count, permutations) if seeds > 1 else (seeds, count)


class _Runs:
    """The runs of a comparison. Replicates are added, and no run is made twice."""

    def __init__(
        self,
        scenario: Scenario,
        policies: Sequence[str],
        workers: int,
        on_done: Callable[[int, int], None] | None,
    ) -> None:
        self._scenario = scenario
        self._policies = tuple(policies)
        self._workers = workers
        self._on_done = on_done
        self._summaries: dict[tuple[str, Replicate], Mapping[str, Any]] = {}

    def replicates(self, seeds: int, permutations: int) -> tuple[Replicate, ...]:
        """Seed by seed, from those of the scenario on; one permutation each where one is asked."""
        base = self._scenario
        if permutations == 1:
            return tuple((base.seed + step, base.permutation + step) for step in range(seeds))
        return tuple(
            (base.seed + seed, base.permutation + permutation)
            for seed in range(seeds)
            for permutation in range(permutations)
        )

    def values(self, seeds: int, permutations: int) -> Values:
        """The metrics on so many seeds and permutations; runs what is missing."""
        replicates = self.replicates(seeds, permutations)
        self._run(replicates)
        return {
            policy: {
                metric: tuple(self._summaries[policy, one][metric] for one in replicates)
                for metric in METRICS
            }
            for policy in self._policies
        }

    def _run(self, replicates: Sequence[Replicate]) -> None:
        missing = [
            (policy, replicate)
            for policy in self._policies
            for replicate in replicates
            if (policy, replicate) not in self._summaries
        ]
        tasks = [
            self._scenario.model_copy(update={"policy": policy, "seed": seed, "permutation": order})
            for policy, (seed, order) in missing
        ]
        total = len(self._summaries) + len(tasks)
        for index, summary in run_all(_summary, tasks, self._workers):
            self._summaries[missing[index]] = summary
            if self._on_done:
                self._on_done(len(self._summaries), total)


def _compared(
    values: Values, replicates: tuple[Replicate, ...], equivalence: float, until: float | None
) -> Comparison:
    baseline, *others = values
    clusters = clusters_of(replicates)
    single = {
        (policy, metric): compare_values(
            values[baseline][metric], values[policy][metric], clusters, equivalence=equivalence
        )
        for policy in others
        for metric in METRICS
    }
    together = holm(list(single.values()), equivalence=equivalence)
    verdicts = dict(zip(single, together, strict=True))
    widest = max(
        (
            Widest(*key, half_width(values[baseline][key[1]], values[key[0]][key[1]], one))
            for key, one in single.items()
        ),
        key=lambda width: width.half_width,
    )
    differences = {
        policy: {metric: verdicts[policy, metric] for metric in METRICS} for policy in others
    }
    independent = len(set(clusters)) if clusters else len(replicates)
    return Comparison(tuple(values), replicates, values, differences, widest, independent, until)


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _check(policies: Sequence[str], seeds: int, permutations: int) -> None:
    if len(set(policies)) < 2 or len(set(policies)) != len(policies):
        raise ConfigError(
            f"--policies {','.join(policies)}: give at least two different policies, "
            "the first is the baseline"
        )
    if (count := len(policies) * seeds * permutations) > MAX_RUNS:
        raise ConfigError(
            f"--seeds {seeds} --permutations {permutations}: {count} runs, at most {MAX_RUNS}"
        )


def _check_sizes(seeds: int, permutations: int) -> None:
    if seeds < 1 or permutations < 1:
        raise ConfigError(f"--seeds {seeds} --permutations {permutations}: at least 1 of each")


def _check_until(until: float, budget: int, least: int) -> None:
    if not 0 < until < 1:
        raise ConfigError(f"--until {until:g}: expected a share between 0 and 1, such as 2%")
    if budget < least:
        raise ConfigError(f"--budget {budget}: expected at least {least}, to begin with")


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

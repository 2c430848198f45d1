"""Compares variants of a scenario, and tells their differences from noise.

A **variant** is a policy, or a value of one setting (`variants.py`). The first one is the baseline.
Every variant runs on the same **replicates**. A replicate is a seed (for a trace that is drawn) and
a permutation of the order in which machines and simultaneous arrivals are visited. That order has
no meaning, yet it changes a makespan by tens of percent. So a difference between two variants
counts only if it is larger than the effect of the order.

Where several seeds and one permutation are asked for, replicate i has seed i **and** permutation i.
Else all of them would have the natural order, in which clocks start at the first arrival. Several
seeds and permutations make a grid.

Differences are paired by replicate and judged by `artist.results.statistics.compare_values`.
Replicates of one seed are a cluster where several seeds are drawn. The verdicts on all variants and
metrics hold together (Holm): if no variant differed, one `less` or `more` would appear in at most
5 % of cases. A `no difference` is said of each comparison alone.

`Comparison.parts` says what the mean JCT of each variant consists of, `Comparison.bounds_s` what no
policy can beat in it.

With `until`, replicates are added until all intervals are that narrow (`until.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from artist.config import ABOUT_THE_TRACE, Scenario
from artist.errors import ConfigError
from artist.experiments.compared_metrics import BOUND, check_metrics
from artist.experiments.executors import run_all
from artist.experiments.experiment import MAX_RUNS
from artist.experiments.until import BUDGET, FIRST_LOOK, enough_for, half_width, next_count
from artist.experiments.variants import POLICY, Variant, of_policies, of_setting
from artist.results.caveats import preempts_freely
from artist.results.jct_parts import PARTS
from artist.results.statistics.best_policy import Best, Measured, bests
from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    PERMUTATIONS,
    TOO_FEW,
    ComparedValues,
    Pair,
    clusters_of,
    compare_together,
    is_exact,
    judged_together,
    kind_of,
)
from artist.results.terms.chief_metrics import COMPARED, HEADLINES
from artist.results.terms.number_text import counted
from artist.run import OnTrace, build_cluster, build_fabric, build_trace, simulate
from artist.trace.named import is_trace_file

Replicate: TypeAlias = tuple[int, int]
"""Seed and permutation."""
Values: TypeAlias = Mapping[str, Mapping[str, tuple[float, ...]]]
"""Variant -> metric -> value on each replicate."""
Differences: TypeAlias = Mapping[str, Mapping[str, ComparedValues]]
"""Variant, except the first -> metric -> how it compares with the first one."""


class Widest(NamedTuple):
    """The widest interval of a comparison."""

    variant: str
    metric: str
    half_width: float
    """As in `until.py`: 0.02 is two percent."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of all variants on all replicates, and the differences to the first one."""

    variants: tuple[str, ...]
    """Labels, the baseline's first: names of policies, or `bandwidth=100Gbit/s`."""
    replicates: tuple[Replicate, ...]
    """(seed, permutation) of each replicate."""
    values: Values
    """Variant -> metric -> value on each replicate."""
    differences: Differences
    """Variant, except the first -> metric -> how it compares with the first one."""
    widest: Widest
    independent: int
    """Independent replicates: seeds if there are several, else permutations."""
    until: float | None = None
    """The half-width that was asked for."""
    parts: Values = field(default_factory=dict)
    """Variant -> part of the mean JCT (`jct_parts.PARTS`) -> seconds on each replicate."""
    bounds_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Variant -> makespan that no policy can beat, on each replicate."""
    equivalence: float = EQUIVALENCE
    """Differences within this share are called none."""
    setting: str = POLICY
    """What varies, as `--set` spells it: `policy`, `racks`, `fabric.network.bandwidth`."""
    preempts_freely: bool = False
    """Jobs were preempted or moved, and no run paid for it (`caveats.preempts_freely`)."""
    drawn: bool = False
    """Another seed would draw another trace."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were compared."""
        return tuple(self.values[self.variants[0]])

    @property
    def bound_s(self) -> tuple[float, ...]:
        """The bound of each replicate where all variants have the same bounds; else empty.

        Policies do. The size of the cluster, the trace and the calibration move the bound.
        """
        bounds = set(self.bounds_s.values())
        return next(iter(bounds)) if len(bounds) == 1 else ()

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
    def family(self) -> int:
        """How many comparisons are judged together: variants x metrics, less those untested."""
        return judged_together(
            one for metrics in self.differences.values() for one in metrics.values()
        )

    @property
    def kind(self) -> str:
        """What independent replicates are, in words."""
        return kind_of(self.replicates)

    @property
    def one_draw(self) -> bool:
        """Whether all replicates are permutations of one trace that a seed drew."""
        return self.drawn and self.kind == PERMUTATIONS

    def exact(self, metric: str) -> list[str]:
        """The variants whose difference on a metric no permutation changes."""
        ones = {label: metrics[metric] for label, metrics in self.differences.items()}
        return [label for label, one in ones.items() if is_exact(one, self.kind, self.independent)]

    @property
    def design(self) -> str:
        """The replicates in words."""
        seeds, orders = (len({one[i] for one in self.replicates}) for i in (0, 1))
        independent = counted(self.independent, "independent replicate")
        if seeds > 1 and len(self.replicates) == seeds:
            return f"{seeds} seeds, each with a permutation of its own = {independent}"
        made = f"{counted(seeds, 'seed')} x {counted(orders, 'permutation')}"
        return f"{made} = {independent}"

    def differences_of_parts(self, variant: str) -> Mapping[str, float]:
        """Part -> mean over replicates of the variant's seconds minus the baseline's.

        The sum is the mean difference of `jct_mean_s`.
        """
        ours, theirs = self.parts[variant], self.parts[self.variants[0]]
        return {part: fmean(ours[part]) - fmean(theirs[part]) for part in PARTS}

    def best_variants(self) -> list[Best]:
        """The best variant of each headline metric that was compared.

        All pairs of variants on these metrics are one family, since the best one is picked from
        the data. So a verdict here may be `undecided` where that against the baseline is not.
        """
        measured = [
            Measured(metric, {v: self.values[v][metric] for v in self.variants}, self.replicates)
            for metric in HEADLINES
            if metric in self.values[self.variants[0]]
        ]
        return bests(measured, self.equivalence)

    @property
    def without_interval(self) -> int:
        """How many comparisons have no interval, since their replicates are copies of one."""
        every = [one for metrics in self.differences.values() for one in metrics.values()]
        return sum(one.verdict == TOO_FEW and one.replicates == 1 for one in every)


def compare(
    scenario: Scenario,
    policies: Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    seeds: int,
    permutations: int,
    metrics: Sequence[str] = COMPARED,
    equivalence: float = EQUIVALENCE,
    until: float | None = None,
    budget: int = BUDGET,
    workers: int = 1,
    on_done: Callable[[int, int], None] | None = None,
    on_trace: OnTrace | None = None,
) -> Comparison:
    """Run every variant on every replicate. The first variant is the baseline.

    `policies` are the variants. With `vary`, such as `{"racks": [2, 4]}`, the variants are the
    values of that one setting, under the scenario's policy or the only one of `policies`.

    The verdicts on all `metrics` hold together, so fewer metrics need fewer replicates.

    Variants that surely differ by less than `equivalence`, a share, get `no difference`.

    With several seeds and one permutation, replicate i has seed i and permutation i.

    `until` adds replicates until the half-width of every interval is at most that share, or there
    are `budget` independent ones. It adds seeds, each with all permutations, if there are several
    seeds, and else permutations. It begins with 8 of them at least (`until.FIRST_LOOK`).

    `on_done(done, all)` is called after each run, with numbers of runs. `on_trace` is told a trace
    that is read from a file, of the first seed, before anything is simulated.

    Raises:
        UnknownNameError: a metric is not known.
        ConfigError: fewer than two variants, a variant or a metric twice, several policies and
            `vary`, several settings in `vary`, an unknown setting or bad value of it, a metric that
            the runs do not have, no replicate, too many runs, several seeds for a trace of which no
            seed draws anything, a share out of bounds, or a budget below the replicates to begin
            with.
    """
    _check_sizes(seeds, permutations)
    check_metrics(metrics)
    if not 0 <= equivalence < 1:
        raise ConfigError(
            f"--equivalence {equivalence:g}: expected a share from 0 to below 1, such as 2%"
        )
    begin = (seeds, permutations)
    if until is not None:
        begin = _grown(begin, max(FIRST_LOOK, _independent(begin)))
        _check_until(until, budget, _independent(begin))
    setting, variants = _variants(scenario, policies, vary)
    _check_count(len(variants), *(begin if until is None else _grown(begin, budget)))
    drawn = seeds > 1
    for one in _of_each_trace(variants):
        if seeds > 1:
            _check_seeds(one, seeds)
        else:
            drawn = drawn or is_drawn(one)
        if on_trace is not None and is_trace_file(one.trace):
            on_trace(build_trace(one, build_cluster(one, build_fabric(one))))
    runs = _Runs(variants, metrics, workers, on_done)
    while True:
        comparison = _compared(
            setting, runs.values(*begin), runs.replicates(*begin), equivalence, until
        )
        comparison = replace(comparison, drawn=drawn)
        count = _independent(begin)
        if until is None:
            return runs.with_parts(comparison)
        wanted = next_count(count, comparison.widest.half_width, until, budget)
        if wanted == count:
            return runs.with_parts(comparison)
        begin = _grown(begin, wanted)


def _variants(
    scenario: Scenario, policies: Sequence[str], vary: Mapping[str, Sequence[Any]]
) -> tuple[str, list[Variant]]:
    """The setting that varies, and the variants."""
    if not vary:
        return POLICY, of_policies(scenario, policies)
    if len(vary) > 1:
        raise ConfigError(
            f"--vary {', '.join(vary)}: one setting at a time; run a grid of settings with artist "
            "sweep"
        )
    ((setting, values),) = vary.items()
    if len(policies) > 1 or (policies and setting == POLICY):
        raise ConfigError(
            f"--policies {','.join(policies)} --vary {setting}: one question at a time; give one "
            "policy and --vary SETTING=A,B, or several policies without --vary"
        )
    if policies:
        scenario = scenario.model_copy(update={POLICY: policies[0]})
    return setting, of_setting(scenario, setting, values)


def _of_each_trace(variants: Sequence[Variant]) -> list[Scenario]:
    """The first scenario of each different trace: all policies share one."""
    names = ("trace", "arrivals", "jobs", "restart_s", *ABOUT_THE_TRACE)
    by_trace: dict[str, Scenario] = {}
    for one in variants:
        about = repr([getattr(one.scenario, name) for name in names])
        by_trace.setdefault(about, one.scenario)
    return list(by_trace.values())


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


def _compared(
    setting: str,
    values: Values,
    replicates: tuple[Replicate, ...],
    equivalence: float,
    until: float | None,
) -> Comparison:
    baseline, *others = values
    metrics = tuple(values[baseline])
    clusters = clusters_of(replicates)
    pairs = {
        (label, metric): Pair(values[baseline][metric], values[label][metric], replicates)
        for label in others
        for metric in metrics
    }
    verdicts = compare_together(pairs, equivalence)
    widest = max(
        (
            Widest(*key, half_width(values[baseline][key[1]], values[key[0]][key[1]], one))
            for key, one in verdicts.items()
        ),
        key=lambda width: width.half_width,
    )
    differences = {
        label: {metric: verdicts[label, metric] for metric in metrics} for label in others
    }
    independent = len(set(clusters)) if clusters else len(replicates)
    return Comparison(
        tuple(values), replicates, values, differences, widest, independent, until,
        equivalence=equivalence, setting=setting,
    )  # fmt: skip


def _check_count(variants: int, seeds: int, permutations: int) -> None:
    if (count := variants * seeds * permutations) > MAX_RUNS:
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


def _check_has(summary: Mapping[str, Any], metrics: Sequence[str]) -> None:
    for metric in metrics:
        if metric not in summary:
            raise ConfigError(
                f"--metrics {metric}: runs on this cluster and backend do not have it; leave it out"
            )


def is_drawn(scenario: Scenario) -> bool:
    """Whether the next seed would draw another trace."""
    tree = build_cluster(scenario, build_fabric(scenario))
    one, other = (
        build_trace(scenario.model_copy(update={"seed": scenario.seed + step}), tree).jobs
        for step in (0, 1)
    )
    return one != other


def _check_seeds(scenario: Scenario, seeds: int) -> None:
    """Refuse copies of one run that would count as replicates."""
    if not is_drawn(scenario):
        raise ConfigError(
            f"--seeds {seeds}: trace {scenario.trace!r} is the same for every seed; vary "
            "--permutations, or draw arrivals with --arrivals poisson:JOBS_PER_HOUR"
        )

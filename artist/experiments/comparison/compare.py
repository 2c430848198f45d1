"""Compares variants of a scenario, and tells their differences from noise.

A **variant** is a policy, or a value of one setting (`variants.py`). The first one is the baseline.
Every variant runs on the same **replicates**. A replicate is a seed (for a trace that is drawn) and
a permutation of the order in which machines and simultaneous arrivals are visited. That order has
no meaning, yet it changes a makespan by tens of percent. So a difference between two variants only
counts if it is larger than the effect of the order.

With several seeds and one permutation, replicate i has seed i **and** permutation i. Otherwise all
replicates would have the natural order, in which clocks start at the first arrival. Several seeds
and several permutations make a grid.

Differences are paired by replicate and judged by `artist.results.statistics.compare_values`.
If several seeds are drawn, the replicates of one seed are a cluster. The verdicts on all variants
and metrics hold together (Holm): if no variant differed, a `less` or `more` would appear in at most
5 % of cases. A `no difference` is a verdict on one comparison alone.

`Comparison.parts` are the parts of each variant's mean JCT. `Comparison.bounds_s` are makespans
that no policy can beat.

With `until`, replicates are added until all intervals are narrow enough, or every pair is decided
(`until.py`). Every variant runs once on every replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from artist.config import Scenario, check_scenario
from artist.errors import ConfigError, shortened
from artist.experiments.comparison.comparison_result import Comparison, compared
from artist.experiments.comparison.draws import check_seeds, draws_failures, is_drawn, of_each_trace
from artist.experiments.comparison.runs import Runner, Runs, in_memory
from artist.experiments.comparison.until import (
    BUDGET,
    DECIDED,
    FIRST_LOOK,
    level_of,
    looks,
    may_decide,
    next_count,
)
from artist.experiments.comparison.variants import (
    POLICY,
    SETTINGS,
    Variant,
    of_policies,
    of_settings,
    partly_taken,
)
from artist.experiments.experiment import MAX_RUNS
from artist.results.statistics.compare_values import EQUIVALENCE
from artist.results.terms.chief_metrics import COMPARED, check_metrics
from artist.run import ABOUT_COMPUTE_TIMES, OnTrace, build_cluster, build_fabric, build_trace
from artist.trace.named import is_trace_file

PERMUTATIONS = 8
"""The default for one seed. With five replicates, a difference of one standard deviation is sure in
40 % of cases, with eight in 68 %, before it is judged together with others."""

MOST_PERMUTATIONS = 16
"""The default if something is undecided with `PERMUTATIONS`."""

Until: TypeAlias = float | Literal["decided"] | None


def compare(
    scenario: Scenario,
    policies: Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    seeds: int = 1,
    permutations: int | None = None,
    metrics: Sequence[str] = COMPARED,
    equivalence: float = EQUIVALENCE,
    until: Until = None,
    budget: int | None = None,
    workers: int = 1,
    on_done: Callable[[int, int], None] | None = None,
    on_trace: OnTrace | None = None,
    runner: Runner | None = None,
) -> Comparison:
    """Run every variant on every replicate. The first variant is the baseline.

    `policies` are the variants. With `vary`, such as `{"racks": [2, 4]}`, the variants are the
    values of that setting, or all combinations of several. They run under the scenario's policy, or
    under each of `policies`. Values may be relative: `{"racks": ["+2"]}` compares two more racks
    with the scenario as given.

    The verdicts on all `metrics` hold together, so fewer metrics need fewer replicates.

    Variants that surely differ by less than `equivalence`, a share, get `no difference`.

    With several seeds and one permutation, replicate i has seed i and permutation i. The default of
    `permutations` is that of `replicates_by_default`.

    `until` adds replicates until the half-width of every interval is at most that share, or until
    no pair is undecided (`"decided"`), or until there are `budget` independent replicates (100). If
    there are several seeds, it adds seeds, each with all permutations; otherwise permutations. It
    begins with at least 8 (`until.FIRST_LOOK`).

    `on_done(done, all)` is called after each run, with numbers of runs. `on_trace` is called before
    anything is simulated, with each trace that is read from a file, for the first seed, and again
    for each fabric or other setting that changes how its jobs compute. `runner` makes the runs in
    place of `workers` processes. It may end early (`TimeBudget`); then only replicates that every
    variant has count.

    Raises:
        UnknownNameError: a metric is not known.
        ConfigError: fewer than two variants, a variant or a metric twice, an unknown setting or bad
            value of it, a metric that the runs do not have, no replicate, too many runs, several
            seeds of which none draws a trace or failures, a share out of bounds, a budget below
            the replicates to begin with, or no replicate done when the time was over.
    """
    check_scenario(scenario)
    if isinstance(policies, str):
        raise ConfigError(f"policies={shortened(policies)}: expected a list, as in ['las', 'fifo']")
    permutations, until, budget = replicates_by_default(seeds, permutations, until, budget)
    check_metrics(metrics)
    check_shares(equivalence, until)
    begin = (seeds, permutations)
    if until is not None:
        begin = _grown(begin, max(FIRST_LOOK, _independent(begin)))
    setting, variants = variants_of(scenario, policies, vary)
    _check_count(len(variants), *(begin if until is None else _grown(begin, budget)))
    scenarios = [one.scenario for one in variants]
    if seeds > 1:
        check_seeds(scenarios, seeds)
    traces = of_each_trace(scenarios)
    drawn = seeds > 1 or any(map(is_drawn, traces))
    for one in of_each_trace(scenarios, ABOUT_COMPUTE_TIMES):
        if on_trace is not None and is_trace_file(one.trace):
            on_trace(build_trace(one, build_cluster(one, build_fabric(one))), one)
    runs = Runs(variants, metrics, runner or in_memory(workers), on_done)
    counts = looks(_independent(begin), budget) if until == DECIDED else []
    judge = partial(
        compared,
        setting,
        equivalence=equivalence,
        until=None if isinstance(until, str) else until,
        level=level_of(counts) if counts else 0.95,
    )
    while True:
        asked = runs.replicates(*begin)
        done = runs.complete(asked)
        comparison = replace(
            judge(values=runs.values(done), replicates=done, cancelled=runs.cancelled(done)),
            drawn=drawn,
            failures_drawn=any(map(draws_failures, scenarios)),
            replicates_asked=len(asked),
            runs_made=runs.made,
            partly_taken=tuple(partly_taken(scenario, [x.scenario.policy for x in variants])),
        )
        wanted = _next(comparison, until, counts, budget)
        if wanted is None or len(done) < len(asked):
            return runs.with_parts(comparison)
        begin = _grown(begin, wanted)


def replicates_by_default(
    seeds: int, permutations: int | None, until: Until, budget: int | None
) -> tuple[int, Until, int]:
    """Permutations, until and budget, with defaults in place of None.

    Several seeds have one permutation each. One seed has 8 permutations, and up to 16 (`budget`)
    while something is undecided.

    Raises:
        ConfigError: no seed, no permutation, or a budget below the replicates to begin with.
    """
    if permutations is None:
        if seeds == 1 and until is None:
            until, budget = DECIDED, MOST_PERMUTATIONS if budget is None else budget
        permutations = PERMUTATIONS if seeds == 1 else 1
    if seeds < 1 or permutations < 1:
        raise ConfigError(f"--seeds {seeds} --permutations {permutations}: at least 1 of each")
    budget = BUDGET if budget is None else budget
    least = max(FIRST_LOOK, _independent((seeds, permutations)))
    if until is not None and budget < least:
        raise ConfigError(f"--budget {budget}: expected at least {least}, to begin with")
    return permutations, until, budget


def check_shares(equivalence: float, until: Until) -> None:
    """Refuse an equivalence or a width of intervals that is not a share.

    Raises:
        ConfigError: names the option.
    """
    if not 0 <= equivalence < 1:
        raise ConfigError(
            f"--equivalence {equivalence:g}: expected a share from 0 to below 1, such as 2%"
        )
    if until not in (None, DECIDED) and not (isinstance(until, float) and 0 < until < 1):
        given = f"{until:g}" if isinstance(until, float) else until
        raise ConfigError(
            f"--until {given}: expected a share between 0 and 1, such as 2%, or {DECIDED}"
        )


def _next(
    comparison: Comparison, until: float | str | None, counts: Sequence[int], budget: int
) -> int | None:
    """How many independent replicates to look at next; None if no more are needed or would help."""
    if comparison.cancelled:
        return None
    now = comparison.independent
    if isinstance(until, str):
        every = [one for metrics in comparison.differences.values() for one in metrics.values()]
        wanted = next((count for count in counts if count > now), now)
        return wanted if wanted > now and may_decide(every, budget) else None
    if until is None:
        return None
    wanted = next_count(now, comparison.widest.half_width, until, budget)
    return wanted if wanted > now else None


def variants_of(
    scenario: Scenario, policies: Sequence[str], vary: Mapping[str, Sequence[Any]]
) -> tuple[str, list[Variant]]:
    """What varies, and the variants.

    Raises:
        ConfigError: as `compare`.
    """
    if not vary:
        return POLICY, of_policies(scenario, policies)
    if policies and POLICY in vary:
        raise ConfigError(
            f"--policies {','.join(policies)} --vary {POLICY}: the policies are given twice; "
            "leave one "
            "of the two out"
        )
    if len(policies) > 1:
        vary = {POLICY: policies, **vary}
    elif policies:
        scenario = scenario.model_copy(update={POLICY: policies[0]})
    return (SETTINGS if len(vary) > 1 else next(iter(vary))), of_settings(scenario, vary)


def _independent(size: tuple[int, int]) -> int:
    """The number of independent replicates among these numbers of seeds and permutations."""
    seeds, permutations = size
    return seeds if seeds > 1 else permutations


def _grown(size: tuple[int, int], count: int) -> tuple[int, int]:
    """Numbers of seeds and permutations with `count` independent replicates of the same kind."""
    seeds, permutations = size
    return (count, permutations) if seeds > 1 else (seeds, count)


def _check_count(variants: int, seeds: int, permutations: int) -> None:
    if (count := variants * seeds * permutations) > MAX_RUNS:
        raise ConfigError(
            f"--seeds {seeds} --permutations {permutations}: {count} runs, at most {MAX_RUNS}"
        )

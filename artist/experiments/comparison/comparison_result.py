"""The result of a comparison: metrics of all replicates, differences, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from artist.experiments.comparison.shown import comparison_frame, comparison_html, comparison_text
from artist.experiments.comparison.until import enough_for, half_width
from artist.experiments.comparison.variants import POLICY
from artist.registry import UnknownNameError
from artist.results.statistics.best_policy import Best, Measured, bests
from artist.results.statistics.catastrophes import far_off
from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    PERMUTATIONS,
    TOO_FEW,
    ComparedValues,
    clusters_of,
    is_exact,
    kind_of,
)
from artist.results.statistics.holm import Pair, compare_together, judged_together
from artist.results.statistics.replicate_means import replicate_means
from artist.results.terms.chief_metrics import HEADLINES
from artist.units import counted

if TYPE_CHECKING:
    import pandas as pd

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


class Catastrophe(NamedTuple):
    """A replicate of a variant that lies far above its others."""

    variant: str
    metric: str
    seed: int
    permutation: int
    factor: float
    """Its value over the median."""


class Failed(NamedTuple):
    """What failures did in a run of a variant, on average."""

    outages: float
    """Units that left service."""
    stopped: float
    """How often a failure stopped a job."""
    lost_gpu_h: float
    slowed_gpu_h: float = 0.0
    """Computing time that slow units added."""
    checkpoint_gpu_h: float = 0.0
    restart_gpu_h: float = 0.0
    """Restarts, migrations and holds of any cause, and iterations cut short."""
    out_gpu_h: float = 0.0
    """GPU time out of service until the last job finished."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The metrics of all variants on all replicates, and the differences from the first one."""

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
    """The half-width that was asked for; None if none was."""
    parts: Values = field(default_factory=dict)
    """Variant -> part of the mean JCT (`chief_metrics.PARTS`) -> seconds on each replicate."""
    bounds_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Variant -> makespan that no policy can beat, on each replicate."""
    equivalence: float = EQUIVALENCE
    """Differences within this share are called none."""
    level: float = 0.95
    """The level of intervals and verdicts. Higher if there were several looks (`until.py`)."""
    setting: str = POLICY
    """What varies, as `--set` spells it: `policy`, `racks`; `settings` if several do."""
    preempts_freely: bool = False
    """Jobs were preempted or moved, and no run paid for it (`caveats.preempts_freely`)."""
    cancelled: Mapping[str, float] = field(default_factory=dict)
    """Variant -> jobs cancelled in a run on average; empty if no run cancelled any. If a run did,
    there are no verdicts, since the variants finished different jobs."""
    drawn: bool = False
    """Whether another seed would draw another trace."""
    failures_drawn: bool = False
    """Whether another seed would draw other failures."""
    replicates_asked: int = 0
    """How many replicates were to be run. A time budget may end earlier."""
    runs_made: int = 0
    """All runs, with those of replicates that a time budget left incomplete."""
    contention_idle: bool = False
    """Contention was simulated, and no job ever lost time to it."""
    points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Variant -> setting -> its value as the user wrote it; empty for the scenario as given."""
    partly_taken: tuple[str, ...] = ()
    """A sentence for each option that some of the policies have and others lack."""
    policy: str = ""
    """The policy of the first variant."""
    gpus: Mapping[str, int] = field(default_factory=dict)
    """Variant -> GPUs of its cluster."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    traces: Mapping[str, str] = field(default_factory=dict)
    held_gpu_h: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Variant -> GPU-hours that jobs held, on each replicate."""
    makespan_h: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    per_hour: Mapping[str, float] = field(default_factory=dict)
    """Variant -> its price per hour; empty without prices."""
    failed: Mapping[str, Failed] = field(default_factory=dict)
    """Variant -> what failed; only variants in which units can fail."""
    intervals_s: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Variant -> the shortest and longest checkpoint interval, if `auto` chose it."""

    def __repr__(self) -> str:
        """What was compared, and a line for each metric and variant."""
        return comparison_text(self)

    def _repr_html_(self) -> str:
        """The same as a table for notebooks."""
        return comparison_html(self)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each metric and variant: its mean, its difference from the baseline, a verdict.

        `low` and `high` are the interval of `ratio`, or of `difference` if `ratio` is NaN. It is
        the joint interval if the verdict is undecided only because many are judged together.
        """
        return comparison_frame(self)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that were compared."""
        return tuple(self.values[self.variants[0]])

    @property
    def bound_s(self) -> tuple[float, ...]:
        """The bound of each replicate if all variants have the same bounds; else empty.

        The bound does not depend on the policy, but on the cluster's size, the trace and the
        calibration.
        """
        bounds = set(self.bounds_s.values())
        return next(iter(bounds)) if len(bounds) == 1 else ()

    @property
    def missing(self) -> int | None:
        """How many more independent replicates would make all intervals as narrow as `until`.

        None: more than `compare_values.MOST_REPLICATES` in all.
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
        """The variants whose difference on a metric is the same under all permutations."""
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

        Raises:
            UnknownNameError: no variant of this label was compared.
        """
        if variant not in self.parts:
            known = ", ".join(self.variants)
            raise UnknownNameError("variant", variant, self.variants, f"compared are {known}")
        ours, theirs = self.parts[variant], self.parts[self.variants[0]]
        return {part: fmean(ours[part]) - fmean(theirs[part]) for part in theirs}

    def catastrophes(self) -> list[Catastrophe]:
        """Replicates far off the others on a headline metric, the farthest first."""
        found = [
            Catastrophe(label, metric, *self.replicates[far.at], far.factor)
            for label, values in self.values.items()
            for metric in HEADLINES
            if (far := far_off(values.get(metric, ()))) is not None
        ]
        return sorted(found, key=lambda one: -one.factor)

    def best_variants(self) -> list[Best]:
        """The best variant of each headline metric that was compared.

        All pairs of variants on these metrics are one family, since the best one is picked from
        the data. So a verdict here may be `undecided` although the one against the baseline is not.
        The list is empty if runs cancelled jobs.
        """
        if self.cancelled:
            return []
        measured = [
            Measured(metric, {v: self.values[v][metric] for v in self.variants}, self.replicates)
            for metric in HEADLINES
            if metric in self.values[self.variants[0]]
        ]
        ranked = self.effort if self.setting != POLICY else (lambda _: ())
        return bests(measured, self.equivalence, self.level, ranked)

    def effort(self, variant: str) -> tuple[float, ...]:
        """The effort of a variant: price per hour (0 without prices), GPUs, changed settings."""
        changed = len(self.points.get(variant, ()))
        return self.per_hour.get(variant, 0.0), self.gpus.get(variant, 0), changed

    def means(self, metric: str) -> dict[str, float]:
        """Variant -> mean over replicates; the ratios of differences are quotients of these."""
        values = {variant: self.values[variant][metric] for variant in self.variants}
        return replicate_means(values, clusters_of(self.replicates))

    @property
    def without_interval(self) -> int:
        """How many comparisons have no interval, since their replicates are copies of one."""
        every = [one for metrics in self.differences.values() for one in metrics.values()]
        return sum(one.verdict == TOO_FEW and one.replicates == 1 for one in every)


def compared(
    setting: str,
    values: Values,
    replicates: tuple[Replicate, ...],
    equivalence: float,
    until: float | None,
    level: float = 0.95,
    cancelled: Mapping[str, float] = MappingProxyType({}),
) -> Comparison:
    """Judge the values of all variants; the first one is the baseline."""
    baseline, *others = values
    metrics = tuple(values[baseline])
    clusters = clusters_of(replicates)
    pairs = {
        (label, metric): Pair(values[baseline][metric], values[label][metric], replicates)
        for label in others
        for metric in metrics
    }
    verdicts = compare_together(pairs, equivalence, level, same_jobs=not cancelled)
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
        equivalence=equivalence, setting=setting, level=level, cancelled=cancelled,
    )  # fmt: skip

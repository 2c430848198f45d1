"""What failures cost, as the answer of a comparison of failures.

    failures=f.yaml costs, in a run on average: 776 GPU-hours of lost work (180 stops of jobs), 296
    of checkpoints, 412 of restarts, 320 out of service.
    JCT mean against failures=none, 38.4 h: with failures=f.yaml it does not surely change, -2.7 %
    [-7.1 .. +2.0].

For a part that also occurs without failures (checkpoints, restarts after preemptions), the text
says how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from artist.experiments.comparison.comparison_result import Comparison, Failed, compared
from artist.report.metric_text import interval_text, value_text
from artist.report.verdict_sentences import metric_name, share_text
from artist.results.statistics.compare_values import (
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDECIDED,
)
from artist.results.terms.number_text import listed, short

SETTING = "failures"

MOST_TOLD = 4
"""If there are more variants, only those that lose least and most are shown."""

_CHANGES = {
    IDENTICAL: "stays the same",
    LESS: "surely falls",
    MORE: "surely rises",
    UNDECIDED: "does not surely change",
    TOO_FEW: "changes, with too few replicates for a verdict",
}


def tells_costs(comparison: Comparison) -> bool:
    """Whether a comparison asks what failures cost, and some happened."""
    return comparison.setting == SETTING and any(map(_happened, comparison.failed.values()))


def within_failures(comparison: Comparison) -> dict[str, Comparison]:
    """The comparison of the other settings within each value of failures; else empty.

    Failures are not a choice, so each value has its own best variant. The values share the error
    level (Bonferroni).
    """
    groups: dict[str, dict[str, str]] = {}
    for variant in comparison.variants:
        point = dict(comparison.points.get(variant, {}))
        value = point.pop(SETTING, "")
        own = [part for part in variant.split(", ") if part != f"{SETTING}={value}"]
        groups.setdefault(value, {})[variant] = ", ".join(own)
    if len(groups) < 2 or "" in groups or min(map(len, groups.values())) < 2:
        return {}
    level = 1 - (1 - comparison.level) / len(groups)
    found = {}
    for value, names in groups.items():
        values = {name: comparison.values[variant] for variant, name in names.items()}
        alone = compared(
            comparison.setting, values, comparison.replicates, comparison.equivalence, None, level
        )
        of_name = [(name, variant) for variant, name in names.items()]
        found[f"{SETTING}={value}"] = replace(
            alone,
            parts={x: comparison.parts[y] for x, y in of_name if y in comparison.parts},
            points={x: comparison.points[y] for x, y in of_name},
            gpus={x: comparison.gpus[y] for x, y in of_name if y in comparison.gpus},
            per_hour={x: comparison.per_hour[y] for x, y in of_name if y in comparison.per_hour},
        )
    return found


def failure_costs(comparison: Comparison, metric: str | None) -> Iterator[str]:
    """What the failures of each variant cost, and how they change a metric, if there is one."""
    failed = {name: one for name, one in comparison.failed.items() if _happened(one)}
    none = next((name for name in comparison.variants if name not in failed), None)
    without = comparison.failed.get(none or "", Failed(0, 0, 0))
    told = shown_variants(failed)
    for variant in told:
        yield f"{variant} costs, in a run on average: {_parts(failed[variant], without)}."
    if rest := len(failed) - len(told):
        yield f"And {rest} more, whose lost work and checkpoints lie between these."
    baseline, *others = comparison.variants
    others = [name for name in others if name in told or name not in failed]
    if metric is None or not others:
        return
    mean = value_text(metric, comparison.means(metric)[baseline])
    by_change: dict[str, dict[str, str]] = {}
    for variant in others:
        word, interval = _change(comparison, metric, variant)
        by_change.setdefault(word, {})[variant] = interval
    changes = "; ".join(_with(word, found) for word, found in by_change.items())
    yield f"{metric_name(metric)} against {baseline}, {mean}: {changes}."


def losses(failed: Mapping[str, Failed]) -> str:
    """What each variant lost to failures, and to the checkpoints that save work from them."""
    told = shown_variants(failed)
    costs = [
        f"{short(one.lost_gpu_h)} GPU-hours of work{_written(one)} with {variant}{_stops(one)}"
        for variant, one in ((variant, failed[variant]) for variant in told)
    ]
    writes = any(one.checkpoint_gpu_h for one in failed.values())
    return (
        f"Lost to failures{' and checkpoints' if writes else ''} in a run, on average: "
        f"{(' to ' if len(told) < len(failed) else '; ').join(costs)}."
    )


def _written(failed: Failed) -> str:
    written = failed.checkpoint_gpu_h
    return f" and {short(written)} of checkpoints" if written else ""


def shown_variants(failed: Mapping[str, Failed]) -> list[str]:
    """The variants to show, by the GPU time of lost work and checkpoints."""
    by_loss = sorted(
        failed, key=lambda name: failed[name].lost_gpu_h + failed[name].checkpoint_gpu_h
    )
    return by_loss if len(by_loss) <= MOST_TOLD else [by_loss[0], by_loss[-1]]


_ROUNDING = 1e-6
"""GPU-hours up to this are rounding errors of sums where nothing was lost."""


def _happened(failed: Failed) -> bool:
    return failed.outages > 0


def _parts(failed: Failed, without: Failed) -> str:
    """GPU-hours of each kind; in brackets those that occur without failures, too."""
    parts = [
        (failed.lost_gpu_h, "of lost work", _stops(failed)),
        (failed.checkpoint_gpu_h, "of checkpoints", _beside(without.checkpoint_gpu_h)),
        (failed.restart_gpu_h, "of restarts", _beside(without.restart_gpu_h)),
        (failed.out_gpu_h, "out of service", ""),
    ]
    some = [(hours, f"{what}{beside}") for hours, what, beside in parts if hours > _ROUNDING]
    if not some:
        return "no GPU-hours"
    (first, what), *others = some
    told = [f"{short(first)} GPU-hours {what}", *(f"{short(x)} {what}" for x, what in others)]
    return " and ".join(told) if len(told) == 2 else ", ".join(told)


def _stops(failed: Failed) -> str:
    """` (6 stops of jobs)`, on average."""
    return f" ({short(failed.stopped)} stop{'' if failed.stopped == 1 else 's'} of jobs)"


def _beside(there_gpu_h: float) -> str:
    return f" ({short(there_gpu_h)} without failures)" if there_gpu_h else ""


def _with(word: str, intervals: Mapping[str, str]) -> str:
    """`with f.yaml it surely rises, +2.7 % [...]`; of several `with a (...) and b (...) it ...`."""
    if len(intervals) == 1:
        ((variant, interval),) = intervals.items()
        return f"with {variant} it {word}{interval and f', {interval}'}"
    told = [f"{name}{interval and f' ({interval})'}" for name, interval in intervals.items()]
    return f"with {listed(told)} it {word}"


def _change(comparison: Comparison, metric: str, variant: str) -> tuple[str, str]:
    """`does not surely change` and `-2.7 % [-7.1 .. +2.0]`, which is empty if nothing changes."""
    compared = comparison.differences[variant][metric]
    word = _CHANGES.get(compared.verdict, "")
    if variant in comparison.exact(metric):
        word = "changes on this trace, whatever the order of machines"
    elif compared.verdict == NO_DIFFERENCE:
        word = f"changes by less than {share_text(comparison.equivalence)}"
    return word, "" if compared.verdict == IDENTICAL else interval_text(metric, compared)

"""Sentences that help to judge a comparison: caveats, oracles, what to ask next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from artist.cli.progress_lines import duration
from artist.cli.summary_text import intervals_words
from artist.config import Scenario
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.variants import POLICY
from artist.experiments.executors import TimeBudget
from artist.policies.option_places import takes_option
from artist.policies.run_times import KNOWS, knows_run_times
from artist.report.answer import unit_of
from artist.report.failure_costs import MOST_TOLD, losses, tells_costs
from artist.report.metric_text import value_text
from artist.report.verdict_sentences import catastrophe_sentence
from artist.results.caveats import more_is_worse, spreads_jobs
from artist.results.statistics.best_policy import Best
from artist.results.statistics.compare_values import LESS, MORE, UNDECIDED
from artist.results.terms.number_text import listed, short, time_text


def notes(comparison: Comparison, scenario: Scenario) -> Iterator[str]:
    """The sentences that apply. `scenario` holds the settings before they are varied."""
    best_variants = comparison.best_variants()
    for sentence in (
        _oracles(comparison, best_variants),
        _beaten_oracles(comparison, best_variants, scenario),
    ):
        if sentence:
            yield sentence
    yield from _same_runs(comparison)
    yield from _failures(comparison)
    yield from _saved(comparison)
    yield from _intervals(comparison)
    yield from _catastrophe(comparison)
    yield from _more_is_worse(comparison, scenario)
    yield from _contention_idle(comparison)
    yield from _of_which_traces(comparison)


def _same_runs(comparison: Comparison) -> Iterator[str]:
    """Groups of variants with equal results; nothing if all variants are equal."""
    groups: dict[object, list[str]] = {}
    for variant in comparison.variants:
        told = (comparison.values[variant], comparison.parts.get(variant, {}))
        groups.setdefault(tuple(tuple(sorted(each.items())) for each in told), []).append(variant)
    if len(groups) > 1:
        for same in groups.values():
            if len(same) > 1:
                yield f"{listed(same)} are equal in all that was compared."


def _contention_idle(comparison: Comparison) -> Iterator[str]:
    if comparison.contention_idle:
        yield (
            "Jobs lost nothing to each other on links in any run, so contention had no effect; "
            "artist sim with the same settings says why."
        )


_FASTER = {
    "waiting": "wait less, since those that a failure stops let others go first",
    "communication": "communicate less, since those that a failure stops get other GPUs, which lie "
    "closer together",
    "preemption and restarts": "lose less time in preemptions and restarts",
}
"""Part of the mean JCT -> why failures may shorten it."""


def _failures(comparison: Comparison) -> Iterator[str]:
    """What failures cost, that none happened, or why jobs finish sooner with them."""
    failed = comparison.failed
    if not failed:
        return
    if slowed := {variant: one.slowed_gpu_h for variant, one in failed.items() if one.slowed_gpu_h}:
        most = max(slowed, key=lambda variant: slowed[variant])
        whom = f" with {most}" if len(slowed) == 1 else f" or less, most with {most}"
        yield f"Slow units cost {short(slowed[most])} GPU-hours of computing in a run{whom}."
    if not any(one.outages for one in failed.values()):
        if slowed:
            return
        yield (
            "No unit failed in these runs; units that fail more often (a shorter mtbf_s) or longer "
            "jobs would show what failures cost."
        )
        return
    if not tells_costs(comparison):
        yield losses(failed)
    yield from _faster_with_failures(comparison)


def _faster_with_failures(comparison: Comparison) -> Iterator[str]:
    """Why jobs finish sooner with failures than without, if they do."""
    parts = {
        variant: {part: fmean(values) for part, values in each.items()}
        for variant, each in comparison.parts.items()
    }
    jct_s = {variant: sum(each.values()) for variant, each in parts.items()}
    failing = [variant for variant in parts if _fails(comparison, variant)]
    without = [variant for variant in parts if variant not in failing]
    if not failing or not without:
        return
    variant, least = (min(each, key=lambda one: jct_s[one]) for each in (failing, without))
    if jct_s[variant] >= jct_s[least]:
        return
    saved = {part: parts[least][part] - parts[variant][part] for part in _FASTER}
    part = max(saved, key=lambda name: saved[name])
    yield (
        f"Failures cost work, but with {variant} jobs {_FASTER[part]}: {time_text(saved[part])} "
        f"per job against {least}. A policy that preempts or moves jobs could gain that without "
        "failures."
    )


def _fails(comparison: Comparison, variant: str) -> bool:
    """Whether units failed. `failed` also holds variants that only write checkpoints."""
    return variant in comparison.failed and comparison.failed[variant].outages > 0


def _saved(comparison: Comparison) -> Iterator[str]:
    """The part of the mean JCT in which the best value of a setting saves most.

    Only where the difference from the baseline is significant.
    """
    jct, (baseline, *others) = "jct_mean_s", comparison.variants
    if comparison.setting == "policy" or not comparison.parts or jct not in comparison.metrics:
        return
    less = [one for one in others if comparison.differences[one][jct].verdict == LESS]
    if not less:
        return
    means = comparison.means(jct)
    best = min(less, key=lambda variant: means[variant])
    if _fails(comparison, best) and not _fails(comparison, baseline):
        return  # `_faster_with_failures` says it
    saved = {part: -value for part, value in comparison.differences_of_parts(best).items()}
    part = max(saved, key=lambda name: saved[name])
    yield (
        f"Against {baseline}, {best} saves {time_text(sum(saved.values()))} per job; the largest "
        f"part is {part}, {time_text(saved[part])}."
    )


def _intervals(comparison: Comparison) -> Iterator[str]:
    """The checkpoint intervals that were derived from the failure rates of jobs' GPUs."""
    found: dict[str, list[str]] = {}
    for variant, ends_s in comparison.intervals_s.items():
        if ends_s[1]:
            found.setdefault(intervals_words(*ends_s), []).append(variant)
    if not found:
        return
    if len(found) > MOST_TOLD:
        ends = [*zip(*comparison.intervals_s.values(), strict=True)]
        found = {intervals_words(min(ends[0]), max(ends[1])): [*comparison.intervals_s]}
    everywhere = len(found) == 1 and len(comparison.intervals_s) == len(comparison.variants)
    told = [
        f"{words}{'' if everywhere else f' with {listed(variants)}'}"
        for words, variants in found.items()
    ]
    yield f"Checkpoints, by the failures of a job's GPUs: {'; '.join(told)}."


_MOST_PROPOSED = 1000
"""A suggestion never asks for more replicates than this."""


def what_to_ask_next(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """Options that are likely to decide which variant is best.

    They ask for as many replicates as the undecided pair that needs most.
    """
    verdicts = (UNDECIDED, LESS)
    open_ = [best for best in best_variants if best.with_verdict(*verdicts)]
    enough = [best.others[one].enough for best in open_ for one in best.with_verdict(*verdicts)]
    counts = [count for count in enough if count is not None and count <= _MOST_PROPOSED]
    if not counts:
        return ""
    asked = {one for best in open_ for one in (*best.policies, *best.with_verdict(*verdicts))}
    names = ",".join(one for one in comparison.variants if one in asked)
    policies = f"--policies {names} " if comparison.setting == "policy" else ""
    return (
        f"To decide what is undecided among the best: {policies}--{comparison.kind} {max(counts)}, "
        "or --until 2%."
    )


def _oracles(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """If a policy that knows run times is best: say so, and name the best of the others."""
    if comparison.setting != "policy":
        return ""
    oracles = [policy for policy in comparison.variants if knows_run_times(policy)]
    if not any(one in each.policies for one in oracles for each in best_variants):
        return ""
    others = [policy for policy in comparison.variants if policy not in oracles]
    who = listed(oracles) if others else "All of these"
    verb = "knows" if others and len(oracles) == 1 else "know"
    told = f"{who} {verb} the {KNOWS}, as no real scheduler does"
    if not others or "jct_mean_s" not in comparison.metrics:
        return f"{told}."
    means = {one: mean for one, mean in comparison.means("jct_mean_s").items() if one in others}
    lowest = min(means, key=lambda policy: means[policy])
    value = value_text("jct_mean_s", means[lowest], unit_of(comparison, "jct_mean_s"))
    return f"{told}; of the others {lowest} has the lowest average JCT, {value}."


_TOGETHER = "placement", "consolidate-or-wait"
"""The option of a policy that keeps a job's GPUs together, and its value."""


def _beaten_oracles(
    comparison: Comparison, best_variants: Sequence[Best], scenario: Scenario
) -> str:
    """Name the policies that know run times but have a longer mean JCT than one that does not."""
    if comparison.setting != "policy":
        return ""
    for best in best_variants:
        if best.metric != "jct_mean_s" or any(map(knows_run_times, best.policies)):
            continue
        beaten = [one for one in best.with_verdict(MORE) if knows_run_times(one)]
        if beaten:
            know, have = ("knows", "has") if len(beaten) == 1 else ("know", "have")
            told = (
                f"{listed(beaten)} {know} the {KNOWS} and {have} a longer average JCT than "
                f"{listed(best.policies)}"
            )
            if scenario.backend == "none":
                return f"{told}."
            key, value = _TOGETHER
            hint = ""
            if all(takes_option(one, key, value) for one in beaten):
                them = "it" if len(beaten) == 1 else "them"
                hint = f"; --set policy.{key}={value} makes {them} wait for GPUs close together"
            return (
                f"{told}: where jobs run, or on how many GPUs, matters more here than in which "
                f"order{hint}."
            )
    return ""


def _catastrophe(comparison: Comparison) -> Iterator[str]:
    """The replicate that lies farthest above the others of its variant, if one is far off."""
    for one in comparison.catastrophes()[:1]:
        yield catastrophe_sentence(
            f"{one.variant} with seed {one.seed} and permutation {one.permutation}",
            one.metric,
            one.factor,
            f"--{comparison.kind} 20",
            f"this run (--set permutation={one.permutation} --seed {one.seed} --out RUN)",
        )


def _more_is_worse(comparison: Comparison, scenario: Scenario) -> Iterator[str]:
    """Say where more GPUs, faster links or fewer jobs made things much worse."""
    once = len(comparison.replicates) < 2
    varied = {key for point in comparison.points.values() for key in point}
    policies = {point.get(POLICY, comparison.policy) for point in comparison.points.values()}
    spreads = all(
        spreads_jobs(scenario.backend, one, scenario.policy_options) for one in policies
    ) and not any(key == "backend" or key.endswith(".placement") for key in varied)
    for metric, name in (("makespan_s", "makespan"), ("jct_mean_s", "mean JCT")):
        if metric not in comparison.metrics:
            continue
        points, found = comparison.points, comparison.means(metric).items()
        means = [(points.get(variant, {}), mean) for variant, mean in found]
        if sentence := more_is_worse(name, means, once=once, spreads=spreads):
            yield sentence
            return


def _of_which_traces(comparison: Comparison) -> Iterator[str]:
    """Whether the verdicts hold for this trace only, and how to test others."""
    if any(map(comparison.exact, comparison.metrics)):
        yield (
            "Exact: the same under all permutations, so the order has no effect. It holds for "
            "this trace."
        )
        if not comparison.drawn:
            yield (
                "For others, draw arrivals with --arrivals poisson:JOBS_PER_HOUR --seeds 8, or run "
                "it on several traces."
            )
    seeds = {seed for seed, _ in comparison.replicates}
    of_failures = len(seeds) == 1 and comparison.failures_drawn
    if comparison.one_draw:
        what = "the trace and of failures" if of_failures else "the trace"
        yield f"All of this holds for one draw of {what}; --seeds 8 tests other draws."
    elif of_failures:
        yield "All of this holds for one draw of failures; --seeds 8 tests other draws."


def what_a_budget_cut(
    comparison: Comparison, budget: TimeBudget | None, longest_s: float
) -> list[str]:
    """How many of the runs and replicates were made within the budget; nothing if all were.

    `longest_s` is the time that the longest run took. The budget does not stop a run that has
    begun, so one long run may exceed it.
    """
    done, asked = len(comparison.replicates), comparison.replicates_asked
    if budget is None or budget() or done >= asked:  # an interruption leaves runs out, too
        return []
    what = comparison.kind if comparison.independent == done else "replicates"
    longest = ""
    if longest_s > budget.length_s:
        longest = f"; one run alone took {duration(longest_s)}"
    runs = f"{comparison.runs_made:,} of {asked * len(comparison.variants):,} runs"
    return [f"--budget {budget.text} ended this after {runs} ({done} of {asked} {what}){longest}."]

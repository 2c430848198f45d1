"""Sentences below the best policies of a comparison: what they know, what to ask next, of what."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from artist.results.terms.number_text import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from artist.experiments.comparison.comparison import Comparison
    from artist.results.statistics.best_policy import Best


def notes_on_the_best(comparison: Comparison, best_variants: Sequence[Best]) -> Iterator[str]:
    """Sentences that help to judge the best variants, those that apply."""
    for one in (_what_would_decide, _oracles):
        if sentence := one(comparison, best_variants):
            yield sentence
    yield from _of_which_traces(comparison)


_MOST_PROPOSED = 1000
"""Replicates that nobody is sent to run."""


def _what_would_decide(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """What to add to the command to ask again among the best and what they are undecided against.

    The number is that of the pair that needs most, so it is more than most pairs need.
    """
    from artist.results.statistics.compare_values import LESS, UNDECIDED

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
    """Say which of the best policies know what no scheduler knows, and which is best without it."""
    if comparison.setting != "policy":
        return ""
    from artist.policies.run_times import KNOWS, knows_run_times
    from artist.results.statistics.verdict_words import listed

    oracles = [policy for policy in comparison.variants if knows_run_times(policy)]
    best = [one for one in oracles if any(one in each.policies for each in best_variants)]
    if not best:
        return ""
    told = f"{listed(best)} {'knows' if len(best) == 1 else 'know'} the {KNOWS}, as no real "
    told += "scheduler does"
    others = [policy for policy in comparison.variants if policy not in oracles]
    if not others or "jct_mean_s" not in comparison.metrics:
        return f"{told}."
    means = {policy: fmean(comparison.values[policy]["jct_mean_s"]) for policy in others}
    lowest = min(means, key=lambda policy: means[policy])
    return f"{told}; of the others {lowest} has the lowest average JCT, {short(means[lowest])} s."


def _of_which_traces(comparison: Comparison) -> Iterator[str]:
    """For which traces the verdicts hold, where it is one trace and a way out is known."""
    if any(map(comparison.exact, comparison.metrics)):
        yield (
            "Exact: the same under all permutations, so it is no effect of the order. It holds for "
            "this trace."
        )
        if not comparison.drawn:
            yield (
                "For others, draw arrivals with --arrivals poisson:JOBS_PER_HOUR --seeds 8, or run "
                "it on several traces."
            )
    if comparison.one_draw:
        yield "All of this is about one draw of the trace; --seeds 8 asks about other draws."

"""The sentence that names a time budget which kept runs from beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artist.cli.progress_lines import duration

if TYPE_CHECKING:
    from artist.experiments.comparison.comparison_result import Comparison
    from artist.experiments.time_budget import TimeBudget


def what_a_budget_cut(
    comparison: Comparison, budget: TimeBudget | None, longest_s: float
) -> list[str]:
    """How many runs and replicates were made of those asked; nothing if all were.

    `longest_s` is what the longest run took. A run that has begun is made to its end.
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

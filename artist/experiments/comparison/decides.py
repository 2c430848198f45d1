"""What decides a comparison's verdicts, as data of a figure: `decides.json` of its folder.

    {"setting": "policy", "baseline": "dally", "design": "8 permutations", "not_tried": [],
     "differences": [{"metric": "jct_mean_s", "variant": "las",
                      "worlds": [{"world": "as given", "ratio": 0.9, "low": 0.85, "high": 0.95,
                                  "verdict": "less"}, ...]}]}

Under `--assumptions` the first world is the scenario as given, and the others come in the order of
how far they move the difference. Ratios are those to the baseline; null where a value is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from artist.experiments.comparison.across import Across, domains
from artist.experiments.comparison.assumptions import AS_GIVEN, effects
from artist.experiments.comparison.comparison_result import Comparison


def decides(made: Across) -> dict[str, Any]:
    """The data; see above."""
    first = next(iter(made.comparisons.values()))
    return {
        "setting": first.setting,
        "baseline": first.variants[0],
        "design": first.design,
        "not_tried": list(made.not_tried),
        "differences": [
            {
                "metric": metric,
                "variant": variant,
                "worlds": [
                    _world(made.comparisons[world], world, metric, variant) for world in order
                ],
            }
            for (metric, variant), order in _orders(made.comparisons).items()
        ],
    }


def _orders(comparisons: Mapping[str, Comparison]) -> dict[tuple[str, str], Sequence[str]]:
    """Metric and variant -> the worlds in their order."""
    if AS_GIVEN not in comparisons:
        return {(one.metric, one.variant): [*comparisons] for one in domains(comparisons)}
    orders: dict[tuple[str, str], list[str]] = {
        (one.metric, one.variant): [AS_GIVEN] for one in domains(comparisons)
    }
    for effect in effects(comparisons):
        orders[effect.domain.metric, effect.domain.variant].append(effect.assumption)
    return dict(orders)


def _world(comparison: Comparison, world: str, metric: str, variant: str) -> dict[str, Any]:
    one = comparison.differences[variant][metric]
    numbers = {"ratio": one.ratio, "low": one.low, "high": one.high}
    verdict = "exact" if variant in comparison.exact(metric) else str(one.verdict)
    return {
        "world": world,
        **{key: value if isfinite(value) else None for key, value in numbers.items()},
        "verdict": verdict,
    }

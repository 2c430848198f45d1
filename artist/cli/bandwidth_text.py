"""Why more bandwidth changes next to nothing in a comparison over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artist.estimates.sensitivity import LITTLE

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.experiments.comparison.comparison_result import Comparison

_BANDWIDTHS = ("bandwidth", "bandwidth_gib_per_s")


def why_little(comparison: Comparison, scenario: Scenario) -> Iterator[str]:
    """A sentence for each level whose bandwidth varies without much effect on the first metric.

    It takes one more run of the first variant.
    """
    for key in dict.fromkeys(key for point in comparison.points.values() for key in point):
        group, _, rest = key.partition(".")
        level, _, name = rest.rpartition(".")
        if group != "fabric" or name not in _BANDWIDTHS or not _changes_little(comparison, key):
            continue
        from artist.run.communication_split import communication_split

        policy = {"policy": comparison.policy}
        found = communication_split(scenario.model_copy(update=policy), level)
        if found is not None:
            past, shares = found
            rest = f"; of the rest, {shares}" if past < 1 else ""
            yield (
                f"More bandwidth of {level} changes little: under {comparison.policy}, "
                f"{100 * past:.0f} % of the communication does not cross it{rest}."
            )


def _changes_little(comparison: Comparison, key: str) -> bool:
    """Whether the first metric stays where only this setting differs."""
    means = comparison.means(comparison.metrics[0])
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for variant, point in comparison.points.items():
        rest = tuple(pair for pair in point.items() if pair[0] != key)
        groups.setdefault(rest, []).append(means[variant])
    return all(max(each) - min(each) <= LITTLE * max(each) for each in groups.values())

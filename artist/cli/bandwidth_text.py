"""What communication waits for on a level whose links differ in a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artist.estimates.sensitivity import LITTLE
from artist.results.terms.number_text import percent

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.experiments.comparison.comparison_result import Comparison
    from artist.run.communication_split import Split

_BANDWIDTHS = ("bandwidth", "bandwidth_gib_per_s")
_LINKS = (*_BANDWIDTHS, "latency", "latency_ns")


def what_links_decide(comparison: Comparison, scenario: Scenario) -> Iterator[str]:
    """A sentence for each level whose bandwidth or latency varies.

    It takes one more run of the first variant.
    """
    varied: dict[str, list[str]] = {}
    for key in dict.fromkeys(key for point in comparison.points.values() for key in point):
        group, _, rest = key.partition(".")
        level, _, name = rest.rpartition(".")
        if group == "fabric" and name in _LINKS:
            varied.setdefault(level, []).append(key)
    for level, keys in varied.items():
        from artist.run.communication_split import communication_split

        policy = {"policy": comparison.policy}
        found = communication_split(scenario.model_copy(update=policy), level)
        if found is None:
            continue
        little = any(key.endswith(_BANDWIDTHS) and _changes_little(comparison, key) for key in keys)
        begin = f"More bandwidth of {level} changes little: under" if little else "Under"
        yield (
            f"{begin} {comparison.policy}, communication is {percent(found.held)} % of the GPU "
            f"time that jobs hold; {_where(found, level)}."
        )


def _where(found: Split, level: str) -> str:
    """How much of the communication crosses a level, and what that waits for there."""
    past = sum(found.past.values())
    none = f"{100 * past:.0f} % of it does not cross {level}"
    if past < 1:
        return f"{none}; of the rest, {found.across}"
    shares = {name: round(100 * share) for name, share in found.past.items()}
    outermost = [f"{name} {shares[name]} %" for name in sorted(shares, key=lambda x: -shares[x])]
    return f"{none} (outermost level: {', '.join(outermost)})"


def _changes_little(comparison: Comparison, key: str) -> bool:
    """Whether the first metric stays where only this setting differs."""
    means = comparison.means(comparison.metrics[0])
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for variant, point in comparison.points.items():
        rest = tuple(pair for pair in point.items() if pair[0] != key)
        groups.setdefault(rest, []).append(means[variant])
    return all(max(each) - min(each) <= LITTLE * max(each) for each in groups.values())

"""Metrics and policies of a comparison: those of the default, and those that may be asked."""

from __future__ import annotations

from collections.abc import Sequence

from artist.errors import ConfigError, closest_three
from artist.policies.table import POLICIES
from artist.registry import UnknownNameError
from artist.results.terms import glossary
from artist.results.terms.glossary import Term

BOUND = "makespan_bound_s"

# These tell of the simulation, or are the same under every policy.
_NOT_COMPARED = frozenset(
    {"wall_s", "events", "latency_queries", "latency_backend_calls", "latency_fallback_uses", BOUND}
)


def comparable_metrics() -> list[Term]:
    """The metrics that a comparison can have."""
    return [term for term in glossary.METRICS if term.name not in _NOT_COMPARED]


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse metrics that are not known, and lists without or with repeated ones.

    Raises:
        UnknownNameError: the message names the closest metrics, and the command that lists all.
        ConfigError: no metric, or one of them twice.
    """
    known = [term.name for term in comparable_metrics()]
    for metric in metrics:
        if metric not in known:
            remedy = f"{closest_three(metric, known)}; artist list metrics has all"
            raise UnknownNameError("metric", metric, known, remedy)
    if not metrics or len(set(metrics)) != len(metrics):
        raise ConfigError(f"--metrics {','.join(metrics)}: give at least one metric, each once")


def everyday_policies() -> list[str]:
    """The policies that `artist compare` runs unasked, in the order of the table."""
    return [entry.id for entry in POLICIES if entry.everyday and not entry.wraps]

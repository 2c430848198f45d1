"""Loops of the affinity graph: the paper discards what has any, we merge and drop links.

Two jobs that share a NIC and an uplink make a loop already, so in a fragmented cluster no candidate
is without. By our rule

1. links with the same jobs become one: the tightest, where peak demand over capacity is largest;
2. if loops remain, links are kept in order of harm as long as they close none (a maximum spanning
   forest). Harm is the demand per time that finds no room if the link's jobs meet at random phases
   instead of those that were solved: (score - expected score) x capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from artist.policies.cassini.affinity import JoinedJobs
from artist.policies.cassini.solver import LinkSolver, LinkUse


class Loops(StrEnum):
    """What is done about loops."""

    DISCARD = "discard"
    """Candidates with loops are discarded (CASSINI, Algorithm 2)."""
    MERGE = "merge"


def tightest(
    uses: Mapping[int, LinkUse], edges: Mapping[int, tuple[int, ...]], links: Sequence[int]
) -> list[int]:
    """Of those of `links` with the same jobs the tightest, and the first of equally tight ones.

    `edges` holds the jobs of each link that are in the affinity graph.
    """
    best: dict[tuple[int, ...], int] = {}
    for index in links:
        known = best.setdefault(edges[index], index)
        if _load(uses[index]) > _load(uses[known]):
            best[edges[index]] = index
    return sorted(best.values())


def kept(
    uses: Mapping[int, LinkUse],
    edges: Mapping[int, tuple[int, ...]],
    links: Sequence[int],
    solver: LinkSolver,
) -> tuple[int, ...]:
    """The links to keep so that no loop remains: the most harmful to drop first, then by order."""

    def harm(index: int) -> float:
        use = uses[index]
        return (solver.solve(use).score - solver.expected(use)) * use.capacity

    joined, chosen = JoinedJobs(), []
    for index in sorted(links, key=lambda index: (-harm(index), index)):
        if not joined.loops(edges[index]):
            joined.join(edges[index])
            chosen.append(index)
    return tuple(sorted(chosen))


def _load(use: LinkUse) -> float:
    return sum(circle.peak for circle in use.circles) / use.capacity

"""The choice among candidate placements, and its time-shifts (CASSINI, Algorithm 2).

A candidate is what its jobs would do on links. Candidates are in the host's order, the host's own
choice first. Among equal scores the first candidate wins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from artist.policies.cassini.affinity import (
    AffinityLink,
    Loops,
    cycles,
    kept,
    tightest,
    unique_shifts,
)
from artist.policies.cassini.pace import groups
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.units import Tick, ticks

MOST_CANDIDATES = 10
"""The most candidates that are scored (CASSINI, section 5.1)."""

Candidate = Sequence[LinkPatterns]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The best candidate, and the time-shift of each of its jobs that shares a link."""

    index: int
    score: float
    """The mean score of the links with more than one job; 1 if there are none."""
    shifts: dict[int, Tick] = field(default_factory=dict)
    """Time-shifts by job, at the pace of the jobs that links join (`pace`)."""
    cycles: int = 0
    """Independent loops of its affinity graph, before links are dropped."""
    dropped: tuple[int, ...] = ()
    """Links, as positions in the candidate, that the time-shifts do not respect."""
    discarded: int = 0
    """How many candidates were discarded for their loops."""
    links: tuple[int, ...] = ()
    """Links, as positions in the candidate, that the time-shifts respect. They have no loops."""


NO_LEAST = -math.inf
"""No threshold, as in the paper: the jobs of every link take turns."""


def choose(
    candidates: Sequence[Candidate],
    solver: LinkSolver,
    loops: Loops = Loops.MERGE,
    least_gain: float = NO_LEAST,
) -> Chosen:
    """The candidate with the highest mean score, and its time-shifts.

    Links that gain less than `least_gain` (`LinkSolver.gain`) are left out of the graph, and have
    the score of random phases.

    If every candidate has loops, `discard` keeps the first candidate, the host's own, without
    time-shifts and with the score of random phases. `merge` chooses among the candidates with the
    fewest loops, and drops links.

    Raises:
        ConfigError: as `LinkSolver.solve`.
    """
    graphs = [
        _ScoredCandidate(candidate, solver, loops, least_gain)
        for candidate in candidates[:MOST_CANDIDATES]
    ]
    fewest = min(graph.cycles for graph in graphs)
    if fewest and loops is Loops.DISCARD:
        return Chosen(0, graphs[0].score_at_random(), {}, graphs[0].cycles, (), len(graphs))
    able = [index for index, graph in enumerate(graphs) if graph.cycles == fewest]
    solved = {index: graphs[index].solved() for index in able}
    best = max(able, key=lambda index: (solved[index].score, -index))
    return Chosen(
        best,
        solved[best].score,
        solved[best].shifts,
        fewest,
        solved[best].dropped,
        len(graphs) - len(able),
        solved[best].links,
    )


@dataclass(frozen=True, slots=True)
class _Solved:
    score: float
    shifts: dict[int, Tick]
    dropped: tuple[int, ...]
    links: tuple[int, ...]


class _ScoredCandidate:
    """The affinity graph of a candidate. Links are positions in the candidate."""

    def __init__(
        self, candidate: Candidate, solver: LinkSolver, loops: Loops, least_gain: float
    ) -> None:
        self._solver = solver
        self._uses = {index: use for index, use in enumerate(candidate) if len(use.jobs) > 1}
        self._edges = {index: solver.phased(use) for index, use in self._uses.items()}
        vertices = [
            index
            for index, jobs in self._edges.items()
            if len(jobs) > 1
            and (least_gain == NO_LEAST or solver.gains(self._uses[index], least_gain))
        ]
        self._in_graph = frozenset(vertices)
        if loops is Loops.MERGE:
            vertices = tightest(self._uses, self._edges, vertices)
        self._vertices = vertices
        self.cycles = cycles(self._edges[index] for index in self._vertices)

    def score_at_random(self) -> float:
        """The mean score over random phases."""
        return _mean([self._solver.expected(use) for use in self._uses.values()])

    def solved(self) -> _Solved:
        """Scores and time-shifts; loops are cut first."""
        links = tuple(self._vertices)
        if self.cycles:
            links = kept(self._uses, self._edges, links, self._solver)
        periods_s = {
            job: period_s
            for group in groups([self._uses[index] for index in links], self._solver)
            for job, period_s in group.periods_s.items()
        }
        periods = {job: ticks(period_s) for job, period_s in periods_s.items()}
        shifts = unique_shifts([self._weighted(index, periods_s) for index in links], periods)
        turns = {job: shift / periods[job] for job, shift in shifts.items()}
        scores = [self._score(index, links, turns) for index in self._uses]
        dropped = tuple(index for index in self._vertices if index not in links)
        return _Solved(_mean(scores), shifts, dropped, links)

    def _weighted(self, index: int, periods_s: Mapping[int, float]) -> AffinityLink:
        """The link's time-shifts, at the pace of the jobs."""
        use, jobs = self._uses[index], self._edges[index]
        turns = self._solver.turns(use)
        return AffinityLink(jobs, tuple(ticks(turns[job] * periods_s[job]) for job in jobs))

    def _score(self, index: int, links: tuple[int, ...], turns: Mapping[int, float]) -> float:
        """The solved score of a link; if merged or dropped, its score at its jobs' shifts."""
        use = self._uses[index]
        if index not in self._in_graph and len(self._edges[index]) > 1:
            return self._solver.expected(use)
        if index in links:
            return self._solver.solve(use).score
        return self._solver.score_at(use, turns)


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores) if scores else 1.0

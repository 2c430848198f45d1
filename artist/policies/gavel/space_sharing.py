"""Space sharing: which pairs of jobs the programs know, and how fast these jobs are (section 3.1).

- Only jobs with equal numbers of GPUs pair, as in the authors' program.
- A pair counts on the kinds on which it pays: there the throughputs of both jobs, each over the
  job's throughput alone, add up to more than 1. Other kinds can be left out without loss: if the
  two jobs take turns, in the ratio of these throughputs, both get as much for no more GPU time.
- Jobs that the program cannot tell apart may have equal shares, without loss, because a sum is
  linear and a least value concave. So between two such groups a staircase of pairs is enough: it
  allows any equal shares of the jobs of each group. Within a group, a ring is enough. With G groups
  of J jobs in all, that is about G J pairs instead of J^2 / 2. Under `makespan` and `ftf` remaining
  times count, so jobs are rarely equal: then each is its own group, and all pairs are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from artist.contract import ClusterView, JobView
from artist.policies.gavel.allocation import Ints, Jobs, Pairs
from artist.policies.gavel.cones import Floats
from artist.policies.shared.closest import ClosestGpus
from artist.workload.job import Job

JOBS_PER_GPU: Final = 2
"""The most jobs on a GPU: larger combinations rarely gain (section 3.1)."""

_PAYS: Final = 1.0 + 1e-9
"""A pair pays above this sum of throughputs: taking turns gives 1, and the rest is rounding."""


class SpeedsBeside:
    """Speeds of jobs beside each other over their speeds alone, on the closest GPUs of a kind."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, tuple[str, ...], str], tuple[float, ...]] = {}
        self._closest = ClosestGpus()

    def among(self, view: ClusterView, states: Sequence[JobView], kinds: Sequence[str]) -> Beside:
        """The speeds of all pairs of these jobs."""
        first: dict[tuple[str, int, tuple[str, ...]], int] = {}
        jobs = [state.job for state in states]
        groups = [first.setdefault((x.model, x.gpus, x.gpu_kinds), len(first)) for x in jobs]
        one_each = [jobs[groups.index(group)] for group in range(len(first))]
        table = [[self._of(view, x, other, kinds) for other in one_each] for x in one_each]
        return Beside(np.array(groups), np.array(table))

    def _of(
        self, view: ClusterView, job: Job, other: Job, kinds: Sequence[str]
    ) -> tuple[float, ...]:
        key = (job.model, job.gpus, job.gpu_kinds, other.model)
        if key not in self._known:
            on_kinds = [self._closest.of_kind(view, job, job.gpus, kind) for kind in kinds]
            self._known[key] = tuple(
                0.0 if x is None else 1.0 / view.slowdown(job, x, [other]) for x in on_kinds
            )
        return self._known[key]


class Beside:
    """Speeds of G groups of jobs beside each other over alone: `groups` [J], `table` [G, G, K]."""

    def __init__(self, groups: Ints, table: Floats) -> None:
        self._groups, self._table = groups, table

    def added(self, jobs: Jobs, *needs: Floats) -> Jobs:
        """The jobs with their pairs, if any pay. `needs`: what else tells jobs apart, [J] each."""
        facts = np.column_stack([self._groups, jobs.gpus, jobs.speeds, *needs])
        _, first, alike = np.unique(facts, axis=0, return_index=True, return_inverse=True)
        members = [np.flatnonzero(alike.ravel() == group).tolist() for group in range(len(first))]
        chosen: list[tuple[int, int]] = []
        speeds: list[Floats] = []
        for a, one in enumerate(first.tolist()):
            for b, other in enumerate(first.tolist()[: a + 1]):
                if jobs.gpus[one] == jobs.gpus[other]:
                    both = self._speeds(jobs, one, other)
                    if both.any():
                        found = list(
                            _ring(members[a]) if a == b else _stairs(members[a], members[b])
                        )
                        chosen += found
                        speeds += [both] * len(found)
        if not chosen:
            return jobs
        return jobs._replace(pairs=Pairs(np.array(chosen), np.array(speeds)))

    def _speeds(self, jobs: Jobs, one: int, other: int) -> Floats:
        """[2, K] the speeds of two jobs beside each other; 0 on kinds on which they do not pair."""
        a, b = self._groups[one], self._groups[other]
        over_alone = np.stack([self._table[a, b], self._table[b, a]])
        both = over_alone * jobs.speeds[[one, other]]
        pairs = (over_alone.sum(axis=0) > _PAYS) & (both > 0).all(axis=0)
        result: Floats = np.where(pairs, both, 0.0)
        return result

    def together(self, jobs: Jobs, one: int, other: int, kind: int) -> float:
        """The sum of two jobs' speeds beside each other over alone; 0 if they cannot pair."""
        both = self._speeds(jobs, one, other)[:, kind]
        alone = jobs.speeds[[one, other], kind]
        return float((both / alone).sum()) if (both > 0).all() else 0.0


def _stairs(rows: Sequence[int], columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs on which all rows may have one sum and all columns another, whatever the sums are."""
    row = column = 0
    while row < len(rows) and column < len(columns):
        yield rows[row], columns[column]
        ahead = (row + 1) * len(columns) - (column + 1) * len(rows)
        row, column = row + (ahead <= 0), column + (ahead >= 0)


def _ring(jobs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of neighbours, each job with the next one."""
    yield from pairwise(jobs)
    if len(jobs) > 2:
        yield jobs[-1], jobs[0]

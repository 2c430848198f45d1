"""The affinity graph, and one time-shift per job from those of its links (CASSINI, section 4.1).

Vertices are jobs that share links, and links with more than one job. An edge stands for a job on a
link; its weight is the job's time-shift there. All times are ticks, so that sums are exact.

The paper discards candidates whose affinity graph has loops; artist merges and drops links instead.
Two jobs that share a NIC and an uplink already make a loop, so in a fragmented cluster every
candidate has one. The rule is

1. links with the same jobs become one: the tightest, where peak demand over capacity is largest;
2. if loops remain, links are kept in order of harm if they close no loop (a maximum spanning
   forest). Harm is the demand per time that finds no room if the link's jobs meet at random phases
   instead of the solved ones: (score - expected score) x capacity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.units import Tick


@dataclass(frozen=True, slots=True)
class AffinityLink:
    """A link with the jobs on it and the time-shift of each there: edges and their weights."""

    jobs: tuple[int, ...]
    shifts: tuple[Tick, ...]


def unique_shifts(links: Sequence[AffinityLink], periods: Mapping[int, Tick]) -> dict[int, Tick]:
    """One time-shift per job: Algorithm 1. `periods` holds the iteration of each job.

    The paper takes a root at random; here it is the first job of each connected part. Each part is
    visited breadth first, links and jobs in the order given.

    Without loops every link keeps its jobs' relative shifts (Theorem 1): there is a common delay c
    with shift of j = shift of j on the link + c, modulo the iteration of j, for all jobs of the
    link. So the total demand on the link is the solved one, delayed by c. With loops, this may
    fail.
    """
    of_job = _links_of_jobs(link.jobs for link in links)
    shifts: dict[int, Tick] = {}
    for root in sorted(of_job):
        if root in shifts:
            continue
        shifts[root] = 0
        queue = deque([root])
        while queue:
            job = queue.popleft()
            for index in of_job[job]:
                link = links[index]
                delay = shifts[job] - link.shifts[link.jobs.index(job)]
                for other, weight in zip(link.jobs, link.shifts, strict=True):
                    if other not in shifts:
                        shifts[other] = (delay + weight) % periods[other]
                        queue.append(other)
    return shifts


def cycles(links: Iterable[Sequence[int]]) -> int:
    """The number of independent loops in the affinity graph of links with these jobs.

    It is edges - vertices + connected parts, and 0 if and only if there is no loop.
    """
    joined = JoinedJobs()
    return sum(joined.join(jobs) for jobs in links)


class JoinedJobs:
    """Which jobs are connected by the links that were joined so far."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def loops(self, jobs: Sequence[int]) -> int:
        """How many loops a further link with these jobs would close."""
        return len(jobs) - len({self._root(job) for job in jobs})

    def join(self, jobs: Sequence[int]) -> int:
        """Add a link with these jobs. Returns how many loops it closes."""
        closed = self.loops(jobs)
        for job in jobs[1:]:
            self._parent[self._root(job)] = self._root(jobs[0])
        return closed

    def _root(self, job: int) -> int:
        while (above := self._parent.get(job, job)) != job:
            job = above
        return job


def _links_of_jobs(links: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    of_job: dict[int, list[int]] = {}
    for index, jobs in enumerate(links):
        for job in jobs:
            of_job.setdefault(job, []).append(index)
    return of_job


class Loops(StrEnum):
    """What is done about loops."""

    DISCARD = "discard"
    """Candidates with loops are discarded (CASSINI, Algorithm 2)."""
    MERGE = "merge"


def tightest(
    uses: Mapping[int, LinkPatterns], edges: Mapping[int, tuple[int, ...]], links: Sequence[int]
) -> list[int]:
    """The tightest of the `links` with equal jobs, and the first of equally tight ones.

    `edges` holds the jobs of each link in the affinity graph.
    """
    best: dict[tuple[int, ...], int] = {}
    for index in links:
        known = best.setdefault(edges[index], index)
        if _load(uses[index]) > _load(uses[known]):
            best[edges[index]] = index
    return sorted(best.values())


def kept(
    uses: Mapping[int, LinkPatterns],
    edges: Mapping[int, tuple[int, ...]],
    links: Sequence[int],
    solver: LinkSolver,
) -> tuple[int, ...]:
    """The links to keep so that no loop remains: those most harmful to drop, then by order."""

    def harm(index: int) -> float:
        use = uses[index]
        return (solver.solve(use).score - solver.expected(use)) * use.capacity

    joined, chosen = JoinedJobs(), []
    for index in sorted(links, key=lambda index: (-harm(index), index)):
        if not joined.loops(edges[index]):
            joined.join(edges[index])
            chosen.append(index)
    return tuple(sorted(chosen))


def _load(use: LinkPatterns) -> float:
    return sum(circle.peak for circle in use.circles) / use.capacity

"""Jobs that share links, directly or by way of others: each such component is answered alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from artist.network.models.canonical import contention_that_binds
from artist.network.models.patterns import Contention
from artist.network.models.slowed import Slowed

Model = Callable[[Contention], tuple[Slowed, ...]]
"""Iterations of the jobs of a contention, in their order."""


def by_component(contention: Contention, model: Model) -> tuple[Slowed, ...]:
    """Ask a model about each component. A job that shares nothing is a component of its own."""
    binding = contention_that_binds(contention)
    slowed: dict[int, Slowed] = {}
    for jobs in components(binding):
        part = Contention(binding.links, tuple(binding.members[job] for job in jobs))
        slowed.update(zip(jobs, model(part), strict=True))
    return tuple(slowed[job] for job in range(len(contention.members)))


def components(contention: Contention) -> list[list[int]]:
    """The jobs of each component, ascending; components by their first job."""
    leader = list(range(len(contention.members)))

    def root(job: int) -> int:
        while leader[job] != job:
            leader[job] = leader[leader[job]]
            job = leader[job]
        return job

    first_on: dict[int, int] = {}
    for job, link in _crossings(contention):
        one, other = root(first_on.setdefault(link, job)), root(job)
        leader[max(one, other)] = min(one, other)
    members: dict[int, list[int]] = {}
    for job in range(len(leader)):
        members.setdefault(root(job), []).append(job)
    return list(members.values())


def _crossings(contention: Contention) -> Iterable[tuple[int, int]]:
    for job, member in enumerate(contention.members):
        for flow in member.pattern.flows:
            for link in flow.links:
                yield job, link

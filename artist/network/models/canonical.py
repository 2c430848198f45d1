"""The canonical form of a contention: jobs, flows and links in an order that ignores labels.

Contentions that differ only in the order of jobs, flows and links have the same canonical form, so
the form is a key for earlier answers. Names of random streams (`Member.stream`) stay in the form,
since they change results.

Jobs, flows, links and groups of turns are the vertices of a graph. Colours start from their numbers
(volumes, capacities) and are refined by the colours of neighbours until nothing changes. Vertices
that are still alike are told apart one at a time. There are several ways to do that, and the one
with the least result counts (McKay, Practical Graph Isomorphism, 1981). Of vertices with the same
neighbours only one is tried.

Jobs that share links, directly or through other jobs, are a component. A model answers about each
component separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from artist.network.models.patterns import (
    Contention,
    Flow,
    InTurn,
    Member,
    Pattern,
    PatternStep,
    Slowed,
)

# Leaves of the search tree. Placements of real jobs need far fewer. Beyond this number the given
# order breaks ties: results stay right, but their random numbers depend on that order.
MOST_LEAVES = 64


class Canonical(NamedTuple):
    """The canonical form of a contention. Its job i is job `order[i]` of the original.

    Jobs with the same number in `alike` cannot be told apart, so the original order decides which
    of them comes first.
    """

    contention: Contention
    order: tuple[int, ...]
    alike: tuple[int, ...]

    def in_place(self, answers: Sequence[Slowed]) -> tuple[Slowed, ...]:
        """Put answers about the jobs of the form into the order of the original jobs.

        Jobs that are alike get the mean of their answers, so their order does not matter.
        """
        groups: dict[int, list[Slowed]] = {}
        for group, answer in zip(self.alike, answers, strict=True):
            groups.setdefault(group, []).append(answer)
        means = {
            group: Slowed(
                _mean(x.iteration_s for x in same),
                _mean(x.alone_s for x in same),
                _mean(x.corrections_per_min for x in same),
                _mean(x.held_s for x in same),
            )
            for group, same in groups.items()
        }
        placed = {job: means[group] for job, group in zip(self.order, self.alike, strict=True)}
        return tuple(placed[job] for job in range(len(placed)))


def _mean(values: Iterable[float]) -> float:
    """The mean; exactly the common value if all are equal."""
    every = list(values)
    return every[0] if min(every) == max(every) else math.fsum(every) / len(every)


def canonical(contention: Contention) -> Canonical:
    """The canonical form of a contention, without links that limit no job."""
    return _ContentionGraph(contention_that_binds(contention)).canonical()


def contention_that_binds(contention: Contention) -> Contention:
    """The contention without links that limit no job. A link of one flow becomes its cap."""
    crossing: list[list[Flow]] = [[] for _ in contention.links]
    owners: list[set[int]] = [set() for _ in contention.links]
    for job, member in enumerate(contention.members):
        for flow in member.pattern.flows:
            for link in flow.links:
                crossing[link].append(flow)
                owners[link].add(job)
    binding: dict[int, int] = {}
    for index, shared in enumerate(contention.links):
        usable = shared.capacity_bytes_per_s * (shared.eta if len(owners[index]) > 1 else 1.0)
        offered = sum(sorted(flow.cap_bytes_per_s for flow in crossing[index]))
        if len(crossing[index]) > 1 and offered > usable:
            binding[index] = len(binding)

    def limited(flow: Flow) -> Flow:
        single = (
            contention.links[link].capacity_bytes_per_s
            for link in flow.links
            if len(crossing[link]) == 1
        )
        links = tuple(binding[link] for link in flow.links if link in binding)
        return replace(
            flow, links=links, cap_bytes_per_s=min(flow.cap_bytes_per_s, *single, float("inf"))
        )

    members = tuple(
        replace(
            member,
            pattern=Pattern(tuple(map(limited, member.pattern.flows)), member.pattern.steps),
        )
        for member in contention.members
    )
    return Contention(tuple(contention.links[link] for link in binding), members)


class _ContentionGraph:
    """The vertices: jobs first, then their flows job by job, then links, then groups of turns."""

    def __init__(self, contention: Contention) -> None:
        self._contention = contention
        jobs = len(contention.members)
        flows = [
            (job, index)
            for job, member in enumerate(contention.members)
            for index in range(len(member.pattern.flows))
        ]
        self._flows = flows
        self._first_link = jobs + len(flows)
        self._first_group = self._first_link + len(contention.links)
        turns = [member.turn for member in contention.members]
        groups = sorted({turn.group for turn in turns if turn is not None})
        self._vertex_of = {group: number for number, group in enumerate(groups, self._first_group)}
        count = self._first_group + len(groups)
        # Neighbours of each vertex as (position, vertex). A flow has its job at position 0, its
        # first link at position 1, and so on.
        self._near: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for number, (job, index) in enumerate(flows, start=jobs):
            flow = contention.members[job].pattern.flows[index]
            for at, other in enumerate((job, *(self._first_link + link for link in flow.links))):
                self._near[number].append((at, other))
                self._near[other].append((at, number))
        for job, turn in enumerate(turns):
            if turn is not None:
                number = self._vertex_of[turn.group]
                self._near[job].append((0, number))
                self._near[number].append((0, job))
        self._leaves = 0

    def canonical(self) -> Canonical:
        """The contention in canonical order."""
        alike = self._refined(_ranks(self._numbers()))
        _, colours = self._least(alike)
        return self._in_order(colours, alike)

    def _numbers(self) -> list[Any]:
        """The numbers of each vertex itself, without its neighbours."""
        members = self._contention.members
        jobs = [
            (
                0,
                (*(step.down_s for step in x.pattern.steps),),
                x.offset_s,
                x.down_factors,
                _of_turn(x.turn),
                -1 if x.stream is None else x.stream,
            )
            for x in members
        ]
        flows = []
        for job, index in self._flows:
            flow = members[job].pattern.flows[index]
            volumes = (*(step.volumes_bytes[index] for step in members[job].pattern.steps),)
            flows.append((1, volumes, flow.cap_bytes_per_s, flow.weight))
        links = [
            (2, link.capacity_bytes_per_s, link.fair_queued, link.eta)
            for link in self._contention.links
        ]
        return [*jobs, *flows, *links, *([(3,)] * len(self._vertex_of))]

    def _refined(self, colours: list[int]) -> list[int]:
        """Split colours until vertices of one colour have neighbours of the same colours."""
        kinds = len(set(colours))
        while True:
            colours = _ranks(
                [
                    (colours[x], sorted([(at, colours[y]) for at, y in near]))
                    for x, near in enumerate(self._near)
                ]
            )
            now = len(set(colours))
            if now == kinds:
                return colours
            kinds = now

    def _least(self, colours: list[int]) -> tuple[Any, list[int]]:
        """Of all ways to give each vertex its own colour, the one with the least text of the graph.

        Returns this text and the colours.
        """
        alike = self._first_alike(colours)
        if not alike:
            self._leaves += 1
            return self._text(colours), colours
        best: tuple[Any, list[int]] | None = None
        tried: list[Any] = []
        for vertex in alike:
            place = self._place(vertex, colours)
            if place in tried or (best is not None and self._leaves >= MOST_LEAVES):
                continue
            tried.append(place)
            apart = [2 * colour + 1 for colour in colours]
            apart[vertex] -= 1
            leaf = self._least(self._refined(_ranks(apart)))
            if best is None or leaf[0] < best[0]:
                best = leaf
        assert best is not None
        return best

    def _first_alike(self, colours: list[int]) -> list[int]:
        groups: dict[int, list[int]] = {}
        for vertex, colour in enumerate(colours):
            groups.setdefault(colour, []).append(vertex)
        return min((group for group in groups.items() if len(group[1]) > 1), default=(0, []))[1]

    def _place(self, vertex: int, colours: list[int]) -> Any:
        """A key: exchanging two vertices of one colour and one key leaves the graph the same."""
        if vertex >= len(self._contention.members):
            return sorted(self._near[vertex])
        return sorted(
            (colours[y], [(0, y)] if y >= self._first_group else self._near[y][1:])
            for _, y in self._near[vertex]
        )

    def _text(self, colours: list[int]) -> Any:
        order = sorted(range(len(colours)), key=colours.__getitem__)
        return [sorted((at, colours[y]) for at, y in self._near[x]) for x in order]

    def _in_order(self, colours: list[int], alike: list[int]) -> Canonical:
        members = self._contention.members
        jobs = sorted(range(len(members)), key=colours.__getitem__)
        link_order = sorted(
            range(len(self._contention.links)), key=lambda x: colours[self._first_link + x]
        )
        place = {link: index for index, link in enumerate(link_order)}
        groups = sorted(self._vertex_of, key=lambda group: colours[self._vertex_of[group]])
        colour_of = {
            flow: colours[number] for number, flow in enumerate(self._flows, start=len(members))
        }

        def ordered(job: int) -> Member:
            pattern = members[job].pattern
            order = sorted(range(len(pattern.flows)), key=lambda index: colour_of[job, index])
            flows = [pattern.flows[index] for index in order]
            turn = members[job].turn
            return replace(
                members[job],
                turn=turn and replace(turn, group=groups.index(turn.group)),
                pattern=Pattern(
                    tuple(
                        replace(flow, links=tuple(place[link] for link in flow.links))
                        for flow in flows
                    ),
                    tuple(
                        PatternStep(
                            step.down_s, tuple(step.volumes_bytes[index] for index in order)
                        )
                        for step in pattern.steps
                    ),
                ),
            )

        links = tuple(self._contention.links[link] for link in link_order)
        form = Contention(links, tuple(ordered(job) for job in jobs))
        return Canonical(form, tuple(jobs), tuple(alike[job] for job in jobs))


def _of_turn(turn: InTurn | None) -> tuple[float, ...]:
    """A turn as comparable numbers, without its group. A slack of -1 means the job never waits."""
    if turn is None:
        return ()
    return (turn.period_s, -1.0 if turn.slack_s is None else turn.slack_s)


def _ranks(keys: Sequence[Any]) -> list[int]:
    """Equal numbers for equal keys, in the order of the keys."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = [0] * len(keys)
    for before, now in pairwise(order):
        ranks[now] = ranks[before] + (keys[now] != keys[before])
    return ranks


Model = Callable[[Contention], tuple[Slowed, ...]]
"""A model of contention: the iterations of a contention's jobs, in their order."""


def by_component(contention: Contention, model: Model) -> tuple[Slowed, ...]:
    """Ask a model about each component. A job that shares no link is a component of its own."""
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

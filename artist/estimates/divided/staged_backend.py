"""Iterations of jobs that are divided along several axes, stage by stage.

The backend answers how long each different collective takes among the GPUs of its group, as for
`layer_wise.py`. One GPU stands for each pipeline stage. `artist.workload.graph` plays these GPUs,
with one message per microbatch. So the answer for 16,384 GPUs takes no longer than that for 16.

The order of ranks is the job's own, or the best for the placement: `MOST_PLAYED` orders are played,
those whose collectives and messages take the least time together, and the fastest counts.

The compute time of an iteration is its time if all communication takes no time. So it includes the
filling and draining of the pipeline. What messages and collectives add is exposed communication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from artist.estimates.divided.layer_wise import collective_query
from artist.estimates.divided.rank_groups import Ranks, fitting_orders
from artist.estimates.group_members import Members, shares_of_copies
from artist.estimates.iteration_split import PART_OF_SCOPE, TimePart
from artist.estimates.query import (
    AxisTraffic,
    Burst,
    Dimension,
    Estimate,
    LatencyBackend,
    LatencyQuery,
)
from artist.units import bytes_per_ns
from artist.workload.divide import fitted
from artist.workload.division.staged import Staged
from artist.workload.graph import LaneProgram, NodeAction, play
from artist.workload.layers import Scope, Workload
from artist.workload.stage_programs import Costs, Sent, stage_programs
from artist.workload.stage_steps import Request, alone_ns, stage_traffic

ROUNDS = 4
"""Of more than 2 x 4 - 1 rounds of microbatches, only 4 are played, and each of the others takes as
long as the last of the 4. A round is a microbatch for every stage."""

MOST_PLAYED = 2
"""Orders of ranks that are played: those that send for the shortest time in all."""


class StagedQuery:
    """A query about a staged workload. Each different collective is asked once."""

    def __init__(self, backend: LatencyBackend, query: LatencyQuery) -> None:
        query = replace(query, workload=fitted(query.workload, query.gpus))
        self.backend, self.query = backend, query
        # Kept, because each call would hash all layers of the workload.
        self.traffic = stage_traffic(query.workload)
        self.steady, self.rounds = _steady(query.workload)
        self._known: dict[object, Estimate] = {}

    @property
    def staged(self) -> Staged:
        """How the workload is divided."""
        assert self.query.workload.staged is not None
        return self.query.workload.staged

    def estimate(self, *, profile: bool = False) -> Estimate:
        """The iteration in the best order of ranks, which is found without flat groups.

        Raises:
            DivisionError: the job's GPUs do not divide along the axes.
        """
        query, best = self.query, self._best
        compute_ns = alone_ns(query.workload)
        finish_ns = self._flat_ns(best.ranks) if query.flat_groups else best.finish_ns()
        return Estimate(
            max(finish_ns, compute_ns) * query.passes,
            compute_ns * query.passes,
            query.source(self.backend.source),
            best.bytes_per_dimension(),
            best.profile() if profile and not query.flat_groups else None,
            axes=best.axes(),
            order=best.ranks.text(),
        )

    @cached_property
    def _best(self) -> _Costs:
        """The costs in the best order of ranks."""
        found = fitting_orders(self.query.dimensions, self.staged.axes)
        tried = [_Costs(self, ranks) for ranks in found]
        if len(tried) > 1:
            tried.sort(key=_Costs.sent_ns)  # stable: the usual order comes first among equals
        return min(tried[:MOST_PLAYED], key=lambda costs: costs.finish_ns())

    def ended_ns(self, senders: Collection[TimePart]) -> int:
        """When the iteration ends, if all other kinds of communication take no time."""
        return self.played_ns(_CostsOfSome(self._best, senders))

    def sent_ns(self) -> dict[TimePart, int]:
        """Nanoseconds for which a GPU sends each kind of communication: the mean of all stages."""
        sent: Counter[TimePart] = Counter()
        for stage in range(len(self.traffic)):
            sent.update(self._best.stage_sent_ns(stage))
        return {part: ns // len(self.traffic) for part, ns in sent.items() if ns}

    def played_ns(self, costs: Costs) -> int:
        """When the last stage ends, with the rounds that are not played."""
        whole_ns = _played_ns(self.steady, costs)
        return whole_ns + round(self.rounds * self.round_ns(whole_ns, costs) if self.rounds else 0)

    def round_ns(self, whole_ns: int, costs: Costs) -> int:
        """The time of one round: `whole_ns` less the time with one round less."""
        return whole_ns - _played_ns(_one_round_less(self.steady), costs)

    def _flat_ns(self, ranks: Ranks) -> int:
        """When the last GPU ends, with flat groups."""
        from artist.estimates.divided.flat_groups import flat_ns, stage_graph

        def ended_ns(workload: Workload) -> int:
            return flat_ns(self.backend, self.query, stage_graph(self.query, workload, ranks))

        whole_ns = ended_ns(self.steady)
        if not self.rounds:
            return whole_ns
        round_ns = whole_ns - ended_ns(_one_round_less(self.steady))
        return whole_ns + round(self.rounds * round_ns)

    def collective(self, group: Members, request: Request) -> Estimate:
        """The estimate of a collective of a group alone."""
        key = (group, request)
        if key not in self._known:
            copies = self.staged.copies if request[2] is Scope.EXPERT else 1
            self._known[key] = self._ask(group, request, copies)
        return self._known[key]

    def _ask(self, group: Members, request: Request, copies: int) -> Estimate:
        """The backend's answer. A dimension with fewer bytes gets more bandwidth instead."""
        shares = shares_of_copies(group.dimensions, copies)
        wider = tuple(
            replace(dim, bandwidth_gib_per_s=dim.bandwidth_gib_per_s / share)
            for dim, share in zip(group.dimensions, shares, strict=True)
        )
        asked = collective_query(self.query, replace(group, dimensions=wider), *request[:2])
        if asked is None:
            return Estimate(0, 0, self.backend.source, ())
        answer = self.backend.estimate(asked)
        if copies == 1 or answer.bytes_per_dimension is None:
            return answer
        sent = zip(answer.bytes_per_dimension, shares, strict=True)
        return replace(answer, bytes_per_dimension=tuple(round(x * y) for x, y in sent))


def _played_ns(workload: Workload, costs: Costs) -> int:
    played = play(stage_programs(workload, costs).programs)
    ended = [x for x in played.finish_ns if x is not None]
    assert len(ended) == len(played.finish_ns), "a stage waits forever"
    return max(ended)


# Cached, so that equal queries have one workload object and make its programs once.
@lru_cache(maxsize=64)
def _steady(workload: Workload) -> tuple[Workload, float]:
    """The workload with only the rounds that are played, and the number of rounds left out.

    Once the pipeline is full, all rounds are alike.
    """
    staged = workload.staged
    assert staged is not None
    round_ = staged.axes.pipeline
    if staged.microbatches <= (2 * ROUNDS - 1) * round_:
        return workload, 0
    left = staged.microbatches - ROUNDS * round_
    short = replace(workload, staged=replace(staged, microbatches=ROUNDS * round_))
    return short, left / round_


@lru_cache(maxsize=64)
def _one_round_less(workload: Workload) -> Workload:
    staged = workload.staged
    assert staged is not None
    microbatches = staged.microbatches - staged.axes.pipeline
    return replace(workload, staged=replace(staged, microbatches=microbatches))


class _Costs:
    """The costs of communication, in one order of ranks."""

    def __init__(self, asked: StagedQuery, ranks: Ranks) -> None:
        self.ranks = ranks
        self._asked = asked
        self._groups: dict[Scope, Members] = {}
        self._durations_ns: dict[Request, int] = {}
        self._finish_ns: int | None = None

    def collective_ns(self, request: Request) -> int:
        duration_ns = self._durations_ns.get(request)
        if duration_ns is None:
            hidden_ns = self._asked.staged.hidden_ns if request[2] is Scope.EXPERT else 0
            duration_ns = max(self._collective(request).finish_ns - hidden_ns, 0)
            self._durations_ns[request] = duration_ns
        return duration_ns

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        """The time of a message, as in ASTRA-sim: latency for each hop, bytes once, truncated."""
        index, hops = self.ranks.route(sender, receiver)
        dimension: Dimension = self.ranks.dimensions[index]
        sent_ns = size_bytes / bytes_per_ns(dimension.bandwidth_gib_per_s)
        return int(hops * dimension.latency_ns + sent_ns)

    def sent_ns(self) -> int:
        """Nanoseconds for which a GPU of the stage that sends longest sends."""
        return max(self.stage_sent_ns(stage).total() for stage in range(len(self._asked.traffic)))

    def stage_sent_ns(self, stage: int) -> Counter[TimePart]:
        """Nanoseconds for which a GPU of a stage sends each kind of communication."""
        sent, size = self._asked.traffic[stage], self._border_bytes()
        times_ns: Counter[TimePart] = Counter()
        for request, times in sent.collectives.items():
            sent_ns = self._collective(request).finish_ns
            times_ns[PART_OF_SCOPE[request[2]]] += times * sent_ns
        for to, times in sent.messages.items():
            times_ns[TimePart.PIPELINE] += times * self.message_ns(stage, to, size)
        return times_ns

    def finish_ns(self) -> int:
        """When the last stage ends."""
        if self._finish_ns is None:
            self._finish_ns = self._asked.played_ns(self)
        return self._finish_ns

    def bytes_per_dimension(self) -> tuple[int, ...] | None:
        """Bytes that a GPU sends on each dimension, the mean of all stages."""
        of_stages = self._bytes_of_stages()
        if of_stages is None:
            return None
        total = sum(of_stages, Counter())
        dimensions = range(len(self._asked.query.dimensions))
        return tuple(round(total[dimension] / len(of_stages)) for dimension in dimensions)

    def _bytes_of_stages(self) -> list[Counter[int]] | None:
        """Bytes that a GPU of each stage sends, by dimension; None if they are not known."""
        of_stages: list[Counter[int]] = []
        for stage, sent in enumerate(self._asked.traffic):
            total: Counter[int] = Counter()
            for request, times in sent.collectives.items():
                shares = self._collective(request).bytes_per_dimension
                if shares is None:
                    return None
                for index, share in zip(self._indices(request, shares), shares, strict=True):
                    total[index] += times * share
            for to, times in sent.messages.items():
                total[self.ranks.route(stage, to)[0]] += times * self._border_bytes()
            of_stages.append(total)
        return of_stages

    def axes(self) -> tuple[AxisTraffic, ...] | None:
        """What a GPU sends along each axis, the mean of all stages."""
        totals: dict[tuple[int, int, int], int] = {}
        traffic = self._asked.traffic
        for stage, sent in enumerate(traffic):
            for request, times in sent.collectives.items():
                shares = self._collective(request).bytes_per_dimension
                if shares is None:
                    return None
                for index, share in zip(self._indices(request, shares), shares, strict=True):
                    key = (index, *self.ranks.peers(request[2], index))
                    totals[key] = totals.get(key, 0) + times * share
            for to, times in sent.messages.items():
                index = self.ranks.route(stage, to)[0]
                key = (index, *self.ranks.stages(index))
                totals[key] = totals.get(key, 0) + times * self._border_bytes()
        return tuple(
            AxisTraffic(*key, round(total / len(traffic)))
            for key, total in sorted(totals.items())
            if total
        )

    def profile(self) -> tuple[Burst, ...] | None:
        """Traffic over time. For each dimension it is that of the stage that sends most on it.

        So the bytes that a GPU sends on average fit into the time in which it sends.
        """
        of_stages = self._bytes_of_stages()
        if of_stages is None:
            return None
        stages = range(len(of_stages))
        most = [
            max(stages, key=[of_stage[dimension] for of_stage in of_stages].__getitem__)
            for dimension in range(len(self._asked.query.dimensions))
        ]
        made = stage_programs(self._asked.steady, self)
        starts_ns = play(made.programs).starts_ns
        shown = [
            burst
            for sent in made.sent
            if sent.stage in most
            for burst in self._bursts(made.programs[sent.stage], starts_ns[sent.stage], sent)
            if most[burst.dimension] == sent.stage
        ]
        shown.sort(key=lambda burst: burst.offset_ns)
        return tuple(self._with_rounds(shown, round(self._asked.rounds)))

    def _bursts(self, program: LaneProgram, starts_ns: Sequence[int], sent: Sent) -> list[Burst]:
        """What a GPU sends during a node. The bytes of its collectives are known.

        A series sends over all its time. The hidden part of an all-to-all is sent just before its
        exposed part.
        """
        bursts: list[Burst] = []
        start, length = starts_ns[sent.node], program.durations_ns[sent.node]
        if sent.to is not None:
            index = self.ranks.route(sent.stage, sent.to)[0]
            bursts.append(Burst(index, start, length, self._border_bytes()))
        if len(sent.what) == 1 and program.kinds[sent.node] is not NodeAction.SERIES:
            end = start + length
            start = max(end - self._collective(sent.what[0]).finish_ns, 0)
            length = end - start
        for request in sent.what:
            shares = self._collective(request).bytes_per_dimension or ()
            indices = self._indices(request, shares)
            bursts += [
                Burst(index, start, length, share)
                for index, share in zip(indices, shares, strict=True)
                if share
            ]
        return bursts

    def _with_rounds(self, bursts: list[Burst], rounds: int) -> list[Burst]:
        """The bursts of all rounds: those of the round before the middle are repeated."""
        if not rounds:
            return bursts
        whole_ns = _played_ns(self._asked.steady, self)
        round_ns = self._asked.round_ns(whole_ns, self)
        middle_ns = whole_ns // 2
        before = [x for x in bursts if x.offset_ns < middle_ns]
        again = [x for x in before if x.offset_ns >= middle_ns - round_ns]
        return [
            *before,
            *(_later(x, n * round_ns) for n in range(1, rounds + 1) for x in again),
            *(_later(x, rounds * round_ns) for x in bursts[len(before) :]),
        ]

    def _indices(self, request: Request, shares: tuple[int, ...]) -> tuple[int, ...]:
        """The dimensions of the query on which a collective sends these shares."""
        return self._group(request[2]).indices if shares else ()

    def _border_bytes(self) -> int:
        return self._asked.staged.border_bytes

    def _collective(self, request: Request) -> Estimate:
        return self._asked.collective(self._group(request[2]), request)

    def _group(self, scope: Scope) -> Members:
        if scope not in self._groups:
            dimensions = self.ranks.group_dimensions(scope)
            indices = tuple(index for index, _ in self.ranks.group(scope))
            self._groups[scope] = Members(dimensions, indices)
        return self._groups[scope]


class _CostsOfSome:
    """Costs of some kinds of communication; all other kinds take no time."""

    def __init__(self, costs: Costs, senders: Collection[TimePart]) -> None:
        self._costs, self._senders = costs, senders

    def collective_ns(self, request: Request) -> int:
        taking = PART_OF_SCOPE[request[2]] in self._senders
        return self._costs.collective_ns(request) if taking else 0

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        taking = TimePart.PIPELINE in self._senders
        return self._costs.message_ns(sender, receiver, size_bytes) if taking else 0


def _later(burst: Burst, by_ns: int) -> Burst:
    return replace(burst, offset_ns=burst.offset_ns + by_ns)

"""How long one collective takes if one NPU stands for all: its chunks pass through its queues.

This is exact if all NPUs do the same at the same time. Stages that end at the same instant are
taken in the order in which ASTRA-sim planned their ends. If NPUs may differ in this order and it
matters, `AmbiguousOrderError` is raised, and `all_npus.py` plays all NPUs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from artist.astra.algorithms.dispatch import stage_time
from artist.astra.algorithms.timing import AmbiguousOrderError, Timing
from artist.astra.messages.chunks_and_stages import Cut, Stage
from artist.astra.model.queues import Lane, Leg, StreamMaker
from artist.astra.model.work import ChunkedNetwork
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class Interval:
    """A stage on one NPU, from its start to its end."""

    stage: Stage
    start_ns: int
    end_ns: int


def one_npu(work: ChunkedNetwork, collective: Collective, cut: Cut) -> OneNpu:
    """An NPU that runs one collective, with all members of its groups at the same time.

    Raises:
        AmbiguousOrderError: as `OneNpu.run`.
    """
    streams = StreamMaker(work.queues).streams(collective, cut)
    timings = tuple(stage_time(leg.stage, work.network, work.delays) for leg in streams[0])
    return OneNpu(streams, timings, work.slots)


class OneNpu:
    """One NPU with the streams of one collective, in lanes of `slots` each.

    `timings[i]` is the timing of leg i of every stream. If `log` is a list, `run` appends the
    interval of every stage to it.
    """

    def __init__(
        self, streams: tuple[tuple[Leg, ...], ...], timings: tuple[Timing, ...], slots: int
    ) -> None:
        self._streams = streams
        self._timings = timings
        self._free_slots: dict[Lane, int] = {leg.lane: slots for legs in streams for leg in legs}
        self._waiting: dict[Lane, list[tuple[int, int]]] = {lane: [] for lane in self._free_slots}
        # (end, when the end was planned, when its message was sent, serial, stream, leg): a heap,
        # so that stages leave it in the order of their ends and equal ends in ASTRA-sim's order.
        self._running: list[tuple[int, int, int, int, int, int]] = []
        self._serial = 0
        self.log: list[Interval] | None = None

    def run(self) -> int:
        """Duration of the collective in ns.

        Raises:
            AmbiguousOrderError: two stages enter one queue in an order that may differ
                between NPUs.
        """
        now_ns = 0
        for number, legs in enumerate(self._streams):
            self._waiting[legs[0].lane].append((number, 0))
            self._fill(legs[0].lane, now_ns)
        joined: dict[Lane, list[tuple[int, int, int]]] = {}
        while self._running:
            end_ns, planned_ns, sent_ns, _, number, at = heapq.heappop(self._running)
            if end_ns > now_ns:
                now_ns = end_ns
                joined.clear()
            if self.log is not None:
                start_ns = now_ns - self._timings[at].duration_ns
                self.log.append(Interval(self._streams[number][at].stage, start_ns, now_ns))
            legs = self._streams[number]
            if at + 1 < len(legs):
                lane = legs[at + 1].lane
                self._check(joined.setdefault(lane, []), (planned_ns, sent_ns, at))
                self._waiting[lane].append((number, at + 1))
            # As in ASTRA-sim, the stream queues for its next leg before its slot becomes free.
            self._free_slots[legs[at].lane] += 1
            self._fill(legs[at].lane, now_ns)
            if at + 1 < len(legs):
                self._fill(legs[at + 1].lane, now_ns)
        return now_ns

    def _check(self, earlier: list[tuple[int, int, int]], one: tuple[int, int, int]) -> None:
        """Raise if `one` may have to enter the lane before one of `earlier`, at this instant.

        The order is certain if both are the same leg, or if their ends were planned at different
        times. Ends planned at the same time are in the order of their messages, unless these were
        sent at the same time too, or only one of the ends is that of a reduction.
        """
        planned_ns, sent_ns, at = one
        for other_planned_ns, other_sent_ns, other_at in earlier:
            if other_at == at or other_planned_ns != planned_ns:
                continue
            timing, other = self._timings[at], self._timings[other_at]
            if timing.ends_reducing != other.ends_reducing or other_sent_ns == sent_ns:
                raise AmbiguousOrderError
        earlier.append(one)

    def _fill(self, lane: Lane, now_ns: int) -> None:
        """Start waiting legs in the free slots of a lane."""
        waiting = self._waiting[lane]
        while waiting and self._free_slots[lane]:
            self._free_slots[lane] -= 1
            number, at = waiting.pop(0)
            timing = self._timings[at]
            end_ns = now_ns + timing.duration_ns
            self._serial += 1
            heapq.heappush(
                self._running,
                (
                    end_ns,
                    end_ns - timing.planned_before_ns,
                    end_ns - timing.sent_before_ns,
                    self._serial,
                    number,
                    at,
                ),
            )

"""What one NPU sends during an iteration: bytes per dimension, and when each dimension is busy."""

from __future__ import annotations

from collections import Counter

from artist.astra.algorithms.dispatch import sent_bytes
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.model.one_npu import Interval
from artist.astra.model.prepared_query import PreparedQuery
from artist.estimates.query import Burst


def bytes_per_dimension(query: PreparedQuery) -> tuple[int, ...]:
    """The bytes that one NPU sends per dimension in one pass."""
    sent = [0] * len(query.network.npus)
    for request, times in Counter(query.work.collectives).items():
        cut = query.cuts[request]
        for stage in cut.stages:
            for dimension, size in enumerate(sent_bytes(stage, query.network)):
                sent[dimension] += times * cut.chunks * size
    return tuple(sent)


def bursts(query: PreparedQuery, log: list[Interval]) -> tuple[Burst, ...]:
    """The busy intervals of each dimension, by start; those that touch are joined into one."""
    shares: dict[Stage, tuple[int, ...]] = {}
    spans: list[list[Burst]] = [[] for _ in query.network.npus]
    for interval in sorted(log, key=lambda x: x.start_ns):
        stage = interval.stage
        if stage not in shares:
            shares[stage] = sent_bytes(stage, query.network)
        for dimension, size in enumerate(shares[stage]):
            if size:
                burst = Burst(
                    dimension, interval.start_ns, interval.end_ns - interval.start_ns, size
                )
                _append(spans[dimension], burst)
    return tuple(sorted((x for joined in spans for x in joined), key=lambda x: x.offset_ns))


def _append(joined: list[Burst], burst: Burst) -> None:
    """Append a burst that starts no earlier than those before it, or join it to the last one."""
    if joined and burst.offset_ns <= (end_ns := joined[-1].offset_ns + joined[-1].duration_ns):
        last = joined.pop()
        until_ns = max(end_ns, burst.offset_ns + burst.duration_ns)
        size = last.size_bytes + burst.size_bytes
        burst = Burst(last.dimension, last.offset_ns, until_ns - last.offset_ns, size)
    joined.append(burst)

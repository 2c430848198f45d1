"""Times single parts of a run: a latency query, and reading a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cases import synthetic
from latency import resnet50_on_1024

from artist.run import open_backend
from artist.trace.named import open_trace

QUERIES = 20
ROWS = 100_000


def bench_latency_query(measure: Callable[..., None]) -> None:
    """ResNet50 on 16 x 8 x 8 GPUs, ring, 4 splits. No query uses the answer of an earlier one."""
    backend, query = open_backend("analytical"), resnet50_on_1024()

    def ask() -> None:
        for _ in range(QUERIES):
            backend.estimate(query)

    measure(ask, rounds=5, items=QUERIES)


def bench_read_trace(measure: Callable[..., None], traces: Path) -> None:
    """A CSV in artist's own format. Every cell is checked."""
    path = synthetic(ROWS, 10_240, traces)
    measure(lambda: open_trace(str(path)), rounds=3, items=ROWS)

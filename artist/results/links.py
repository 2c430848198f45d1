"""What physical links carried over time, computed from the rows of a run.

    bytes per second of a job on a link = bytes of its iteration there / iteration_s

A job sends evenly over its iterations here, and nothing while it restarts or is held. Whether two
jobs sent at the same instant is a question for a model of contention, not for this table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np

from artist.cluster.links import Link
from artist.cluster.placement import Placement
from artist.cluster.shape import shape
from artist.engine.rows import Rows
from artist.network.demand.curves import Curves
from artist.network.demand.ways import bytes_on_links, ways
from artist.network.rates.network_of_run import NetworkOfRun
from artist.results.metrics import Table, seconds_column
from artist.units import GIB, TICKS_PER_S, Tick
from artist.workload.job import Job


class _Interval:
    """A stretch of time in which the same jobs send on a link, each at one speed."""

    __slots__ = ("end", "jobs", "link", "rate", "start")

    def __init__(self, link: Link, start: Tick, end: Tick, rates: Mapping[int, float]) -> None:
        self.link, self.start, self.end = link, start, end
        self.jobs = len(rates)
        self.rate = math.fsum(rates.values())


def link_table(rows: Rows, jobs: Sequence[Job], network: NetworkOfRun) -> Table:
    """One row per link and interval in which a job sends on it; by level, unit, direction, time.

    Raises:
        ConfigError: the run has no backend.
        BackendError: its backend tells no traffic.
    """
    intervals = list(_intervals(_sent(rows, jobs, network), network.fabric.level_names))
    length_s = [(x.end - x.start) / TICKS_PER_S for x in intervals]
    sent = [x.rate * span_s for x, span_s in zip(intervals, length_s, strict=True)]
    carried = [
        x.link.capacity_gib_per_s * GIB * span_s
        for x, span_s in zip(intervals, length_s, strict=True)
    ]
    return {
        "link": [f"{x.link.level} {x.link.unit} {x.link.direction}" for x in intervals],
        "start_s": seconds_column([x.start for x in intervals]),
        "end_s": seconds_column([x.end for x in intervals]),
        "jobs": np.array([x.jobs for x in intervals], dtype=np.int32),
        "bytes": np.array(sent, dtype=np.float64),
        "utilisation": np.array(
            [x / most for x, most in zip(sent, carried, strict=True)], dtype=np.float64
        ),
    }


def _sent(
    rows: Rows, jobs: Sequence[Job], network: NetworkOfRun
) -> dict[Link, list[tuple[Tick, int, float]]]:
    """Of each link: from a tick on, a job (by handle) sends so many bytes per second more."""
    curves = network.curves("--links")
    known: dict[tuple[str, Placement], dict[Link, float]] = {}
    changes: dict[Link, list[tuple[Tick, int, float]]] = {}
    for row in rows.placements:
        start = row.start + row.stalled
        if len(row.placement.leaves) == 1 or start >= row.end:
            continue
        job = jobs[row.handle]
        key = (job.model, row.placement)
        if key not in known:
            known[key] = _per_compute_s(network, curves, *key)
        for link, volume in known[key].items():
            rate = volume * job.compute_s / row.iteration_s
            of_link = changes.setdefault(link, [])
            of_link.append((start, row.handle, rate))
            of_link.append((row.end, row.handle, -rate))
    return changes


def _per_compute_s(
    network: NetworkOfRun, curves: Curves, model: str, placement: Placement
) -> dict[Link, float]:
    """Bytes on each link per second of compute time."""
    sent = curves.sent(model, shape(network.tree, placement), frozenset())
    on_links = bytes_on_links(ways(network.tree, network.fabric, placement, sent.traffic))
    return {link: volume / sent.compute_s for link, volume in on_links.items()}


def _intervals(
    changes: Mapping[Link, list[tuple[Tick, int, float]]], levels: Sequence[str]
) -> Iterator[_Interval]:
    for link in sorted(changes, key=lambda x: (levels.index(x.level), x.unit, x.direction)):
        sending: dict[int, float] = {}
        # What ends at a tick comes before what begins there: a job may do both.
        by_tick = [
            (tick, sorted(group, key=lambda change: change[2]))
            for tick, group in groupby(sorted(changes[link]), key=lambda change: change[0])
        ]
        for (tick, group), (after, _) in pairwise([*by_tick, (None, [])]):
            for _, handle, rate in group:
                if rate > 0:
                    sending[handle] = rate
                else:
                    del sending[handle]
            if sending and after is not None and tick is not None:
                yield _Interval(link, tick, after, sending)

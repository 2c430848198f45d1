"""What physical links carried over time, computed from the rows of a run.

    bytes per second of a job on a link = bytes of its iteration there / iteration_s

Here a job sends evenly over its iterations, and nothing while it restarts or is held. Whether two
jobs sent at the same instant is a question for a model of contention. This table says where they
could disturb each other: where the demand of the jobs that send is above 1.

    demand = sum over jobs of bytes per second while one communicates alone / what the link carries

With a demand above 1, jobs offer more than the link carries. The excess of a job is what it would
have sent, as fast as alone, in the time that others cost it. Communication that others prolong
behind computation costs no time and is not counted.

    bytes above the rate = bytes per second alone x (1 - undisturbed_s / iteration_s) x seconds

`undisturbed_s` is an iteration without others on the links; jobs on its GPUs slow it down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from artist.cluster.links import Link
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.engine.rows import Rows
from artist.network.demand.curves import Curves
from artist.network.demand.routes import Taken, routed
from artist.network.demand.ways import bytes_on_links, efficiency, ways
from artist.network.models.patterns import ETA
from artist.network.rates.network_of_run import NetworkOfRun, TurnTaken
from artist.results.tables import seconds_column
from artist.results.terms.columns import Table, typed
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job

FULL = 1 + 1e-9
"""A demand up to this is not an overload; rounding may put a demand of exactly 1 above 1."""


class _Speed(NamedTuple):
    """Bytes per second of a job on a link."""

    mean: float
    """Over its iterations."""
    alone: float
    """While it communicates and no other job does on the links; jobs on its GPUs slow it down."""
    above: float
    """Bytes that it would have sent in the time that others cost it, spread over its iterations."""


class _Interval:
    """A stretch of time in which the same jobs send on a link, each at one speed."""

    __slots__ = ("above", "demanded", "end", "handles", "link", "rate", "start")

    def __init__(self, link: Link, start: Tick, end: Tick, speeds: Mapping[int, _Speed]) -> None:
        self.link, self.start, self.end = link, start, end
        self.handles = sorted(speeds)
        self.rate = math.fsum(speed.mean for speed in speeds.values())
        self.demanded = math.fsum(speed.alone for speed in speeds.values())
        self.above = {handle: speed.above for handle, speed in speeds.items() if speed.above}


def link_tables(rows: Rows, jobs: Sequence[Job], network: NetworkOfRun) -> dict[str, Table]:
    """What links carried, and what jobs offered beyond that, by the run's model of contention.

    `links` has one row per link and interval in which a job sends on it, ordered by level, unit,
    direction and time. `above_rate` has one row per link and job, in the same order.

    Raises:
        ConfigError: the run has no backend.
        BackendError: its backend does not report traffic.
    """
    intervals = list(_intervals(_sent(rows, jobs, network), network.fabric.level_names))
    fair_queued = frozenset(network.fabric.level_names[: network.tree.machine + 1])
    demands = [_demand(x, fair_queued) for x in intervals]
    length_s = [(x.end - x.start) / TICKS_PER_S for x in intervals]
    sent = [x.rate * span_s for x, span_s in zip(intervals, length_s, strict=True)]
    carried = [x.link.bytes_per_s * span_s for x, span_s in zip(intervals, length_s, strict=True)]
    columns: Table = {
        "link": [x.link.name for x in intervals],
        "start_s": seconds_column([x.start for x in intervals]),
        "end_s": seconds_column([x.end for x in intervals]),
        "jobs": [len(x.handles) for x in intervals],
        "job_ids": [[jobs[handle].id for handle in x.handles] for x in intervals],
        "bytes": sent,
        "utilisation": [x / most for x, most in zip(sent, carried, strict=True)],
        "demand": demands,
    }
    tables = {"links": typed("links", columns)}
    above: dict[tuple[Link, int], float] = {}
    for x, demand, span_s in zip(intervals, demands, length_s, strict=True):
        # Without other jobs no queue builds up, so a lone job gets the full rate of the link.
        wanted = demand if len(x.handles) > 1 else x.demanded / x.link.bytes_per_s
        full = wanted > FULL
        for handle, rate in x.above.items() if full else ():
            above[x.link, handle] = above.get((x.link, handle), 0.0) + rate * span_s
    if above:
        columns = {
            "link": [link.name for link, _ in above],
            "job_id": [jobs[handle].id for _, handle in above],
            "bytes_above_rate": list(above.values()),
        }
        tables["above_rate"] = typed("above_rate", columns)
    return tables


def _demand(interval: _Interval, fair_queued: frozenset[str]) -> float:
    link = interval.link
    usable = link.bytes_per_s * efficiency(link.level, link.eta, ETA, fair_queued)
    return interval.demanded / usable


def _sent(
    rows: Rows, jobs: Sequence[Job], network: NetworkOfRun
) -> dict[Link, list[tuple[Tick, int, _Speed | None]]]:
    """The changes on each link: from a tick on, a job (by handle) sends at a speed, or stops."""
    curves = network.curves("--links")
    known: dict[object, dict[Link, _Speed]] = {}
    changes: dict[Link, list[tuple[Tick, int, _Speed | None]]] = {}
    for row in rows.placements:
        start = row.start + row.stalled
        if len(row.placement.leaves) == 1 or start >= row.end:
            continue
        job = network.alone.on_kinds(jobs[row.handle], row.placement)
        since, taken = network.taken.at(row.handle, row.start) or (None, None)
        key = (job.model, row.placement, taken and (row.handle, since))
        if key not in known:
            known[key] = _while_computing(network, curves, job.model, row.placement, taken)
        for link, speed in known[key].items():
            of_link = changes.setdefault(link, [])
            mean = speed.mean * job.compute_s / row.iteration_s
            sends = speed.alone / row.stretch
            lost = 1 - row.alone_iteration_s * row.stretch / row.iteration_s
            of_link.append((start, row.handle, _Speed(mean, sends, sends * max(lost, 0.0))))
            of_link.append((row.end, row.handle, None))
    return changes


def _while_computing(
    network: NetworkOfRun, curves: Curves, model: str, placement: Placement, taken: Taken | None
) -> dict[Link, _Speed]:
    """The job's speed on each link. Here `mean` is in bytes per second of compute time."""
    names, of_shape = network.fabric.level_names, shape(network.tree, placement)
    sent = curves.sent(model, of_shape, frozenset())
    of_job = ways(network.tree, network.fabric, placement, sent.traffic)
    on_links = bytes_on_links(routed(of_job, taken) if taken else of_job)
    # What leaves a unit is sent while a level outside is busy.
    busy_s = {
        level: curves.sent(model, of_shape, frozenset(names[names.index(level) + 1 :])).busy_s
        for level in dict.fromkeys(link.level for link in on_links)
    }
    return {
        link: _Speed(volume / sent.compute_s, volume / busy_s[link.level], 0.0)
        for link, volume in on_links.items()
        if volume and busy_s[link.level]
    }


def _intervals(
    changes: Mapping[Link, list[tuple[Tick, int, _Speed | None]]], levels: Sequence[str]
) -> Iterator[_Interval]:
    """The intervals in which a link's traffic does not change, link by link."""
    for link in sorted(changes, key=lambda x: (levels.index(x.level), *x.order)):
        sending: dict[int, _Speed] = {}
        # Ends come before begins at the same tick, since one job may have both.
        by_tick = [
            (tick, sorted(group, key=lambda change: change[2] is not None))
            for tick, group in groupby(
                sorted(changes[link], key=lambda change: change[:2]), key=lambda change: change[0]
            )
        ]
        for (tick, group), (after, _) in pairwise([*by_tick, (None, [])]):
            for _, handle, speed in group:
                if speed is None:
                    del sending[handle]
                else:
                    sending[handle] = speed
            if sending and after is not None and tick is not None:
                yield _Interval(link, tick, after, sending)


def turn_table(taken: Sequence[TurnTaken], jobs: Sequence[Job]) -> Table:
    """When jobs took turns on links: a row per job and interval with one rate of corrections."""
    columns: Table = {
        "job_id": [jobs[x.handle].id for x in taken],
        "start_s": seconds_column([x.start for x in taken]),
        "end_s": seconds_column([x.end for x in taken]),
        "corrections_per_min": [x.corrections_per_min for x in taken],
    }
    return typed("turns", columns)

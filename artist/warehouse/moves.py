"""The best region of each of many tables, while all others stay where they are.

A move of a table from a to b takes jobs out of a that then have too few tables there, and brings
jobs to b that then have enough. Only these two regions change, so a chunk of tables is judged with
arrays [tables, regions].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from artist.warehouse.instance import PRIORITIES, Bools, Floats, Ints
from artist.warehouse.scalars import SLACK, Coming
from artist.warehouse.state import State

CHUNK = 4096
"""Tables that are judged at once: 10 MB per array at 12 regions and 3 kinds."""
LEAST_GAIN = 1e-12
"""Smaller gains are rounding: the terms of the objective are around 1."""


@dataclass(frozen=True)
class Readers:
    """The N pairs of a table in a chunk and a job that reads it."""

    table: Ints
    """[N] position in the chunk."""
    job: Ints
    home: Ints
    """[N] home of the table."""
    leaves: Bools
    """[N] whether the job leaves the table's home if the table does."""
    enters: Bools
    """[N, R] whether the job comes to a region if the table does."""


def best_regions(state: State, tables: Ints, price: float = 0.0) -> tuple[Ints, Floats]:
    """For each table the cheapest region that breaks no limit, and the gain of moving there.

    `price` weighs the share of high-priority GPU hours at home against the objective. A table
    without a gain anywhere has gain 0 and keeps its home. Ties go to the first region.
    """
    chunks = [tables[i : i + CHUNK] for i in range(0, len(tables), CHUNK)]
    parts = [_of_chunk(state, chunk, price) for chunk in chunks]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate([x for x, _ in parts]), np.concatenate([x for _, x in parts])


def best_region(state: State, table: int, price: float) -> tuple[int, float]:
    """`best_regions` of one table, in a tenth of the time."""
    x, at = state.scalars.constants, state.scalars
    old, size = at.home[table], x.size[table]
    anywhere, gone = Coming(), Coming()
    into: dict[int, Coming] = {}
    for job in x.jobs_of(table):
        row, need, place = job * x.regions, x.need[job], at.place[job]
        if at.count[row + old] == need:
            gone.add(x, job, at.bytes[row + old])
        elif place == old:
            gone.local += size
        if need == 1:
            anywhere.add(x, job, size)
            continue
        for region in range(x.regions):
            if region != old and at.count[row + region] == need - 1:
                into.setdefault(region, Coming()).add(x, job, at.bytes[row + region] + size)
        if place >= 0 and place != old:
            into.setdefault(place, Coming()).local += size
    out, home_hours = at.demand_changes(old, gone.hours, -1)
    out += x.stored(old, at.used[old] - size) - x.stored(old, at.used[old]) + x.w_read * gone.local
    best, target = -LEAST_GAIN, old
    least = min(state.threshold, state.at_home_gpu_h)
    for region in range(x.regions):
        used = at.used[region]
        if region == old or used + size > x.storage[region]:
            continue
        come = anywhere.also(into[region]) if region in into else anywhere
        cost, hours = at.demand_changes(region, come.hours, 1)
        at_home = state.at_home_gpu_h + (hours + home_hours)
        if at_home < least or not at.cpu_fits(region, come.cpu_h):
            continue
        cost += out + x.stored(region, used + size) - x.stored(region, used) - x.w_read * come.local
        if price:
            cost -= price * (at_home - state.at_home_gpu_h) / state.urgent_gpu_h
        if cost < best:
            best, target = cost, region
    return target, -best if target != old else 0.0


def _of_chunk(state: State, tables: Ints, price: float) -> tuple[Ints, Floats]:
    """`best_regions` of a few tables, judged by arrays [tables, regions]."""
    x = state.instance
    home, size = state.home[tables], x.size[tables]
    readers = _readers(state, tables, home)
    cost = _stored(state, home, size) + _read(state, readers, size) + _gpu(state, readers, home)
    allowed = state.used + size[:, None] <= x.storage
    allowed[np.arange(len(tables)), home] = False
    at_home = _at_home(state, readers, tables)
    # If the hours at home are below the threshold of (6), no move may lower them.
    allowed &= at_home >= min(state.threshold, state.at_home_gpu_h)
    allowed &= _cpu_fits(state, readers, len(tables))
    if price:
        cost -= price * (at_home - state.at_home_gpu_h) / state.urgent_gpu_h
    cost = np.where(allowed, cost, np.inf)
    best = cost.argmin(axis=1)
    gain = -cost[np.arange(len(tables)), best]
    better = gain > LEAST_GAIN
    return np.where(better, best, home), np.where(better, gain, 0.0)


def _readers(state: State, tables: Ints, home: Ints) -> Readers:
    x = state.instance
    table, job = x.readers.of_many(tables)
    old, need = home[table], x.need[job]
    enters = state.count[job] == (need - 1)[:, None]
    enters[np.arange(len(job)), old] = False
    return Readers(table, job, old, state.count[job, old] == need, enters)


def _stored(state: State, home: Ints, size: Ints) -> Floats:
    """[tables, R] change of (3)."""
    every = np.arange(len(state.used))
    cost = state.objective.stored
    now = cost(state.used, every)
    out = cost(state.used[home] - size, home) - now[home]
    return cost(state.used + size[:, None], every) - now + out[:, None]


def _read(state: State, readers: Readers, size: Ints) -> Floats:
    """[tables, R] change of (1)."""
    job, old = readers.job, readers.home
    bytes_of_table = size[readers.table].astype(float)
    bytes_there = state.bytes[job]
    here = state.place[job] == old
    lost = np.where(readers.leaves, state.bytes[job, old], here * bytes_of_table)
    is_there = state.place[job][:, None] == np.arange(len(state.used))
    is_there[np.arange(len(job)), old] = False
    gained = readers.enters * (bytes_there + bytes_of_table[:, None])
    gained += is_there * bytes_of_table[:, None]
    local = gained - lost[:, None]
    summed = np.zeros((len(size), len(state.used)))
    if len(job):
        # The pairs of a table are neighbours.
        first = np.flatnonzero(np.diff(readers.table, prepend=-1))
        summed[readers.table[first]] = np.add.reduceat(local, first, axis=0)
    changed: Floats = -state.objective.w_read * summed
    return changed


def _gpu(state: State, readers: Readers, home: Ints) -> Floats:
    """[tables, R] change of (2)."""
    x = state.instance
    count, regions, kinds = len(home), len(x.regions), len(x.kinds)
    cells, training = kinds * PRIORITIES, x.kind[readers.job] >= 0
    cell = x.kind[readers.job] * PRIORITIES + x.priority[readers.job]
    gpu_h, cost = x.gpu_h[readers.job], state.objective.gpu
    gone = np.flatnonzero(training & readers.leaves)
    out = np.bincount(readers.table[gone] * cells + cell[gone], gpu_h[gone], count * cells)
    pair, to = np.nonzero(readers.enters & training[:, None])
    place = (readers.table[pair] * regions + to) * cells + cell[pair]
    come = np.bincount(place, gpu_h[pair], count * regions * cells)
    every = np.arange(regions)
    now = cost(state.demand, every)
    left: Floats = state.demand[home] - out.astype(float).reshape(count, kinds, PRIORITIES)
    change_out = cost(left, home) - now[home]
    more: Floats = state.demand + come.astype(float).reshape(count, regions, kinds, PRIORITIES)
    changed: Floats = cost(more, every) - now + change_out[:, None]
    return changed


def _cpu_fits(state: State, readers: Readers, count: int) -> Bools:
    """[tables, R] whether no application exceeds its limit (5)."""
    x = state.instance
    fits = np.ones((count, len(x.regions)), np.bool_)
    counted = (x.application[readers.job] >= 0) & (x.cpu_h[readers.job] > 0)
    pair, to = np.nonzero(readers.enters & counted[:, None])
    if not len(pair):
        return fits
    job, apps = readers.job[pair], len(x.applications)
    key = (readers.table[pair] * len(x.regions) + to) * apps + x.application[job]
    keys, place = np.unique(key, return_inverse=True)
    more = np.bincount(place, x.cpu_h[job], len(keys))
    table, rest = np.divmod(keys, len(x.regions) * apps)
    region, app = np.divmod(rest, apps)
    full = state.cpu[app, region] + more > x.cpu_limit[app, region] * (1 + SLACK)
    fits[table[full], region[full]] = False
    return fits


def _at_home(state: State, readers: Readers, tables: Ints) -> Floats:
    """[tables, R] high-priority GPU hours at home after the move (6)."""
    x = state.instance
    count, regions = len(tables), len(x.regions)
    urgent = state.urgent[readers.job]
    has = urgent & (x.supply[readers.home, x.kind[readers.job]] > 0)
    gone = np.flatnonzero(has & readers.leaves)
    out = np.bincount(readers.table[gone], x.gpu_h[readers.job[gone]], count).astype(float)
    pair, to = np.nonzero(readers.enters & urgent[:, None])
    job = readers.job[pair]
    there = x.gpu_h[job] * (x.supply[to, x.kind[job]] > 0)
    come = np.bincount(readers.table[pair] * regions + to, there, count * regions)
    change = come.reshape(count, regions).astype(float) - out[:, None]
    after: Floats = state.at_home_gpu_h + change
    return after

"""Moves of several tables at once, where single moves are stuck.

The paper's climbing moves one table at a time. Two tables of one training job then never go
elsewhere together: after the first move the job has no region. So

- the tables of a job that is not at home are brought together, in each region in turn: the jobs
  with most GPU hours first;
- a table of a region above the median ratio goes elsewhere with the tables that its jobs read too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.warehouse.instance import Floats, Ints
from artist.warehouse.moves import LEAST_GAIN
from artist.warehouse.quota import Quota
from artist.warehouse.state import State

MOST_JOBS = 200
MOST_TABLES = 8
"""Of a group."""
MOST_GROUPS = 150


def bring_together(state: State, quota: Quota) -> None:
    """Bring the tables of jobs together while that gains."""
    x = state.instance
    used, cpu = state.used.copy(), state.cpu.copy()
    best = state.cost()
    for job in _scattered(state).tolist():
        tables = x.reads.of(job)
        for region in range(len(x.regions)):
            before = state.home[tables].copy()
            if (before == region).all() or not quota.allows(state.home, tables, region):
                continue
            _go(state, tables, np.full(len(tables), region))
            cost = state.cost()
            if cost < best - LEAST_GAIN and not state.breaks(used, cpu):
                best = cost
                quota.take(tables, before, region)
            else:
                _go(state, tables, before)


def move_groups(state: State, quota: Quota, price: float) -> None:
    """Move groups to their best regions while that gains.

    `price`: what the share of high-priority GPU hours at home counts beside the objective.
    """
    x = state.instance
    used, cpu = state.used.copy(), state.cpu.copy()
    now = _value(state, price)
    for table in _loaded(state).tolist():
        group = _group(state, table)
        own, best, target = int(state.home[table]), now - LEAST_GAIN, None
        for region in range(len(x.regions)):
            if region == own:
                continue
            for count, member in enumerate(group.tolist(), 1):
                state.move(member, region)
                value = _value(state, price)
                if value < best and not state.breaks(used, cpu):
                    best, target = value, (region, count)
            _go(state, group, np.full(len(group), own))
        if target is not None:
            region, tables = target[0], group[: target[1]]
            if quota.allows(state.home, tables, region):
                quota.take(tables, state.home[tables], region)
                _go(state, tables, np.full(len(tables), region))
                now = _value(state, price)


def _value(state: State, price: float) -> float:
    return state.cost() - price * state.at_home_gpu_h / state.urgent_gpu_h


def _go(state: State, tables: Ints, homes: Sequence[int] | Ints) -> None:
    for table, region in zip(tables.tolist(), np.asarray(homes).tolist(), strict=True):
        if state.home[table] != region:
            state.move(table, region)


def _scattered(state: State) -> Ints:
    """Training jobs with several tables that are not at home; most GPU hours first."""
    x = state.instance
    lengths = x.reads.lengths
    home = np.zeros(len(x.kind), np.bool_)
    placed = np.flatnonzero((state.place >= 0) & (x.kind >= 0))
    home[placed] = x.supply[state.place[placed], x.kind[placed]] > 0
    jobs = np.flatnonzero((x.kind >= 0) & (lengths > 1) & (lengths <= MOST_TABLES) & ~home)
    chosen: Ints = jobs[np.argsort(-x.gpu_h[jobs], kind="stable")][:MOST_JOBS]
    return chosen


def _loaded(state: State) -> Ints:
    """The tables with most GPU hours, in regions whose demand over supply is above the median."""
    x = state.instance
    placed = (state.place >= 0) & (x.kind >= 0)
    hours = np.where(placed, x.gpu_h, 0.0)[x.reads.owners]
    by_table: Floats = np.bincount(x.reads.items, hours, len(x.size)).astype(float)
    ratio = state.demand.sum(axis=(1, 2)) / x.supply.sum(axis=1)
    by_table[(ratio <= np.median(ratio))[state.home]] = 0.0
    order = np.argsort(-by_table, kind="stable")[:MOST_GROUPS]
    chosen: Ints = order[by_table[order] > 0]
    return chosen


def _group(state: State, table: int) -> Ints:
    """A table and those that jobs in its region read with it or with one another: those first
    whose jobs, in that region, have most GPU hours."""
    x, region = state.instance, state.home[table]
    group, hours, new = [table], dict[int, float](), table
    while len(group) < MOST_TABLES:
        jobs = x.readers.of(new)
        jobs = jobs[(state.place[jobs] == region) & (x.kind[jobs] >= 0)]
        owners, others = x.reads.of_many(jobs)
        for gpu_h, other in zip(x.gpu_h[jobs[owners]].tolist(), others.tolist(), strict=True):
            if other not in group:
                hours[other] = hours.get(other, 0.0) + gpu_h
        if not hours:
            break
        new = max(hours, key=lambda other: (hours[other], -other))
        del hours[new]
        group.append(new)
    return np.array(group, np.int64)

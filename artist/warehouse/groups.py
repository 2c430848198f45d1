"""Moves of several tables at once, where single moves are stuck.

The paper's climbing moves one table at a time. Two tables of one training job then never go
elsewhere together: after the first move the job has no region. So the tables of a job that is not
at home are brought together, in each region in turn: the jobs with most GPU hours first. Small
warehouses are searched thoroughly (`small.py`).
"""

from __future__ import annotations

import numpy as np

from artist.warehouse.instance import Ints
from artist.warehouse.moves import LEAST_GAIN
from artist.warehouse.small import is_small, search
from artist.warehouse.state import State

MOST_JOBS = 200
MOST_TABLES = 8
"""Of a job whose tables are brought together."""


def improve(state: State, start: Ints, quota: int) -> None:
    """Move groups while that gains. `quota`: bytes that may be elsewhere than at `start`."""
    if is_small(state):
        state.home = search(state, start, quota)
    else:
        _bring_together(state, start, quota)
    state.refresh()


def _bring_together(state: State, start: Ints, quota: int) -> None:
    x = state.instance
    used, cpu = state.used.copy(), state.cpu.copy()
    moved = int(x.size[state.home != start].sum())
    best = state.cost()
    for job in _scattered(state).tolist():
        tables = x.reads.of(job)
        for region in range(len(x.regions)):
            before = state.home[tables].copy()
            elsewhere = int(x.size[tables[before != start[tables]]].sum())
            after = moved - elsewhere + int(x.size[tables[start[tables] != region]].sum())
            if after > quota or (before == region).all():
                continue
            _go(state, tables, np.full(len(tables), region))
            cost = state.cost()
            if cost < best - LEAST_GAIN and not state.breaks(used, cpu):
                best, moved = cost, after
            else:
                _go(state, tables, before)


def _go(state: State, tables: Ints, homes: Ints) -> None:
    for table, region in zip(tables.tolist(), homes.tolist(), strict=True):
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

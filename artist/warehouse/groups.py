"""Moves of several tables at once, where single moves are stuck.

The paper's climbing moves one table at a time. Two tables of one training job then never go
elsewhere together: after the first move the job has no region. Tried here are

- the tables of a job that is not at home, brought together in each region: the jobs with most GPU
  hours first, `MOST_JOBS` of them;
- in small warehouses any two tables; and from random starts (`KICKS`), the best of which is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.rng import stream
from artist.warehouse.instance import Floats, Ints
from artist.warehouse.moves import LEAST_GAIN, best_regions
from artist.warehouse.state import State

MOST_JOBS = 200
MOST_TABLES = 8
"""Of a job whose tables are brought together."""
SMALL = 20_000
"""Pairs of tables times pairs of regions. Judging so many takes seconds."""
KICKS = 12
"""Random starts. With fewer, small warehouses end above their optimum more often."""

Group = list[tuple[int, int]]
"""Tables and their new homes."""


def improve(state: State, start: Ints, quota: int) -> None:
    """Move groups while that gains. `quota`: bytes that may be elsewhere than at `start`."""
    used, cpu = state.used.copy(), state.cpu.copy()
    limits = _Limits(start, quota, used, cpu)
    small = _is_small(state)
    _settle(state, limits, small=small)
    if small:
        _kick(state, limits)
    state.refresh()


class _Limits:
    """What no plan of this day may break."""

    def __init__(self, start: Ints, quota: int, used: Ints, cpu: Floats) -> None:
        self.start, self.quota, self.used, self.cpu = start, quota, used, cpu

    def broken(self, state: State) -> bool:
        """Whether the state now breaks one."""
        moved = int(state.instance.size[state.home != self.start].sum())
        return moved > self.quota or state.breaks(self.used, self.cpu)


def _is_small(state: State) -> bool:
    tables, regions = len(state.home), len(state.used)
    return (tables * regions) ** 2 // 2 <= SMALL


def _settle(state: State, limits: _Limits, *, small: bool) -> None:
    """Move groups. In small warehouses also single tables, and until nothing gains."""
    best = state.cost()
    gained = True
    while gained:
        gained = False
        for group in _groups(state, small=small):
            if all(state.home[table] == region for table, region in group):
                continue
            before = [(table, int(state.home[table])) for table, _ in group]
            _apply(state, group)
            cost = state.cost()
            if cost < best - LEAST_GAIN and not limits.broken(state):
                best, gained = cost, small
            else:
                _apply(state, before)


def _apply(state: State, group: Group) -> None:
    for table, region in group:
        if state.home[table] != region:
            state.move(table, region)


def _groups(state: State, *, small: bool) -> Iterator[Group]:
    x = state.instance
    regions = range(len(x.regions))
    for job in _scattered(state).tolist():
        tables = x.reads.of(job).tolist()
        for region in regions:
            yield [(table, region) for table in tables]
    if not small:
        return
    count = len(x.size)
    for one in range(count):
        yield from ([(one, region)] for region in regions)
        for other in range(one + 1, count):
            yield from ([(one, a), (other, b)] for a in regions for b in regions)


def _scattered(state: State) -> Ints:
    """Training jobs with several tables that are not at home; most GPU hours first."""
    x = state.instance
    lengths = x.reads.lengths
    home = np.zeros(len(x.kind), np.bool_)
    placed = np.flatnonzero((state.place >= 0) & (x.kind >= 0))
    home[placed] = x.supply[state.place[placed], x.kind[placed]] > 0
    small = _is_small(state)
    jobs = np.flatnonzero(
        (x.kind >= 0) & (lengths > 1) & (lengths <= MOST_TABLES) & (~home | small)
    )
    chosen: Ints = jobs[np.argsort(-x.gpu_h[jobs], kind="stable")][:MOST_JOBS]
    return chosen


def _kick(state: State, limits: _Limits) -> None:
    """Start again from random changes of the best homes, and keep the best."""
    rng = stream(0, "warehouse.kicks")
    best_home, best = state.home.copy(), state.cost()
    tables, regions = len(state.home), len(state.used)
    for _ in range(KICKS):
        _go_to(state, best_home)
        count = int(rng.integers(1, max(2, tables // 2 + 1)))
        for table in rng.permutation(tables)[:count].tolist():
            group = [(table, int(rng.integers(regions)))]
            before = [(table, int(state.home[table]))]
            _apply(state, group)
            if limits.broken(state):
                _apply(state, before)
        _descend(state, limits)
        _settle(state, limits, small=True)
        if state.cost() < best - LEAST_GAIN:
            best_home, best = state.home.copy(), state.cost()
    _go_to(state, best_home)


def _descend(state: State, limits: _Limits) -> None:
    """Single moves, the best region of each table in turn, until none gains."""
    gained = True
    while gained:
        gained = False
        for table in range(len(state.home)):
            region, gain = best_regions(state, np.array([table]))
            if gain[0] > 0:
                before = int(state.home[table])
                state.move(table, int(region[0]))
                if limits.broken(state):
                    state.move(table, before)
                else:
                    gained = True


def _go_to(state: State, home: Ints) -> None:
    state.home = home.copy()
    state.refresh()

"""A thorough search where few tables allow it: whole placements are judged, many at once.

Descent to the best neighbour, where one or two tables have other homes, again and again from random
changes of the best placement. On the way limits may be broken, at a price; a result keeps them.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from artist.rng import stream
from artist.warehouse.instance import PRIORITIES, Floats, Ints
from artist.warehouse.moves import LEAST_GAIN
from artist.warehouse.state import SLACK, State

MOST_NEIGHBOURS = 2_000
MOST_CELLS = 2_000_000
"""Neighbours times jobs times regions: a search takes seconds."""
KICKS = 40
"""Random starts. 40 end within 2 % of the optimum in the share of warehouses that docs tell."""
PRICE = 10.0
"""Of limits broken by their own size; the objective is around 1."""


def is_small(state: State) -> bool:
    """Whether this search takes seconds at most."""
    tables, regions = len(state.home), len(state.used)
    neighbours = (tables * regions) ** 2 // 2
    return neighbours <= MOST_NEIGHBOURS and neighbours * regions * len(state.place) <= MOST_CELLS


def search(state: State, start: Ints, quota: int) -> Ints:
    """The best homes found that keep all limits. `quota`: bytes that may be elsewhere than at
    `start`. The state must keep all limits, and does not change."""
    judge = _Judge(state, start, quota)
    changes = _changes(len(state.home), len(state.used))
    rng = stream(0, "warehouse.kicks")
    best = state.home
    best_cost = judge.feasible_cost(best)
    for kick in range(KICKS + 1):
        home = best.copy()
        if kick:
            count = int(rng.integers(1, len(home) + 1))
            picked = rng.permutation(len(home))[:count]
            home[picked] = rng.integers(len(state.used), size=count)
        home = _descend(judge, home, changes)
        cost = judge.feasible_cost(home)
        if cost < best_cost - LEAST_GAIN:
            best, best_cost = home, cost
    return best


def _changes(tables: int, regions: int) -> Ints:
    """[N, T] the new home of one or two tables, -1 for others."""
    rows = []
    for pair in combinations(range(tables), min(2, tables)):
        for homes in product(range(regions), repeat=len(pair)):
            row = np.full(tables, -1)
            row[list(pair)] = homes
            rows.append(row)
    return np.array(rows)


def _descend(judge: _Judge, home: Ints, changes: Ints) -> Ints:
    cost = np.inf
    while True:
        costs = judge.priced(np.where(changes >= 0, changes, home))
        best = int(costs.argmin())
        if not costs[best] < cost - LEAST_GAIN:
            return home
        cost = float(costs[best])
        home = np.where(changes[best] >= 0, changes[best], home)


class _Judge:
    """The objective and the limits of many placements at once."""

    def __init__(self, state: State, start: Ints, quota: int) -> None:
        x = state.instance
        self._state, self._start, self._quota = state, start, quota
        self._reads = np.zeros((len(x.size), len(x.kind)))
        self._reads[x.reads.items, x.reads.owners] = 1
        self._cells = np.zeros((len(x.kind), len(x.kinds) * PRIORITIES))
        jobs = np.flatnonzero(x.kind >= 0)
        self._cells[jobs, x.kind[jobs] * PRIORITIES + x.priority[jobs]] = x.gpu_h[jobs]
        self._cpu = x.cpu_h[:, None] * (x.application[:, None] == np.arange(len(x.applications)))
        has = state.urgent[:, None] & (x.supply[:, x.kind] > 0).T
        self._at_home = x.gpu_h[:, None] * has
        self._storage = np.maximum(x.storage, state.used)
        self._limit = np.maximum(x.cpu_limit, state.cpu) * (1 + SLACK) + SLACK
        self._least = min(state.threshold, state.at_home_gpu_h)

    def feasible_cost(self, home: Ints) -> float:
        """The objective of one placement; infinite if it breaks a limit."""
        cost, broken = self._judge(home[None])
        return float(cost[0]) if broken[0] <= 0 else np.inf

    def priced(self, homes: Ints) -> Floats:
        """[N] the objective of placements [N, T], and the price of what they break."""
        cost, broken = self._judge(homes)
        priced: Floats = cost + PRICE * broken
        return priced

    def _judge(self, homes: Ints) -> tuple[Floats, Floats]:
        state, x = self._state, self._state.instance
        objective, every = state.objective, np.arange(len(x.regions))
        lies = (homes[:, :, None] == every).astype(float).transpose(0, 2, 1)
        inside = lies @ self._reads >= x.need
        read = (lies * x.size) @ self._reads
        used = lies @ x.size
        demand = (inside @ self._cells).reshape(len(homes), len(every), -1, PRIORITIES)
        away = x.read_bytes.sum() - (read * inside).sum(axis=(1, 2))
        cost = objective.gpu(demand, every).sum(axis=1) + objective.w_read * away
        cost += objective.stored(used, every).sum(axis=1)
        broken = np.maximum(0.0, used / self._storage - 1).sum(axis=1)
        # An infinite limit gives 0; where nothing is allowed, an hour counts as one.
        cpu = (inside @ self._cpu).transpose(0, 2, 1)
        broken += (np.maximum(0.0, cpu - self._limit) / np.maximum(1, self._limit)).sum(axis=(1, 2))
        at_home = np.einsum("nrj,jr->n", inside, self._at_home)
        broken += np.maximum(0.0, self._least - at_home) / max(1.0, self._least)
        moved = ((homes != self._start) * x.size).sum(axis=1)
        broken += np.maximum(0, moved - self._quota) / x.size.sum()
        return cost, broken

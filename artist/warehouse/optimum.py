"""The optimum of a small warehouse: exact by HiGHS, or by a thorough search.

**HiGHS.** Expressions 7 to 9 are not linear in homes. But every term of the objective belongs to
one region, and follows from the set of tables whose home is there. So each region chooses one of
all 2^T sets, whose cost is computed exactly, and each table is in one chosen set:

    min sum cost(r, s) z(r, s)   with sum over s of z(r, s) = 1 for each r,
    sum over r and s with t in s of z(r, s) = 1 for each t, (6) and the quota as one row each.

(4) and (5) exclude sets. Nothing is approximated. The price is R 2^T columns: T is at most 14.

**Search.** Where tables are few, whole placements are judged, many at once, by simulated annealing.
During the search limits may be broken, at a price; the result keeps them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artist.errors import ConfigError
from artist.io.optional_libraries import check_extra, silent
from artist.rng import stream
from artist.warehouse.instance import PRIORITIES, Bools, Floats, Instance, Ints
from artist.warehouse.moves import LEAST_GAIN
from artist.warehouse.scalars import SLACK
from artist.warehouse.state import State

MOST_COLUMNS = 200_000


def solve(state: State) -> Ints:
    """The best homes that break no limit. All tables move in one day, with the whole quota.

    Raises:
        ConfigError: SciPy is not installed, the warehouse is too large, or no homes keep the
            limits.
    """
    check_extra("--solver highs", "scipy", extra="exact")
    from scipy.optimize import Bounds, LinearConstraint, milp

    x = state.instance
    tables, regions = len(x.size), len(x.regions)
    if tables > 40 or regions << tables > MOST_COLUMNS:
        raise ConfigError(
            f"--solver highs: {tables} tables and {regions} regions have {regions} x 2^{tables} "
            f"sets of tables, expected at most {MOST_COLUMNS:,}; use --solver climb"
        )
    members = (np.arange(1 << tables)[:, None] >> np.arange(tables) & 1).astype(np.bool_)
    columns = [_columns(state, members, region) for region in range(regions)]
    region = np.repeat(np.arange(regions), [len(column.cost) for column in columns])
    sets, cost, moved, at_home = (np.concatenate(x) for x in zip(*columns, strict=True))
    all_bytes = float(x.size.sum())
    quota = state.objective.options.quota * all_bytes
    threshold = min(state.threshold, state.at_home_gpu_h)
    scale = max(1.0, float(x.gpu_h.sum()))
    with silent():
        answer = milp(
            cost,
            integrality=np.ones(len(cost)),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(sets.T.astype(float), 1, 1),
                LinearConstraint((region == np.arange(regions)[:, None]).astype(float), 1, 1),
                LinearConstraint(moved[None] / all_bytes, -np.inf, quota / all_bytes),
                LinearConstraint(at_home[None] / scale, threshold / scale, np.inf),
            ],
            options={"mip_rel_gap": 0.0},
        )
    if answer.x is None:
        raise ConfigError(
            f"--solver highs: no homes keep all limits ({answer.message}); lower home_share, or "
            "give regions more storage"
        )
    chosen = np.flatnonzero(answer.x > 0.5)
    home: Ints = (sets[chosen] * region[chosen][:, None]).sum(axis=0)
    return home


class _Columns(NamedTuple):
    """The S sets of tables that a region may hold."""

    members: Bools
    """[S, T] the tables in each set."""
    cost: Floats
    moved: Floats
    """[S] bytes of tables that would move."""
    at_home: Floats
    """[S] high-priority GPU hours at home."""


def _columns(state: State, members: Bools, region: int) -> _Columns:
    """The sets of `members` that a region may hold."""
    x, objective = state.instance, state.objective
    reads, cells = _matrices(x)
    inside = members @ reads >= x.need
    local = ((members * x.size.astype(float)) @ reads * inside).sum(axis=1)
    demand = (inside @ cells).reshape(len(members), len(x.kinds), PRIORITIES)
    here = np.full(len(members), region)
    used = members @ x.size
    cost = objective.gpu(demand, here) + objective.stored(used, here) - objective.w_read * local
    allowed = used <= max(int(x.storage[region]), int(state.used[region]))
    for app in range(len(x.applications)):
        limit = max(x.cpu_limit[app, region], state.cpu[app, region])
        allowed &= inside @ (x.cpu_h * (x.application == app)) <= limit * (1 + SLACK) + SLACK
    has = state.urgent & (x.supply[region, x.kind] > 0)
    moved = members @ (x.size * (state.home != region)).astype(float)
    at_home = inside @ (x.gpu_h * has)
    return _Columns(members[allowed], cost[allowed], moved[allowed], at_home[allowed])


def _matrices(x: Instance) -> tuple[Floats, Floats]:
    """[T, J] 1 where a job reads a table; [J, K P] GPU hours of jobs by kind and priority."""
    reads = np.zeros((len(x.size), len(x.kind)))
    reads[x.reads.items, x.reads.owners] = 1
    cells = np.zeros((len(x.kind), len(x.kinds) * PRIORITIES))
    training = np.flatnonzero(x.kind >= 0)
    cells[training, x.kind[training] * PRIORITIES + x.priority[training]] = x.gpu_h[training]
    return reads, cells


CHAINS = 64
STEPS = 800
"""Chains and steps of a search. docs/data-placement.md says how close to the optimum they get."""
MOST_PRODUCTS = 5_000_000
"""Most multiplications of a step: chains x tables x jobs x regions.

Beyond them, climbing in groups comes as close to the optimum in a tenth of the time.
"""
HOT, COLD = 0.2, 5e-4
"""First and last temperature, as parts of the objective at the start."""
EXCHANGES = 0.3
"""Share of changes that exchange the homes of two tables."""
PRICE = 10.0
"""Price of exceeding a limit by its own size; the objective is around 1."""


def is_small(state: State) -> bool:
    """Whether this search takes seconds at most."""
    products = CHAINS * len(state.home) * len(state.place) * len(state.used)
    return products <= MOST_PRODUCTS


def search(state: State, start: Ints, quota: int) -> Ints:
    """The best homes found that keep all limits.

    At most `quota` bytes may be elsewhere than at `start`. The state must keep all limits, and is
    not changed.

    This is simulated annealing in independent chains. In a step, each chain moves one table or all
    tables of one job to a region, or exchanges the homes of two tables.
    """
    judge = _Judge(state, start, quota)
    groups = np.concatenate([np.eye(len(start), dtype=np.bool_), judge.read_together])
    rng = stream(0, "warehouse.anneal")
    homes = np.repeat(state.home[None], CHAINS, axis=0)
    cost, _ = judge.costs(homes)
    scale = float(cost[0])
    best, best_cost = state.home, scale
    for temperature in scale * np.geomspace(HOT, COLD, STEPS):
        changed = _changed(homes, groups, len(state.used), rng)
        new, broken = judge.costs(changed)
        allowed = np.where(broken <= 0, new, np.inf)
        first = int(allowed.argmin())
        if allowed[first] < best_cost - LEAST_GAIN:
            best, best_cost = changed[first].copy(), float(new[first])
        priced = new + PRICE * broken
        rise = np.maximum(0.0, priced - cost)
        accepted: Bools = rng.random(CHAINS) < np.exp(-rise / temperature)
        homes[accepted] = changed[accepted]
        cost = np.where(accepted, priced, cost)
    return best


def _changed(homes: Ints, groups: Bools, regions: int, rng: np.random.Generator) -> Ints:
    """[chains, T] the homes after one change per chain. `groups`: [G, T] tables that move together.

    The first T groups are single tables. Half of all moves draw only from these.
    """
    chains, tables = len(homes), homes.shape[1]
    every = np.arange(chains)
    count = np.where(rng.random(chains) < 0.5, tables, len(groups))
    group = rng.integers(count, size=chains)
    moved = np.where(groups[group], rng.integers(regions, size=chains)[:, None], homes)
    one, other = rng.integers(tables, size=(2, chains))
    exchanged = homes.copy()
    exchanged[every, one], exchanged[every, other] = homes[every, other], homes[every, one]
    exchanges = rng.random(chains) < EXCHANGES
    changed: Ints = np.where(exchanges[:, None], exchanged, moved)
    return changed


class _Judge:
    """The objective and the limits of many placements at once."""

    def __init__(self, state: State, start: Ints, quota: int) -> None:
        x = state.instance
        self._state, self._start, self._quota = state, start, quota
        self._reads, self._cells = _matrices(x)
        self._cpu = x.cpu_h[:, None] * (x.application[:, None] == np.arange(len(x.applications)))
        has = state.urgent[:, None] & (x.supply[:, x.kind] > 0).T
        self._at_home = x.gpu_h[:, None] * has
        self._storage = np.maximum(x.storage, state.used)
        self._limit = np.maximum(x.cpu_limit, state.cpu) * (1 + SLACK) + SLACK
        self._least = min(state.threshold, state.at_home_gpu_h)
        self.read_together = self._reads.T[x.reads.lengths > 1] > 0
        """[G, T] the tables of each job that reads several."""

    def costs(self, homes: Ints) -> tuple[Floats, Floats]:
        """[N] the objective of placements [N, T], and how far they break limits."""
        state, x = self._state, self._state.instance
        objective, every = state.objective, np.arange(len(x.regions))
        lies = (homes[:, :, None] == every).astype(float).transpose(0, 2, 1)
        inside = lies @ self._reads >= x.need
        read = (lies * x.size) @ self._reads
        used = lies @ x.size
        demand = (inside @ self._cells).reshape(len(homes), len(every), -1, PRIORITIES)
        away = x.all_read_bytes - (read * inside).sum(axis=(1, 2))
        cost = objective.gpu(demand, every).sum(axis=1) + objective.w_read * away
        cost += objective.stored(used, every).sum(axis=1)
        broken = np.maximum(0.0, used / self._storage - 1).sum(axis=1)
        # An infinite limit gives 0. A limit below 1 h counts as 1 h, so that none is 0.
        cpu = (inside @ self._cpu).transpose(0, 2, 1)
        broken += (np.maximum(0.0, cpu - self._limit) / np.maximum(1, self._limit)).sum(axis=(1, 2))
        at_home = np.einsum("nrj,jr->n", inside, self._at_home)
        broken += np.maximum(0.0, self._least - at_home) / max(1.0, self._least)
        moved = ((homes != self._start) * x.size).sum(axis=1)
        broken += np.maximum(0, moved - self._quota) / x.size.sum()
        return cost, broken

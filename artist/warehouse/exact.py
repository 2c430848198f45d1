"""The optimum of a small warehouse, by HiGHS.

Expressions 7 to 9 are no linear functions of homes. But every term of the objective belongs to one
region, and follows from the set of tables whose home is there. So each region chooses one of all
2^T sets, whose cost is computed exactly, and each table is in one chosen set:

    min sum cost(r, s) z(r, s)   with sum over s of z(r, s) = 1 for each r,
    sum over r and s with t in s of z(r, s) = 1 for each t, (6) and the quota as one row each.

(4) and (5) strike out sets. Nothing is approximated. The price is R 2^T columns: T is at most 14.
"""

from __future__ import annotations

import numpy as np

from artist.errors import ConfigError
from artist.io.optional_libraries import check_extra
from artist.warehouse.instance import PRIORITIES, Bools, Floats, Ints
from artist.warehouse.state import SLACK, State

MOST_COLUMNS = 200_000


def solve(state: State) -> Ints:
    """The best homes for which no limit is broken. The whole quota is one day's.

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
    cost = np.concatenate([x.cost for x in columns])
    sets = np.concatenate([x.members for x in columns])
    region = np.repeat(np.arange(regions), [len(x.cost) for x in columns])
    quota = state.objective.options.quota * float(x.size.sum())
    threshold = min(state.threshold, state.at_home_gpu_h)
    scale = max(1.0, float(x.gpu_h.sum()))
    moved = np.concatenate([x.moved for x in columns]) / float(x.size.sum())
    at_home = np.concatenate([x.at_home for x in columns]) / scale
    answer = milp(
        cost,
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(sets.T.astype(float), 1, 1),
            LinearConstraint((region == np.arange(regions)[:, None]).astype(float), 1, 1),
            LinearConstraint(moved[None], -np.inf, quota / float(x.size.sum())),
            LinearConstraint(at_home[None], threshold / scale, np.inf),
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


class _Columns:
    """The sets of tables that a region may hold."""

    def __init__(
        self, members: Bools, cost: Floats, moved: Floats, at_home: Floats, allowed: Bools
    ) -> None:
        self.members, self.cost = members[allowed], cost[allowed]
        self.moved, self.at_home = moved[allowed], at_home[allowed]


def _columns(state: State, members: Bools, region: int) -> _Columns:
    x, objective = state.instance, state.objective
    reads = np.zeros((len(x.size), len(x.kind)))
    reads[x.reads.items, x.reads.owners] = 1
    inside = members @ reads >= x.need
    local = ((members * x.size.astype(float)) @ reads * inside).sum(axis=1)
    cells = np.zeros((len(x.kind), len(x.kinds) * PRIORITIES))
    training = np.flatnonzero(x.kind >= 0)
    cells[training, x.kind[training] * PRIORITIES + x.priority[training]] = x.gpu_h[training]
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
    return _Columns(members, cost, moved, inside @ (x.gpu_h * has), allowed)

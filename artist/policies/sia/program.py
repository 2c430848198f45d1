"""Sia's integer program: which job gets which configuration, a kind and a number of GPUs.

    minimise  sum over chosen (i, j) of value[i, j]^p  +  lambda x jobs without a configuration
    at most one configuration of each job, and of each kind no more GPUs than there are

Source: Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster
scheduling*, SOSP 2023, section 3.4. With p > 0 it maximises the first sum less the second term.

HiGHS solves it, through SciPy. Optima are often not unique. Of two jobs with equal offers, the
first therefore gets the better configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import PolicyError, one_line
from artist.io.optional_libraries import silent

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_ROUNDING = 1e-9
"""By how much HiGHS may miss a reduced cost or a bound."""


class Offer(NamedTuple):
    """A configuration that a job may get."""

    kind: int
    """Index of the kind."""
    gpus: int
    value: float
    """Speed relative to the slowest configuration, times the restart factor (`policy.py`)."""


def choose(
    offers: Sequence[Sequence[Offer]],
    capacity: Sequence[int],
    power: float,
    unallocated: float,
    gap: float,
) -> list[Offer | None]:
    """The offer that each job gets in an optimum; None if it gets no GPUs.

    `capacity` has the GPUs of each kind. The objective is within a share `gap` of the optimum.

    Raises:
        PolicyError: HiGHS finds no optimum.
    """
    costs = [_costs(mine, power, unallocated) for mine in offers]
    kept = [_undominated(mine, priced) for mine, priced in zip(offers, costs, strict=True)]
    chosen = [min(mine, key=lambda x: x[1])[0] if mine else None for mine in kept]
    if _fit(chosen, capacity):  # every job can have its best offer
        return chosen
    rows = [(job, offer, cost) for job, mine in enumerate(kept) for offer, cost in mine]
    chosen = [None] * len(offers)
    for row in np.flatnonzero(_solved(_Program.of(rows, capacity), gap)).tolist():
        job, offer, _ = rows[row]
        chosen[job] = offer
    return _in_order(offers, costs, chosen)


def _fit(chosen: Sequence[Offer | None], capacity: Sequence[int]) -> bool:
    """Whether there are enough GPUs of every kind for these offers."""
    left = list(capacity)
    for offer in chosen:
        if offer is not None:
            left[offer.kind] -= offer.gpus
    return min(left) >= 0


class _Program(NamedTuple):
    """The linear program. Columns are offers, ascending by job; rows are jobs, then kinds."""

    jobs: npt.NDArray[np.intp]
    costs: Floats
    uses: Any
    """What each offer takes of each row: a sparse matrix."""
    limits: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[int, Offer, float]], capacity: Sequence[int]) -> _Program:
        """The program of (job, offer, cost) rows, ascending by job."""
        from scipy.sparse import csc_array

        jobs = np.array([job for job, _, _ in rows])
        costs = np.array([cost for _, _, cost in rows])
        count = int(jobs[-1]) + 1
        kinds = np.array([offer.kind for _, offer, _ in rows]) + count
        gpus = np.array([float(offer.gpus) for _, offer, _ in rows])
        columns, limits = np.arange(len(rows)), np.array([*[1.0] * count, *capacity])
        values = np.concatenate([np.ones(len(rows)), gpus])
        at = np.concatenate([jobs, kinds]), np.concatenate([columns, columns])
        return cls(jobs, costs, csc_array((values, at), shape=(len(limits), len(rows))), limits)


def _costs(offers: Sequence[Offer], power: float, unallocated: float) -> list[float]:
    """By how much each offer is worse than no GPUs; below 0 if it is better."""
    if power > 0:
        return [-(offer.value**power) - unallocated for offer in offers]
    return [offer.value**power - unallocated if offer.value else np.inf for offer in offers]


def _undominated(offers: Sequence[Offer], costs: Sequence[float]) -> list[tuple[Offer, float]]:
    """The offers that an optimum may have: better than no GPUs, and than fewer of the kind."""
    kept: list[tuple[Offer, float]] = []
    least: dict[int, float] = {}
    for offer, cost in sorted(zip(offers, costs, strict=True), key=lambda x: (x[0].gpus, x[1])):
        if cost < least.get(offer.kind, 0.0):
            least[offer.kind] = cost
            kept.append((offer, cost))
    return kept


def _solved(program: _Program, gap: float) -> Bools:
    """Which of the offers are chosen: an optimum within a share `gap`.

    A choice costs at least the bound of the linear relaxation plus the reduced costs of its offers.
    So an optimum over the offers with reduced costs up to `small` is an optimum over all offers if
    it costs at most the bound plus `small`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    bound, reduced = _relaxed(program)
    small = gap * abs(bound) + _ROUNDING
    while True:
        kept = np.flatnonzero(reduced <= small)
        with silent():
            found = milp(
                program.costs[kept],
                constraints=LinearConstraint(program.uses[:, kept], -np.inf, program.limits),
                integrality=np.ones(len(kept)),
                bounds=Bounds(0, 1),
                options={"mip_rel_gap": gap},
            )
        if found.x is None:
            raise PolicyError(f"HiGHS found no optimum: {one_line(found.message)}")
        if len(kept) == len(reduced) or found.fun <= bound + small:
            break
        small = found.fun - bound + _ROUNDING
    chosen = np.zeros(len(reduced), bool)
    chosen[kept] = found.x > 0.5
    return chosen


def _relaxed(program: _Program) -> tuple[float, Floats]:
    """The optimum of the linear relaxation, and the reduced cost of each offer; none is below 0.

    Columns are generated: each job adds its offer of the least reduced cost while that is below 0.
    """
    from scipy.optimize import linprog

    firsts = np.flatnonzero(np.diff(program.jobs, prepend=-1))
    _, of_job = np.unique(program.jobs, return_inverse=True)
    active = np.zeros(len(program.jobs), bool)
    active[firsts] = True
    while True:
        columns = np.flatnonzero(active)
        found = linprog(program.costs[columns], A_ub=program.uses[:, columns], b_ub=program.limits)
        if found.status != 0:
            raise PolicyError(f"HiGHS found no optimum: {one_line(found.message)}")
        reduced: Floats = program.costs - program.uses.T @ found.ineqlin.marginals
        least = np.minimum.reduceat(reduced, firsts)[of_job]
        new = (reduced < -_ROUNDING) & (reduced <= least) & ~active
        if not new.any():
            return float(found.fun), reduced
        active |= new


def _in_order(
    offers: Sequence[Sequence[Offer]],
    costs: Sequence[Sequence[float]],
    chosen: Sequence[Offer | None],
) -> list[Offer | None]:
    """The chosen offers, exchanged so that of jobs with equal offers the first has the best."""
    alike: dict[tuple[Offer, ...], list[int]] = {}
    for job, mine in enumerate(offers):
        alike.setdefault(tuple(mine), []).append(job)
    result = list(chosen)
    for mine, jobs in alike.items():
        cost = dict(zip(mine, costs[jobs[0]], strict=True))
        theirs = sorted((chosen[job] for job in jobs), key=lambda x: cost[x] if x else 0.0)
        for job, offer in zip(jobs, theirs, strict=True):
            result[job] = offer
    return result

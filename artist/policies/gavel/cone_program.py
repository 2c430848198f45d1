"""Programs over time fractions in the form of an interior point method, scaled.

    minimise c y, where G y + s = h, s in cones (`cones.py`)

Each of J jobs has V variables of its own: its share of time on each of K kinds, and what else its
program needs. One variable, the last, is common: what the program is about. The inequalities of a
job are its own, too, but for those of the GPUs of kinds, in which jobs meet.

`count` equal jobs are one job here. Their numbers are equal in every step, so they are summed where
jobs meet.

Rows and columns are scaled as in ECOS's program (D. Ruiz, *A scaling algorithm to equilibrate both
rows and columns norms in matrices*, 2001), since where the method ends depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artist.policies.gavel.cones import Floats, Scaling

_SCALINGS = 3
"""How often rows and columns are scaled (ECOS: EQUIL_ITERS)."""

_NO_SIZE = 1e-6
"""Rows and columns of less are not scaled."""


class Block(NamedTuple):
    """The inequalities of jobs: `own` y + s = limits, the common variable last."""

    own: Floats
    """[J, L, V + 1]"""
    limits: Floats
    """[J, L]"""
    cones: Floats
    """[J, 3, V + 1], or [J, 0, V + 1] without: rows of which s is in a second-order cone."""
    cone_limits: Floats
    """[J, 3] or [J, 0]"""


class ConeProgram:
    """The program of some jobs. `cost`: of the common variable; all others cost nothing."""

    def __init__(
        self, block: Block, uses: Floats, capacity: Floats, count: Floats, cost: float
    ) -> None:
        """`uses`: [J, K] GPUs per share."""
        own, limits, cones, cone_limits = block
        kinds = len(capacity)
        of_jobs, common = np.ones(own[:, 0, :-1].shape), 1.0
        sizes = capacity
        for _ in range(_SCALINGS):
            rows = _root(np.abs(own).max(axis=2))
            of_cones = _root(np.abs(cones).max(axis=2).sum(axis=1))  # one for all of a cone
            of_kinds = _root(uses.max(axis=0))
            columns = np.abs(own).max(axis=1)
            columns = np.maximum(columns, np.abs(cones).max(axis=1, initial=0.0))
            columns[:, :kinds] = np.maximum(columns[:, :kinds], uses)
            columns[:, -1] = columns[:, -1].max()
            columns = _root(columns)
            own = own / rows[:, :, None] / columns[:, None, :]
            cones = cones / of_cones[:, None, None] / columns[:, None, :]
            uses = uses / of_kinds / columns[:, :kinds]
            limits, sizes = limits / rows, sizes / of_kinds
            cone_limits = cone_limits / of_cones[:, None]
            of_jobs, common = of_jobs * columns[:, :-1], common * columns[0, -1]
        self.own, self.cones, self.uses, self.count = own, cones, uses, count[:, None]
        self._units = of_jobs
        self.linear = limits.size + kinds
        self.triples = len(cones) if cones.shape[1] else 0
        self.h = np.concatenate([limits.ravel(), sizes, cone_limits.ravel()])
        self.c = np.append(np.zeros(of_jobs.size), cost / common)
        of_own, of_cones = (np.repeat(count, x.shape[1]) for x in (limits, cones))
        self._rows = np.concatenate([of_own, np.ones(kinds), of_cones])
        self.degree = float(self._rows[: self.linear].sum() + count.sum() * (self.triples > 0))

    def split(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        """One number per inequality: [J, L] of jobs, [K] of kinds, [J, 3] of cones."""
        jobs, lines, _ = self.own.shape
        own = jobs * lines
        return (
            rows[:own].reshape(jobs, lines),
            rows[own : self.linear],
            rows[self.linear :].reshape(jobs, -1),
        )

    def times(self, y: Floats) -> Floats:
        """G y."""
        jobs, kinds = self.uses.shape
        of_jobs, common = y[:-1].reshape(jobs, -1), y[-1]
        own = (self.own[:, :, :-1] @ of_jobs[:, :, None])[:, :, 0] + self.own[:, :, -1] * common
        cones = (self.cones[:, :, :-1] @ of_jobs[:, :, None])[:, :, 0]
        cones += self.cones[:, :, -1] * common
        used = (self.count * self.uses * of_jobs[:, :kinds]).sum(axis=0)
        return np.concatenate([own.ravel(), used, cones.ravel()])

    def transposed(self, u: Floats) -> Floats:
        """G' u."""
        own, of_kinds, cones = self.split(u)
        every = (own[:, None, :] @ self.own)[:, 0] + (cones[:, None, :] @ self.cones)[:, 0]
        every[:, : len(of_kinds)] += self.uses * of_kinds
        return np.append(every[:, :-1], (self.count[:, 0] * every[:, -1]).sum())

    def value(self, y: Floats) -> float:
        """c y."""
        return float(self.c[-1] * y[-1])

    def over_rows(self, a: Floats, b: Floats) -> float:
        """The inner product of two vectors with one number per inequality."""
        return float((self._rows * a * b).sum())

    def variables(self, y: Floats) -> Floats:
        """[J, V] the variables of jobs, in their own units."""
        result: Floats = y[:-1].reshape(self._units.shape) / self._units
        return result


class NewtonSystem:
    """Solves G' u = a, G y - W^2 u = b.

    Jobs meet in the GPUs of a kind and in the common variable only. So each job's variables follow
    from a system of its own, in terms of the GPUs of kinds in use and of the common variable; and
    these from one of K + 1.
    """

    def __init__(self, program: ConeProgram, scaling: Scaling) -> None:
        self._program, self._scaling = program, scaling
        kinds = program.uses.shape[1]
        rows = np.append(scaling.weights, np.zeros(program.triples * 3))
        of_jobs, self._of_kinds, _ = program.split(rows)
        every = np.swapaxes(program.own * of_jobs[:, :, None], 1, 2) @ program.own
        if program.triples:
            every += np.swapaxes(program.cones, 1, 2) @ scaling.matrices @ program.cones
        own = every[:, :-1, :-1]
        # A variable in no inequality stays 0.
        own[:, np.arange(own.shape[1]), np.arange(own.shape[1])] += (own == 0.0).all(axis=2)
        self._inverse = np.linalg.inv(own)
        count, uses = program.count, program.uses
        self._common = every[:, :-1, -1]
        self._with_common = (self._inverse @ self._common[:, :, None])[:, :, 0]
        self._with_gpus = self._inverse[:, :, :kinds] * (uses[:, None, :] * self._of_kinds)
        shared = np.empty((kinds + 1, kinds + 1))
        used = (count * uses)[:, :, None] * self._with_gpus[:, :kinds]
        shared[:kinds, :kinds] = np.eye(kinds) + used.sum(axis=0)
        shared[:kinds, kinds] = (count * uses * self._with_common[:, :kinds]).sum(axis=0)
        pulled = (count * self._common)[:, :, None] * self._with_gpus
        shared[kinds, :kinds] = -pulled.sum(axis=(0, 1))
        of_itself = every[:, -1, -1] - (self._common * self._with_common).sum(axis=1)
        shared[kinds, kinds] = (count[:, 0] * of_itself).sum()
        self._shared = shared

    def solve(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """y and u."""
        program = self._program
        jobs, kinds = program.uses.shape
        right = a + program.transposed(self._weighted(b))
        alone = (self._inverse @ right[:-1].reshape(jobs, -1, 1))[:, :, 0]
        used = (program.count * program.uses * alone[:, :kinds]).sum(axis=0)
        common = right[-1] - (program.count * self._common * alone).sum()
        both = np.linalg.solve(self._shared, np.append(used, common))
        of_jobs = alone - self._with_common * both[-1] - self._with_gpus @ both[:-1]
        y = np.append(of_jobs, both[-1])
        return y, self._weighted(program.times(y) - b)

    def _weighted(self, rows: Floats) -> Floats:
        """W^-2 times a vector with one number per inequality."""
        linear = self._program.linear
        cones = self._scaling.matrices @ rows[linear:].reshape(-1, 3, 1)
        return np.append(self._scaling.weights * rows[:linear], cones)


def _root(sizes: Floats) -> Floats:
    """What to divide by."""
    return np.sqrt(np.where(sizes > _NO_SIZE, sizes, 1.0))

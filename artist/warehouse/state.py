"""Where tables are, and what follows: where jobs are, demand, storage and CPU by region."""

from __future__ import annotations

import numpy as np

from artist.warehouse.instance import PRIORITIES, Floats, Instance, Ints
from artist.warehouse.objective import Objective

SLACK = 1e-9
"""Sums of hours are rounded; a limit is broken by more than this part of it."""


class State:
    """Homes of all tables, and sums that each move keeps up to date."""

    def __init__(self, objective: Objective, home: Ints) -> None:
        self.objective = objective
        self.instance: Instance = objective.instance
        self._everywhere = np.arange(len(self.instance.regions))
        self.set_homes(home)
        share = objective.options.home_share
        urgent = float(self.instance.gpu_h[self.urgent].sum())
        self.urgent_gpu_h = urgent or 1.0
        """High-priority GPU hours of all jobs; 1 without any, so that shares are 0."""
        wanted = self.at_home_gpu_h if share is None else share * urgent
        self.threshold: float = wanted - SLACK * urgent
        """GPU hours of (6)."""

    def set_homes(self, home: Ints) -> None:
        """Give all tables their homes, and count everything anew."""
        self.home = home.copy()
        self.refresh()

    def refresh(self) -> None:
        """Count everything anew, so that rounding does not add up."""
        x = self.instance
        regions, jobs = len(x.regions), len(x.kind)
        cell = x.reads.owners * regions + self.home[x.reads.items]
        shape = (jobs, regions)
        self.count = np.bincount(cell, minlength=jobs * regions).reshape(shape).astype(np.int32)
        sizes = x.size[x.reads.items].astype(float)
        self.bytes = np.bincount(cell, sizes, jobs * regions).reshape(shape)
        """[J, R] how many of a job's tables have their home in a region, and how many bytes."""
        self.used = np.zeros(regions, np.int64)
        np.add.at(self.used, self.home, x.size)
        inside = self.count >= x.need[:, None]
        self.place = np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
        """[J] the job's region, -1 for none."""
        self.local = float(self.bytes[inside].sum())
        here = np.flatnonzero((self.place >= 0) & (x.kind >= 0))
        cell = (self.place[here] * len(x.kinds) + x.kind[here]) * PRIORITIES + x.priority[here]
        shape3 = (regions, len(x.kinds), PRIORITIES)
        hours = np.bincount(cell, x.gpu_h[here], int(np.prod(shape3)))
        self.demand: Floats = hours.astype(float).reshape(shape3)
        self.urgent = (x.kind >= 0) & (x.priority < self.objective.options.urgent)
        self.at_home_gpu_h = float(x.gpu_h[self._at_home()].sum())
        self.cpu = np.zeros_like(x.cpu_limit)
        here = np.flatnonzero((self.place >= 0) & (x.application >= 0))
        np.add.at(self.cpu, (x.application[here], self.place[here]), x.cpu_h[here])

    def _at_home(self) -> Ints:
        """The urgent jobs whose region has the GPUs that they need (6)."""
        x = self.instance
        jobs = np.flatnonzero(self.urgent & (self.place >= 0))
        at_home: Ints = jobs[x.supply[self.place[jobs], x.kind[jobs]] > 0]
        return at_home

    def urgent_demand(self) -> Floats:
        """[R, K] GPU hours of high priority in each region."""
        demand: Floats = self.demand[:, :, : self.objective.options.urgent].sum(axis=2)
        return demand

    def ratios(self) -> Floats:
        """[R] GPU hours of high priority in each region, over its supply."""
        ratios: Floats = self.urgent_demand().sum(axis=1) / self.instance.supply.sum(axis=1)
        return ratios

    def terms(self) -> dict[str, float]:
        """The value of each term of the objective."""
        read = self.objective.w_read * (self.instance.all_read_bytes - self.local)
        gpu = float(self.objective.gpu(self.demand, self._everywhere).sum())
        overload = float(self.objective.overload(self.demand, self._everywhere).sum())
        return {
            "read": read,
            "gpu": gpu - overload,
            "overload": overload,
            "storage": float(self.objective.stored(self.used, self._everywhere).sum()),
        }

    def cost(self) -> float:
        """The objective."""
        return sum(self.terms().values())

    def move(self, table: int, region: int) -> None:
        """Give a table another home, without checks."""
        x = self.instance
        old, size = int(self.home[table]), int(x.size[table])
        jobs = x.readers.of(table)
        self._count_jobs(jobs, -1)
        self.count[jobs, old] -= 1
        self.bytes[jobs, old] -= size
        self.count[jobs, region] += 1
        self.bytes[jobs, region] += size
        inside = self.count[jobs] >= x.need[jobs, None]
        self.place[jobs] = np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
        self._count_jobs(jobs, 1)
        self.used[old] -= size
        self.used[region] += size
        self.home[table] = region

    def _count_jobs(self, jobs: Ints, sign: int) -> None:
        """Add jobs to the sums of their regions, or take them out (`sign` -1)."""
        x = self.instance
        jobs = jobs[self.place[jobs] >= 0]
        place = self.place[jobs]
        self.local += sign * float(self.bytes[jobs, place].sum())
        training = x.kind[jobs] >= 0
        j, p = jobs[training], place[training]
        np.add.at(self.demand, (p, x.kind[j], x.priority[j]), sign * x.gpu_h[j])
        at_home = self.urgent[j] & (x.supply[p, x.kind[j]] > 0)
        self.at_home_gpu_h += sign * float(x.gpu_h[j][at_home].sum())
        counted = x.application[jobs] >= 0
        j, p = jobs[counted], place[counted]
        np.add.at(self.cpu, (x.application[j], p), sign * x.cpu_h[j])

    def breaks(self, used: Ints, cpu: Floats) -> bool:
        """Whether (4), (5) or (6) is broken now, given what was used at the start.

        What is above its limit at the start may only fall.
        """
        x = self.instance
        return bool(
            (self.used > np.maximum(x.storage, used)).any()
            or (self.cpu > np.maximum(x.cpu_limit, cpu) * (1 + SLACK) + SLACK).any()
            or self.at_home_gpu_h < self.threshold
        )


class Quota:
    """What is left of the day's quota of moved bytes.

    It counts tables that are not where they were when the day began. A table that moves back
    returns its bytes to the quota.
    """

    def __init__(self, start: Ints, size: Ints, most_bytes: int) -> None:
        """`start`: [T] homes when the day began. `size`: [T] bytes."""
        self.start, self._size, self.most_bytes = start, size, most_bytes
        self.left_bytes = most_bytes

    def allows(self, home: Ints, tables: Ints, region: int) -> bool:
        """Whether tables may go from their homes to a region."""
        return self._more(tables, home[tables], region) <= self.left_bytes

    def take(self, tables: Ints, before: Ints, region: int) -> None:
        """Count tables that went from `before` to a region."""
        self.left_bytes -= self._more(tables, before, region)

    def restore(self, home: Ints) -> None:
        """Count anew after all homes were set."""
        self.left_bytes = self.most_bytes - int(self._size[home != self.start].sum())

    def _more(self, tables: Ints, before: Ints, region: int) -> int:
        start, size = self.start[tables], self._size[tables]
        return int((size * (start != region)).sum() - (size * (start != before)).sum())

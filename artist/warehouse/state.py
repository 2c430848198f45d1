"""Homes of tables, and what follows from them: regions of jobs, demand, storage and CPU."""

from __future__ import annotations

import numpy as np

from artist.warehouse.instance import PRIORITIES, Floats, Instance, Ints
from artist.warehouse.objective import WarehouseObjective
from artist.warehouse.scalars import SLACK, Constants, Scalars

NOWHERE = -1
"""The region of a job that is in none."""


class State:
    """Homes of all tables, and sums that each move keeps up to date."""

    def __init__(self, objective: WarehouseObjective, home: Ints) -> None:
        self.objective = objective
        self.instance: Instance = objective.instance
        self._constants = Constants(objective)
        self._everywhere = np.arange(len(self.instance.regions))
        self.set_homes(home)
        share = objective.options.home_share
        urgent = float(self.instance.gpu_h[self.urgent].sum())
        self.urgent_gpu_h = urgent or 1.0
        """High-priority GPU hours of all jobs; 1 if there are none, so that shares are 0."""
        wanted = self.at_home_gpu_h if share is None else share * urgent
        self.threshold: float = wanted - SLACK * urgent
        """GPU hours that (6) requires at home."""

    def set_homes(self, home: Ints) -> None:
        """Set the homes of all tables, and recompute all sums."""
        self.home = home.copy()
        self.refresh()

    def refresh(self) -> None:
        """Recompute all sums, so that rounding errors do not accumulate."""
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
        self.place = np.where(inside.any(axis=1), inside.argmax(axis=1), NOWHERE)
        """[J] the job's region, or NOWHERE."""
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
        self.scalars = Scalars(self._constants, self)

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
        """[R] ratio of high-priority GPU hours to supply in each region."""
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
        return self.scalars.cost(self.local)

    def move(self, table: int, region: int) -> None:
        """Give a table another home, without checks."""
        x, at = self.scalars.constants, self.scalars
        old, size = at.home[table], x.size[table]
        if old == region:
            return
        at.home[table] = region
        at.used[old] -= size
        at.used[region] += size
        changed: set[int] = set()
        for job in x.jobs_of(table):
            here, there = job * x.regions + old, job * x.regions + region
            place, need = at.place[job], x.need[job]
            leaves, enters = at.count[here] == need, at.count[there] == need - 1
            if place == old:
                self.local -= at.bytes[here] if leaves else size
            at.count[here] -= 1
            at.bytes[here] -= size
            at.count[there] += 1
            at.bytes[there] += size
            if enters or place == region:
                self.local += at.bytes[there] if enters else size
            if leaves:
                self._count(job, old, -1, changed)
                at.place[job] = NOWHERE
            if enters:
                self._count(job, region, 1, changed)
                at.place[job] = region
        for cell in changed:
            at.recount(cell)

    def _count(self, job: int, region: int, sign: int, changed: set[int]) -> None:
        """Add a job to the sums of a region, or take it out (`sign` -1)."""
        x, at = self.scalars.constants, self.scalars
        kind, application = x.kind[job], x.application[job]
        if kind >= 0:
            place = region * x.kinds + kind
            hours, priority = sign * x.gpu_h[job], x.priority[job]
            at.demand[place * PRIORITIES + priority] += hours
            changed.add(place)
            if priority < x.options.urgent and x.supply[place] > 0:
                self.at_home_gpu_h += hours
        if application >= 0:
            at.cpu[application * x.regions + region] += sign * x.cpu_h[job]

    def breaks(self, used: Ints, cpu: Floats) -> bool:
        """Whether (4), (5) or (6) is broken.

        Usage that was above its limit at the start is allowed, but must not grow.
        """
        x = self.instance
        return bool(
            (self.used > np.maximum(x.storage, used)).any()
            or (self.cpu > np.maximum(x.cpu_limit, cpu) * (1 + SLACK) + SLACK).any()
            or self.at_home_gpu_h < self.threshold
        )


class Quota:
    """What is left of a day's quota of moved bytes.

    It counts the tables that are not where the day began. A table that moves back returns its bytes
    to the quota.
    """

    def __init__(self, start: Ints, size: Ints, most_bytes: int) -> None:
        """`start`: [T] homes when the day began. `size`: [T] bytes."""
        self.start, self._size, self.most_bytes = start, size, most_bytes
        self.left_bytes = most_bytes

    def allows(self, home: Ints, tables: Ints, region: int) -> bool:
        """Whether the quota allows tables to move from their homes to a region."""
        return self._more(tables, home[tables], region) <= self.left_bytes

    def take(self, tables: Ints, before: Ints, region: int) -> None:
        """Count tables that went from `before` to a region."""
        self.left_bytes -= self._more(tables, before, region)

    def restore(self, home: Ints) -> None:
        """Recompute what is left, after all homes were set."""
        self.left_bytes = self.most_bytes - int(self._size[home != self.start].sum())

    def _more(self, tables: Ints, before: Ints, region: int) -> int:
        start, size = self.start[tables], self._size[tables]
        return int((size * (start != region)).sum() - (size * (start != before)).sum())

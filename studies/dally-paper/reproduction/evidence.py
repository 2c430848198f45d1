"""What the rows say: values over replicates, and paired differences told apart from noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from records import Record

from artist.results.bootstrap import Difference, bootstrap

Replicate: TypeAlias = tuple[int, int, str]
"""Seed, permutation, and the machine order of the original program's rules."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of runs that differ in nothing but the replicate."""

    study: str
    trace: str
    racks: int
    policy: str
    options: str = ""

    def of(self, **changes: Any) -> Cell:
        """The same cell with some fields changed."""
        return replace(self, **changes)


class Evidence:
    """Rows by cell and replicate."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._rows: dict[Cell, dict[Replicate, Record]] = {}
        for row in records:
            options, order = _without_order(row.options)
            cell = Cell(row.study, row.trace, row.racks, row.policy, options)
            self._rows.setdefault(cell, {})[row.seed, row.permutation, order] = row

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(map(len, self._rows.values()))

    def has(self, cell: Cell) -> bool:
        """Whether there are runs of a cell."""
        return cell in self._rows

    def rows(self, cell: Cell) -> Mapping[Replicate, Record]:
        """A cell's rows by replicate.

        Raises:
            KeyError: no such runs.
        """
        return self._rows[cell]

    def values(self, cell: Cell, metric: str) -> list[float]:
        """A metric over a cell's replicates."""
        return [row.number(metric) for row in self._rows[cell].values()]

    def middle(self, cell: Cell, metric: str) -> float:
        """The median of a metric over a cell's replicates."""
        return median(self.values(cell, metric))

    def difference(
        self, cell: Cell, rival: Cell, metric: str, replicates: int | None = None
    ) -> Difference:
        """A cell against its rival on the replicates that both have, relative to the rival.

        The statistics are those of `artist compare`: the mean of the paired differences, and its
        95 % percentile bootstrap interval. `replicates` takes only so many of them.
        """
        mine, theirs = self._rows[cell], self._rows[rival]
        shared = [key for key in mine if key in theirs][:replicates]
        ours = np.array([mine[key].number(metric) for key in shared])
        base = np.array([theirs[key].number(metric) for key in shared])
        # Where the rival has 0 (no job waited) there is no relative difference: it is 0 if the
        # cell has 0 too, else infinite.
        relative = np.where(
            base == 0,
            np.where(ours == 0, 0.0, np.inf),
            (ours - base) / np.where(base == 0, 1, base),
        )
        low, high = bootstrap(relative, metric)
        return Difference(metric, float(relative.mean()), low, high)


def _without_order(options: str) -> tuple[str, str]:
    """The options of a row without its machine order, which tells replicates apart."""
    words = options.split(" ") if options else []
    orders = [word for word in words if word.startswith("policy.machine_order_seed=")]
    return " ".join(word for word in words if word not in orders), "".join(orders)

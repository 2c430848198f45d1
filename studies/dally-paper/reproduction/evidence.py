"""What the rows say: values over replicates, and paired differences, judged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeAlias, TypeVar

from records import Record

from artist.results.statistics.compare_values import ComparedValues, clusters_of, compare_values
from artist.results.statistics.holm import holm

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

    def replicates(self, cell: Cell) -> int:
        """How many replicates a cell has."""
        return len(self._rows[cell])

    def difference(
        self, cell: Cell, rival: Cell, metric: str, replicates: int | None = None
    ) -> ComparedValues:
        """A cell against its rival on the replicates that both have, judged alone.

        The statistics are those of `artist compare`. What a page shows is judged `together`.
        `replicates` takes only this many of them.
        """
        mine, theirs = self._rows[cell], self._rows[rival]
        shared = [key for key in mine if key in theirs][:replicates]
        return compare_values(
            [theirs[key].number(metric) for key in shared],
            [mine[key].number(metric) for key in shared],
            clusters_of([(seed, permutation) for seed, permutation, _ in shared]),
        )


Key = TypeVar("Key", bound=Hashable)


def together(
    differences: Mapping[Key, ComparedValues], family: Callable[[Key], Hashable]
) -> dict[Key, ComparedValues]:
    """The differences with verdicts that hold together in each family (Holm).

    A family is what one `artist compare` judges together: all policies and metrics on one cluster
    and one trace, in one regime.
    """
    members: dict[Hashable, dict[Key, ComparedValues]] = {}
    for key, difference in differences.items():
        members.setdefault(family(key), {})[key] = difference
    judged: dict[Key, ComparedValues] = {}
    for part in members.values():
        judged |= zip(part, holm(list(part.values())), strict=True)
    return {key: judged[key] for key in differences}


def _without_order(options: str) -> tuple[str, str]:
    """The options of a row without its machine order, which tells replicates apart."""
    words = options.split(" ") if options else []
    orders = [word for word in words if word.startswith("policy.machine_order_seed=")]
    return " ".join(word for word in words if word not in orders), "".join(orders)

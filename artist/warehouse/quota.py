"""The day's quota of moved bytes: those of tables that are elsewhere than when the day began."""

from __future__ import annotations

from artist.warehouse.instance import Ints


class Quota:
    """What of the quota is left. A table that moves back gives its bytes back."""

    def __init__(self, start: Ints, size: Ints, most_bytes: int) -> None:
        """`start`: [T] homes when the day began. `size`: [T] bytes."""
        self.start, self._size, self.most_bytes = start, size, most_bytes
        self.left_bytes = most_bytes

    def allows(self, home: Ints, tables: Ints, region: int) -> bool:
        """Whether tables may go from their homes to a region."""
        return self._more(tables, home[tables], region) <= self.left_bytes

    def take(self, tables: Ints, before: Ints, region: int) -> None:
        """Tables went from `before` to a region."""
        self.left_bytes -= self._more(tables, before, region)

    def restore(self, home: Ints) -> None:
        """All homes have changed."""
        self.left_bytes = self.most_bytes - int(self._size[home != self.start].sum())

    def _more(self, tables: Ints, before: Ints, region: int) -> int:
        start, size = self.start[tables], self._size[tables]
        return int((size * (start != region)).sum() - (size * (start != before)).sum())

"""Tables of a run, some of which are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from artist.results.metrics import Table


class LazyTables(Mapping[str, Table]):
    """Tables by name: those that are there, then those that are still to be computed."""

    def __init__(
        self, there: Mapping[str, Table], later: Mapping[str, Callable[[], Table]]
    ) -> None:
        self._there = dict(there)
        self._later = dict(later)
        self._names = tuple(dict.fromkeys((*there, *later)))

    def __getitem__(self, name: str) -> Table:
        if name not in self._there:
            self._there[name] = self._later[name]()
            del self._later[name]
        return self._there[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

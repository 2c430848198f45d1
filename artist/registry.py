"""Plugins as rows of data.

A registry maps an id to where its implementation lives, as text, so that
listing is free and nothing is imported before it is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from artist.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `target` is `module:attribute`; `preset` are fixed options of that target."""

    id: str
    target: str
    summary: str
    paper: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Any:
        """Import and return the target."""
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)


class Registry:
    """An ordered table of entries with unique ids."""

    def __init__(self, kind: str, remedy: str, entries: list[Entry]) -> None:
        self.kind = kind
        self.remedy = remedy
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Register one more row; a duplicate id is a programming error."""
        if entry.id in self._entries:
            raise ValueError(f"duplicate {self.kind} id {entry.id!r}")
        self._entries[entry.id] = entry

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._entries, self.remedy) from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

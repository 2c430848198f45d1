"""Tables of what users choose by name: policies, backends, built-in traces.

A registry maps an id to the place of its implementation, written as text. So listing a table
imports nothing, and an implementation is imported when it is first used. The rows are in
`policies/table.py`, `estimates/backends.py` and `trace/named.py`.

    POLICIES["dally"].load()    # the class Dally
    POLICIES["daly"]            # UnknownNameError: unknown policy 'daly': did you mean 'dally'? ...

The words of that message are in `errors.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from artist.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `target` is `module:attribute`; `preset` holds fixed options of that target.

    `wraps` marks a policy that takes another policy inside: `NAME(POLICY)`.
    """

    id: str
    target: str
    summary: str
    paper: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)
    wraps: bool = False

    @property
    def usage(self) -> str:
        """The form in which a user writes the name: `NAME`, or `NAME(POLICY)`."""
        return f"{self.id}(POLICY)" if self.wraps else self.id

    def load(self) -> Any:
        """Import and return the target."""
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)


class Registry:
    """An ordered table of entries with unique ids.

    Two parts of the message about an unknown name: `kind` says what the entries are (`policy`),
    `remedy` says where they are listed (`artist list policies`).
    """

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

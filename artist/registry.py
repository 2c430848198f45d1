"""Tables of what users choose by name, and the message about a misspelt name.

Policies, backends and built-in traces are such tables. A registry maps an id to the place of its
implementation, written as text. So listing a table imports nothing, and an implementation is
imported when it is first used. The rows are in `policies/table.py`, `estimates/backends.py` and
`trace/named.py`.

    POLICIES["dally"].load()    # the class Dally
    POLICIES["daly"]            # UnknownNameError: unknown policy 'daly': did you mean 'dally'? ...
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artist.errors import ConfigError, closest_three, nearest, shortened
from artist.io.shipped import document_names, document_path


class UnknownNameError(ConfigError):
    """A name is not known. The message suggests the nearest known name.

    `kind` says what is named (`policy`). `remedy` says where the known names are listed
    (`artist list policies`). `least` is that of `nearest`.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], remedy: str, least: float = 0.5
    ) -> None:
        near = nearest(name.casefold(), known, least) or nearest(name, known, least)
        hint = f": did you mean {near!r}?" if near else ""
        super().__init__(f"unknown {kind} {shortened(name)}{hint} ({remedy})")
        self.name = name

    # Errors cross processes. An exception is unpickled by calling its class with `args`, which
    # holds only the message, and this class takes more arguments.
    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigError, (str(self),))


def named_document(folder: str, name: str, kind: str) -> Path:
    """`document_path` of a kind of documents that `artist list FOLDER` lists.

    Raises:
        UnknownNameError: there is none of this name.
    """
    path = document_path(folder, name)
    if path is None:
        raise UnknownNameError(kind, name, document_names(folder), f"artist list {folder}")
    return path


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `target` is `module:attribute`; `preset` holds fixed options of that target.

    `wraps` marks a policy that takes another policy inside: `NAME(POLICY)`. `everyday` policies
    need no training and no file, and are not variants of another: `artist compare` runs them
    unasked. A row with a `host` is a wrapper around that policy, and is named without it.
    `knows_run_times` marks a policy that reads how long a job will run. No real scheduler can.
    """

    id: str
    target: str
    summary: str
    paper: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)
    wraps: bool = False
    host: str = ""
    everyday: bool = True
    knows_run_times: bool = False

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
        self._shipped: frozenset[str] = frozenset()
        for entry in entries:
            if entry.id in self._entries:
                raise ValueError(f"duplicate {self.kind} id {entry.id!r}")
            self.add(entry)
        self._shipped = frozenset(self._entries)

    def add(self, entry: Entry) -> None:
        """Register one more row. One that was added before is replaced, with a warning.

        So a cell of a notebook can be run twice. The rows that artist ships stay: a result that
        names one of them must not mean something else.

        Raises:
            ConfigError: the id is that of a row that artist ships.
        """
        if entry.id in self._shipped:
            raise ConfigError(
                f"{self.kind} {entry.id!r} is one of artist's own; give yours another name"
            )
        if entry.id in self._entries:
            warnings.warn(f"{self.kind} {entry.id!r} was added before: replaced", stacklevel=2)
        self._entries[entry.id] = entry

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            near = nearest(name.casefold(), self._entries) or nearest(name, self._entries)
            listed = "" if near else f"{closest_three(name, self._entries)}; "
            raise UnknownNameError(
                self.kind, name, self._entries, f"{listed}{self.remedy}"
            ) from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

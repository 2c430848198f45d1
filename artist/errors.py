"""Every error that a user of artist can meet, its exit code, and the words of its message.

A message is one sentence: what happened, where (file and line, or field), the value, what was
expected, what to do. Code inside the package raises these errors. The command line prints the
message and ends with `exit_code`.

`artist.registry` adds the error about a misspelt name, `UnknownNameError`.
"""

from __future__ import annotations

import difflib
import itertools
import re
import reprlib
from collections.abc import Iterable

# Comparing takes 10 us a name, and a file may hold millions of them.
_COMPARED = 10_000

# Names at least this similar differ by a slip of the finger: `rack` and `racks`.
_SLIP = 0.85

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


class ArtistError(Exception):
    """Root of all errors that artist raises on purpose.

    A message may quote a file. Whatever the file holds, the message is one line of printable text.
    """

    exit_code = 2

    def __str__(self) -> str:
        """The sentence."""
        return one_line(super().__str__(), most=1500)


class ConfigError(ArtistError):
    """A flag, scenario, fabric or other setting is wrong."""

    exit_code = 2


class TraceError(ArtistError):
    """A trace or another data file is malformed, or a job in it cannot run here."""

    exit_code = 3


class BackendError(ArtistError):
    """A latency backend could not answer."""

    exit_code = 4


class BackendSettingError(BackendError):
    """A backend would crash, hang or give a wrong answer to this query.

    `reason` is a short machine-readable word (`zero-endpoint-delay`,
    `deadlock`, `bad-setting`, `unsupported-backend`).
    """

    def __init__(self, message: str, reason: str = "bad-setting") -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.reason))


class DivisionError(BackendSettingError):
    """The GPUs of a placement do not divide as a model's degrees of parallelism ask."""

    exit_code = 2


class InvariantError(ArtistError):
    """A law of the simulator is broken: by itself, a rate function or an event source."""

    exit_code = 5


class PolicyError(InvariantError):
    """A policy returned an invalid decision or stopped making progress."""


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name that a misspelt one most likely stands for; None if none is near.

    `least`: the share of letters that near names have in common.

    >>> nearest("jct", ["makespan_s", "jct_mean_s", "jct_p99_s"])
    'jct_mean_s'
    >>> nearest("h100", ["a100", "h100-quantum2-spectrum4", "hgx-h100"])
    'hgx-h100'
    >>> nearest("lsa", ["las", "sia"])
    'las'
    """
    some = list(itertools.islice(known, _COMPARED))
    family = _family(name, some)
    some.sort()
    near = (
        [one for one in some if _has_two_letters_swapped(one, name)]
        or difflib.get_close_matches(name, some, n=1, cutoff=_SLIP)
        or family
        or _containing(name, some)
        or difflib.get_close_matches(name, some, 1, cutoff=least)
    )
    return near[0] if near else None


def closest_three(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """The end of a message about an unknown name of many: `closest: a, b, c`.

    `least` is that of `nearest`; the text is empty where no name is as near.

    >>> closest_three("jct", ["makespan_s", "jct_mean_s", "gpus", "jct_p95_s", "wall_s"])
    'closest: jct_mean_s, jct_p95_s, wall_s'
    """
    known = list(known)
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=least)
    alike = list(dict.fromkeys([*_family(name, known), *_containing(name, known), *near]))
    return f"closest: {', '.join(alike[:3])}" if alike else ""


def _has_two_letters_swapped(one: str, other: str) -> bool:
    differ = sum(a != b for a, b in zip(one, other, strict=False))
    return differ == 2 and sorted(one) == sorted(other)


def _family(name: str, known: Iterable[str]) -> list[str]:
    """The known names that begin with this one and `_`, in their order: the chief one is first."""
    return [one for one in known if name and one.startswith(f"{name}_")]


def _containing(name: str, known: Iterable[str]) -> list[str]:
    """The known names that have this one as a word or words, the shortest first."""
    words = _as_words(name)
    return sorted((one for one in known if words.strip() and words in _as_words(one)), key=len)


def _as_words(name: str) -> str:
    return f" {re.sub(r'[^a-z0-9]+', ' ', name.lower())} "


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known name, or all of them.

    >>> did_you_mean("lease", ["lease_s", "order"])
    "did you mean 'lease_s'?"
    >>> did_you_mean("racks", ["lease_s", "order"])
    'known: lease_s, order'
    """
    known = list(known)
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else "known: " + ", ".join(known)


def shortened(value: object) -> str:
    """A value for a message: its `repr`, at most 80 characters long."""
    try:
        return one_line(_REPR.repr(value), most=80)
    except ValueError:  # Python refuses to print an integer of more than 4300 digits
        return f"a {type(value).__name__} of too many digits"


def one_line(text: str, most: int = 120) -> str:
    """The text as one line of printable characters; `...` replaces the middle of a long text."""
    if len(text) > most:
        text = f"{text[: most * 2 // 3]} ... {text[-(most // 3 - 5) :]}"
    return printable(text, but="")


def printable(text: str, but: str = "\n\t") -> str:
    """The text with `\\x1b` and the like in place of what a terminal would obey, `but` for some.

    >>> printable("a\\x1b[31mb\\u202e")
    'a\\\\x1b[31mb\\\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else repr(c)[1:-1] for c in text)

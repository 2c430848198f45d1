"""Make stdout and stderr fail cleanly: without a reader, or without a way to show a character.

The reader of stdout may end before we do (`artist sim | head -1`). That is not an error,
so the command ends at once with exit code 0. rich and Typer would each choose another exit code.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO


class ReaderGone(BaseException):
    """The reader of stdout has ended.

    It is not an `Exception`, so no handler of errors in a library catches it.
    """


class _Stream:
    """A text stream that hands everything on to the one inside."""

    def __init__(self, inside: TextIO) -> None:
        self._inside = inside

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)


class _Results(_Stream):
    """stdout."""

    def write(self, text: str) -> int:
        try:
            return self._inside.write(text)
        except BrokenPipeError:
            raise ReaderGone from None

    def flush(self) -> None:
        try:
            self._inside.flush()
        except BrokenPipeError:
            raise ReaderGone from None


class _Notes(_Stream):
    """stderr. Without a reader, its text is dropped and the command goes on."""

    def write(self, text: str) -> int:
        with contextlib.suppress(BrokenPipeError):
            self._inside.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._inside.flush()


def make_streams_safe() -> None:
    """Do not fail when stdout or stderr is closed or cannot show a character.

    From here on a write to stdout raises `ReaderGone` if its reader has ended.
    """
    sys.stdout = _safe(sys.stdout, _Results)
    sys.stderr = _safe(sys.stderr, _Notes)


def forget_stdout() -> None:
    """Discard unwritten output, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _safe(stream: Any, kind: type[_Stream]) -> Any:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123
    stream.reconfigure(errors="backslashreplace")
    return stream if isinstance(stream, kind) else kind(stream)

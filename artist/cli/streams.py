"""stdout and stderr that fail in order: when nobody reads them, and when they cannot show a text.

The reader of stdout may end before we do (`artist sim | head -1`). That is no error, and the
command ends at once. rich and Typer would each make an exit code of their own of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO


class ReaderGone(BaseException):  # noqa: N818 - like `Interrupted`, it is no error
    """Nobody reads stdout any more.

    It is not an `Exception`, so no handler of errors in a library catches it.
    """


class _Results(io.TextIOWrapper):
    """stdout."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            raise ReaderGone from None

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise ReaderGone from None


class _Notes(io.TextIOWrapper):
    """stderr. What nobody reads is dropped, and the command goes on."""

    def write(self, text: str, /) -> int:
        with contextlib.suppress(BrokenPipeError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            super().flush()


def make_streams_safe() -> None:
    """Do not fail when stdout or stderr is closed or cannot show a character.

    From here on a write to stdout raises `ReaderGone` if its reader has ended.
    """
    sys.stdout = _safe(sys.stdout, _Results)
    sys.stderr = _safe(sys.stderr, _Notes)


def forget_stdout() -> None:
    """Send what is still unwritten nowhere, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _safe(stream: TextIO | None, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    return kind(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=bool(stream.line_buffering),
    )

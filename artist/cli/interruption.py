"""How a command ends early without a traceback: by a signal, or if nobody reads its output.

Ctrl-C, SIGTERM and SIGHUP (a terminal that is closed) raise `Interrupted`. The command removes its
scratch files and says how far it came.

The reader of stdout may end before we do (`artist sim | head -1`). That is not an error, so the
command ends at once with exit code 0. rich and Typer would each choose another exit code.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Any, TextIO


class Interrupted(BaseException):
    """A signal asked the command to stop. `how_far` says how far the command had come.

    It is not an `Exception`, so no handler of errors catches it and carries on. It is not a
    `KeyboardInterrupt` either, because Typer would end the command without a message.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number  # as a shell reports it
        self.is_read = signal_number != signal.SIGHUP
        """Whether output may still be read; nobody reads a terminal that is closed."""
        self.how_far = ""

    def __str__(self) -> str:
        return f"interrupted {self.how_far}".rstrip()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_received: list[int] = []


def listen() -> None:
    """Raise `Interrupted` on SIGINT, SIGTERM and SIGHUP, except on those that are ignored already.

    A program that starts this one may ignore them, as `nohup` and shells do.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _say_unless_interrupted


def stop_listening() -> None:
    """Ignore further signals: the command is about to end, and says so."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _say_unless_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """Do not print an `Interrupted` that Python cannot raise, such as in a finaliser.

    `raise_if_lost` raises it again.
    """
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)


def raise_if_lost() -> None:
    """Raise `Interrupted` again if a signal was received but its exception was lost.

    Compiled modules can lose it. While pyarrow imports pandas, it takes any exception to mean that
    pandas is not installed.
    """
    if _received:
        raise Interrupted(_received[0])


def _interrupt(signal_number: int, _frame: FrameType | None) -> None:
    _received.append(signal_number)
    raise Interrupted(signal_number)


class ReaderGone(BaseException):
    """The reader of stdout has ended.

    It is not an `Exception`, so no handler of errors in a library catches it.
    """


class _Stream:
    """A text stream that delegates to another one."""

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

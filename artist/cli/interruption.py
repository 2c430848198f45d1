"""Ctrl-C and SIGTERM end a command in order: scratch files go, and it says how far it came."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupted(BaseException):
    """A signal asked the command to stop; `how_far` says how far it had come.

    No `Exception`, so nothing on the way out takes it for an error and carries on, and no
    `KeyboardInterrupt`, which the command-line library would end without a word.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number  # as a shell reports it
        self.how_far = ""

    def __str__(self) -> str:
        return f"interrupted {self.how_far}".rstrip()


_received: list[int] = []


def listen() -> None:
    """Raise `Interrupted` on SIGINT and SIGTERM, unless whoever started us has them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def raise_if_lost() -> None:
    """Raise again what a signal raised in a place that swallows everything.

    Compiled modules do: pyarrow takes whatever ends its import of pandas for "no pandas here".
    """
    if _received:
        raise Interrupted(_received[0])


def _interrupt(signal_number: int, _frame: FrameType | None) -> None:
    _received.append(signal_number)
    raise Interrupted(signal_number)

"""Ctrl-C, SIGTERM and SIGHUP (a terminal that is closed) end a command in order.

The command removes its scratch files and says how far it came.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


class Interrupted(BaseException):
    """A signal asked the command to stop. `how_far` says how far the command had come.

    It is not an `Exception`, so no handler of errors catches it and carries on. It is not a
    `KeyboardInterrupt` either, because Typer would end the command without a message.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number  # as a shell reports it
        self.is_read = signal_number != signal.SIGHUP
        """Whether somebody may read what is printed now; no one reads a terminal that is closed."""
        self.how_far = ""

    def __str__(self) -> str:
        return f"interrupted {self.how_far}".rstrip()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_received: list[int] = []


def listen() -> None:
    """Raise `Interrupted` on SIGINT, SIGTERM and SIGHUP, but not on one that is ignored already.

    A program that starts us may have set that, as `nohup` and shells do.
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

"""Messages under way: what arrives is matched with what is expected."""

from __future__ import annotations

from collections import deque
from functools import partial

from artist.astra.messages.event_order import Action, Agenda

Address = tuple[int, int, int, int]
"""(stream, sender, receiver, bytes). Messages with the same address arrive in order of sending."""


class Mailbox:
    """Messages that have arrived unexpected, and actions that expect a message."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._arrived: dict[Address, int] = {}
        self._expected: dict[Address, deque[Action]] = {}

    def send(self, address: Address, duration_ns: int) -> None:
        """Let a message arrive after its time on the network."""
        self._agenda.plan(duration_ns, partial(self._arrive, address))

    def expect(self, address: Address, action: Action) -> None:
        """Perform `action` when the next message with this address has arrived."""
        if arrived := self._arrived.pop(address, 0):
            if arrived > 1:
                self._arrived[address] = arrived - 1
            # ASTRA-sim plans an event without delay here; it does not act at once.
            self._agenda.plan(0, action)
        else:
            self._expected.setdefault(address, deque()).append(action)

    def _arrive(self, address: Address) -> None:
        waiting = self._expected.get(address)
        if waiting is None:
            self._arrived[address] = self._arrived.get(address, 0) + 1
            return
        action = waiting.popleft()
        if not waiting:
            del self._expected[address]
        action()

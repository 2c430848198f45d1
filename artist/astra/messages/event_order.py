"""The order of events in ASTRA-sim: one agenda for all NPUs, and one list per NPU and instant.

Events of one instant happen in the order in which they were planned. All events that an NPU
plans for itself at one instant happen together, at the place of the first of them. For example,
events of the NPUs A and B that are planned for one instant in the order A1, B1, A2 happen in
the order A1, A2, B1. All times are in nanoseconds.

A mailbox matches the messages that arrive with those that are expected.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial

Action = Callable[[], None]


class Agenda:
    """Actions by time; `now_ns` is the time of the action that is being performed."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._times: list[int] = []
        self._actions: dict[int, list[Action]] = {}

    def plan(self, delay_ns: int, action: Action) -> None:
        """Perform `action` after a delay, behind everything already planned for that instant."""
        at_ns = self.now_ns + delay_ns
        actions = self._actions.get(at_ns)
        if actions is None:
            self._actions[at_ns] = [action]
            heapq.heappush(self._times, at_ns)
        else:
            actions.append(action)

    def run(self) -> None:
        """Perform all actions, including those that are planned meanwhile."""
        while self._times:
            self.now_ns = heapq.heappop(self._times)
            # The list grows during the loop when an action plans another one without delay.
            for action in self._actions[self.now_ns]:
                action()
            del self._actions[self.now_ns]


class EventClock:
    """The events of one NPU."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._actions: dict[int, list[Action]] = {}

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._agenda.now_ns

    def plan(self, delay_ns: int, action: Action) -> None:
        """Perform `action` after a delay, together with the NPU's other events of that instant."""
        at_ns = self._agenda.now_ns + delay_ns
        actions = self._actions.get(at_ns)
        if actions is None:
            self._actions[at_ns] = [action]
            self._agenda.plan(delay_ns, self._perform)
        else:
            actions.append(action)

    def _perform(self) -> None:
        now_ns = self._agenda.now_ns
        # As in `Agenda.run`, the list may grow during the loop.
        for action in self._actions[now_ns]:
            action()
        del self._actions[now_ns]


Address = tuple[tuple[int | str, int], int, int, int]
"""(stream or tag, sender, receiver, bytes). Messages of one address arrive in order of sending."""


class Mailbox:
    """Messages that arrived before they were expected, and actions that expect a message."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._arrived: dict[Address, int] = {}
        self._expected: dict[Address, deque[Action]] = {}

    def send(self, address: Address, duration_ns: int) -> None:
        """Let a message arrive after its time on the network."""
        self._agenda.plan(duration_ns, partial(self.arrive, address))

    def expect(self, address: Address, action: Action) -> None:
        """Perform `action` when the next message with this address has arrived."""
        if arrived := self._arrived.pop(address, 0):
            if arrived > 1:
                self._arrived[address] = arrived - 1
            # ASTRA-sim plans an event without delay here; it does not act at once.
            self._agenda.plan(0, action)
        else:
            self._expected.setdefault(address, deque()).append(action)

    def arrive(self, address: Address) -> None:
        """Let a message arrive now."""
        waiting = self._expected.get(address)
        if waiting is None:
            self._arrived[address] = self._arrived.get(address, 0) + 1
            return
        action = waiting.popleft()
        if not waiting:
            del self._expected[address]
        action()

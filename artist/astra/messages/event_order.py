"""The order of events in ASTRA-sim: one agenda for all NPUs, and one list per NPU and instant.

Events of one instant happen in the order in which they were planned. All events that an NPU
plans for itself at one instant happen together, at the place of the first of them. For example,
events of the NPUs A and B that are planned for one instant in the order A1, B1, A2 happen in
the order A1, A2, B1. All times are in nanoseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

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


class Clock:
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

"""The order of events in ASTRA-sim: a global agenda and one list per NPU and instant.

Events of one instant happen in the order in which they were planned. All that
an NPU plans for itself at one instant happens together, where the first of it
was planned. Everything here is in nanoseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Agenda:
    """Actions by time; `now_ns` is the time of the one being performed."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._times: list[int] = []
        self._actions: dict[int, list[Action]] = {}

    def plan(self, delay_ns: int, action: Action) -> None:
        """Perform `action` after a delay, behind all that is planned for that instant."""
        at_ns = self.now_ns + delay_ns
        actions = self._actions.get(at_ns)
        if actions is None:
            self._actions[at_ns] = [action]
            heapq.heappush(self._times, at_ns)
        else:
            actions.append(action)

    def run(self) -> None:
        """Perform everything, including what is planned meanwhile."""
        while self._times:
            self.now_ns = heapq.heappop(self._times)
            # A list grows while it is walked when an action plans another without delay.
            for action in self._actions[self.now_ns]:
                action()
            del self._actions[self.now_ns]


class Clock:
    """One NPU's own events."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._actions: dict[int, list[Action]] = {}

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._agenda.now_ns

    def plan(self, delay_ns: int, action: Action) -> None:
        """Perform `action` after a delay, with the NPU's other events of that instant."""
        at_ns = self._agenda.now_ns + delay_ns
        actions = self._actions.get(at_ns)
        if actions is None:
            self._actions[at_ns] = [action]
            self._agenda.plan(delay_ns, self._perform)
        else:
            actions.append(action)

    def _perform(self) -> None:
        now_ns = self._agenda.now_ns
        for action in self._actions[now_ns]:
            action()
        del self._actions[now_ns]

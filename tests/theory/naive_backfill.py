"""A naive simulator of EASY and conservative backfilling: their written rules, without shortcuts.

Whatever is free at some time is counted from who is expected to hold GPUs then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import naive
from naive import Gpus


@dataclass(frozen=True, kw_only=True)
class Rules(naive.Rules):
    """The options of a backfilling policy. `everyone`: each job has a reservation."""

    everyone: bool
    estimates: str


class Held(NamedTuple):
    """GPUs that are held from `start` until before `end`."""

    start: int
    end: int
    gpus: Gpus


@dataclass
class Memory:
    """What conservative backfilling remembers: reservations, and when running jobs leave."""

    reserved: dict[int, Held] = field(default_factory=dict)
    leaving: dict[int, int] = field(default_factory=dict)


class Simulation(naive.Simulation):
    """One run. `promised` has the first reservation of each job that had one, by handle."""

    rules: Rules

    def run(self) -> list[list[naive.Stay]]:
        self.memory, self.promised = Memory(), dict[int, int]()
        # Of finished jobs, in order: user and run time. Of running jobs: the expected run time.
        self.finished: list[tuple[str, int]] = []
        self.expected: dict[int, int] = {}
        return super().run()

    def times(self, here: list[naive.State]) -> list[int]:
        starts = [held.start for held in self.memory.reserved.values()]
        return [*super().times(here), *starts, *self.memory.leaving.values()]

    def contest(self, here: list[naive.State], now: int) -> dict[int, Gpus]:
        running = {state.handle: state for state in here if state.gpus}
        waiting = sorted(
            (state for state in here if not state.gpus), key=lambda state: self.rank(state, now)
        )
        leaving = {handle: self.leaves(state, now) for handle, state in running.items()}
        holding = [Held(now, leaving[handle], state.gpus) for handle, state in running.items()]
        given = {handle: state.gpus for handle, state in running.items()}
        if self.rules.everyone:
            return given | self.conservative(waiting, holding, leaving, now)
        return given | self.easy(waiting, holding, now)

    # -- estimates -----------------------------------------------------------------

    def leave(self, state: naive.State, now: int, how: str) -> None:
        self.finished.append((state.job.user, now - state.start))
        super().leave(state, now, how)

    def learned(self, state: naive.State) -> int:
        limit = state.job.hints.get("hint_time_limit_s")
        last = [run for user, run in self.finished if user == state.job.user][-2:]
        if not last and limit:
            last = [naive.ticks(float(str(limit)))]
        last = last or [run for _, run in self.finished[-2:]] or [naive.ticks(3600)]
        mean = sum(last) // len(last)
        return min(mean, naive.ticks(float(str(limit)))) if limit else mean

    def estimate(self, state: naive.State, exact: int) -> int:
        if self.rules.estimates == "learned":
            return self.expected[state.handle] if state.gpus else self.learned(state)
        if self.rules.estimates == "limit":
            return naive.ticks(float(str(state.job.hints["hint_time_limit_s"])))
        factor = self.rules.estimates.removeprefix("factor:").replace("exact", "1")
        return max(1, math.ceil(exact * Fraction(factor)))

    def leaves(self, state: naive.State, now: int) -> int:
        estimate = self.estimate(state, state.finish() - state.start)
        while state.start + estimate <= now:
            estimate += estimate
        return state.start + estimate

    def takes(self, state: naive.State, gpus: Gpus) -> int:
        iteration_s = state.job.compute_s * self.slowdown[self.cluster.level(gpus)]
        iteration = Fraction(str(iteration_s)) * naive.SECOND
        return self.estimate(state, math.ceil(state.job.iterations * iteration))

    # -- rules ---------------------------------------------------------------------

    def free(self, holding: Iterable[Held], start: int, end: int) -> Gpus:
        """The GPUs that nobody holds at any time from `start` to before `end`."""
        looked_at = {start} | {held.start for held in holding if start < held.start < end}
        return {
            leaf: min(
                size - sum(x.gpus.get(leaf, 0) for x in holding if x.start <= at < x.end)
                for at in looked_at
            )
            for leaf, size in enumerate(self.cluster.sizes)
        }

    def easy(self, waiting: list[naive.State], holding: list[Held], now: int) -> dict[int, Gpus]:
        given: dict[int, Gpus] = {}
        holding, head, shadow = list(holding), None, None
        for state in waiting:
            gpus = self.accept(state, self.free(holding, now, now), now)
            if gpus is None:
                if head is None:
                    head = state
                    ends = sorted(held.end for held in holding)
                    room = [
                        end for end in ends if self.accept(state, self.free(holding, end, end), now)
                    ]
                    shadow = room[0]
                    self.promised.setdefault(state.handle, shadow)
                continue
            held = Held(now, now + self.takes(state, gpus), gpus)
            if head is not None and self.delays(held, holding, head, shadow):
                self.happened["refused"] += 1
                continue
            self.happened["backfilled"] += head is not None
            given[state.handle] = gpus
            self.expected[state.handle] = held.end - now
            holding.append(held)
        return given

    def delays(self, held: Held, holding: list[Held], head: naive.State, shadow: int) -> bool:
        """Whether the head would find no GPUs at its reservation beside one more job."""
        return self.accept(head, self.free([*holding, held], shadow, shadow), shadow) is None

    def conservative(
        self, waiting: list[naive.State], holding: list[Held], leaving: dict[int, int], now: int
    ) -> dict[int, Gpus]:
        memory = self.memory
        late = any(end > memory.leaving.get(x, end) for x, end in leaving.items())
        early = any(end > now for x, end in memory.leaving.items() if x not in leaving)
        if late:
            self.happened["late"] += 1
            memory.reserved.clear()
        for state in waiting:
            old = memory.reserved.pop(state.handle, None)
            if old is not None and not early:
                memory.reserved[state.handle] = old
                continue
            new = self.earliest(state, [*holding, *memory.reserved.values()], now)
            if old is not None and new.start >= old.start:
                new = old
            self.happened["compressed"] += old is not None and new is not old
            memory.reserved[state.handle] = new
            self.promised.setdefault(state.handle, new.start)
        due = {x: held for x, held in memory.reserved.items() if held.start <= now}
        self.expected |= {x: held.end - now for x, held in due.items()}
        memory.reserved = {x: held for x, held in memory.reserved.items() if x not in due}
        memory.leaving = leaving | {x: held.end for x, held in due.items()}
        return {x: held.gpus for x, held in due.items()}

    def earliest(self, state: naive.State, holding: list[Held], now: int) -> Held:
        """The earliest reservation beside those that hold GPUs or will."""
        starts = {now} | {x for held in holding for x in (held.start, held.end) if x > now}
        for start in sorted(starts):
            end = start
            while True:
                gpus = self.accept(state, self.free(holding, start, end), now)
                if gpus is None:
                    break
                if start + self.takes(state, gpus) <= end:
                    return Held(start, end=start + self.takes(state, gpus), gpus=gpus)
                end = start + self.takes(state, gpus)
        raise AssertionError("every job fits the empty cluster")

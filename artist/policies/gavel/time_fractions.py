"""How much time jobs have had on each kind of GPUs, and the priorities that follow (section 5).

    part of job i on kind k = time of i on k / time of all jobs on k
    priority                = share of i on k / part

Times count from the last time at which shares were computed. Each job begins with half a round, as
in the authors' program, so that no part is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artist.contract import JobView
from artist.units import TICKS_PER_S, Tick


class _Account:
    """What one job has had."""

    __slots__ = ("had", "owed", "run", "share")

    def __init__(self, kinds: int, start_s: float) -> None:
        self.had = [start_s] * kinds
        """Seconds on each kind since the last reset."""
        self.owed = [0.0] * kinds
        """Seconds that it should have had and did not, up to the last reset."""
        self.share: Sequence[float] = ()
        """Of time, on each kind; empty before the first reset after its arrival."""
        self.run: Tick = 0
        """Time with GPUs, up to the last `account`."""


class TimeFractions:
    """The accounts of all jobs that are here. `round_` in ticks."""

    def __init__(self, round_: Tick) -> None:
        self._start_s = round_ / TICKS_PER_S / 2
        self._accounts: dict[int, _Account] = {}
        self._on_kind: list[float] = []
        self._last_reset: Tick | None = None

    def __contains__(self, handle: int) -> bool:
        return handle in self._accounts

    def enter(self, handle: int, kinds: int) -> None:
        """A job has arrived."""
        self._accounts[handle] = _Account(kinds, self._start_s)
        before = self._on_kind or [0.0] * kinds
        self._on_kind = [seconds + self._start_s for seconds in before]

    def leave(self, handle: int) -> None:
        """A job has finished."""
        del self._accounts[handle]
        if not self._accounts:
            self._last_reset = None

    def account(self, jobs: Mapping[int, JobView], kind_of: Mapping[int, int], now: Tick) -> None:
        """Add what jobs have run since the last time. `kind_of`: of those that run.

        A job that lost its GPUs between rounds has run on the kind that it had at the last one.
        """
        for handle, state in jobs.items():
            mine, run = self._accounts[handle], state.run_ticks(now)
            kind = kind_of.get(handle)
            if run > mine.run and kind is not None:
                seconds = (run - mine.run) / TICKS_PER_S
                mine.had[kind] += seconds
                self._on_kind[kind] += seconds
            mine.run = run

    def may_reset(self, now: Tick, interval: Tick) -> bool:
        """Whether the last reset is at least an interval ago."""
        return self._last_reset is None or now - self._last_reset >= interval

    def reset(self, shares: Mapping[int, Sequence[float]], now: Tick) -> None:
        """New shares, by handle: from now on times count anew."""
        elapsed_s = (now - (self._last_reset or 0)) / TICKS_PER_S
        kinds = len(self._on_kind)
        for handle, mine in self._accounts.items():
            for kind in range(kinds):
                due_s = mine.share[kind] * elapsed_s if mine.share else 0.0
                mine.owed[kind] += due_s - (mine.had[kind] - self._start_s)
            mine.had = [self._start_s] * kinds
            mine.share = shares.get(handle, ())
        self._on_kind = [self._start_s * len(self._accounts)] * kinds
        self._last_reset = now

    def share(self, handle: int, kind: int) -> float:
        """The share of a job on a kind; 0 if it arrived since shares were computed."""
        share = self._accounts[handle].share
        return share[kind] if share else 0.0

    def by_priority(self, kind: int, handles: Sequence[int]) -> list[int]:
        """Jobs by their priority on a kind, the highest first; equal ones in the order given."""
        return sorted(handles, key=lambda handle: self._key(handle, kind), reverse=True)

    def _key(self, handle: int, kind: int) -> tuple[float, float, float]:
        mine, share = self._accounts[handle], self.share(handle, kind)
        part = mine.had[kind] / self._on_kind[kind]
        return share / part, mine.owed[kind], share

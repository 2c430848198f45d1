"""How much time jobs have had on each kind of GPUs, and the priorities that follow (section 5).

    part of i on kind k = time of i on k / time of all on k
    priority            = share of i on k / part

Here i is a combination: a job alone, or with space sharing a pair of jobs. Times count from the
last computation of shares (a reset). Each begins with half a round, as in the authors' program, so
that no part is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from artist.contract import JobView
from artist.units import TICKS_PER_S, Tick

Combination: TypeAlias = tuple[int, ...]
"""The handle of a job alone, or of two jobs that share GPUs, ascending."""


class _Account:
    """The time that one combination has had, and its share."""

    __slots__ = ("had", "owed", "share")

    def __init__(self, kinds: int, start_s: float) -> None:
        self.had = [start_s] * kinds
        """Seconds on each kind since the last reset."""
        self.owed = [0.0] * kinds
        """Seconds on each kind that it was due and did not have, up to the last reset."""
        self.share: Sequence[float] = ()
        """Its share of time on each kind; empty before the first reset after its arrival."""


class TimeFractions:
    """The accounts of all present jobs and pairs. `round_` is in ticks."""

    def __init__(self, round_: Tick) -> None:
        self._start_s = round_ / TICKS_PER_S / 2
        self._accounts: dict[Combination, _Account] = {}
        self._pairs: set[Combination] = set()
        """Pairs that have had a share."""
        self._run: dict[int, Tick] = {}
        """Time with GPUs of each job, up to the last `account`."""
        self._on_kind: list[float] = []
        self._last_reset: Tick | None = None

    def __contains__(self, handle: int) -> bool:
        return handle in self._run

    def enter(self, handle: int, kinds: int) -> None:
        """Open the account of a job that has arrived."""
        self._run[handle] = 0
        self._accounts[handle,] = _Account(kinds, self._start_s)
        before = self._on_kind or [0.0] * kinds
        self._on_kind = [seconds + self._start_s for seconds in before]

    def leave(self, handle: int) -> None:
        """Close the account of a finished job.

        Until the next reset, jobs that it was paired with have the shares of these pairs alone.
        """
        del self._run[handle], self._accounts[handle,]
        for pair in [pair for pair in self._pairs if handle in pair]:
            self._pairs.remove(pair)
            share = self._accounts.pop(pair).share
            (other,) = (x for x in pair if x != handle)
            alone = self._accounts[other,]
            if share:
                own = alone.share or [0.0] * len(share)
                alone.share = [x + y for x, y in zip(own, share, strict=True)]
        if not self._accounts:
            self._last_reset = None

    def account(
        self, jobs: Mapping[int, JobView], kind_of: Mapping[Combination, int], now: Tick
    ) -> None:
        """Add the time that combinations have run since the last call.

        `kind_of` has the kinds of running combinations. If one job of a pair has left, all of this
        time counts for the other job alone.
        """
        run = {handle: state.run_ticks(now) for handle, state in jobs.items()}
        for one, kind in kind_of.items():
            ticks_run = min([run[handle] - self._run[handle] for handle in one])
            mine = self._accounts.get(one)
            if ticks_run > 0 and mine is not None:
                seconds = ticks_run / TICKS_PER_S
                mine.had[kind] += seconds
                self._on_kind[kind] += seconds
        self._run.update(run)

    def may_reset(self, now: Tick, interval: Tick) -> bool:
        """Whether the last reset is at least an interval ago."""
        return self._last_reset is None or now - self._last_reset >= interval

    def reset(self, shares: Mapping[Combination, Sequence[float]], now: Tick) -> None:
        """Set new shares. From now on times count from zero."""
        elapsed_s = (now - (self._last_reset or 0)) / TICKS_PER_S
        kinds = len(self._on_kind)
        for one, share in shares.items():
            if one not in self._accounts and any(share):
                self._pairs.add(one)
                self._accounts[one] = _Account(kinds, self._start_s)
        for one, mine in self._accounts.items():
            for kind in range(kinds):
                due_s = mine.share[kind] * elapsed_s if mine.share else 0.0
                mine.owed[kind] += due_s - (mine.had[kind] - self._start_s)
            mine.had = [self._start_s] * kinds
            mine.share = shares.get(one, ())
        self._on_kind = [self._start_s * len(self._accounts)] * kinds
        self._last_reset = now

    def share(self, one: Combination, kind: int) -> float:
        """The share on a kind; 0 for jobs that arrived since shares were computed."""
        share = self._accounts[one].share
        return share[kind] if share else 0.0

    def pairs(self, jobs: Collection[int]) -> list[Combination]:
        """The pairs of these jobs that have had a share."""
        return sorted(pair for pair in self._pairs if all(handle in jobs for handle in pair))

    def by_priority(self, kind: int, which: Sequence[Combination]) -> list[Combination]:
        """Combinations by their priority on a kind, the highest first, equal ones as given."""
        accounts, on_kind = self._accounts, self._on_kind[kind]

        def priority(one: Combination) -> tuple[float, float, float]:
            mine = accounts[one]
            share = mine.share[kind] if mine.share else 0.0
            part = mine.had[kind] / on_kind
            return share / part, mine.owed[kind], share

        return sorted(which, key=priority, reverse=True)

"""How far a job is, exactly and without looping over iterations.

A running job repeats iterations of `n / d` ticks. The fraction is exact: it is the decimal number
that `iteration_s` prints as, so that ten iterations of 0.1 s take one second (`exact_ticks`). The
job's position is a number of whole iterations and a **phase**, the fraction of the iteration in
progress. Both are known at the **anchor**, a tick; all later ticks follow from it in integer
arithmetic:

    position(t) = phase + (t - anchor) * d / n            [iterations]
    finish      = anchor + ceil((needed - phase) * n / d) [ticks]

Another rate keeps the phase. The end of a stay drops it: the iteration in progress is lost.

A job that writes **checkpoints** does so after every `n` whole iterations, the fewest that take as
long as its interval. A checkpoint of `c` ticks is spread over these iterations: each takes c / n
longer. So a checkpoint ends exactly when the pause for it would end, no checkpoint is an event, and
the equations above hold. A failure takes the job back to its last checkpoint (`fall_back`). The
start of a stay is one, since a job that loses its GPUs to another saves.
"""

from __future__ import annotations

import math
from typing import Any, Final

from artist.contract import NO_CHECKPOINT, Checkpoint, Rate
from artist.errors import InvariantError
from artist.units import Tick, exact_ticks

_PHASE_BITS: Final = 64  # 2**-64 of an iteration of 10^6 s is less than 10^-4 ticks
_PHASE_MASK: Final = (1 << _PHASE_BITS) - 1
_READ_BITS: Final = 32  # of the phase, as a float that is below 1
_READ_MASK: Final = (1 << _READ_BITS) - 1
_READ_UNIT: Final = 2.0**-_READ_BITS
# What an iteration is worth is rounded up to a multiple of 2**-44, so that three iterations of a
# job on a third of its GPUs complete one. A third of one is not exact in binary.
_WORK_BITS: Final = 44
# No job runs on a thousand million times the GPUs that it asked for.
_MOST_WORTH: Final = 1e9


def check_rate(rate: Any) -> None:
    """Refuse a rate that no job can run at. It is `Any`: what it promises is yet to be seen.

    Raises:
        InvariantError: it is no rate; an iteration takes no time, or for ever, or is worth nothing;
            or the point at which the rate function wants to be asked again is none.
    """
    if not issubclass(type(rate), Rate):
        raise InvariantError(f"the rate function gave {rate!r}, expected a Rate")
    if not (
        0 < rate.iteration_s < math.inf
        and 0 < rate.alone_iteration_s < math.inf
        and 0 < rate.worth < _MOST_WORTH
    ):
        raise InvariantError(
            f"rate function {rate.source!r} gave iterations of {rate.iteration_s} s (alone "
            f"{rate.alone_iteration_s} s) that are worth {rate.worth} submitted iterations, "
            "expected positive numbers"
        )
    point, until = rate.until_iteration, rate.until
    whole = until is None or type(until) is int
    if not whole or (point is not None and not math.isfinite(point)):
        raise InvariantError(
            f"rate function {rate.source!r} wants to be asked at iteration {point} or tick "
            f"{until}, expected a finite number and a whole tick"
        )


class Progress:
    """Position of one job. Call `settle` before every change of rate or placement."""

    __slots__ = (
        "_anchor",
        "_den",
        "_done",
        "_every",
        "_num",
        "_phase",
        "_saved",
        "_since",
        "_total",
        "_unsaved",
        "_work",
    )

    def __init__(self, iterations: int) -> None:
        self._total = iterations << _WORK_BITS
        self._done = 0
        self._phase = 0
        self._anchor: Tick = 0
        self._num = 1
        self._den = 0  # standing still
        self._work = 1 << _WORK_BITS
        self._every = 0  # iterations from one checkpoint to the next; 0: there is none
        self._saved = 0  # of `_done`, what the last checkpoint holds
        self._since = 0  # whole iterations since then
        self._unsaved: Tick = 0  # ticks of work since then

    def set_rate(self, rate: Rate, checkpoint: Checkpoint = NO_CHECKPOINT) -> float:
        """Run at another rate from the anchor on, keeping the phase.

        Returns what checkpoints add to an iteration, in seconds.
        """
        self._num, self._den = exact_ticks(rate.iteration_s)
        self._work = math.ceil(rate.worth * (1 << _WORK_BITS))
        interval, cost = checkpoint
        if interval is None:
            self._every = 0
            return 0.0
        self._every = every = max(1, -(-interval * self._den // self._num))
        self._num, self._den = self._num * every + cost * self._den, self._den * every
        return checkpoint.per_iteration_s(every)

    def start(self, at: Tick) -> None:
        """A new iteration begins at this tick, and all before it is saved. Call `set_rate` next."""
        self._anchor = at
        self._saved, self._since, self._unsaved = self._done, 0, 0

    def settle(self, now: Tick) -> int:
        """Move the anchor to `now`; return the iterations completed since the last `settle`."""
        position = self._position(now)
        whole = min(position >> _PHASE_BITS, self._missing(self._total))
        self._note_checkpoints(whole, now)
        self._done = min(self._done + whole * self._work, self._total)
        self._phase = position & _PHASE_MASK
        self._anchor = max(self._anchor, now)
        return whole

    def _note_checkpoints(self, whole: int, now: Tick) -> None:
        """Remember the last checkpoint of the `whole` iterations that end before `now`."""
        # If a faster rate has made the next one overdue, it comes after the iteration in progress.
        first = max(1, self._every - self._since)
        if not self._every or whole < first:
            self._since += whole
            self._unsaved += max(0, now - self._anchor)
            return
        self._since = (whole - first) % self._every
        at = whole - self._since
        self._saved = min(self._done + at * self._work, self._total)
        self._unsaved = now - self._tick_of(at)

    def fall_back(self) -> Tick:
        """Fall back to the last checkpoint, until the next `set_rate`; settle first.

        Returns the ticks of work lost, those of checkpoints that were being written included.
        """
        lost = self._unsaved
        self._done = self._saved
        self._phase = self._since = self._unsaved = self._den = 0
        return lost

    def hold(self, until: Tick) -> None:
        """Stand still until a tick, keeping the phase (time-shift); settle first."""
        self._anchor = max(self._anchor, until)

    def stop(self) -> Tick:
        """Fall back to the last whole iteration, until the next `set_rate`; settle first.

        Returns the ticks of work lost.
        """
        lost = self._phase * self._num // (self._den << _PHASE_BITS)
        self._phase = 0
        self._den = 0
        return lost

    def done(self, now: Tick) -> int:
        """Whole submitted iterations completed at `now`."""
        whole = self._position(now) >> _PHASE_BITS
        return min(self._done + whole * self._work, self._total) >> _WORK_BITS

    def phase(self, now: Tick) -> float:
        """The part of the iteration in progress that is done at `now`, from 0 to below 1."""
        return (self._position(now) >> _PHASE_BITS - _READ_BITS & _READ_MASK) * _READ_UNIT

    @property
    def saved(self) -> int:
        """What the last checkpoint holds; it never becomes less."""
        return self._saved

    @property
    def complete(self) -> bool:
        """Whether all iterations are done (at the anchor)."""
        return self._done >= self._total

    def finish(self) -> Tick:
        """When the last iteration ends at the present rate."""
        return self._reach(self._total)

    def reach(self, iterations: float) -> Tick:
        """When that many submitted iterations are done, at the end of an iteration."""
        return self._reach(round(iterations * (1 << _WORK_BITS)))

    def boundary(self, at: Tick) -> Tick:
        """The first tick at or after `at` at which an iteration ends, later than the anchor.

        Later: a lease shorter than an iteration must not end without progress.
        """
        if not self._phase:  # the same in smaller numbers, which are faster
            whole = max(0, (at - 1 - self._anchor) * self._den // self._num)
            return self._anchor - (-(whole + 1) * self._num // self._den)
        whole = self._position(at - 1) >> _PHASE_BITS
        needed = (whole + 1 << _PHASE_BITS) - self._phase
        return self._anchor - (-needed * self._num // (self._den << _PHASE_BITS))

    def _position(self, now: Tick) -> int:
        """Whole iterations and phase since the last `settle`, in units of 2**-64.

        Rounded up: rounding down would move later ends one tick back.
        """
        if now <= self._anchor:
            return self._phase
        return self._phase - (-((now - self._anchor) * self._den << _PHASE_BITS) // self._num)

    def _reach(self, work: int) -> Tick:
        return self._tick_of(self._missing(work))

    def _missing(self, work: int) -> int:
        """Iterations at the present rate, the one in progress included, until `work` is done."""
        return max(0, -(-(work - self._done) // self._work))

    def _tick_of(self, whole: int) -> Tick:
        """When `whole` iterations after the last settled whole one are complete."""
        needed = max(0, (whole << _PHASE_BITS) - self._phase)
        return self._anchor - (-needed * self._num // (self._den << _PHASE_BITS))

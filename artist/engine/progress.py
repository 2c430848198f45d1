"""How far a job is, exactly and without looping over iterations.

A running job repeats iterations of `n / d` ticks. The fraction is exact: it is the decimal number
that `iteration_s` prints as, so that ten iterations of 0.1 s take one second (`exact_ticks`). The
job's position is a number of whole iterations and a **phase**, the fraction of the iteration in
progress. Both are known at one tick, the **anchor**. All later positions and ticks follow from them
in integer arithmetic:

    position(t) = phase + (t - anchor) * d / n            [iterations]
    finish      = anchor + ceil((needed - phase) * n / d) [ticks]

A new rate keeps the phase. The end of a stay drops it: the iteration in progress is lost.

A failure takes the job back to its last checkpoint (`checkpoints.py`).
"""

from __future__ import annotations

import math
from typing import Any, Final

from artist.contract import NO_CHECKPOINT, Checkpoint, Rate
from artist.engine.checkpoints import SavedWork
from artist.errors import InvariantError
from artist.units import Tick, exact_ticks

_PHASE_BITS: Final = 64  # 2**-64 of an iteration of 10^6 s is less than 10^-4 ticks
_PHASE_MASK: Final = (1 << _PHASE_BITS) - 1
_READ_BITS: Final = 32  # of the phase, as a float that is below 1
_READ_MASK: Final = (1 << _READ_BITS) - 1
_READ_UNIT: Final = 2.0**-_READ_BITS
# The worth of an iteration is rounded up to a multiple of 2**-44, so that three iterations of a job
# on a third of its GPUs complete one, although a third is not exact in binary.
_WORK_BITS: Final = 44
# No job runs on a billion times the GPUs that it asked for.
_MOST_WORTH: Final = 1e9


def check_rate(rate: Any) -> None:
    """Refuse a rate that no job can run at. Its type is `Any`, since this checks the type too.

    Raises:
        InvariantError: it is not a `Rate`; an iteration takes no time, takes forever or is worth
            nothing; or the point at which to ask the rate function again is not a number.
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
    """Position of one job. Call `settle` before every change of rate or placement.

    `work` is the work done by whole iterations up to the anchor, in units of 2**-44 of a submitted
    iteration.
    """

    __slots__ = (
        "_anchor", "_den", "_num", "_phase", "_total", "_work", "saved_work", "work",
    )  # fmt: skip

    def __init__(self, iterations: int) -> None:
        self._total = iterations << _WORK_BITS
        self.work = 0
        self._phase = 0
        self._anchor: Tick = 0
        self._num = 1
        self._den = 0  # standing still
        self._work = 1 << _WORK_BITS
        self.saved_work = SavedWork()

    def set_rate(self, rate: Rate, checkpoint: Checkpoint = NO_CHECKPOINT) -> float:
        """Run at another rate from the anchor on, keeping the phase.

        Returns the seconds that checkpoints add to an iteration.
        """
        num, den = exact_ticks(rate.iteration_s)
        self._num, self._den = self.saved_work.spread(checkpoint, num, den)
        self._work = math.ceil(rate.worth * (1 << _WORK_BITS))
        every = self.saved_work.every
        return checkpoint.per_iteration_s(every) if every else 0.0

    def start(self, at: Tick) -> None:
        """Begin a new iteration at this tick, with all earlier work saved. Call `set_rate` next."""
        self._anchor = at
        self.saved_work.start_stay(self.work)

    def settle(self, now: Tick) -> int:
        """Move the anchor to `now`; return the iterations completed since the last `settle`."""
        position = self._position(now)
        whole = min(position >> _PHASE_BITS, self._missing(self._total))
        saved = self.saved_work
        # The anchor must not move before this: the tick of a checkpoint is counted from it.
        if at := saved.last_among(whole):
            saved.done = min(self.work + at * self._work, self._total)
            saved.unsaved = now - self._tick_of(at)
        else:
            saved.unsaved += max(0, now - self._anchor)
        self.work = min(self.work + whole * self._work, self._total)
        self._phase = position & _PHASE_MASK
        self._anchor = max(self._anchor, now)
        return whole

    def fall_back(self) -> Tick:
        """Fall back to the last checkpoint, until the next `set_rate`; settle first.

        Returns the ticks of work lost, including those spent on unfinished checkpoints.
        """
        self.work = self.saved_work.done
        self._phase = self._den = 0
        return self.saved_work.fall_back()

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
        return min(self.work + whole * self._work, self._total) >> _WORK_BITS

    def phase(self, now: Tick) -> float:
        """The part of the iteration in progress that is done at `now`, from 0 to below 1."""
        return (self._position(now) >> _PHASE_BITS - _READ_BITS & _READ_MASK) * _READ_UNIT

    @property
    def complete(self) -> bool:
        """Whether all iterations are done (at the anchor)."""
        return self.work >= self._total

    def finish(self) -> Tick:
        """When the last iteration ends at the present rate."""
        return self._reach(self._total)

    def reach(self, iterations: float) -> Tick:
        """The end of the first iteration at which that many submitted iterations are done."""
        return self._reach(round(iterations * (1 << _WORK_BITS)))

    def boundary(self, at: Tick) -> Tick:
        """The first tick at or after `at` at which an iteration ends, later than the anchor.

        It is later than the anchor so that no lease shorter than an iteration ends without
        progress.
        """
        if not self._phase:  # the same equation with smaller numbers, which are faster
            whole = max(0, (at - 1 - self._anchor) * self._den // self._num)
            return self._anchor - (-(whole + 1) * self._num // self._den)
        whole = self._position(at - 1) >> _PHASE_BITS
        needed = (whole + 1 << _PHASE_BITS) - self._phase
        return self._anchor - (-needed * self._num // (self._den << _PHASE_BITS))

    def _position(self, now: Tick) -> int:
        """Whole iterations and phase since the last `settle`, in units of 2**-64.

        They are rounded up, because rounding down would move later ends by a tick.
        """
        if now <= self._anchor:
            return self._phase
        return self._phase - (-((now - self._anchor) * self._den << _PHASE_BITS) // self._num)

    def _reach(self, work: int) -> Tick:
        return self._tick_of(self._missing(work))

    def _missing(self, work: int) -> int:
        """Iterations at the present rate until `work` is done, including the one in progress."""
        return max(0, -(-(work - self.work) // self._work))

    def _tick_of(self, whole: int) -> Tick:
        """When `whole` iterations are complete, counted from the last whole one at the anchor."""
        needed = max(0, (whole << _PHASE_BITS) - self._phase)
        return self._anchor - (-needed * self._num // (self._den << _PHASE_BITS))

"""How many GPUs a tenant has used on average over a sliding window, exactly."""

from __future__ import annotations

from collections import deque

from artist.units import Tick


class UsageWindow:
    """GPUs in use over time as a step function, of which only the window is kept."""

    __slots__ = ("_gpus", "_length", "_steps")

    def __init__(self, length: Tick) -> None:
        self._length = length
        self._gpus = 0
        # (tick, GPU-ticks used up to it, GPUs in use from it on), by tick.
        self._steps: deque[tuple[Tick, int, int]] = deque([(0, 0, 0)])

    @property
    def gpus(self) -> int:
        """GPUs in use now."""
        return self._gpus

    def change(self, now: Tick, gpus: int) -> None:
        """So many GPUs more are in use from now on (fewer, if below 0)."""
        tick, used, before = self._steps[-1]
        self._gpus += gpus
        if tick == now:
            self._steps[-1] = (tick, used, self._gpus)
        else:
            self._steps.append((now, used + (now - tick) * before, self._gpus))
        self._forget(now)

    def gpu_ticks(self, now: Tick) -> int:
        """GPU-ticks that were used in the window that ends now. Before the run nothing was."""
        self._forget(now)
        tick, used, gpus = self._steps[-1]
        start, used_before, gpus_before = self._steps[0]
        begin = max(now - self._length, start)
        return used + (now - tick) * gpus - (used_before + (begin - start) * gpus_before)

    def _forget(self, now: Tick) -> None:
        steps, begin = self._steps, now - self._length
        while len(steps) > 1 and steps[1][0] <= begin:
            steps.popleft()

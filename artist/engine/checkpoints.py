"""What checkpoints save of a job's work, and what a failure loses.

A job writes a checkpoint after every `n` whole iterations, the fewest that take at least its
interval. A checkpoint of `c` ticks is spread over these iterations: each takes c / n longer. So the
`n` iterations end when they would with a pause of `c` at their end, and a checkpoint needs no
event.

The start of a stay is a checkpoint too, since a job that loses its GPUs to another job saves.
"""

from __future__ import annotations

from artist.contract import Checkpoint
from artist.units import Tick


class SavedWork:
    """The last checkpoint of one job. `Progress` owns it and tells it which iterations end.

    - `every` is the number of iterations from one checkpoint to the next; 0 if there is none.
    - `done` is the work that the last checkpoint holds, in units of `Progress`.
    - `unsaved` is the time worked since the last checkpoint, in ticks.
    """

    __slots__ = ("_since", "done", "every", "unsaved")

    def __init__(self) -> None:
        self.every = 0
        self.done = 0
        self.unsaved: Tick = 0
        # Whole iterations since the last checkpoint.
        self._since = 0

    def spread(self, checkpoint: Checkpoint, num: int, den: int) -> tuple[int, int]:
        """`num / den` ticks of an iteration, lengthened by its share of a checkpoint."""
        interval, cost = checkpoint
        if interval is None:
            self.every = 0
            return num, den
        self.every = every = max(1, -(-interval * den // num))
        return num * every + cost * den, den * every

    def start_stay(self, done: int) -> None:
        """Save all work so far."""
        self.done, self._since, self.unsaved = done, 0, 0

    def last_among(self, whole: int) -> int:
        """Count `whole` more iterations. Returns how many of them a checkpoint has saved.

        A faster rate can make the next checkpoint overdue. It is then written after the iteration
        in progress, hence the `max`.
        """
        first = max(1, self.every - self._since)
        if not self.every or whole < first:
            self._since += whole
            return 0
        self._since = (whole - first) % self.every
        return whole - self._since

    def fall_back(self) -> Tick:
        """Return the ticks of work that a failure loses, unfinished checkpoints included."""
        lost = self.unsaved
        self._since = self.unsaved = 0
        return lost

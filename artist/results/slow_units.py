"""What slow units cost: the computing that took longer on them than at full speed.

    longer = time computing x (1 - speed of the slowest unit)

A job computes that much longer. Longer computing may hide more communication, which is not taken
off: the time that a job loses is at most this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from artist.cluster.placement import Placement
from artist.engine.rows import Rows
from artist.results.metrics import Additions
from artist.units import TICKS_PER_S, Tick

if TYPE_CHECKING:
    from artist.failures.failing_units import SlowLeaves

Slowest = Callable[[Placement, Tick], "SlowLeaves | None"]
"""The slowest unit that some GPUs are in at a tick; None if all are at full speed."""


def slow_additions(rows: Rows, slowest: Slowest) -> Additions:
    """What slow units add to summary, jobs and placements. An interval has one speed throughout."""
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs}
    longer_s = dict.fromkeys(sorted(compute_s), 0.0)
    gpu_s = 0.0
    units = []
    for row in rows.placements:
        slow = slowest(row.placement, row.start)
        if slow is None:
            units.append("")
            continue
        units.append(f"{slow.name} at {1 / slow.slowdown:.3g} of its speed")
        running_s = (row.end - row.start - row.stalled - row.saving) / TICKS_PER_S
        computing_s = running_s * compute_s[row.handle] * row.compute_scale / row.iteration_s
        longer_s[row.handle] += computing_s * (1 - 1 / slow.slowdown)
        gpu_s += computing_s * (1 - 1 / slow.slowdown) * row.placement.gpus
    return Additions(
        {"slowed_gpu_s": gpu_s}, {"slowed_s": np.array([*longer_s.values()])}, {"slow_unit": units}
    )

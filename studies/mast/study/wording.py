"""The values of the page, all from the rows. `page.md.j2` has the words and the tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from studies.common.page import Interval, interval_of, rendered
from studies.common.rows import Row
from studies.mast.study.observations import HERE, METRICS, URGENT_PRIORITIES
from studies.mast.study.plan import CELLS, FEDERATION, MAST, REGIMES, REPLICATES, Regime
from studies.mast.study.workloads import HOUR_S, MIXES, REGIONS, gpus_of

MOST_LATE = 0.013
"""Section 5.6: MAST's rate of late workloads stays below 1.3 %."""
ALLOCATED = 0.98
"""Section 5.2: the allocation rate of GPU machines."""
RULE_OF_THREE = 3
TIMES_WORSE = 10
"""Our reading of "much higher" (section 5.6), where a class is late at all."""

PAIRS = tuple(itertools.combinations(CELLS, 2))
"""Every cell against every other one."""
TOGETHER = 1 - 0.05 / len(PAIRS)
"""The level of each interval of a regime, so that all of them hold together (Bonferroni)."""


def page_text(rows: Sequence[Row]) -> str:
    """The whole page."""

    def of(regime: Regime, cell: int) -> list[Row]:
        """The replicates of a cell, in the order of seeds."""
        place = (*map(str, regime), str(cell))
        names = ("cluster_gpus", "mix", "load", "quotas", "cell")
        return [row for row in rows if tuple(row[x] for x in names) == place]

    chief, small, *_, mild = REGIMES
    mast, federation = of(chief, MAST), of(chief, FEDERATION)
    allocated = interval_of([float(row["allocated_share"]) for row in mast]).mean
    times = {priority: sure_times(mast, federation, priority) for priority in URGENT_PRIORITIES}
    worst = max(times, key=lambda priority: times[priority])
    most_late = max(late(mast, priority) for priority in URGENT_PRIORITIES)
    return rendered(
        HERE,
        runs=len(rows),
        replicates=REPLICATES,
        regimes=REGIMES,
        chief=chief,
        small=small,
        mild=mild,
        cells=CELLS,
        pairs=PAIRS,
        together=TOGETHER,
        urgent=URGENT_PRIORITIES,
        of=of,
        late=late,
        counts=counts,
        sure_times=sure_times,
        late_difference=late_difference,
        late_interval=lambda rows, priority: interval_of([100 * late([x], priority) for x in rows]),
        interval=lambda rows, metric, factor=1.0: interval_of(
            [factor * float(row[metric]) for row in rows]
        ),
        hour_s=HOUR_S,
        mixes=MIXES,
        regions=REGIONS,
        gpus_of=gpus_of,
        mast_holds=most_late < MOST_LATE and allocated >= ALLOCATED,
        allocated=allocated,
        federation_holds=times[worst] >= TIMES_WORSE,
        worst=worst,
        times=math.floor(times[worst]),
        most_elsewhere=max(
            sure_times(of(regime, MAST), of(regime, FEDERATION), priority)
            for regime in REGIMES[1:]
            for priority in URGENT_PRIORITIES
        ),
        same=all(a[x] == b[x] for a, b in zip(mast, of(chief, 9), strict=True) for x in METRICS),
    )


def counts(rows: Sequence[Row], *priorities: int) -> tuple[float, float]:
    """Late waits, and waits, of all rows and priorities together."""
    late_waits, waits = (
        sum(float(row[f"{x}_{priority}"]) for row in rows for priority in priorities)
        for x in ("late", "waits")
    )
    return late_waits, waits


def late(rows: Sequence[Row], *priorities: int) -> float:
    """The share of late waits, of all urgent priorities if none is named."""
    late_waits, waits = counts(rows, *(priorities or URGENT_PRIORITIES))
    return late_waits / waits if waits else 0.0


def late_difference(other: Sequence[Row], rows: Sequence[Row], level: float = 0.95) -> Interval:
    """How much more often a cell is late than the other, in points, over pairs of equal seeds."""
    pairs = zip(rows, other, strict=True)
    return interval_of([100 * (late([a]) - late([b])) for a, b in pairs], level)


def sure_times(mast: Sequence[Row], other: Sequence[Row], priority: int) -> float:
    """How many times as often the other cell is late; if MAST never is, at least so many times.

    Of n waits of which none is late, the share of late ones is below 3 / n (95 %, rule of three).
    """
    (late_waits, waits), (more, others) = counts(mast, priority), counts(other, priority)
    return (more / others) / ((late_waits or RULE_OF_THREE) / waits)

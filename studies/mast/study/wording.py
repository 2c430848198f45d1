"""The page: its tables and sentences, all from the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artist.results.statistics.students_t import t_quantile
from studies.common.page import rendered
from studies.common.rows import Row
from studies.mast.study.observations import HERE, METRICS, URGENT_PRIORITIES
from studies.mast.study.plan import CELLS, FEDERATION, MAST, REGIMES, REPLICATES, Regime
from studies.mast.study.workloads import HOUR_S, MIXES, REGIONS, gpus_of

LEVEL = 0.95
MOST_LATE = 0.013
"""Section 5.6: MAST's rate of late workloads stays below 1.3 %."""
ALLOCATED = 0.98
"""Section 5.2: the allocation rate of GPU machines."""
RULE_OF_THREE = 3
TIMES_WORSE = 10
"""Our reading of "much higher" (section 5.6), where a class is late at all."""

PAIRS = tuple(itertools.combinations(CELLS, 2))
"""Every cell against every other one."""
TOGETHER = 1 - (1 - LEVEL) / len(PAIRS)
"""The level of each interval of a regime, so that all of them hold together (Bonferroni)."""

WHAT = {
    1: "queue and allocation per cluster",
    3: "global queue, allocation per cluster",
    5: "queue and allocation per region: the paper's federation",
    6: "MAST: global queue, allocation per region",
    9: "queue and allocation global",
}


class Rows:
    """The rows by regime and cell, in the order of seeds."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def of(self, regime: Regime, cell: int) -> list[Row]:
        """The replicates of a cell."""
        place = (*map(str, regime), str(cell))
        names = ("cluster_gpus", "mix", "load", "quotas", "cell")
        return [row for row in self._rows if tuple(row[x] for x in names) == place]


def page_text(rows: Sequence[Row]) -> str:
    """The whole page."""
    table = Rows(rows)
    return rendered(
        HERE,
        runs=len(rows),
        replicates=REPLICATES,
        **_findings(table),
        regimes=[_regime(table, regime) for regime in REGIMES],
        cells_of_columns=[f"({cell})" for cell in CELLS[1:]],
        together=f"{100 * TOGETHER:g}",
        times_lines=[_times_line(table, regime) for regime in REGIMES],
    )


def _findings(table: Rows) -> dict[str, Any]:
    chief, small, mild = REGIMES[0], REGIMES[1], REGIMES[-1]
    mast, fed, ideal = (table.of(chief, cell) for cell in (MAST, FEDERATION, 9))
    most = max(_pooled(mast, (x,)) for x in URGENT_PRIORITIES)
    allocated = _mean(mast, lambda row: float(row["allocated_share"]))[0]
    worst = max(URGENT_PRIORITIES, key=lambda x: _sure_times(mast, fed, x))
    times = _sure_times(mast, fed, worst)
    elsewhere = [
        _sure_times(table.of(x, MAST), table.of(x, FEDERATION), priority)
        for x in REGIMES[1:]
        for priority in URGENT_PRIORITIES
    ]
    same = all(a[x] == b[x] for a, b in zip(mast, ideal, strict=True) for x in METRICS)
    three, five = (_pooled(table.of(chief, cell)) for cell in (3, 5))
    return {
        "chief": {"name": _name(chief)},
        "mild": {"name": _name(mild)},
        "small": {"name": _name(small)},
        "small_mast": _lates(table.of(small, MAST)),
        "small_federation": _lates(table.of(small, FEDERATION)),
        "mast_holds": _word(most < MOST_LATE and allocated >= ALLOCATED),
        "mast_late": _lates(mast),
        "allocated": _percent(allocated),
        "federation_holds": _word(times >= TIMES_WORSE),
        "federation_late": _lates(fed),
        "worst": worst,
        "times": f"{math.floor(times)}",
        "most_elsewhere": f"{max(elsewhere):.1f}",
        "same": "every number of every run" if same else "not all runs",
        "three": _percent(three),
        "five": _percent(five),
        "better": _list([f"{_better(table, x)} in `{_name(x)}`" for x in REGIMES]),
        "mild_late": _list([_percent(_pooled(table.of(mild, cell))) for cell in CELLS]),
    }


def _better(table: Rows, regime: Regime) -> str:
    """Which of (3) and (5) is late less often, at the level of all pairs together."""
    pairs = zip(table.of(regime, 3), table.of(regime, 5), strict=True)
    mean, half = _mean_of([_pooled([a]) - _pooled([b]) for a, b in pairs], TOGETHER)
    return "neither" if abs(mean) <= half else "(3)" if mean < 0 else "(5)"


def _lates(rows: Sequence[Row]) -> str:
    return _list([_percent(_pooled(rows, (x,))) for x in URGENT_PRIORITIES])


def _regime(table: Rows, regime: Regime) -> dict[str, Any]:
    mast = table.of(regime, MAST)
    lines = []
    for cell in CELLS:
        rows = table.of(regime, cell)
        lates = [_late_interval(rows, priority) for priority in URGENT_PRIORITIES]
        allocated = _interval(rows, lambda row: 100 * float(row["allocated_share"]), digits=1)
        fell = _mean(rows, lambda row: float(row["preemptions"]))[0]
        jct_h = _interval(rows, lambda row: float(row["jct_mean_s"]) / HOUR_S)
        against = "-" if cell == MAST else _against(mast, rows)
        lines.append([f"({cell}) {WHAT[cell]}", *lates, against, allocated, f"{fell:.0f}", jct_h])
    return {
        "name": _name(regime),
        "mix": ", ".join(f"{100 * x:g}" for x in MIXES[regime.mix]),
        "load": f"{regime.load:g}",
        "gpus": f"{gpus_of(regime.cluster_gpus):,}",
        "clusters": _list([str(x) for x in REGIONS[regime.cluster_gpus]]),
        "cluster_gpus": regime.cluster_gpus,
        "quotas": f"{regime.quotas:g}",
        "rows": lines,
        "pairs": [_pair_line(table, regime, cell) for cell in CELLS[:-1]],
    }


def _pair_line(table: Rows, regime: Regime, cell: int) -> list[str]:
    """A cell against those behind it: how much more often it is late, in points."""
    line = [f"({cell})"]
    for other in CELLS[1:]:
        if (cell, other) in PAIRS:
            rows, others = table.of(regime, cell), table.of(regime, other)
            line.append(_against(others, rows, TOGETHER))
        else:
            line.append("")
    return line


def _times_line(table: Rows, regime: Regime) -> list[str]:
    """How often the federation is late beside MAST, by priority."""
    mast, fed = table.of(regime, MAST), table.of(regime, FEDERATION)
    line = [f"`{_name(regime)}`"]
    for priority in URGENT_PRIORITIES:
        (late, waits), (other, others) = _counts(mast, priority), _counts(fed, priority)
        times = _sure_times(mast, fed, priority)
        said = "-" if not other else f"{times:.1f}" if late else f"above {times:.1f}"
        line.append(f"{late:,.0f} of {waits:,.0f}, {other:,.0f} of {others:,.0f}: {said}")
    return line


def _sure_times(mast: Sequence[Row], other: Sequence[Row], priority: int) -> float:
    """How many times as often the other cell is late; where MAST never is, at least so many times.

    Of n waits of which none is late, the share of late ones is below 3 / n (95 %, rule of three).
    """
    (late, waits), (more, others) = _counts(mast, priority), _counts(other, priority)
    return (more / others) / ((late or RULE_OF_THREE) / waits)


def _counts(rows: Sequence[Row], priority: int) -> tuple[float, float]:
    """Late waits, and waits."""
    late, waits = (sum(float(row[f"{x}_{priority}"]) for row in rows) for x in ("late", "waits"))
    return late, waits


def _name(regime: Regime) -> str:
    return f"{regime.mix}, load {regime.load:g}, clusters of {regime.cluster_gpus}"


def _pooled(rows: Sequence[Row], priorities: Sequence[int] = URGENT_PRIORITIES) -> float:
    """Late waits over waits, all rows and priorities together."""
    waits = sum(float(row[f"waits_{x}"]) for row in rows for x in priorities)
    return (
        sum(float(row[f"late_{x}"]) for row in rows for x in priorities) / waits if waits else 0.0
    )


def _mean(rows: Sequence[Row], value: Callable[[Row], float]) -> tuple[float, float]:
    """Mean and half-width of its interval."""
    return _mean_of([value(row) for row in rows])


def _mean_of(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    array = np.array(values)
    half = t_quantile(level, len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return float(array.mean()), half


def _interval(rows: Sequence[Row], value: Callable[[Row], float], digits: int = 2) -> str:
    mean, half = _mean(rows, value)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def _late_interval(rows: Sequence[Row], priority: int) -> str:
    return _interval(rows, lambda row: 100 * _pooled([row], (priority,)))


def _against(mast: Sequence[Row], other: Sequence[Row], level: float = LEVEL) -> str:
    pairs = zip(mast, other, strict=True)
    mean, half = _mean_of([100 * (_pooled([b]) - _pooled([a])) for a, b in pairs], level)
    return f"{mean:+.2f} ± {half:.2f}" if mean or half else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _list(texts: Sequence[str]) -> str:
    return ", ".join(texts[:-1]) + f" and {texts[-1]}"


def _word(holds: bool) -> str:
    return "holds" if holds else "does not hold"

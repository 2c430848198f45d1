"""The page: its tables and sentences, all from the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artist.results.statistics.students_t import t_quantile
from studies.common.page import rendered, table
from studies.common.rows import Row
from studies.loop.study.observations import DAYS, FILL_H, HERE, QUOTA, URGENT_PRIORITIES
from studies.loop.study.plan import PLANS, POLICIES, REPLICATES
from studies.loop.study.week import GPUS, LOAD, REGIONS, ROWS, TABLES

LEVEL = 0.95
ALLOCATED, LATE = 0.98, 0.013
"""Sections 5.2 (Figure 5) and 5.6."""
WITHOUT_DATA = 0.001
"""Figure 6: the share of workloads that wait for data is usually below."""
FOUR_REGIONS, TWO_EXECUTING = 0.40, 0.30
"""Figure 7: about so many workloads have four candidate regions, and run in several."""
NEAR = 0.1
"""Points by which a share of Figure 7 may differ."""
WHAT = {
    "V0": "V0: no plan",
    "V1": "V1: homes move",
    "V2": "V2: and replicas",
    "again": "again: V2, a week later",
    "loop": "loop: V2, then measured demand",
}
TB = 1e12

Value = Callable[[Row], float]


def page_text(rows: Sequence[Row]) -> str:
    """The whole page."""
    return rendered(
        HERE,
        runs=len(rows),
        replicates=REPLICATES,
        regions=REGIONS,
        tables=TABLES,
        gpus=f"{GPUS:,}",
        rows=f"{ROWS:,}",
        jobs=f"{np.mean([float(row['jobs']) for row in rows]):,.0f}",
        load=f"{LOAD:g}",
        quota=f"{100 * QUOTA:g}",
        days=DAYS,
        fill_h=FILL_H,
        plans=_plans(rows),
        policies=[{"name": name, "table": _policy(rows, name)} for name in POLICIES],
        against=_against(rows),
        figures=_figures(rows),
        **_findings(rows),
    )


def _of(rows: Sequence[Row], plan: str, policy: str) -> list[Row]:
    """In the order of seeds."""
    return [row for row in rows if (row["plan"], row["policy"]) == (plan, policy)]


def late(row: Row, priorities: Sequence[int] = URGENT_PRIORITIES) -> float:
    """Percent of the waits within quota that were late."""
    waits = sum(float(row[f"waits_{x}"]) for x in priorities)
    return 100 * sum(float(row[f"late_{x}"]) for x in priorities) / waits if waits else 0.0


def allocated(row: Row) -> float:
    """Percent of GPU time."""
    return 100 * float(row["allocated_share"])


def plan_tb(row: Row) -> float:
    """Terabytes that the plan sends over the wide-area network."""
    return (float(row["home_bytes"]) + float(row["replica_bytes"])) / TB


def copied_tb(row: Row) -> float:
    """Terabytes that jobs had copied."""
    return float(row["copied_bytes"]) / TB


def without_data(row: Row) -> float:
    """Percent of the jobs that waited for data."""
    return 100 * float(row["jobs_without_data"]) / float(row["jobs"])


def _percent_of(name: str) -> Value:
    return lambda row: 100 * float(row[name])


def _plans(rows: Sequence[Row]) -> str:
    """Numbers of plans do not depend on the policy, but for the loop's."""
    lines = []
    for plan in PLANS:
        mine = _of(rows, plan, "mast")
        numbers = [
            _text(mine, lambda row: float(row["ratio_max"])),
            _text(mine, lambda row: float(row["ratio_sd"])),
            _text(mine, _percent_of("collocation"), 1),
            _text(mine, lambda row: 100 * float(row["home_bytes"]) / float(row["all_bytes"]), 1),
            _text(mine, lambda row: 100 * float(row["replica_bytes"]) / float(row["all_bytes"]), 0),
        ]
        lines.append([WHAT[plan], *numbers])
    head = ("plan", "largest ratio", "deviation", "collocated (%)", "homes moved (% of bytes)",
            "replicas sent (% of bytes)")  # fmt: skip
    return table(head, lines)


def _policy(rows: Sequence[Row], policy: str) -> str:
    lines = []
    for plan in PLANS:
        mine = _of(rows, plan, policy)
        lates = [_text(mine, lambda row, x=x: late(row, (x,)), 1) for x in URGENT_PRIORITIES]
        wait_h = _text(mine, lambda row: float(row["wait_p95_s"]) / 3600, 1)
        others = [_text(mine, allocated, 1), _text(mine, plan_tb, 0), _text(mine, copied_tb, 2)]
        lines.append([WHAT[plan], *lates, wait_h, *others])
    head = ("plan", *(f"late {x} (%)" for x in URGENT_PRIORITIES), "P95 wait (h)",
            "allocated (%)", "plan (TB)", "copied (TB)")  # fmt: skip
    return table(head, lines)


def _against(rows: Sequence[Row]) -> str:
    """The loop less the plan a week later, over pairs of equal seeds."""
    lines = []
    for policy in POLICIES:
        for other in ("V2", "again"):
            pairs = list(zip(_of(rows, other, policy), _of(rows, "loop", policy), strict=True))
            cells = []
            for value, digits in ((late, 1), (allocated, 1), (plan_tb, 0)):
                differences = [value(b) - value(a) for a, b in pairs]
                cells.append(_difference(differences, digits))
            lines.append([f"{policy}, loop less {other}", *cells])
    head = ("", "late 1 to 3 (points)", "allocated (points)", "plan (TB)")
    return table(head, lines)


def _findings(rows: Sequence[Row]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    v0, v2, fed = (
        _mean(_of(rows, *x), late)[0] for x in (("V0", "mast"), ("V2", "mast"), ("V2", "federated"))
    )
    said["plans_gain"] = _word(v0 - v2 > fed - v2)
    for policy in POLICIES:
        said[policy] = {
            plan: {
                "late": f"{_mean(_of(rows, plan, policy), late)[0]:.1f} %",
                "allocated": f"{_mean(_of(rows, plan, policy), allocated)[0]:.1f} %",
            }
            for plan in PLANS
        }
    pairs = zip(_of(rows, "again", "mast"), _of(rows, "loop", "mast"), strict=True)
    differences = [late(b) - late(a) for a, b in pairs]
    said["worth"] = _verdict(differences, "late")
    pairs = zip(_of(rows, "again", "mast"), _of(rows, "loop", "mast"), strict=True)
    said["worth_allocated"] = _verdict([allocated(b) - allocated(a) for a, b in pairs], "allocated")
    return said


def _verdict(differences: Sequence[float], what: str) -> str:
    mean, half = _mean_of(differences)
    text = f"{mean:+.1f} ± {half:.1f} points {what}"
    return text if abs(mean) > half else f"{text}, which is noise"


def _figures(rows: Sequence[Row]) -> str:
    """The paper's figures about which runs say something, by the plan of the loop."""
    mine, fed = _of(rows, "loop", "mast"), _of(rows, "loop", "federated")
    v0 = _of(rows, "V0", "mast")
    share = _mean(mine, allocated)[0]
    waiting = _mean(mine, without_data)[0]
    four = _mean(mine, _percent_of("candidates_4"))[0]
    several = _mean(mine, _percent_of("executing_2"))[0]
    moved = _mean(mine, lambda row: 100 * float(row["home_bytes"]) / float(row["all_bytes"]))[0]
    p95_h, worse_h = (_mean(x, lambda row: float(row["wait_p95_s"]) / 3600)[0] for x in (mine, v0))
    lates = [_mean(x, late)[0] for x in (mine, fed)]
    late_holds = lates[0] < 100 * LATE
    lines = [
        ["5: GPU allocation", "98 %", f"{share:.1f} %", _word(share >= 100 * ALLOCATED)],
        ["6: workloads that wait for data", "below 0.1 %", f"{waiting:.2f} %",
         _word(waiting < 100 * WITHOUT_DATA)],
        ["7: at least four candidate regions", "about 40 %", f"{four:.0f} %",
         _word(abs(four / 100 - FOUR_REGIONS) <= NEAR)],
        ["7: several executing regions", "about 30 %", f"{several:.0f} %",
         _word(abs(several / 100 - TWO_EXECUTING) <= NEAR)],
        ["8: data moved in a day", "hundreds of PB, a limit a day",
         f"{moved / DAYS:.2f} % of all bytes", "form only"],
        ["10: time of an RMS", "1.3 ms, 5.5 ms with preemption", "0.18 ms with preemption",
         "faster; other machine and language"],
        ["11: P95 wait within quota", "low, steady", f"{p95_h:.1f} h; V0: {worse_h:.1f} h",
         "form only: the paper's axis has no service level"],
        ["5.6: late under MAST", "below 1.3 %", f"{lates[0]:.1f} %", _word(late_holds)],
        ["5.6: late under the federation", "much more, up to 50 %", f"{lates[1]:.1f} %",
         _word(lates[1] > lates[0])],
    ]  # fmt: skip
    return table(("figure", "paper", "here (loop, mast)", "verdict"), lines, left=4)


def _mean(rows: Sequence[Row], value: Value) -> tuple[float, float]:
    return _mean_of([value(row) for row in rows])


def _mean_of(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of its interval."""
    array = np.array(values)
    half = t_quantile(LEVEL, len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return float(array.mean()), half


def _text(rows: Sequence[Row], value: Value, digits: int = 2) -> str:
    mean, half = _mean(rows, value)
    return f"{mean:.{digits}f} ± {half:.{digits}f}" if half else f"{mean:.{digits}f}"


def _difference(values: Sequence[float], digits: int) -> str:
    mean, half = _mean_of(values)
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"


def _word(holds: bool) -> str:
    return "holds" if holds else "does not hold"

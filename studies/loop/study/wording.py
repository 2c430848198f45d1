"""The values of the page, all from the rows. `page.md.j2` has the words and the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from studies.common.page import Interval, interval_of, rendered
from studies.common.rows import Row
from studies.loop.study.observations import DAYS, FILL_H, HERE, QUOTA, URGENT_PRIORITIES
from studies.loop.study.plan import PLANS, POLICIES, REPLICATES
from studies.loop.study.week import GPUS, LOAD, REGIONS, ROWS, TABLES

ALLOCATED, LATE = 98, 1.3
"""Sections 5.2 (Figure 5) and 5.6, in percent."""
WITHOUT_DATA = 0.1
"""Figure 6: the share of workloads that wait for data is usually below, in percent."""
FOUR_REGIONS, TWO_EXECUTING = 40, 30
"""Figure 7: about this many workloads have four candidate regions, run in several, in percent."""
NEAR = 10
"""Points by which a share of Figure 7 may differ."""
TB = 1e12


def page_text(rows: Sequence[Row]) -> str:
    """The whole page."""

    def of(plan: str, policy: str) -> list[Row]:
        """In the order of seeds."""
        return [row for row in rows if (row["plan"], row["policy"]) == (plan, policy)]

    def mean(name: str, plan: str, policy: str = "mast") -> Interval:
        """Of a value, over replicates."""
        return interval_of([VALUES[name](row) for row in of(plan, policy)])

    def difference(name: str, plan: str, other: str, policy: str = "mast") -> Interval:
        """One plan less another, over pairs of equal seeds."""
        value = VALUES[name]
        pairs = zip(of(plan, policy), of(other, policy), strict=True)
        return interval_of([value(a) - value(b) for a, b in pairs])

    late_v0, late_v2 = mean("late", "V0").mean, mean("late", "V2").mean
    federated_v2 = mean("late", "V2", "federated").mean
    four, several = mean("candidates_4", "loop").mean, mean("executing_2", "loop").mean
    late, late_federated = mean("late", "loop").mean, mean("late", "loop", "federated").mean
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
        plans=PLANS,
        policies=POLICIES,
        urgent=URGENT_PRIORITIES,
        mean=mean,
        difference=difference,
        plans_gain=late_v0 - late_v2 > federated_v2 - late_v2,
        allocated_holds=mean("allocated", "loop").mean >= ALLOCATED,
        data_holds=mean("without_data", "loop").mean < WITHOUT_DATA,
        candidates_hold=abs(four - FOUR_REGIONS) <= NEAR,
        executing_holds=abs(several - TWO_EXECUTING) <= NEAR,
        late_holds=late < LATE,
        federation_holds=late_federated > late,
    )


def late(row: Row, *priorities: int) -> float:
    """Percent of the waits within quota that were late; by default of all urgent priorities."""
    asked = priorities or URGENT_PRIORITIES
    waits = sum(float(row[f"waits_{x}"]) for x in asked)
    return 100 * sum(float(row[f"late_{x}"]) for x in asked) / waits if waits else 0.0


def _percent(name: str, row: Row) -> float:
    return 100 * float(row[name])


def _of_all_bytes(name: str, row: Row) -> float:
    return 100 * float(row[name]) / float(row["all_bytes"])


VALUES: dict[str, Callable[[Row], float]] = {
    "late": late,
    **{f"late_{x}": lambda row, x=x: late(row, x) for x in URGENT_PRIORITIES},  # type: ignore[misc]
    "wait_p95_h": lambda row: float(row["wait_p95_s"]) / 3600,
    "allocated": partial(_percent, "allocated_share"),
    "without_data": lambda row: 100 * float(row["jobs_without_data"]) / float(row["jobs"]),
    "ratio_max": lambda row: float(row["ratio_max"]),
    "ratio_sd": lambda row: float(row["ratio_sd"]),
    "collocation": partial(_percent, "collocation"),
    "candidates_4": partial(_percent, "candidates_4"),
    "executing_2": partial(_percent, "executing_2"),
    "homes_moved": partial(_of_all_bytes, "home_bytes"),
    "replicas_sent": partial(_of_all_bytes, "replica_bytes"),
    "plan_tb": lambda row: (float(row["home_bytes"]) + float(row["replica_bytes"])) / TB,
    "copied_tb": lambda row: float(row["copied_bytes"]) / TB,
}
"""What the page says of a run. Shares are in percent."""

"""Median and range of every policy on every cluster."""

from __future__ import annotations

from itertools import product

from evidence import Cell, Evidence
from formatting import spread, table
from pairs import RACKS
from sources import DRAWN

POLICIES = (
    "dally",
    "dally-manual",
    "dally-no-wait",
    "dally-fully-consolidated",
    "tiresias",
    "gandiva",
    "themis",
)
HEADINGS = {
    "makespan_s": "makespan",
    "jct_mean_s": "mean JCT",
    "jct_p95_s": "P95 JCT",
    "queue_delay_mean_s": "mean queueing",
    "comm_time_mean_s": "mean communication",
}
"""The metrics of the tables, and their columns."""


def values(evidence: Evidence, study: str) -> str:
    """All values of a study."""
    rows = []
    for arrivals, racks, policy in product(DRAWN, RACKS, POLICIES):
        cell = Cell(study, DRAWN[arrivals], racks, policy)
        if evidence.has(cell):
            rows.append(
                [
                    f"{arrivals}, {racks} racks, {policy}",
                    *(spread(evidence.values(cell, metric)) for metric in HEADINGS),
                ]
            )
    return table(["cluster and policy", *HEADINGS.values()], rows)

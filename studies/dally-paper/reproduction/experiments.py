"""One table per explanation: what is switched, and what that does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from cases import RACKS, Case
from evidence import Cell, Evidence
from sources import DRAWN
from tabular import interval, seconds, share, table

POLICIES = (
    "dally",
    "dally-manual",
    "dally-no-wait",
    "dally-fully-consolidated",
    "tiresias",
    "gandiva",
    "themis",
)
SHOWN = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")
HEADINGS = ("makespan", "mean JCT", "P95 JCT", "mean queueing", "mean communication")


def against(evidence: Evidence, cases: Sequence[Case]) -> str:
    """What changes from the second cell of a case to its first."""
    metrics = ("makespan_s", "jct_mean_s", "queue_delay_mean_s", "comm_time_mean_s")
    headings = [HEADINGS[SHOWN.index(metric)] for metric in metrics]
    return table(
        ["what is switched", *headings],
        (
            [
                name,
                *(interval(evidence.difference(cell, base, metric)) for metric in metrics),
            ]
            for name, cell, base in cases
            if evidence.has(cell) and evidence.has(base)
        ),
    )


def load(evidence: Evidence) -> str:
    """Poisson streams of the batch's jobs on 8 racks."""
    rows = []
    for rate, rival in product((10, 40), ("tiresias", "gandiva")):
        cell = Cell("load", DRAWN["batch"], 8, "dally", f"arrivals=poisson:{rate}")
        if not evidence.has(cell.of(policy=rival)):
            continue
        wait = evidence.middle(cell, "queue_delay_mean_s") / evidence.middle(cell, "jct_mean_s")
        rows.append(
            [
                f"{rate} jobs per hour: dally against {rival}",
                share(wait),
                *(
                    interval(evidence.difference(cell, cell.of(policy=rival), metric))
                    for metric in ("jct_mean_s", "jct_p95_s", "comm_time_mean_s")
                ),
            ]
        )
    return table(
        ["stream", "dally's queueing / JCT", "mean JCT", "P95 JCT", "mean communication"], rows
    )


def order(evidence: Evidence) -> str:
    """One drawn trace in eight machine orders: range over median."""
    rows = []
    for policy in ("dally", "tiresias"):
        cell = Cell("order", DRAWN["batch"], 8, policy)
        if not evidence.has(cell):
            continue
        row = [f"8 racks, {policy}"]
        for metric in ("makespan_s", "jct_mean_s", "jct_p95_s", "comm_time_mean_s"):
            found, middle = evidence.values(cell, metric), evidence.middle(cell, metric)
            row.append(f"{min(found) / middle:.2f} .. {max(found) / middle:.2f}")
        rows.append(row)
    return table(["run", "makespan", "mean JCT", "P95 JCT", "mean communication"], rows)


def tail(evidence: Evidence) -> str:
    """What the last job to finish ran on: medians over the drawn traces, 8 racks, batch."""
    rows = []
    for study, racks, policy in product(("recorded", "calibrated"), (2, 8), POLICIES):
        cell = Cell(study, DRAWN["batch"], racks, policy)
        if not evidence.has(cell):
            continue
        found = list(evidence.rows(cell).values())
        uneven = sum(row.values["last_job_even"] == "False" for row in found)
        levels = [row.values["last_job_level"] for row in found]
        rows.append(
            [
                f"{study}, {racks} racks, {policy}",
                seconds(evidence.middle(cell, "makespan_s")),
                seconds(evidence.middle(cell, "jct_p99_s")),
                f"{evidence.middle(cell, 'last_job_slowdown'):,.1f}",
                f"{levels.count('rack')} / {levels.count('network')} of {len(found)}",
                f"{uneven} of {len(found)}",
            ]
        )
    return table(
        ["run", "makespan", "P99 JCT", "last job: run time / ideal", "its GPUs in a rack / across",
         "uneven"],
        rows,
    )  # fmt: skip


def congestion(evidence: Evidence) -> str:
    """How congested each cluster is: share of a job's completion time spent waiting."""
    rows = []
    for arrivals in DRAWN:
        for policy in ("dally", "tiresias", "gandiva"):
            cells = [Cell("recorded", DRAWN[arrivals], racks, policy) for racks in RACKS]
            rows.append(
                [
                    f"{arrivals}, {policy}",
                    *(
                        share(
                            evidence.middle(cell, "queue_delay_mean_s")
                            / evidence.middle(cell, "jct_mean_s")
                        )
                        if evidence.has(cell)
                        else ""
                        for cell in cells
                    ),
                ]
            )
    return table(["queueing / JCT", *(f"{racks} racks" for racks in RACKS)], rows)


def fabrics(evidence: Evidence) -> str:
    """How much there is to communicate in each regime on 8 racks, and what that decides."""
    rows = []
    for study, arrivals in product(_FABRICS, DRAWN):
        dally = Cell(study, DRAWN[arrivals], 8, "dally")
        if not evidence.has(dally.of(policy="gandiva")):
            continue
        spent = evidence.middle(dally, "comm_time_mean_s")
        pairs = (
            (dally.of(policy="dally-no-wait"), "dally-fully-consolidated", "jct_mean_s"),
            (dally, "tiresias", "jct_mean_s"),
            (dally, "tiresias", "makespan_s"),
            (dally, "gandiva", "jct_mean_s"),
        )
        rows.append(
            [
                f"{study}, {arrivals}",
                share(spent / evidence.middle(dally, "compute_time_mean_s")),
                *(
                    interval(evidence.difference(cell, cell.of(policy=rival), metric))
                    for cell, rival, metric in pairs
                ),
            ]
        )
    return table(
        ["study", "dally's communication / compute", "no-wait for fully-consolidated: JCT",
         "dally for tiresias: JCT", "makespan", "dally for gandiva: JCT"],
        rows,
    )  # fmt: skip


_FABRICS = (
    "recorded",
    "calibrated",
    "h100-calibrated",
    "h100-catalogue",
    "no-communication",
)

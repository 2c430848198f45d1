"""One table per explanation: what is switched, and what that does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

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
RACKS = (2, 4, 8, 16)
SHOWN = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")
HEADINGS = ("makespan", "mean JCT", "P95 JCT", "mean queueing", "mean communication")

BATCH = Cell("recorded", DRAWN["batch"], 8, "dally")


def against(evidence: Evidence, cases: Sequence[tuple[str, Cell, Cell]]) -> str:
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


def switches(
    study: str, options: Sequence[str], policies: Sequence[str]
) -> list[tuple[str, Cell, Cell]]:
    """Options of a study against the same policy in `recorded`, on 2 and 8 racks."""
    return [
        (
            f"{policy}, {racks} racks: {option or 'original rules'}",
            BATCH.of(study=study, racks=racks, policy=policy, options=option),
            BATCH.of(racks=racks, policy=policy),
        )
        for policy, option, racks in product(policies, options, (2, 8))
    ]


def placement_cases() -> Iterator[tuple[str, Cell, Cell]]:
    """Same placement, other priority; then same priority, other placement."""
    pairs = (("dally-no-wait", "pack"), ("dally-fully-consolidated", "consolidate-or-wait"))
    for racks, (policy, placer) in product((2, 8), pairs):
        las = Cell("placement", DRAWN["batch"], racks, "las", f"policy.placement={placer}")
        yield (
            f"{racks} racks: {policy} for las with {placer}",
            BATCH.of(racks=racks, policy=policy),
            las,
        )
    for racks, placer in product((2, 8), ("any", "pack", "consolidate-or-wait")):
        cell = Cell("placement", DRAWN["batch"], racks, "tiresias", f"policy.placement={placer}")
        yield (
            f"{racks} racks: tiresias with {placer} for skew",
            cell,
            BATCH.of(racks=racks, policy="tiresias"),
        )


def original_tiresias() -> Iterator[tuple[str, Cell, Cell]]:
    """Tiresias by the original's rules: against its paper's, and as the rival of Dally."""
    for racks in (2, 8):
        tiresias = BATCH.of(study="original-tiresias", policy="tiresias", racks=racks)
        yield f"tiresias, {racks} racks: original rules", tiresias, tiresias.of(study="recorded")
    for racks in (2, 8):
        tiresias = BATCH.of(study="original-tiresias", policy="tiresias", racks=racks)
        dally = BATCH.of(study="original-rules", racks=racks)
        yield f"{racks} racks, both by original rules: dally for tiresias", dally, tiresias


def load(evidence: Evidence) -> str:
    """Poisson streams of the batch's jobs on 8 racks."""
    rows = []
    for rate, rival in product(
        (5, 10, 20, 40), ("tiresias", "gandiva", "dally-fully-consolidated")
    ):
        cell = Cell("load", DRAWN["batch"], 8, "dally", f"arrivals=poisson:{rate}")
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
    for racks, policy in product((2, 8), ("dally", "tiresias", "gandiva")):
        cell = Cell("order", DRAWN["batch"], racks, policy)
        row = [f"{racks} racks, {policy}"]
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

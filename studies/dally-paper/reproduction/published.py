"""The paper's tables and the original program's runs beside ours."""

from __future__ import annotations

from itertools import product

from evidence import Cell, Evidence
from formatting import seconds, spread, table
from sources import DRAWN, EFFECTIVE, OWN, PAPER_TABLES, STATISTICS, Original
from values import HEADINGS


def paper_table(evidence: Evidence, original: Original, arrivals: str) -> str:
    """Table II or III of the paper beside the same statistics of others."""
    rows = []
    for policy, published in PAPER_TABLES[arrivals].items():
        own = Cell("own-jobs-recorded", OWN[arrivals], 8, policy)
        drawn = Cell("recorded", DRAWN[arrivals], 8, policy)
        for metric, number in zip(STATISTICS, published, strict=True):
            as_is, fixed = (
                original.get((variant, OWN[arrivals], policy, 8)) for variant in ("asis", "fix")
            )
            rows.append(
                [
                    f"{policy}, {metric.split('_')[1]}",
                    seconds(number),
                    seconds(as_is[metric]) if as_is else "",
                    seconds(fixed[metric]) if fixed else "",
                    spread(evidence.values(own, metric)) if evidence.has(own) else "",
                    spread(evidence.values(drawn, metric)),
                ]
            )
    headings = ["statistic", "the paper", "program as published", "leak closed"]
    return table([*headings, "ours, the paper's jobs", "ours, drawn jobs"], rows)


def leak(original: Original) -> str:
    """The original program as published, over the same program with its leak closed."""
    rows = []
    for (variant, trace, policy, racks), as_is in original.items():
        fixed = original.get(("fix", trace, policy, racks))
        if variant != "asis" or fixed is None:
            continue
        arrivals = next(name for name, own in OWN.items() if own == trace)
        rows.append(
            [
                f"{arrivals}, {racks} racks, {policy}",
                f"{as_is['leaked_gpus']:,.0f}",
                *(
                    text
                    for metric in ("makespan_s", "jct_mean_s")
                    for text in (
                        seconds(as_is[metric]),
                        seconds(fixed[metric]),
                        f"{as_is[metric] / fixed[metric]:.0f}",
                    )
                ),
            ]
        )
    return table(
        ["run", "GPUs leaked", "makespan", "leak closed", "times",
         "mean JCT", "leak closed", "times"],
        rows,
    )  # fmt: skip


def ladder(evidence: Evidence, original: Original) -> str:
    """From the published program to ours, one difference per column, on the paper's jobs."""
    rows = []
    for arrivals, racks, policy, metric in product(
        OWN, (2, 8), ("dally", "dally-manual", "tiresias"), ("makespan_s", "jct_mean_s")
    ):
        as_is, fixed = (
            original.get((variant, OWN[arrivals], policy, racks)) for variant in ("asis", "fix")
        )
        steps = (
            Cell("ladder-rules", EFFECTIVE[arrivals], racks, policy),
            Cell("ladder-paper", EFFECTIVE[arrivals], racks, policy),
            Cell("own-jobs-recorded", OWN[arrivals], racks, policy),
            Cell("recorded", DRAWN[arrivals], racks, policy),
        )
        rows.append(
            [
                f"{arrivals}, {racks} racks, {policy}, {HEADINGS[metric]}",
                seconds(as_is[metric]) if as_is else "",
                seconds(fixed[metric]) if fixed else "",
                *(
                    spread(evidence.values(cell, metric)) if evidence.has(cell) else ""
                    for cell in steps
                ),
            ]
        )
    return table(
        ["run", "1 as published", "2 leak closed", "3 original's rules, ours else",
         "4 paper's rules", "5 uncut jobs", "6 drawn jobs"],
        rows,
    )  # fmt: skip

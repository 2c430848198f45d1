"""Fill the tables of the page: each stands between two comments that name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from claims import CLAIMS
from evidence import Evidence
from experiments import (
    BATCH,
    against,
    congestion,
    load,
    order,
    original_tiresias,
    placement_cases,
    switches,
    tail,
)
from published import ladder, leak, paper_table, values
from sources import Original
from verdicts import detail, summary

BLOCK = re.compile(r"(<!-- table: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, evidence: Evidence, original: Original) -> str:
    """The page with every table written anew.

    Raises:
        KeyError: the page names a table that there is not.
    """
    made = tables(evidence, original)

    def block(match: re.Match[str]) -> str:
        return f"{match[1]}{made[match['name']]()}{match[3]}"

    return BLOCK.sub(block, text)


def tables(evidence: Evidence, original: Original) -> Mapping[str, Callable[[], str]]:
    """Every table by name."""
    variants = ("dally", "dally-manual", "dally-no-wait", "dally-fully-consolidated")
    bounds = (
        "policy.floors_s=21600,43200 policy.caps_s=None",
        "policy.floors_s=0,0 policy.caps_s=140400,172800",
        "policy.floors_s=21600,43200 policy.caps_s=140400,172800",
    )
    history = ("policy.history_s=21600", "policy.history_s=604800")
    leases = ("policy.lease_s=600", "policy.lease_s=1e+09")
    within = [
        (
            f"{racks} racks: within-level for dally",
            BATCH.of(study="within-level", policy="dally-within-level", racks=racks),
            BATCH.of(racks=racks),
        )
        for racks in (2, 4, 8, 16)
    ]
    return {
        "summary": lambda: summary(evidence, original),
        "detail": lambda: detail(evidence, original),
        "table-2": lambda: paper_table(evidence, original, "batch"),
        "table-3": lambda: paper_table(evidence, original, "poisson"),
        "leak": lambda: leak(original),
        "ladder": lambda: ladder(evidence, original),
        "congestion": lambda: congestion(evidence),
        "tail": lambda: tail(evidence),
        "within-level": lambda: against(evidence, within),
        "original-rules": lambda: against(
            evidence, [*switches("original-rules", ("",), variants), *original_tiresias()]
        ),
        "bounds": lambda: against(
            evidence,
            [*switches("bounds", bounds, ("dally",)), *switches("history", history, ("dally",))],
        ),
        "lease": lambda: against(evidence, switches("lease", leases, ("dally", "tiresias"))),
        "placement": lambda: against(evidence, list(placement_cases())),
        "gandiva": lambda: against(
            evidence, switches("gandiva", ("policy.migrate=False",), ("gandiva",))
        ),
        "load": lambda: load(evidence),
        "order": lambda: order(evidence),
        "values-recorded": lambda: values(evidence, "recorded"),
        "values-calibrated": lambda: values(evidence, "calibrated"),
        "values-h100": lambda: values(evidence, "h100-calibrated"),
        "count": lambda: f"{len(CLAIMS)} claims\n",
    }

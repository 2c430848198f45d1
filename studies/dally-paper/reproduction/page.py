"""Fill the tables of the page: each stands between two comments that name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cases import (
    BOUNDS,
    LEASES,
    MIGRATION,
    ORIGINAL,
    RACKS,
    VARIANTS,
    original_tiresias,
    placement_cases,
    switches,
    within_level,
)
from evidence import Evidence
from experiments import (
    against,
    congestion,
    fabrics,
    load,
    order,
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
    return {
        "summary": lambda: summary(evidence, original),
        "detail": lambda: detail(evidence, original),
        "table-2": lambda: paper_table(evidence, original, "batch"),
        "table-3": lambda: paper_table(evidence, original, "poisson"),
        "leak": lambda: leak(original),
        "ladder": lambda: ladder(evidence, original),
        "congestion": lambda: congestion(evidence),
        "tail": lambda: tail(evidence),
        "within-level": lambda: against(evidence, list(within_level())),
        "original-rules": lambda: against(
            evidence,
            [*switches("original-rules", ORIGINAL, VARIANTS, RACKS), *original_tiresias()],
        ),
        "bounds": lambda: against(
            evidence,
            switches("bounds", BOUNDS, ("dally",)),
        ),
        "lease": lambda: against(evidence, switches("lease", LEASES, ("dally", "tiresias"))),
        "placement": lambda: against(evidence, list(placement_cases())),
        "gandiva": lambda: against(evidence, switches("gandiva", MIGRATION, ("gandiva",))),
        "fabrics": lambda: fabrics(evidence),
        "load": lambda: load(evidence),
        "order": lambda: order(evidence),
        "values-recorded": lambda: values(evidence, "recorded"),
        "values-calibrated": lambda: values(evidence, "calibrated"),
        "values-h100": lambda: values(evidence, "h100-calibrated"),
    }

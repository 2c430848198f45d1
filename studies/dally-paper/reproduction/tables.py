"""Every table of the pages by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from evidence import Evidence
from explanations import against, communication, congestion, fabrics, load, order, shapes, tail
from pairs import all_pairs
from published import ladder, leak, paper_table
from sources import Original
from values import values
from verdicts import detail, every_verdict, summary


def tables(evidence: Evidence, original: Original) -> Mapping[str, Callable[[], str]]:
    """What makes each table."""
    return {
        "summary": lambda: summary(evidence),
        "verdicts": lambda: every_verdict(evidence),
        "detail": lambda: detail(evidence, original),
        "table-2": lambda: paper_table(evidence, original, "batch"),
        "table-3": lambda: paper_table(evidence, original, "poisson"),
        "leak": lambda: leak(original),
        "ladder": lambda: ladder(evidence, original),
        "shapes": shapes,
        "tail": lambda: tail(evidence),
        "congestion": lambda: congestion(evidence),
        "communication": lambda: communication(evidence),
        "fabrics": lambda: fabrics(evidence),
        "load": lambda: load(evidence),
        "order": lambda: order(evidence),
        "values-recorded": lambda: values(evidence, "recorded"),
        "values-default": lambda: values(evidence, "default"),
        "values-h100": lambda: values(evidence, "h100"),
        **{name: partial(against, evidence, pairs) for name, pairs in all_pairs().items()},
    }

"""What failures and checkpoints add to a result; `tables.py` computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from artist.results.metrics import Table


class ToldOfFailures(NamedTuple):
    """Parts of the summary, columns and tables."""

    summary: Mapping[str, Any]
    job_columns: Table
    placement_columns: Table
    tables: Mapping[str, Table]


NOTHING_TOLD = ToldOfFailures({}, {}, {}, {})
"""Where nothing fails and no job writes checkpoints."""

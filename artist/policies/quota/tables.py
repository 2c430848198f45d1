"""What the ledger wrote down, as tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artist.policies.quota.ledger import Ledger
from artist.policies.quota.options import QueueOptions
from artist.units import seconds, ticks


def queue_table(ledger: Ledger, options: QueueOptions) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """`queue`: a row for every wait within quota that ended; none where there are no quotas."""
    late = ticks(options.slo_s)
    rows = [
        {
            "time_s": seconds(row.tick),
            "job": row.handle,
            "priority": row.priority,
            "wait_s": seconds(row.wait),
            "late": row.wait > late,
            "started": row.started,
        }
        for row in ledger.waited
    ]
    return {"queue": rows} if rows else {}

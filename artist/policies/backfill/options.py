"""Options of backfilling, and its rules of estimates."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from artist.contract import Options
from artist.io.reading import as_float
from artist.policies.shared.ranking import OrderName


def estimate_factor(text: str) -> float:
    """By how much an option `estimates` multiplies exact run times; 1 for other rules.

    Raises:
        ValueError: it is not a rule.
    """
    rule, colon, factor = text.partition(":")
    if text in ("exact", "limit", "learned"):
        return 1.0
    number = as_float(factor)
    if rule != "factor" or not colon or not 1e-3 <= number <= 1e6:
        raise ValueError("expected exact, limit, learned or factor:F with F from 0.001 to 1e6")
    return number


class BackfillOptions(Options):
    """Options of backfilling with reservations."""

    order: OrderName = Field(
        default="arrival", description="key by which jobs come forward, the smallest first"
    )
    estimates: str = Field(
        default="exact",
        description="expected run times: exact; limit (the column hint_time_limit_s); factor:F, F "
        "times exact; or learned, from the user's last two jobs",
    )
    placement: Literal["any", "pack", "consolidate-or-wait"] = Field(
        default="pack", description="how GPUs are chosen"
    )

    @field_validator("estimates")
    @classmethod
    def _is_a_rule(cls, text: str) -> str:
        estimate_factor(text)
        return text

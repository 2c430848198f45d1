"""What is suspicious about measurements and their fit, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from artist.calibrate.fit_models import FittedModel
from artist.calibrate.measurements import MeasurementSet

MISSED = 0.20
"""A measured share that was only compared, and is missed by more, is named. Our choice."""

SMALLEST_USUAL = 0.001
"""A smaller measured share is rather a fraction written as a percentage. Our choice: the smallest
share of Table I is 1 %."""


def doubts(measurements: MeasurementSet, fitted: Sequence[FittedModel]) -> list[str]:
    """A sentence for each kind of doubt, and for each share that is too small.

    A row with a note has its explanation already.
    """
    models = {one.model.partition("@")[0] for one in fitted}
    sentences = [
        f"{row.model} on {row.placement} communicates {100 * row.share:g} % of its compute "
        "time, below 0.1 %: is comm_percent a percentage (4.5), not a fraction (0.045)?"
        for row in measurements.rows
        if row.model.partition("@")[0] in models and 0 < row.share < SMALLEST_USUAL
    ]
    missed = [
        f"{one.model} on {level.placement} ({100 * level.deviation:+.0f} %)"
        for one in fitted
        for level in one.levels
        if level.role == "predicted" and not level.note
        if level.deviation is not None and abs(level.deviation) > MISSED
    ]
    if missed:
        sentences.append(
            f"rows that were only compared are missed by more than {100 * MISSED:.0f} %: "
            f"{', '.join(missed)}; check the links of the fabric, or fit these rows too"
        )
    return sentences

"""By how much a calibration multiplies communication: what a model that it lacks does not get."""

from __future__ import annotations

from artist.calibrate.communication_shares import Scales, ShareModel
from artist.cluster.fabric import Fabric
from artist.errors import BackendError, ConfigError
from artist.estimates.calibration import Calibration
from artist.estimates.query import LatencyBackend
from artist.results.terms.number_text import short
from artist.workload.models import workload


def lacking_sentence(
    models: list[str], calibration: Calibration, fabric: Fabric, backend: LatencyBackend
) -> str:
    """What it means that a run has models that its calibration lacks, and what to do."""
    lacking = ", ".join(models)
    text = f"Calibration {calibration.name} lacks {lacking}: compute times are the catalogue's"
    if factors := fitted_factors(calibration, fabric, backend):
        text += (
            f", while the fit makes the others communicate {short(min(factors))} to "
            f"{short(max(factors))} times as much"
        )
    return (
        f"{text}. Fit a measurement (artist calibrate --measured FILE), or leave all of them out "
        "(--calibration none)."
    )


def fitted_factors(
    calibration: Calibration, fabric: Fabric, backend: LatencyBackend
) -> tuple[float, ...]:
    """Communication over computing with the calibration over that without, at each fitted point."""
    factors = []
    for model, row in calibration.models.items():
        for point in row.fit:
            try:
                shares = ShareModel(workload(model), point.placement, fabric, backend)
                plain = shares.simulated(Scales(1.0))
            except (BackendError, ConfigError):  # the fabric has no such placement
                continue
            if plain > 0:
                factors.append(shares.simulated(Scales.of(row)) / plain)
    return tuple(factors)

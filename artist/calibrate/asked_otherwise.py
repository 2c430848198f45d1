"""A calibration in other use than it was fitted for: other settings of ASTRA-sim, or other models.

A calibration meets the measured shares with the settings that it was fitted with. With other
settings, the same scales miss them by more than most policies differ. A model that the calibration
lacks does not get the factor by which it changes the communication of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.calibrate.communication_shares import Scales, ShareModel
from artist.cluster.fabric import Fabric
from artist.errors import BackendError, ConfigError
from artist.estimates.calibration import Calibration
from artist.estimates.query import LatencyBackend
from artist.estimates.query_from_text import FABRIC_SETTINGS
from artist.results.terms.number_text import short
from artist.workload.models import workload


def as_asked(fabric: Fabric) -> dict[str, str | float]:
    """The settings of ASTRA-sim on a fabric, as a calibration records them.

    Its models are data parallel, so the setting for groups of divided models does not matter.
    """
    return {key: getattr(fabric.system, key) for key in FABRIC_SETTINGS if key != "groups"}


def asked_otherwise(calibration: Calibration, fabric: Fabric, backend: LatencyBackend) -> str:
    """A sentence with the largest error on the fitted shares; empty if no setting differs."""
    changed = calibration.asked_otherwise(fabric.system)
    if not changed:
        return ""
    settings = ", ".join(f"{key}={now} instead of {was}" for key, (was, now) in changed.items())
    text = f"Calibration {calibration.name} is used with {settings}"
    missed = max(_missed(calibration, fabric, backend), default=None)
    if missed is not None:
        _, model, placement, simulated, measured = missed
        text += (
            f": {model} on {placement} communicates {100 * simulated:.3g} % of its compute time, "
            f"where {100 * measured:.3g} % was fitted"
        )
    systems = " ".join(f"--system {key}={now}" for key, (_, now) in changed.items())
    return f"{text}. Fit it again with artist calibrate --all --fabric {fabric.name} {systems}."


def _missed(
    calibration: Calibration, fabric: Fabric, backend: LatencyBackend
) -> Iterator[tuple[float, str, str, float, float]]:
    """For each fitted point: relative error, model, placement, simulated and measured share."""
    for model, row in calibration.models.items():
        for point in row.fit:
            measured = point.measured_percent / 100
            try:
                shares = ShareModel(workload(model), point.placement, fabric, backend)
                simulated = shares.simulated(Scales.of(row))
            except (BackendError, ConfigError):  # the fabric has no such placement
                continue
            yield abs(simulated / measured - 1), model, point.placement, simulated, measured


def lacking_sentence(
    models: list[str], calibration: Calibration, fabric: Fabric, backend: LatencyBackend
) -> str:
    """A sentence on the models of a run that its calibration lacks, and what to do."""
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
    """By which factor the calibration changes the communication share of each fitted point."""
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

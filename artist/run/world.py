"""In which world results are true: a fabric and its evidence, a calibration, who communicates most.

What a user must know of a fabric: whether its figures were measured, are those of vendors, or
imitate a paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artist.cluster.fabric import Fabric
    from artist.config import Scenario
    from artist.estimates.calibration import Calibration
    from artist.results.terms.columns import Table

_NO_NETWORK = "no network: communication takes no time"


def world(scenario: Scenario) -> str:
    """The world of a scenario in half a sentence: `fabric t4, measured: ...; calibration: no`.

    Raises:
        ConfigError: the scenario names a fabric or calibration that is not there.
    """
    from artist.run.hardware import build_calibration, build_fabric

    if scenario.backend == "none":
        return _NO_NETWORK
    fabric = build_fabric(scenario)
    return world_of(scenario, fabric, build_calibration(scenario, fabric))


def world_of(scenario: Scenario, fabric: Fabric, calibration: Calibration | None) -> str:
    """The same, of a fabric and a calibration that are read already."""
    from artist.cluster.fabric_options import changes_text

    if scenario.backend == "none":
        return _NO_NETWORK
    changed = " (changed)" if changes_text(scenario.fabric_options) else ""
    fitted = "no" if calibration is None else calibration.origin_words
    return f"fabric {fabric.name}{changed}, {fabric.origin_words}; calibration: {fitted}"


def busiest_model(jobs: Table) -> str:
    """Which model makes most of the communication, in GPU-seconds; empty without communication."""
    import numpy as np

    gpu_s = np.asarray(jobs["comm_s"]) * np.asarray(jobs["gpus"])
    total_gpu_s = float(gpu_s.sum())
    if not total_gpu_s > 0:
        return ""
    names, model = np.unique(np.asarray(jobs["model"], dtype=str), return_inverse=True)
    by_model = np.bincount(model, weights=gpu_s)
    most = int(np.argmax(by_model))
    return f"{names[most]} makes {100 * by_model[most] / total_gpu_s:.0f} % of the communication"

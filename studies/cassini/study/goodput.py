"""Goodput parameters of the matched models, for Pollux. They are assumed.

A step computes for as long as by the latency model, a tenth of it whatever the batch. It sends for
as long as four workers do that have the links to themselves. Nearly all of this is hidden behind
computation, as it is in these models' iterations: gamma is 10.

The submitted batch is that of four workers; a job may have a quarter to four times as much. The
noise scale is the submitted batch, and four times as much after half of the iterations.
"""

from __future__ import annotations

from typing import Any

from artist.policies.cassini.job_circle import Circle
from studies.cassini.study.arithmetic import alone
from studies.cassini.study.workloads import MATCHED_MODELS, compute_s


def goodput() -> dict[str, Any]:
    """A document of `artist schema goodput`."""
    return {
        "name": "matched",
        "summary": "matched jobs of the study of CASSINI",
        "source": "assumed",
        "models": {model: _row(model, circle) for model, circle in alone(MATCHED_MODELS).items()},
    }


def _row(model: str, circle: Circle) -> dict[str, Any]:
    each = int(model.partition("=")[2])
    (up,) = circle.arcs
    return {
        "batch": 4 * each,
        "batch_max": 16 * each,
        "per_gpu_min": each // 4,
        "per_gpu_max": 2 * each,
        "alpha_c": 0.1 * compute_s(model),
        "beta_c": 0.9 * compute_s(model) / each,
        "alpha_r": up.length_s,
        "alpha_n": up.length_s,
        "gamma": 10,
        "noise": {0: 4 * each, 0.5: 16 * each},
    }

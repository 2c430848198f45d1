"""Fits the goodput parameters of a model to measured steps (`artist.workload.goodput`).

    loss = RMS(log error of compute times) + RMS(log error of steps)
           + 1e-3 (gamma - 1)^2 + 1e-2 ((beta_n / alpha_n)^2 + (beta_r / alpha_r)^2)

Source: Qiao et al., *Pollux*, OSDI 2021, section 4.1; penalties, bounds and the first start are
those of the authors' program (simulator/goodput.py). From that start alone the search may miss the
minimum, since a root mean square has a kink at 0. So it starts again from the least squares of the
same errors, and the lower loss wins. Parameters that the steps do not determine are set as in the
authors' program: without steps on several machines, GPUs synchronise 10 % longer across machines
than inside one; without steps on more than two GPUs, more GPUs cost nothing; with a single batch
size, half of the compute time is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.calibrate.measured_steps import PlacedStep
from artist.errors import ConfigError, TraceError, shortened
from artist.estimates.goodput_table import GoodputTable
from artist.io.documents import validate
from artist.io.reading import as_float

Floats = npt.NDArray[np.float64]

_LEAST, _MOST_GAMMA = 1e-8, 10.0
_START = {"alpha": 0.1, "beta": 0.01, "gamma": 1.001}
_GAMMA_PENALTY, _BETA_PENALTY = 1e-3, 1e-2
_ACROSS = 1.1
"""Time to synchronise across machines over that inside one, if no step determines it."""


class StepTime(NamedTuple):
    """The measured times of one configuration."""

    gpus: int
    one_machine: bool
    per_gpu: int
    compute_s: float
    step_s: float


class StepTimes(NamedTuple):
    """Fitted parameters, as in `Goodput`."""

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float


@dataclass(frozen=True, slots=True)
class GoodputFit:
    """The parameters, their error, and those that the steps do not determine (`undetermined`)."""

    parameters: StepTimes
    error: float
    """Root mean square of the log error of steps."""
    undetermined: tuple[str, ...]


def fit_goodput(steps: Sequence[StepTime]) -> GoodputFit:
    """The parameters with the least loss."""
    from scipy.optimize import Bounds, least_squares, minimize

    determined = _determined(steps)
    columns = tuple(np.array(column, dtype=np.float64) for column in zip(*steps, strict=True))
    start, fixed = [], {}
    for name in StepTimes._fields:
        if name in determined:
            start.append(np.log(_START[name.partition("_")[0]]))
        else:
            fixed[name] = float(columns[3].mean()) / 2 if name == "alpha_c" else _LEAST
    most = {"gamma": _MOST_GAMMA}
    bounds = Bounds(
        np.log([1.0 if name == "gamma" else _LEAST for name in determined]),
        np.log([most.get(name, 1e6) for name in determined]),
    )

    def loss(logs: Floats) -> float:
        return _loss(_parameters(determined, logs, fixed), columns)

    def errors(logs: Floats) -> Floats:
        return np.concatenate(_errors(_parameters(determined, logs, fixed), columns))

    starts = start, least_squares(errors, start, bounds=bounds).x
    ends = (minimize(loss, one, bounds=bounds, method="L-BFGS-B") for one in starts)
    found = min(ends, key=lambda end: float(end.fun))
    best = _parameters(determined, found.x, fixed)
    if "alpha_n" not in determined:
        best = best._replace(
            alpha_n=max(best.alpha_n, _ACROSS * best.alpha_r),
            beta_n=max(best.beta_n, _ACROSS * best.beta_r),
        )
    error = _rms(_errors(best, columns)[1])
    undetermined = tuple(name for name in StepTimes._fields if name not in determined)
    return GoodputFit(best, error, undetermined)


def step_times(steps: Sequence[PlacedStep]) -> list[StepTime]:
    """The measured times of those steps whose compute time is known.

    Raises:
        TraceError: there are none.
    """
    known = [
        StepTime(step.gpus, step.machines == 1, step.batch, step.compute_s, step.step_s)
        for step in steps
        if step.compute_s is not None
    ]
    if not known:
        raise TraceError(
            "no step can be fitted: each needs a row of the same batch on one GPU (placement 1)"
        )
    return known


def goodput_table(
    model: str,
    steps: Sequence[PlacedStep],
    fits: Mapping[str, GoodputFit],
    limits: Mapping[str, object],
    source: str,
) -> GoodputTable:
    """The goodput file of one model: parameters by hardware, the first as the row's own.

    `limits` are `batch`, `batch_max` and `noise` of `GoodputRow`, which steps do not determine. The
    batches of a GPU range over those that were measured.

    Raises:
        ConfigError: limits contradict each other, or a parameter is out of range.
    """
    per_gpu = {name: [step.batch for step in steps if step.hardware == name] for name in fits}
    first, *others = fits
    kinds = {
        name: {"per_gpu_max": max(per_gpu[name]), **fit.parameters._asdict()}
        for name, fit in (fits.items() if others else ())
    }
    row = {
        **limits,
        "per_gpu_min": max(min(batches) for batches in per_gpu.values()),
        "per_gpu_max": max(per_gpu[first]),
        **fits[first].parameters._asdict(),
        "kinds": kinds,
    }
    table = {"name": model, "summary": source, "source": source, "models": {model: row}}
    return validate(table, GoodputTable, "the goodput file to write")


def noise_scale(text: str) -> dict[float, float]:
    """Gradient noise scale by share of the iterations: `200`, or `0=200,0.3=1000`.

    Raises:
        ConfigError: it is neither.
    """
    pairs = [part.rpartition("=") for part in text.split(",")]
    noise = {as_float(share) if mark else 0.0: as_float(value) for share, mark, value in pairs}
    if len(noise) < len(pairs) or not all(np.isfinite([*noise, *noise.values()])):
        raise ConfigError(
            f"--noise {shortened(text)}: expected samples, such as 200, or samples by share of "
            "the iterations, such as 0=200,0.3=1000"
        )
    return noise


def _determined(steps: Sequence[StepTime]) -> tuple[str, ...]:
    """The parameters that the steps determine."""
    apart = any(not step.one_machine for step in steps)
    together = any(step.one_machine and step.gpus > 1 for step in steps)
    many = any(step.gpus > 2 for step in steps)
    tells: Mapping[str, bool] = {
        "alpha_c": len({step.per_gpu for step in steps}) > 1,
        "alpha_n": apart,
        "beta_n": apart and many,
        "alpha_r": together,
        "beta_r": together and many,
    }
    return tuple(name for name in StepTimes._fields if tells.get(name, True))


def _parameters(names: Sequence[str], logs: Floats, fixed: Mapping[str, float]) -> StepTimes:
    return StepTimes(**dict(zip(names, np.exp(logs).tolist(), strict=True)), **fixed)


def _loss(of: StepTimes, columns: tuple[Floats, ...]) -> float:
    compute, step = map(_rms, _errors(of, columns))
    bends = (of.beta_n / of.alpha_n) ** 2 + (of.beta_r / of.alpha_r) ** 2
    return compute + step + _GAMMA_PENALTY * (of.gamma - 1) ** 2 + _BETA_PENALTY * bends


def _errors(of: StepTimes, columns: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    """The log errors of compute times and of steps."""
    _, _, per_gpu, compute_s, step_s = columns
    compute = np.log(of.alpha_c + of.beta_c * per_gpu) - np.log(compute_s)
    return compute, np.log(_step_s(of, columns)) - np.log(step_s)


def _step_s(of: StepTimes, columns: tuple[Floats, ...]) -> Floats:
    """Step times by the equations of `artist.workload.goodput`, for many configurations at once."""
    gpus, one_machine, per_gpu, _, _ = columns
    beyond = np.maximum(gpus - 2, _LEAST)
    inside, across = of.alpha_r + of.beta_r * beyond, of.alpha_n + of.beta_n * beyond
    sync = np.where(gpus > 1, np.where(one_machine > 0, inside, across), _LEAST)
    steps: Floats = np.exp(
        np.logaddexp(of.gamma * np.log(of.alpha_c + of.beta_c * per_gpu), of.gamma * np.log(sync))
        / of.gamma
    )
    return steps


def _rms(errors: Floats) -> float:
    return float(np.sqrt((errors**2).mean()))

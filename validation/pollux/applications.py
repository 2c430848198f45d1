"""What Pollux's authors measured of six applications: step times, and how epochs progress.

`simulator/traces` of petuum/adaptdl, branch osdi21-artifact. `applications.py` there says how the
tables are read: step times between measured batches and placements are interpolated, on GPUs that
were measured by the batch alone, on others over machines, GPUs and batch.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.calibrate.fit_goodput import StepTime, StepTimes, fit_goodput
from artist.workload.goodput import Batch

if TYPE_CHECKING:
    from scipy.interpolate import LinearNDInterpolator

Floats = npt.NDArray[np.float64]
Counts = tuple[int, ...]
"""GPUs on each machine of a job, most first: the order in which that program takes them."""

_EPOCHS = {"bert": 2, "cifar10": 100, "ncf": 10, "imagenet": 90, "deepspeech2": 80, "yolov3": 50}
_LARGEST = {"yolov3": 8}
"""Samples on a GPU, where not the largest that was measured."""
_MOST_MACHINES = 16
_EPS = 1e-8


class Times(NamedTuple):
    """Seconds of a step without accumulation, and of synchronising in it."""

    step_s: float
    sync_s: float


class Application:
    """One application."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.epochs = _EPOCHS[folder.name]
        self._runs = {
            int(path.stem.rpartition("-")[2]): _columns(path)
            for path in folder.glob("validation-*.csv")
        }
        self._sizes = np.array(sorted(self._runs), dtype=float)
        self.batch, self.batch_max = min(self._runs), max(self._runs)
        placements = _columns(folder / "placements.csv")
        self._measured = _by_placement(placements)
        self._over = _over_machines(placements, _columns(folder / "scalability.csv"))
        self.per_gpu_min = int(placements["local_bsz"].min())
        self.per_gpu_max = _LARGEST.get(self.name, int(placements["local_bsz"].max()))
        progress = [run["progress"][: self.epochs] for run in self._runs.values()]
        self.ends: Sequence[float] = [0.0, *np.min(progress, axis=0).tolist()]
        """Progress at which each epoch ends, in iterations with the smallest batch; 0 first."""
        self.times = cache(self._times)
        self._steps = _steps(placements)
        self.iterations = cache(self._iterations)

    def _iterations(self, batch: int) -> Sequence[int]:
        """Iterations with a total batch until each epoch ended."""
        return [round(self._between(batch, epoch, "iteration")) for epoch in range(self.epochs)]

    def noise(self, batch: int, epoch: int) -> float:
        """The gradient noise scale in an epoch, in samples."""
        sqr, var = self._gradient(batch, epoch)
        return self.batch * var / sqr if sqr else math.inf

    def gain(self, batch: int, epoch: int) -> float:
        """Iterations with the smallest batch that a step with a total batch is worth."""
        sqr, var = self._gradient(batch, epoch)
        return (var + sqr) / (var * self.batch / batch + sqr)

    def _gradient(self, batch: int, epoch: int) -> tuple[float, float]:
        """The square and the variance of an epoch's gradients."""
        return self._between(batch, epoch, "grad_sqr"), self._between(batch, epoch, "grad_var")

    def divided(self, batch: int, gpus: int, *, accumulates: bool) -> Batch:
        """A total batch on this many GPUs; one GPU may have to accumulate."""
        each = math.ceil(batch / gpus - _EPS)
        accumulation = math.ceil(each / self.per_gpu_max - _EPS) - 1
        if gpus == 1 and accumulates:
            accumulation = max(accumulation, 1)
        return self.within(Batch(math.ceil(each / (accumulation + 1) - _EPS), accumulation), gpus)

    def within(self, batch: Batch, gpus: int) -> Batch:
        """The batch, or as much of it as the largest total leaves."""
        most = int(self.batch_max / (gpus * (batch.accumulation + 1)))
        return batch._replace(per_gpu=min(batch.per_gpu, most))

    @cached_property
    def fitted(self) -> StepTimes:
        """The parameters of the goodput model that fit all measured steps."""
        return fit_goodput(self._steps).parameters

    def step_s(self, counts: Counts, batch: Batch) -> float:
        """Seconds of a step, accumulated passes included."""
        times = self.times(counts, batch.per_gpu)
        return times.step_s + (times.step_s - times.sync_s) * batch.accumulation

    def _times(self, counts: Counts, per_gpu: int) -> Times:
        turned = min(counts[turn:] + counts[:turn] for turn in range(len(counts)))
        rows = self._measured.get("".join(map(str, turned)))
        if rows is not None:
            step_s, sync_s = (float(np.interp(per_gpu, rows[0], row)) for row in rows[1:])
        else:
            machines = min(len(counts), _MOST_MACHINES)
            step_s, sync_s = map(float, self._over([machines, sum(counts), per_gpu])[0])
        return Times(step_s, sync_s)

    def _between(self, batch: int, epoch: int, name: str) -> float:
        """A value of an epoch, between those of the recorded batches next to this one."""
        values = [self._runs[int(size)][name][epoch] for size in self._sizes]
        return float(np.interp(batch, self._sizes, values))


def applications(traces: Path) -> Mapping[str, Application]:
    """By name."""
    return {name: Application(traces / name) for name in _EPOCHS if (traces / name).is_dir()}


def _steps(placements: Mapping[str, Floats]) -> list[StepTime]:
    """What was measured on each placement, as the fit reads it."""
    names = ("placement", "local_bsz", "step_time", "sync_time")
    return [
        StepTime(sum(map(int, digits)), len(digits) == 1, int(per_gpu), step_s - sync_s, step_s)
        for placement, per_gpu, step_s, sync_s in _rows(placements, *names)
        for digits in [str(int(placement))]
    ]


def _by_placement(rows: Mapping[str, Floats]) -> dict[str, Floats]:
    """Batch, step and sync times by rising batch, of each placement."""
    found: dict[str, Floats] = {}
    for placement in np.unique(rows["placement"]):
        of = rows["placement"] == placement
        order = np.argsort(rows["local_bsz"][of], kind="stable")
        names = ("local_bsz", "step_time", "sync_time")
        found[str(int(placement))] = np.array([rows[name][of][order] for name in names])
    return found


def _over_machines(
    placements: Mapping[str, Floats], scalability: Mapping[str, Floats]
) -> LinearNDInterpolator:
    """Step and sync times over machines, GPUs and samples per GPU; equal ones by their mean."""
    from scipy.interpolate import LinearNDInterpolator

    means: dict[tuple[float, ...], list[Times]] = defaultdict(list)
    for placement, per_gpu, *times in zip(
        *(placements[name] for name in ("placement", "local_bsz", "step_time", "sync_time")),
        strict=True,
    ):
        digits = str(int(placement))
        means[len(digits), sum(map(int, digits)), per_gpu].append(Times(*times))
    known = sorted(means)
    points = [*known, *_rows(scalability, "num_nodes", "num_replicas", "local_bsz")]
    values = [np.mean(means[point], axis=0) for point in known]
    return LinearNDInterpolator(
        np.array(points), np.array([*values, *_rows(scalability, "step_time", "sync_time")])
    )


def _rows(columns: Mapping[str, Floats], *names: str) -> Iterator[tuple[float, ...]]:
    return zip(*(columns[name] for name in names), strict=True)


def _columns(path: Path) -> dict[str, Floats]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}

"""Two families of jobs, measured on the workloads of Dally's section V-A.

A family is the shape of a workload. It holds the number of jobs by GPU demand and model. For each
demand it holds the quantile function of the ideal run time (iterations x compute time), as a few
knots; between knots, its logarithm is linear. The batch has 32 knots, the week has 31.

Source of every figure: two workloads that Dally's authors drew from SenseTime's Helios trace and
published with their simulator, a batch of 500 jobs and 411 Poisson arrivals in one week.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Demand:
    """The jobs of a family that demand this number of GPUs.

    `knots` are pairs of cumulative share (0 to 1) and ideal run time in seconds.
    """

    gpus: int
    jobs_by_model: Mapping[str, int]
    knots: tuple[tuple[float, float], ...]

    @property
    def jobs(self) -> int:
        """Number of jobs in the family with this demand."""
        return sum(self.jobs_by_model.values())

    def ideal_s(self, share: Floats) -> Floats:
        """Ideal run time at cumulative shares from 0 to 1."""
        shares, times_s = zip(*self.knots, strict=True)
        ideal_s: Floats = np.exp(np.interp(share, shares, np.log(times_s)))
        return ideal_s

    def mean_ideal_s(self) -> float:
        """Mean ideal run time: the integral of the quantile function from 0 to 1.

        A log-linear piece from time a to time b over a share w has the integral
        w (b - a) / (ln b - ln a).
        """
        shares, times_s = (np.array(x) for x in zip(*self.knots, strict=True))
        if len(shares) == 1:
            return float(times_s[0])
        rise = np.diff(np.log(times_s))
        return float(np.diff(shares) @ (np.diff(times_s) / rise))


@dataclass(frozen=True, slots=True)
class WorkloadFamily:
    """The shape of a workload.

    `horizon_s` is the time over which the jobs arrive, 0 for a batch. `users` is the number of
    users who submit them.
    """

    id: str
    demands: tuple[Demand, ...]
    horizon_s: float
    users: int


# Compute time of an iteration, in seconds: the smallest and the largest in both workloads. The
# models stand about in order of step length, from short to long. Random draws are indices into
# this table, so another order would change every generated trace.
COMPUTE_S = {
    "vgg11": (0.000135, 0.000333),
    "resnet18": (0.000175, 0.000606),
    "alexnet": (0.000289, 0.001468),
    "mobilenetv3": (0.000287, 0.001117),
    "resnet50": (0.001307, 0.002311),
    "bert-large": (0.00834, 0.01178),
}


def _demand(gpus: int, jobs: tuple[int, ...], knots: tuple[tuple[float, float], ...]) -> Demand:
    """The jobs of one demand; `jobs` counts them by model, in the order of `COMPUTE_S`."""
    counts = zip(COMPUTE_S, jobs, strict=True)
    return Demand(gpus, {model: count for model, count in counts if count}, knots)


BATCH = WorkloadFamily(
    id="sensetime-batch-500",
    horizon_s=0.0,
    users=69,
    demands=(
        _demand(1, (30, 35, 27, 17, 67, 94), (
            (0, 7_190), (0.24, 10_100), (0.34, 10_500), (0.35, 39_200), (0.52, 51_600),
            (0.79, 159_000), (0.985, 254_000), (1, 844_000),
        )),
        _demand(2, (0, 0, 0, 2, 7, 4), ((0, 14_400), (0.85, 67_000), (1, 616_000))),
        _demand(4, (2, 3, 9, 15, 16, 7), (
            (0, 1_730), (0.28, 2_570), (0.3, 12_500), (0.97, 60_000), (1, 254_000),
        )),
        _demand(8, (2, 0, 13, 52, 27, 15), (
            (0, 883), (0.13, 1_220), (0.14, 4_560), (0.66, 8_060), (0.93, 25_100), (1, 108_000),
        )),
        _demand(16, (0, 0, 4, 26, 7, 5), (
            (0, 332), (0.15, 2_410), (0.46, 2_780), (0.92, 16_000), (1, 79_000),
        )),
        _demand(32, (0, 0, 0, 10, 1, 0), ((0, 2_440), (1, 10_800))),
        _demand(40, (0, 0, 0, 1, 0, 0), ((0, 3_080),)),
        _demand(48, (0, 0, 0, 1, 0, 0), ((0, 8_650),)),
        _demand(56, (0, 0, 0, 1, 0, 0), ((0, 950),)),
    ),
)  # fmt: skip

WEEK = WorkloadFamily(
    id="sensetime-poisson-week",
    horizon_s=7 * 86_400.0,
    users=77,
    demands=(
        _demand(2, (0, 0, 0, 2, 13, 26), (
            (0, 15_800), (0.26, 36_900), (0.84, 85_700), (0.92, 180_000), (0.93, 296_000),
            (1, 348_000),
        )),
        _demand(3, (0, 0, 0, 0, 0, 1), ((0, 22_700),)),
        _demand(4, (2, 3, 9, 15, 34, 33), (
            (0, 1_760), (0.15, 2_470), (0.16, 9_210), (0.87, 49_000), (0.97, 69_100), (1, 176_000),
        )),
        _demand(8, (2, 0, 14, 64, 59, 51), (
            (0, 863), (0.08, 1_310), (0.09, 4_540), (0.49, 6_900), (0.79, 14_900), (0.94, 28_200),
            (1, 149_000),
        )),
        _demand(16, (0, 0, 5, 28, 12, 11), (
            (0, 326), (0.13, 2_240), (0.46, 3_200), (0.94, 19_200), (1, 72_400),
        )),
        _demand(32, (0, 0, 0, 13, 7, 3), ((0, 1_870), (0.28, 5_140), (1, 10_700))),
        _demand(40, (0, 0, 1, 1, 0, 0), ((0, 1_670),)),
        _demand(48, (0, 0, 0, 1, 0, 0), ((0, 8_650),)),
        _demand(56, (0, 0, 0, 1, 0, 0), ((0, 950),)),
    ),
)  # fmt: skip

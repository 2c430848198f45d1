"""Two families of jobs, measured on the workloads of Dally's section V-A.

A family is the shape of a workload, cell by cell. A cell is the jobs of one model that demand the
same number of GPUs. It holds their number, their GPU-hours, the length of their steps and, as a
few knots, the quantile function of their ideal run time (iterations x compute time).

Source of every figure: two workloads that Dally's authors drew from SenseTime's Helios trace and
published with their simulator, a batch of 500 jobs and 411 Poisson arrivals in one week.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Compute time of an iteration, in seconds: the smallest and the largest in both workloads. Random
# draws are indices into this table, so another order would change every generated trace.
COMPUTE_S = {
    "vgg11": (0.0001346, 0.0003334),
    "resnet18": (0.0001755, 0.0006064),
    "alexnet": (0.0002886, 0.0014684),
    "mobilenetv3": (0.0002872, 0.001117),
    "resnet50": (0.0013064, 0.0023118),
    "bert-large": (0.0083396, 0.0117824),
}


class Cell(NamedTuple):
    """The jobs of a family that train this model on this number of GPUs.

    `step_s` is the run time of all jobs over their iterations. `knots` are pairs of cumulative
    share (0 to 1) and ideal run time in seconds. They give the shape of the distribution, and
    `gpu_hours` give its mean.
    """

    gpus: int
    model: str
    jobs: int
    gpu_hours: float
    step_s: float
    knots: tuple[tuple[float, float], ...]

    @property
    def mean_ideal_s(self) -> float:
        """Mean ideal run time."""
        return self.gpu_hours * 3600 / (self.gpus * self.jobs)

    def relative_ideal_s(self, share: Floats) -> Floats:
        """Ideal run time at cumulative shares from 0 to 1, up to a constant factor.

        Between knots its logarithm is linear, and beyond the outermost it is constant.
        """
        shares, times_s = zip(*self.knots, strict=True)
        ideal_s: Floats = np.exp(np.interp(share, shares, np.log(times_s)))
        return ideal_s


class WorkloadFamily(NamedTuple):
    """The shape of a workload.

    `horizon_s` is the time over which the jobs arrive, 0 for a batch. `users` is the number of
    users who submit them.
    """

    id: str
    horizon_s: float
    users: int
    cells: tuple[Cell, ...]


BATCH = WorkloadFamily(
    id="sensetime-batch-500",
    horizon_s=0.0,
    users=69,
    cells=(
        Cell(1, "vgg11", 30, 74.89, 0.000221, ((0, 7_320), (1, 10_700))),
        Cell(1, "resnet18", 35, 89.9, 0.000366, ((0, 7_270), (1, 10_600))),
        Cell(1, "alexnet", 27, 68.21, 0.000684, ((0, 7_280), (1, 10_700))),
        Cell(1, "mobilenetv3", 17, 647.8, 0.000665, (
            (0.029, 7_910), (0.088, 40_000), (0.324, 47_700), (0.441, 82_700), (0.5, 173_000),
            (0.853, 207_000), (1, 382_000),
        )),
        Cell(1, "resnet50", 67, 2_007, 0.0017, (
            (0, 38_600), (0.381, 56_400), (0.903, 184_000), (0.978, 254_000), (0.993, 762_000),
        )),
        Cell(1, "bert-large", 94, 3_390, 0.00945, (
            (0, 39_200), (0.229, 48_100), (0.293, 68_300), (0.633, 163_000), (0.973, 262_000),
            (1, 487_000),
        )),
        Cell(2, "mobilenetv3", 2, 196.5, 0.000304, ((0.25, 31_200), (0.75, 322_000))),
        Cell(2, "resnet50", 7, 208.3, 0.0015, (
            (0.214, 18_100), (0.357, 35_300), (0.786, 62_800), (0.929, 147_000),
        )),
        Cell(2, "bert-large", 4, 59.3, 0.011, ((0, 18_800), (0.375, 21_200), (1, 39_600))),
        Cell(4, "vgg11", 2, 4.979, 0.000135, ((0, 2_150), (1, 2_330))),
        Cell(4, "resnet18", 3, 7.626, 0.000292, ((0, 1_820), (0.5, 2_520), (1, 2_530))),
        Cell(4, "alexnet", 9, 20.95, 0.000605, ((0, 1_900), (1, 2_620))),
        Cell(4, "mobilenetv3", 15, 556.7, 0.000588, (
            (0.033, 1_810), (0.1, 14_900), (0.633, 24_000), (0.9, 54_600), (0.967, 158_000),
        )),
        Cell(4, "resnet50", 16, 582.1, 0.00161, (
            (0, 11_800), (0.469, 24_200), (0.781, 52_900), (1, 64_300),
        )),
        Cell(4, "bert-large", 7, 260.9, 0.011, (
            (0, 19_000), (0.214, 20_400), (0.643, 40_300), (1, 48_100),
        )),
        Cell(8, "vgg11", 2, 4.585, 0.000183, ((0, 916), (1, 1_150))),
        Cell(8, "alexnet", 13, 31.34, 0.000837, ((0, 902), (1, 1_340))),
        Cell(8, "mobilenetv3", 52, 1_591, 0.000558, (
            (0, 4_810), (0.529, 7_560), (0.837, 16_700), (0.971, 45_100), (0.99, 146_000),
        )),
        Cell(8, "resnet50", 27, 648.4, 0.0016, (
            (0, 4_590), (0.648, 8_530), (0.685, 11_100), (0.833, 14_900), (0.944, 25_900),
            (0.981, 47_100),
        )),
        Cell(8, "bert-large", 15, 481.5, 0.00913, (
            (0, 4_920), (0.367, 5_370), (0.433, 7_050), (0.7, 9_650), (0.833, 22_800),
            (0.9, 47_600), (1, 59_900),
        )),
        Cell(16, "alexnet", 4, 9.859, 0.001, ((0, 479), (1, 663))),
        Cell(16, "mobilenetv3", 26, 1_120, 0.000399, (
            (0, 2_260), (0.442, 3_090), (0.673, 9_080), (0.788, 10_800), (0.827, 15_600),
            (0.865, 15_600), (0.942, 29_600), (0.981, 70_700),
        )),
        Cell(16, "resnet50", 7, 194.6, 0.00142, (
            (0, 2_300), (0.214, 2_390), (0.643, 8_910), (1, 10_500),
        )),
        Cell(16, "bert-large", 5, 85.28, 0.0101, ((0, 2_390), (0.7, 2_900), (0.9, 8_870))),
        Cell(32, "mobilenetv3", 10, 530.1, 0.000583, ((0.05, 1_990), (0.15, 4_650), (1, 8_670))),
        Cell(32, "resnet50", 1, 18.32, 0.00149, ((0.5, 2_060),)),
        Cell(40, "mobilenetv3", 1, 34.26, 0.000298, ((0.5, 3_080),)),
        Cell(48, "mobilenetv3", 1, 115.3, 0.000767, ((0.5, 8_650),)),
        Cell(56, "mobilenetv3", 1, 14.78, 0.00102, ((0.5, 950),)),
    ),
)  # fmt: skip

WEEK = WorkloadFamily(
    id="sensetime-poisson-week",
    horizon_s=7 * 86_400.0,
    users=77,
    cells=(
        Cell(2, "mobilenetv3", 2, 196.5, 0.000304, ((0.25, 31_200), (0.75, 322_000))),
        Cell(2, "resnet50", 13, 708.6, 0.00198, (
            (0, 18_100), (0.192, 18_300), (0.269, 34_300), (0.5, 46_700), (0.731, 132_000),
            (0.808, 147_000), (0.885, 300_000), (1, 335_000),
        )),
        Cell(2, "bert-large", 26, 800.5, 0.00962, (
            (0, 18_800), (0.173, 28_400), (0.212, 39_600), (0.942, 87_000), (0.981, 152_000),
        )),
        Cell(3, "bert-large", 1, 18.89, 0.0118, ((0.5, 22_700),)),
        Cell(4, "vgg11", 2, 4.979, 0.000135, ((0, 2_150), (1, 2_330))),
        Cell(4, "resnet18", 3, 7.626, 0.000292, ((0, 1_820), (0.5, 2_520), (1, 2_530))),
        Cell(4, "alexnet", 9, 20.95, 0.000605, ((0, 1_900), (1, 2_620))),
        Cell(4, "mobilenetv3", 15, 556.7, 0.000588, (
            (0.033, 1_810), (0.1, 14_900), (0.633, 24_000), (0.9, 54_600), (0.967, 158_000),
        )),
        Cell(4, "resnet50", 34, 1_057, 0.00174, (
            (0, 10_400), (0.279, 12_500), (0.368, 18_000), (0.691, 28_600), (0.721, 37_700),
            (1, 73_400),
        )),
        Cell(4, "bert-large", 33, 1_183, 0.011, (
            (0, 9_430), (0.318, 15_400), (0.591, 40_200), (0.864, 48_100), (1, 97_500),
        )),
        Cell(8, "vgg11", 2, 4.585, 0.000183, ((0, 916), (1, 1_150))),
        Cell(8, "alexnet", 14, 34, 0.000729, ((0, 902), (1, 1_340))),
        Cell(8, "mobilenetv3", 64, 1_879, 0.000563, (
            (0, 4_570), (0.289, 5_510), (0.68, 10_100), (0.93, 26_900), (0.977, 45_100),
            (0.992, 146_000),
        )),
        Cell(8, "resnet50", 59, 1_762, 0.00165, (
            (0, 4_590), (0.771, 14_900), (0.958, 28_700), (0.992, 93_100),
        )),
        Cell(8, "bert-large", 51, 1_794, 0.00996, (
            (0, 4_570), (0.324, 5_370), (0.696, 9_650), (0.755, 14_400), (0.853, 18_100),
            (0.951, 59_900), (0.971, 129_000), (1, 131_000),
        )),
        Cell(16, "alexnet", 5, 12.53, 0.00104, ((0, 479), (1, 663))),
        Cell(16, "mobilenetv3", 28, 1_268, 0.000417, (
            (0, 2_260), (0.411, 3_090), (0.625, 9_080), (0.732, 10_800), (0.768, 15_600),
            (0.875, 16_700), (0.946, 29_600), (0.982, 70_700),
        )),
        Cell(16, "resnet50", 12, 358.8, 0.0015, (
            (0, 2_260), (0.208, 2_390), (0.625, 8_910), (0.875, 10_500), (1, 16_100),
        )),
        Cell(16, "bert-large", 11, 273.4, 0.0107, (
            (0, 2_390), (0.591, 3_340), (0.864, 8_870), (0.955, 20_600),
        )),
        Cell(32, "mobilenetv3", 13, 789.6, 0.000557, (
            (0.038, 1_990), (0.115, 4_650), (0.577, 6_110), (1, 14_300),
        )),
        Cell(32, "resnet50", 7, 312.1, 0.00171, (
            (0, 2_060), (0.214, 2_150), (0.357, 5_110), (1, 7_850),
        )),
        Cell(32, "bert-large", 3, 202.5, 0.00834, ((0, 5_940), (1, 9_940))),
        Cell(40, "alexnet", 1, 2.784, 0.00123, ((0.5, 251),)),
        Cell(40, "mobilenetv3", 1, 34.26, 0.000298, ((0.5, 3_080),)),
        Cell(48, "mobilenetv3", 1, 115.3, 0.000767, ((0.5, 8_650),)),
        Cell(56, "mobilenetv3", 1, 14.78, 0.00102, ((0.5, 950),)),
    ),
)  # fmt: skip

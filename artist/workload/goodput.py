"""Goodput: how fast a job makes progress on some GPUs, with some batch, at some point of its run.

    T_grad     = alpha_c + beta_c m             m samples on each GPU
    T_sync     = alpha + beta max(K - 2, 0)     K GPUs; one pair inside a machine, one across
    T_step     = s T_grad + (T_grad^gamma + T_sync^gamma)^(1 / gamma)
    batch M    = K m (s + 1)                    gradients of s passes are accumulated first
    efficiency = (phi + M0) / (phi + M)         M0 the batch as submitted, phi the noise scale
    goodput    = M / T_step x efficiency        [samples per second that are worth one at M0]

Source: Qiao et al., *Pollux*, OSDI 2021, section 3. What the paper leaves open is as in the
authors' program (simulator/goodput.py): one GPU synchronises for 1e-8 s, 50 totals are tried, and
one GPU beyond the submitted batch accumulates at least once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

_POINTS = 50
"""Batches that `best` tries, in geometric steps: as in the authors' program."""

_EPS = 1e-8
"""Tolerance before rounding up, and the time to synchronise one GPU: as in that program."""


class Batch(NamedTuple):
    """How a job's batch is divided."""

    per_gpu: int
    """Samples of one pass on one GPU."""
    accumulation: int
    """Passes whose gradients are accumulated before the one that synchronises."""

    def total(self, gpus: int) -> int:
        """Samples of one step on this many GPUs."""
        return gpus * self.per_gpu * (self.accumulation + 1)


@dataclass(frozen=True, slots=True)
class Goodput:
    """Parameters of one model. Times in seconds, batches in samples."""

    batch: int
    batch_max: int
    per_gpu_min: int
    per_gpu_max: int
    alpha_c: float
    beta_c: float
    alpha_r: float
    beta_r: float
    alpha_n: float
    beta_n: float
    gamma: float
    noise: tuple[tuple[float, float], ...]
    """(share of the iterations from which it applies, noise scale in samples); the first share
    is 0."""
    kinds: tuple[tuple[str, Goodput], ...] = ()
    """The parameters on each kind of GPUs; empty: the same on all kinds."""

    def on(self, kinds: Iterable[str]) -> Goodput:
        """The parameters on GPUs of these kinds.

        Across several kinds, each parameter is the slowest kind's: GPUs of a gang wait for each
        other.
        """
        if not self.kinds:
            return self
        known = dict(self.kinds)
        first, *others = [known[kind] for kind in kinds]
        for other in others:
            first = replace(
                first,
                per_gpu_max=min(first.per_gpu_max, other.per_gpu_max),
                alpha_c=max(first.alpha_c, other.alpha_c),
                beta_c=max(first.beta_c, other.beta_c),
                alpha_r=max(first.alpha_r, other.alpha_r),
                beta_r=max(first.beta_r, other.beta_r),
                alpha_n=max(first.alpha_n, other.alpha_n),
                beta_n=max(first.beta_n, other.beta_n),
                gamma=min(first.gamma, other.gamma),
            )
        return first

    @property
    def gpus_max(self) -> int:
        """The most GPUs that the largest batch feeds."""
        return self.batch_max // self.per_gpu_min

    @property
    def least_gpu_s(self) -> float:
        """Lower bound on the GPU-seconds of a submitted iteration: full GPUs, no communication."""
        of_kinds = [of_kind for _, of_kind in self.kinds] or [self]
        return self.batch * min(x.alpha_c / x.per_gpu_max + x.beta_c for x in of_kinds)

    def compute_s(self, batch: Batch) -> float:
        """Seconds that a GPU computes in one step."""
        return (batch.accumulation + 1) * self._pass_s(batch.per_gpu)

    def slowed(self, slowdown: float) -> Goodput:
        """The parameters on GPUs whose computations take `slowdown` times as long."""
        return replace(self, alpha_c=self.alpha_c * slowdown, beta_c=self.beta_c * slowdown)

    def step_s(self, gpus: int, batch: Batch, *, one_machine: bool) -> float:
        """Seconds of one step."""
        compute = self._pass_s(batch.per_gpu)
        sync, gamma = self._sync_s(gpus, one_machine=one_machine), self.gamma
        last = math.exp(math.log(compute**gamma + sync**gamma) / gamma)
        return batch.accumulation * compute + max(last, compute)

    def efficiency(self, total: int, noise: float) -> float:
        """Progress per sample of a batch of `total`, over that of the submitted batch."""
        return (noise + self.batch) / (noise + total)

    def worth(self, gpus: int, batch: Batch, noise: float) -> float:
        """How many submitted iterations one step is worth."""
        total = batch.total(gpus)
        return total / self.batch * self.efficiency(total, noise)

    def goodput(self, gpus: int, batch: Batch, noise: float, *, one_machine: bool) -> float:
        """Useful samples per second."""
        step_s = self.step_s(gpus, batch, one_machine=one_machine)
        return self.batch * self.worth(gpus, batch, noise) / step_s

    def submitted(self, gpus: int) -> Batch:
        """The submitted batch, divided equally among the GPUs, so rounded up to a multiple."""
        each = math.ceil(self.batch / gpus - _EPS)
        accumulation = math.ceil(each / self.per_gpu_max - _EPS) - 1
        return Batch(math.ceil(each / (accumulation + 1) - _EPS), accumulation)

    def fits(self, gpus: int) -> bool:
        """Whether any batch keeps to the limits on this many GPUs."""
        return best(self, gpus, 0.0, one_machine=True)[0] > 0

    def noise_at(self, done: int, iterations: int) -> tuple[float, int | None]:
        """The noise scale after `done` iterations, and the iteration at which the next one begins.

        The latter is None if this scale is the last one.
        """
        noise = self.noise[0][1]
        for share, value in self.noise:
            since = math.ceil(share * iterations)
            if since > done:
                return noise, since
            noise = value
        return noise, None

    def flaw(self, gpus: int, batch: Batch) -> str:
        """What is wrong with a batch on this many GPUs; empty if nothing is."""
        if batch == self.submitted(gpus):
            return ""
        if batch.accumulation < 0 or not self.per_gpu_min <= batch.per_gpu <= self.per_gpu_max:
            return (
                f"{batch.per_gpu} samples per GPU with {batch.accumulation} accumulated passes, "
                f"but it takes {self.per_gpu_min} to {self.per_gpu_max} samples"
            )
        # The largest total may be rounded up to whole samples per GPU.
        fewer = batch.total(gpus) - gpus * (batch.accumulation + 1)
        if batch.total(gpus) < self.batch or fewer >= self.batch_max:
            return (
                f"a batch of {batch.total(gpus)} on {gpus} GPUs, but it takes {self.batch} to "
                f"{self.batch_max}"
            )
        return ""

    def _pass_s(self, per_gpu: int) -> float:
        return self.alpha_c + self.beta_c * per_gpu

    def _sync_s(self, gpus: int, *, one_machine: bool) -> float:
        if gpus == 1:
            return _EPS + _EPS * _EPS
        alpha, beta = (self.alpha_r, self.beta_r) if one_machine else (self.alpha_n, self.beta_n)
        return alpha + beta * max(gpus - 2, _EPS)


@lru_cache(maxsize=1 << 16)
def best(goodput: Goodput, gpus: int, noise: float, *, one_machine: bool) -> tuple[float, Batch]:
    """The largest goodput on this many GPUs, and its batch; 0 if no batch keeps to the limits.

    As in the authors' program, one GPU takes a batch above the submitted one in two passes or more.
    Answers are cached by parameters, so that jobs of one model share them.
    """
    least = max(goodput.batch, goodput.per_gpu_min * gpus)
    ratio = goodput.batch_max / least
    found = 0.0, goodput.submitted(gpus)
    for point in range(_POINTS):
        total = least * ratio ** (point / (_POINTS - 1))
        each = total / gpus
        accumulation = math.ceil(each / goodput.per_gpu_max - _EPS) - 1
        if gpus == 1 and each > goodput.batch + _EPS:
            accumulation = max(accumulation, 1)
        batch = Batch(math.ceil(each / (accumulation + 1) - _EPS), accumulation)
        if goodput.per_gpu_min <= batch.per_gpu <= goodput.per_gpu_max:
            value = goodput.goodput(gpus, batch, noise, one_machine=one_machine)
            if value > found[0]:
                found = value, batch
    return found


class Useful(NamedTuple):
    """A step with the batch of the largest goodput."""

    batch: int
    """Samples on all GPUs together."""
    step_s: float
    samples_per_s: float
    efficiency: float
    """Progress per sample over that of the submitted batch."""
    goodput_per_s: float
    """Samples per second that are worth one of the submitted batch."""


def useful(goodput: Goodput, gpus: int, progress: float, *, one_machine: bool) -> Useful | None:
    """The best step on this many GPUs after a share `progress` of the iterations.

    None if no batch keeps to the limits on them.
    """
    if gpus > goodput.gpus_max:
        return None
    parts = 1_000_000
    noise, _ = goodput.noise_at(round(progress * parts), parts)
    per_s, batch = best(goodput, gpus, noise, one_machine=one_machine)
    if not per_s:
        return None
    total, step_s = batch.total(gpus), goodput.step_s(gpus, batch, one_machine=one_machine)
    return Useful(total, step_s, total / step_s, goodput.efficiency(total, noise), per_s)

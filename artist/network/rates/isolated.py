"""The rate function of jobs in isolation, which do not slow each other down on the network.

    iteration_s = compute_s x (1 + comm_ratio),  comm_ratio = exposed communication / compute

The compute time comes from the trace, and only the ratio comes from the backend (Dally, section
IV-C). It is the ratio of the model, or of the model scaled to the job's compute time
(`artist.estimates.model_steps`). A job on more or fewer GPUs than it asked for has the same compute
time, and an iteration is worth GPUs held / GPUs asked for. In a run with speeds of kinds of GPUs,
the compute time is that on the slowest kind of the placement (`artist.estimates.speeds`).

For a job with goodput parameters, these give the step time and what a step is worth
(`artist.workload.goodput`); no backend is asked.

Models of contention between jobs are other implementations of `artist.contract.RateFunction`
(`rate_functions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import truediv
from typing import TYPE_CHECKING, ClassVar

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import Placement, tier
from artist.cluster.placement_shape import Shape, shape
from artist.cluster.tree import ClusterTree
from artist.contract import NO_SHARED_LINKS, JobView, Rate, SharedLinks
from artist.estimates.query import Estimate
from artist.units import Tick
from artist.workload.goodput import Batch
from artist.workload.job import Job

if TYPE_CHECKING:
    from artist.estimates.model_steps import ModelSteps
    from artist.estimates.speeds import SpeedsOfRun


class AloneRates:
    """The rate function of isolated jobs. `estimate(model, shape)` estimates one iteration.

    `everywhere` is an estimate for every model and shape, which saves working out shapes. Without
    `speeds`, all kinds of GPUs are equally fast. With `model_steps`, jobs send the bytes of their
    models.
    """

    links: ClassVar[SharedLinks] = NO_SHARED_LINKS

    def __init__(
        self,
        tree: ClusterTree,
        estimate: Callable[[str, Shape], Estimate],
        everywhere: Estimate | None = None,
        speeds: SpeedsOfRun | None = None,
        model_steps: ModelSteps | None = None,
    ) -> None:
        self._tree = tree
        self._estimate = estimate
        self._everywhere = everywhere
        self._speeds = speeds
        self._model_steps = model_steps

    @property
    def facts(self) -> tuple[object, ...]:
        """What copies of a run may share: the source of estimates, speeds, and models' steps."""
        service = getattr(self._estimate, "__self__", None)
        facts = (service, self._speeds, self._model_steps)
        return tuple(fact for fact in facts if fact is not None)

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs that run, by handle."""
        return {
            view.handle: self.now(view, view.placement, now)
            for view in changed
            if view.placement is not None
        }

    def now(self, view: JobView, placement: Placement, now: Tick, slowdown: float = 1.0) -> Rate:
        """The rate of a running job at a tick, on GPUs that compute `slowdown` times longer."""
        if view.job.goodput is None:
            return self.alone(view.job, placement, slowdown)
        done = view.iterations_done(now)
        return _elastic(self._tree, view.job, placement, view.batch, done, slowdown)

    def alone(self, job: Job, placement: Placement, slowdown: float = 1.0) -> Rate:
        """The rate of a job on a placement, by the equation of this module."""
        if job.goodput is not None:
            return _elastic(self._tree, job, placement, None, 0)
        model, scale = job.model, slowdown
        if self._speeds is not None or self._model_steps is not None or slowdown != 1.0:
            model, scale = self._scaled(job, placement, slowdown)
        return self._estimated(job, placement, model, scale)

    def on_links(
        self, job: Job, placement: Placement, batch: Batch | None = None
    ) -> tuple[Job, Rate]:
        """The job as links see it, with its compute time on these GPUs, and its isolated rate.

        A job with goodput parameters becomes a twin without them. It computes as long as a step
        with `batch` and sends what the model sends; `stretched` carries its slowdown over.
        """
        if job.goodput is None:
            return self.on_kinds(job, placement), self.alone(job, placement)
        sends = self._sends(job, placement, batch)
        return sends, self._estimated(sends, placement, sends.model, 1.0)

    def stretched(self, view: JobView, sends: Rate, alone: Rate, now: Tick) -> Rate:
        """The rate of a running job with goodput parameters whose twin (`on_links`) has `sends`."""
        assert view.placement is not None  # asked of running jobs only
        rate = self.now(view, view.placement, now)
        if sends.iteration_s == alone.iteration_s:
            return rate
        _, _, model = sends.source.rpartition("+")
        slower = truediv(sends.iteration_s, alone.iteration_s)
        return rate._replace(
            iteration_s=rate.iteration_s * slower,
            source=f"{rate.source}+{model}",
            own_longer_s=rate.iteration_s * truediv(sends.own_longer_s, alone.iteration_s),
        )

    def on_kinds(self, job: Job, placement: Placement) -> Job:
        """The job for questions about links: with its compute time on these GPUs."""
        if job.goodput is not None:
            return self._sends(job, placement, None)
        if self._speeds is None and self._model_steps is None:
            return job
        model, scale = self._scaled(job, placement, 1.0)
        return replace(job, model=model, compute_s=job.compute_s * scale)

    def _estimated(self, job: Job, placement: Placement, model: str, scale: float) -> Rate:
        estimate = self._everywhere or self._estimate(model, shape(self._tree, placement))
        iteration_s = job.compute_s * scale * (1.0 + estimate.comm_ratio)
        # Not `/`, which a compiled module may round twice (decision 29).
        worth = truediv(placement.gpus, job.gpus)
        return Rate(iteration_s, worth, estimate.source, iteration_s, compute_scale=scale)

    def _sends(self, job: Job, placement: Placement, batch: Batch | None) -> Job:
        """The twin of a job with goodput parameters, without them."""
        goodput = job.goodput
        assert goodput is not None  # asked of such jobs only
        if goodput.kinds:
            goodput = goodput.on(kinds_of(self._tree, placement))
        compute_s = goodput.compute_s(batch or goodput.submitted(placement.gpus))
        # Rounded: backends are asked about each scale, and batches change often.
        scale = float(f"{truediv(compute_s, job.compute_s):.3g}")
        model = self._scaled_name(job, scale)
        return replace(job, model=model, compute_s=job.compute_s * scale, goodput=None)

    def _scaled(self, job: Job, placement: Placement, scale: float) -> tuple[str, float]:
        """The name of the job's model for estimates on some GPUs, and its compute-time scale."""
        if self._speeds is not None:
            scale *= self._speeds.scale_on(job, placement)
        return self._scaled_name(job, scale), scale

    def _scaled_name(self, job: Job, scale: float) -> str:
        """The name for estimates of a job's model, if it computes `scale` x its `compute_s`."""
        from artist.estimates.speeds import scaled_name

        longer = 1.0 if self._model_steps is None else self._model_steps.ratio(job)
        return scaled_name(job.model, scale * longer)


def _elastic(
    tree: ClusterTree,
    job: Job,
    placement: Placement,
    batch: Batch | None,
    done: int,
    slowdown: float = 1.0,
) -> Rate:
    """The rate of a job with goodput parameters, until its noise scale changes."""
    goodput, gpus = job.goodput, placement.gpus
    assert goodput is not None  # asked of such jobs only
    if goodput.kinds:
        goodput = goodput.on(kinds_of(tree, placement))
    if slowdown != 1.0:
        goodput = goodput.slowed(slowdown)
    batch = batch or goodput.submitted(gpus)
    one_machine = tier(tree, placement) == tree.machine
    step_s = goodput.step_s(gpus, batch, one_machine=one_machine)
    noise, until = goodput.noise_at(done, job.iterations)
    return Rate(
        step_s,
        goodput.worth(gpus, batch, noise),
        "goodput",
        step_s,
        until_iteration=until,
        compute_scale=truediv(goodput.compute_s(batch), job.compute_s),
    )

"""Finish-time fairness rho: how late a job would finish, over how soon it could have finished.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.2.

    rho(k)  = (now - arrival + left(k)) / T_ideal
    rho(0)  = (now - arrival + lease + left(own GPUs)) / T_ideal
    left(k) = iterations left x iteration time on k GPUs x own GPUs / k
    T_ideal = all iterations x iteration time on its own GPUs

The own GPUs of a job are as many as it asked for. The time of an iteration is that on GPUs as
close together as an empty cluster allows, without other jobs on the network. An iteration on k
GPUs is worth k / own GPUs of an iteration as submitted.

`rho_without` ranks jobs, and equal ones come in order of arrival. So it is an exact fraction: in
floats, rounding decides ties. Gains of bids are floats; the auction allows for their rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView, Rate
from artist.policies.shared.placers import PackPlacer
from artist.policies.themis.bid import Bid
from artist.units import TICKS_PER_S, Tick, seconds


class FinishTimes:
    """Estimates of finish-time fairness for the jobs that have arrived and not finished."""

    def __init__(self, lease: Tick) -> None:
        self._lease = lease
        self._arrivals: dict[int, Tick] = {}
        self._own_iteration: dict[int, Fraction] = {}
        """Ticks per submitted iteration on its own number of GPUs."""
        # Per number of GPUs: a placement as close together as an empty cluster allows.
        self._closest: dict[int, Placement] = {}

    def entered(self, job: JobView, view: ClusterView) -> None:
        """A job arrived or was preempted."""
        if job.handle not in self._arrivals:
            self._arrivals[job.handle] = job.entered
            # As in `engine/progress.py`, an iteration takes the decimal number that it prints as.
            rate = self._alone(job, view, job.job.gpus)
            iteration = Fraction(repr(rate.iteration_s)) * TICKS_PER_S
            self._own_iteration[job.handle] = iteration / Fraction(rate.worth)

    def forget(self, handle: int) -> None:
        """A job finished."""
        del self._arrivals[handle], self._own_iteration[handle]

    def rho_without(self, job: JobView, view: ClusterView) -> Fraction:
        """rho(0): the job gets no GPUs for one more lease."""
        own = self._own_iteration[job.handle]
        waited = view.now - self._arrivals[job.handle]
        left = job.job.iterations - job.iterations_done(view.now)
        # (waited + lease + left * own) / (iterations * own) with one reduction, which is faster.
        return Fraction(
            (waited + self._lease) * own.denominator + left * own.numerator,
            job.job.iterations * own.numerator,
        )

    def bid(self, job: JobView, view: ClusterView, gpus: int) -> Bid:
        """A job's bid: the gain log(rho(0) / rho(k)) for every k that it can run on, up to `gpus`.

        Numbers of GPUs without gain are left out.
        """
        waited_s = seconds(view.now - self._arrivals[job.handle])
        left = job.job.iterations - job.iterations_done(view.now)
        own_s = float(self._own_iteration[job.handle]) / TICKS_PER_S
        without_s = waited_s + seconds(self._lease) + left * own_s
        options = []
        for count in range(job.job.gpus_min, min(job.job.gpus_max, gpus) + 1):
            own = count == job.job.gpus  # known already
            iteration_s = own_s if own else self._alone(job, view, count).submitted_iteration_s
            gain = math.log(without_s / (waited_s + left * iteration_s))
            if gain > 0:
                options.append((count, gain))
        return Bid(job.handle, tuple(options))

    def _alone(self, job: JobView, view: ClusterView, gpus: int) -> Rate:
        """The rate of a job on so many GPUs."""
        if gpus not in self._closest:
            placement = PackPlacer().place(FreeGpus(view.cluster), gpus)
            assert placement is not None  # the trace was checked: every job fits the cluster
            self._closest[gpus] = placement
        return view.alone(job.job, self._closest[gpus])

"""Finish-time fairness rho: how late a job would finish, over how soon it could have finished.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.2.

    rho(k)  = (now - arrival + left(k)) / T_ideal
    rho(0)  = (now - arrival + lease + left(own GPUs)) / T_ideal
    left(k) = iterations left x iteration time on k GPUs x own GPUs / k
    T_ideal = all iterations x iteration time on its own GPUs

The own GPUs of a job are as many as it asked for. The time of an iteration is that on GPUs as
close together as an empty cluster allows, without other jobs on the network. An iteration on k
GPUs is worth k / own GPUs of an iteration as submitted. All of this is exact: times are whole
ticks, and the time of an iteration is a ratio of ticks. So no rounding decides between equal jobs.
Gains of bids are floats; the auction allows for their rounding.
"""

from __future__ import annotations

import math
from operator import truediv

from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.policies.shared.placers import PackPlacer
from artist.policies.shared.ratios import ExactKey, exact_key
from artist.policies.shared.usable import empty_for
from artist.policies.themis.winners import Bid
from artist.units import Tick, exact_ticks

Ticks = tuple[int, int]
"""A ratio of ticks: numerator and denominator."""


class FinishTimes:
    """Estimates of finish-time fairness for the jobs that have arrived and not finished."""

    def __init__(self, lease: Tick) -> None:
        self._lease = lease
        self._arrivals: dict[int, Tick] = {}
        self._own_iterations: dict[int, Ticks] = {}
        # Iterations left when a job last entered the queue: as many as while it waits.
        self._left: dict[int, int] = {}
        # Per number of GPUs and kinds: a placement as close together as an empty cluster allows.
        self._closest: dict[tuple[int, tuple[str, ...]], Placement] = {}

    def entered(self, job: JobView, view: ClusterView) -> None:
        """A job arrived or was preempted."""
        self._left[job.handle] = job.job.iterations - job.iterations_done(view.now)
        if job.handle not in self._arrivals:
            self._arrivals[job.handle] = job.entered
            self._own_iterations[job.handle] = self._iteration(job, view, job.job.gpus)

    def forget(self, handle: int) -> None:
        """A job finished."""
        del self._arrivals[handle], self._own_iterations[handle], self._left[handle]

    def rho_without(self, job: JobView, view: ClusterView) -> ExactKey:
        """rho(0), as a sorting key: the job gets no GPUs for one more lease."""
        num, den = self._own_iterations[job.handle]
        waited = view.now - self._arrivals[job.handle]
        left = self._iterations_left(job, view)
        return exact_key((waited + self._lease) * den + left * num, job.job.iterations * num)

    def bid(self, job: JobView, view: ClusterView, gpus: int) -> Bid:
        """A job's bid: the gain log(rho(0) / rho(k)) for every k that it can run on, up to `gpus`.

        Numbers of GPUs without gain are left out.
        """
        waited = view.now - self._arrivals[job.handle]
        left = self._iterations_left(job, view)
        own_num, own_den = self._own_iterations[job.handle]
        without = (waited + self._lease) * own_den + left * own_num
        options = []
        for count in range(job.job.gpus_min, min(job.job.gpus_max, gpus) + 1):
            own = count == job.job.gpus  # known already
            num, den = (own_num, own_den) if own else self._iteration(job, view, count)
            # Not `/`, which a compiled module may round twice (decision 29).
            later = truediv(without * den, (waited * den + left * num) * own_den)
            gain = math.log(later)
            if gain > 0:
                options.append((count, gain))
        return Bid(job.handle, tuple(options))

    def _iterations_left(self, job: JobView, view: ClusterView) -> int:
        if job.placement is None:
            return self._left[job.handle]
        return job.job.iterations - job.iterations_done(view.now)

    def _iteration(self, job: JobView, view: ClusterView, gpus: int) -> Ticks:
        """Ticks per submitted iteration on this many GPUs."""
        key = gpus, job.job.gpu_kinds
        if key not in self._closest:
            placement = PackPlacer().place(empty_for(view, job.job), gpus)
            assert placement is not None  # the trace was checked: every job fits the cluster
            self._closest[key] = placement
        rate = view.alone(job.job, self._closest[key])
        num, den = exact_ticks(rate.iteration_s)
        own = job.job.gpus
        # The worth is a float: of a third of its GPUs, it is a little less than a third.
        usual = rate.worth == truediv(gpus, own)
        worth_num, worth_den = (gpus, own) if usual else rate.worth.as_integer_ratio()
        return num * worth_den, den * worth_num

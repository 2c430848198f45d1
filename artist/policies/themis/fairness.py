"""Finish-time fairness rho: how late a job would finish, over how soon it could have finished.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.2.

    rho(k)  = (now - arrival + left(k)) / T_ideal
    rho(0)  = (now - arrival + lease + left(own GPUs)) / T_ideal
    left(k) = iterations left x iteration time on k GPUs x own GPUs / k
    T_ideal = all iterations x iteration time on its own GPUs

The own GPUs of a job are as many as it asked for. The time of an iteration is that on GPUs as
close together as an empty cluster allows, without other jobs on the network. An iteration on k
GPUs is worth k / own GPUs of an iteration as submitted.
"""

from __future__ import annotations

import math

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.policies.shared.placers import PackPlacer
from artist.policies.themis.bid import Bid
from artist.units import seconds


class FinishTimes:
    """Estimates of finish-time fairness for the jobs that have arrived and not finished."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._arrivals_s: dict[int, float] = {}
        self._own_iteration_s: dict[int, float] = {}
        # Per number of GPUs: a placement as close together as an empty cluster allows.
        self._closest: dict[int, Placement] = {}

    def entered(self, job: JobView, view: ClusterView) -> None:
        """A job arrived or was preempted."""
        if job.handle not in self._arrivals_s:
            self._arrivals_s[job.handle] = seconds(job.entered)
            self._own_iteration_s[job.handle] = self._iteration_s(job, view, job.job.gpus)

    def forget(self, handle: int) -> None:
        """A job finished."""
        del self._arrivals_s[handle], self._own_iteration_s[handle]

    def rho_without(self, job: JobView, view: ClusterView) -> float:
        """rho(0): the job gets no GPUs for one more lease."""
        own_s = self._own_iteration_s[job.handle]
        waited_s = seconds(view.now) - self._arrivals_s[job.handle]
        left_s = (job.job.iterations - job.iterations_done(view.now)) * own_s
        return (waited_s + self._lease_s + left_s) / (job.job.iterations * own_s)

    def bid(self, job: JobView, view: ClusterView, gpus: int) -> Bid:
        """A job's bid: the gain log(rho(0) / rho(k)) for every k that it can run on, up to `gpus`.

        Numbers of GPUs without gain are left out.
        """
        waited_s = seconds(view.now) - self._arrivals_s[job.handle]
        left = job.job.iterations - job.iterations_done(view.now)
        own_s = self._own_iteration_s[job.handle]
        without_s = waited_s + self._lease_s + left * own_s
        options = []
        for count in range(job.job.gpus_min, min(job.job.gpus_max, gpus) + 1):
            own = count == job.job.gpus  # known already
            iteration_s = own_s if own else self._iteration_s(job, view, count)
            gain = math.log(without_s / (waited_s + left * iteration_s))
            if gain > 0:
                options.append((count, gain))
        return Bid(job.handle, tuple(options))

    def _iteration_s(self, job: JobView, view: ClusterView, gpus: int) -> float:
        """Seconds per submitted iteration on so many GPUs."""
        if gpus not in self._closest:
            placement = PackPlacer().place(FreeGpus(view.cluster), gpus)
            assert placement is not None  # the trace was checked: every job fits the cluster
            self._closest[gpus] = placement
        return view.alone(job.job, self._closest[gpus]).submitted_iteration_s

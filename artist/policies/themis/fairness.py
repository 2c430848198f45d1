"""Finish-time fairness: how late a job would finish, over how soon it could have.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.2.

    rho(k)  = (now - arrival + left(k)) / T_ideal
    rho(0)  = (now - arrival + lease + left(own GPUs)) / T_ideal
    left(k) = iterations left x iteration time on k GPUs x own GPUs / k
    T_ideal = all iterations x iteration time on its own GPUs

An iteration's time is the one without other jobs on GPUs as close together as an empty
cluster allows. On other than its own number of GPUs it counts for a share.
"""

from __future__ import annotations

import math

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.policies.shared.placers import PackPlacer
from artist.policies.themis.auction import Bid
from artist.units import seconds


class FinishTimes:
    """Estimates of finish-time fairness for the jobs in the system."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._arrivals_s: dict[int, float] = {}
        self._own_iteration_s: dict[int, float] = {}
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
        """rho if the job gets no GPUs until the next lease."""
        own_s = self._own_iteration_s[job.handle]
        waited_s = seconds(view.now) - self._arrivals_s[job.handle]
        left_s = (job.job.iterations - job.iterations_done(view.now)) * own_s
        return (waited_s + self._lease_s + left_s) / (job.job.iterations * own_s)

    def bid(self, job: JobView, view: ClusterView, gpus: int) -> Bid:
        """Gains in log(1 / rho) over having none, for every count up to `gpus`."""
        waited_s = seconds(view.now) - self._arrivals_s[job.handle]
        left = job.job.iterations - job.iterations_done(view.now)
        own_s = self._own_iteration_s[job.handle]
        without_s = waited_s + self._lease_s + left * own_s
        options = []
        for count in range(job.job.gpus_min, min(job.job.gpus_max, gpus) + 1):
            iteration_s = self._iteration_s(job, view, count)
            gain = math.log(without_s / (waited_s + left * iteration_s))
            if gain > 0:
                options.append((count, gain))
        return Bid(job.handle, tuple(options))

    def _iteration_s(self, job: JobView, view: ClusterView, gpus: int) -> float:
        if gpus not in self._closest:
            place = PackPlacer().place(FreeGpus(view.cluster), gpus)
            assert place is not None  # the job fits the cluster, as its trace was checked
            self._closest[gpus] = place
        return view.alone(job.job, self._closest[gpus]).submitted_iteration_s

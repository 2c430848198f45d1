"""Gandiva's packing: two jobs on the same GPUs, tried while jobs wait, undone if it does not help.

Source: Xiao et al., *Gandiva* (OSDI 2018), sections 3.2 and 4.2. `policy.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from artist.cluster.kinds import accepts
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView, Migrate, Preempt, Start

JOBS_PER_GPU: Final = 2
"""The paper packs two jobs."""

UNPACKED: Final = "packing did not pay"


class Packing:
    """The profiles of jobs on GPUs of their own, and the pairs that were tried."""

    def __init__(self) -> None:
        # Per job, measured while it did not share its GPUs: seconds of an iteration as submitted,
        # and the share of time in which its GPUs computed.
        self._alone_s: dict[int, float] = {}
        self._utilisation: dict[int, float] = {}
        # Pairs that did not pay, the earlier arrival first.
        self._failed: set[tuple[int, int]] = set()
        # Per job on trial beside a host: the host's iterations when the trial began.
        self._trying: dict[int, int] = {}

    @property
    def trying(self) -> bool:
        """Whether any pair is on trial."""
        return bool(self._trying)

    def forget(self, handle: int) -> None:
        """Forget a job that finished."""
        for known in (self._alone_s, self._utilisation, self._trying):
            known.pop(handle, None)

    def profile(self, running: Mapping[int, JobView], worked: Collection[int]) -> None:
        """Profile the jobs that completed an iteration on GPUs of their own."""
        for handle in worked:
            job = running[handle]
            # A job whose companion has just finished still has the rate of the pair.
            if job.rate is not None and not job.rate.shared:
                self._alone_s[handle] = job.rate.submitted_iteration_s
                compute_s = job.job.compute_s * job.rate.compute_scale
                self._utilisation[handle] = compute_s / job.rate.iteration_s

    def unpacked(self, view: ClusterView, worked: Collection[int]) -> Iterator[Preempt]:
        """Judge the pairs whose jobs both completed an iteration, and suspend the later job of a
        pair that does not pay.

        Throughputs are relative to each job's own alone. Two jobs that take turns have 1 together.
        """
        for handle, before in list(self._trying.items()):
            job = view.running.get(handle)
            if job is None or not job.beside:
                del self._trying[handle]
                continue
            (host,) = job.beside
            done = view.running[host].iterations_done(view.now)
            if handle not in worked or done == before:
                continue
            del self._trying[handle]
            if self._throughput(job) + self._throughput(view.running[host]) <= 1.0:
                self._failed.add((min(handle, host), max(handle, host)))
                yield Preempt(handle, UNPACKED)

    def packed(self, view: ClusterView) -> Iterator[Start]:
        """Start waiting jobs beside running ones, those with the idlest GPUs first."""
        hosts = [
            job
            for handle, job in view.running.items()
            if handle in self._utilisation and not job.beside and view.frees(job)
        ]
        hosts.sort(key=self._idlest)
        known = [job for job in view.waiting.values() if job.handle in self._utilisation]
        for job in sorted(known, key=self._idlest):
            host = next((x for x in hosts if self._may_try(view.cluster, job, x)), None)
            if host is None:
                continue
            assert host.placement is not None  # running jobs have GPUs
            hosts.remove(host)
            self._trying[job.handle] = host.iterations_done(view.now)
            yield Start(job.handle, host.placement, beside=host.handle)

    def _may_try(self, tree: ClusterTree, job: JobView, host: JobView) -> bool:
        """Whether two jobs could use the same GPUs and have not failed as a pair."""
        assert host.placement is not None  # running jobs have GPUs
        same = job.job.gpus == host.gpus and job.job.tensor == host.job.tensor
        same = same and accepts(tree, job.job, host.placement)
        one, other = sorted((job.handle, host.handle))
        return same and (one, other) not in self._failed

    def _throughput(self, job: JobView) -> float:
        assert job.rate is not None  # running jobs have a rate
        return self._alone_s[job.handle] / job.rate.submitted_iteration_s

    def _idlest(self, job: JobView) -> tuple[float, int]:
        return self._utilisation[job.handle], job.handle


def leading(running: Mapping[int, JobView], since: Mapping[int, int]) -> list[JobView]:
    """The running jobs; of two that share GPUs, only the one that has run longer."""
    return [
        job
        for handle, job in running.items()
        if all((since[handle], handle) < (since[other], other) for other in job.beside)
    ]


def companions(
    view: ClusterView, decisions: Sequence[Decision], decided: Sequence[Decision]
) -> list[Decision]:
    """Suspend the companions of jobs that leave their GPUs, unless they are `decided` already."""
    named = {getattr(decision, "handle", None) for decision in decided}
    leaving = [x.handle for x in decisions if isinstance(x, Preempt | Migrate)]
    beside = [other for handle in leaving for other in view.running[handle].beside]
    return [Preempt(other) for other in beside if other not in named]

"""Compact: jobs that communicate much get GPUs close together, and wait for them.

    artist compare --policies fifo,examples/own-policy/compact.py:Compact --fabric dally2025

A policy may ask what a job would lose where it would lie, before it places it: `view.comm_share`.
"""

from collections.abc import Sequence

from pydantic import Field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Options, Start
from artist.policies.shared.placers import placer


class CompactOptions(Options):
    """What `--set policy.share=0.2` can change."""

    share: float = Field(
        0.1, ge=0, lt=1, description="share of communication up to which a job may lie anywhere"
    )


class Compact(BasePolicy):
    """First come, first served; a job that gets no GPUs is passed. Never preempts.

    - A job that hardly communicates takes the first free GPUs, and leaves whole machines to others.
    - Any other job is packed. It waits if it would communicate more than in an empty cluster.
    """

    Options = CompactOptions

    def __init__(self, options: CompactOptions) -> None:
        self._share = options.share
        self._anywhere, self._packed = placer("any"), placer("pack")
        self._closest: dict[int, Placement | None] = {}  # of this many GPUs in an empty cluster

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Start all waiting jobs that find good enough GPUs."""
        free, decisions = view.free.copy(), list[Decision]()
        for job in view.waiting.values():
            placement = self._place(view, free, job)
            if placement is not None:
                free.claim(placement)
                decisions.append(Start(job.handle, placement))
        return decisions

    def _place(self, view: ClusterView, free: FreeGpus, job: JobView) -> Placement | None:
        gpus = job.job.gpus
        anywhere = self._anywhere.place(free, gpus)
        if anywhere is None or view.comm_share(job.job, anywhere) <= self._share:
            return anywhere
        packed, closest = self._packed.place(free, gpus), self._in_an_empty_cluster(view, gpus)
        if packed is None or closest is None or not view.running:  # nobody will leave better ones
            return packed
        loses = view.comm_share(job.job, packed) > view.comm_share(job.job, closest)
        return None if loses else packed

    def _in_an_empty_cluster(self, view: ClusterView, gpus: int) -> Placement | None:
        if gpus not in self._closest:
            self._closest[gpus] = self._packed.place(FreeGpus(view.cluster), gpus)
        return self._closest[gpus]

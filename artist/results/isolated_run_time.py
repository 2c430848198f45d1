"""How long each job would have run in isolation, on as many GPUs as it asked for, well placed.

    alone_s = iterations x iteration time on the GPUs that the job asked for, as close together as
              an empty cluster allows

It has communication, and neither waiting nor restarts. It is the T_id of finish-time fairness
(Mahajan et al., *Themis*, NSDI 2020, section 3.2) with one difference: there an isolated job has
its share of the cluster, here the GPUs that it asked for. Where kinds of GPUs differ in speed,
these are of the kind on which it is fastest; of several kinds, if none has enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.kinds import free_of_kinds
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import Rate
from artist.errors import BackendError
from artist.policies.shared.placers import PackPlacer
from artist.workload.job import Job


def isolated_seconds(
    jobs: Sequence[Job],
    tree: ClusterTree,
    alone: Callable[[Job, Placement], Rate],
    *,
    by_kind: bool = False,
) -> list[float] | None:
    """Seconds of each job. None: the backend does not know one of the placements.

    A run may never ask for the best placement of a job, so a recorded table may lack it.
    """
    closest = _Closest(tree)
    try:
        if by_kind:
            return [job.iterations * _fastest_s(job, closest, alone) for job in jobs]
        return [
            job.iterations * alone(job, closest.place(job.gpus)).submitted_iteration_s
            for job in jobs
        ]
    except BackendError:
        return None


def _fastest_s(job: Job, closest: _Closest, alone: Callable[[Job, Placement], Rate]) -> float:
    """Seconds per iteration on the kind on which the job is fastest."""
    kinds = tuple(dict.fromkeys(job.gpu_kinds or closest.tree.kinds))
    places = [at for kind in kinds if (at := closest.place_if_room(job.gpus, (kind,)))]
    if not places:
        places = [closest.place_if_room(job.gpus, kinds) or closest.place(job.gpus)]
    return min(alone(job, at).submitted_iteration_s for at in places)


class _Closest:
    """The closest GPUs of an empty cluster, by their number and kinds."""

    def __init__(self, tree: ClusterTree) -> None:
        self.tree = tree
        self._known: dict[tuple[int, tuple[str, ...]], Placement | None] = {}

    def place(self, gpus: int) -> Placement:
        """The closest GPUs of any kind."""
        placement = self.place_if_room(gpus, ())
        assert placement is not None  # the trace was checked: every job fits the cluster
        return placement

    def place_if_room(self, gpus: int, kinds: tuple[str, ...]) -> Placement | None:
        """The closest GPUs of these kinds, or of any; None if the cluster has too few."""
        key = (gpus, kinds)
        if key not in self._known:
            free = FreeGpus(self.tree)
            self._known[key] = PackPlacer().place(
                free_of_kinds(free, kinds) if kinds else free, gpus
            )
        return self._known[key]

"""The closest GPUs of a kind in an empty cluster, on which policies compare kinds."""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.kinds import free_of_kinds
from artist.cluster.placement import Placement
from artist.contract import ClusterView
from artist.errors import TraceError
from artist.policies.shared.placers import PackPlacer
from artist.units import counted
from artist.workload.job import Job


class ClosestGpus:
    """Placements in an empty cluster, each computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], Placement | None] = {}

    def of_kind(self, view: ClusterView, job: Job, gpus: int, kind: str) -> Placement | None:
        """The closest GPUs of a kind; None if there are too few or the job does not accept them."""
        if job.gpu_kinds and kind not in job.gpu_kinds:
            return None
        key = (gpus, kind)
        if key not in self._known:
            free = free_of_kinds(FreeGpus(view.cluster), (kind,))
            self._known[key] = PackPlacer().place(free, gpus)
        return self._known[key]

    def speed(self, view: ClusterView, job: Job, gpus: int, kind: str) -> float:
        """Submitted iterations per second on the closest GPUs of a kind; 0 if there are none."""
        placement = self.of_kind(view, job, gpus, kind)
        return 0.0 if placement is None else 1.0 / view.alone(job, placement).submitted_iteration_s


def refuse_unplaceable(job: Job, gpus: int, kinds: Sequence[str]) -> None:
    """Refuse a job that fits on no single kind of GPUs, even in the empty cluster.

    Raises:
        TraceError: always; names the job and its kinds.
    """
    accepted = job.gpu_kinds or kinds
    remedy = "accept other kinds or want fewer GPUs" if job.gpu_kinds else "want fewer GPUs"
    raise TraceError(
        f"job {job.id!r} wants {counted(gpus, 'GPU')} of one kind ({' or '.join(accepted)}), and "
        f"no such kind has that many; {remedy}"
    )

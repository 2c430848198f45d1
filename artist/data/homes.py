"""Whether some region can ever run a job: it needs the job's tables, or room for them, and GPUs.

Tables are never evicted, so a region without room now never has room. What is on the way to a
region has its room already. A job that no region is large enough for spans regions; then each of
them needs the tables, and together they need the GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.tree import ClusterTree, gpus_of_kinds
from artist.data.store import Store
from artist.errors import TraceError, shortened
from artist.units import size_text
from artist.workload.job import Job


class Homes:
    """Regions with their GPUs, and the tables of a run. `level` is that of regions."""

    def __init__(self, store: Store, tree: ClusterTree, level: int, *, copies: bool) -> None:
        self._store = store
        self._tree, self._level = tree, level
        self._copies = copies
        self._by_kinds: dict[tuple[str, ...], Sequence[int]] = {}

    def gpus(self, job: Job) -> Sequence[int]:
        """By region: GPUs of the kinds that a job accepts."""
        kinds = job.gpu_kinds
        if kinds not in self._by_kinds:
            self._by_kinds[kinds] = gpus_of_kinds(self._tree, self._level, kinds)
        return self._by_kinds[kinds]

    def check(self, job: Job) -> None:
        """Refuse a job that no region can run, now or later.

        Raises:
            TraceError: names the job, its tables, the regions and what to do.
        """
        if not job.tables:
            return
        gpus = self.gpus(job)
        able = [gpus[region] for region in range(len(gpus)) if self._may_hold(job, region)]
        if job.gpus_min <= max(gpus):
            if any(count >= job.gpus_min for count in able):
                return
        elif sum(able) >= job.gpus_min:
            return
        raise TraceError(self._why(job))

    def _may_hold(self, job: Job, region: int) -> bool:
        wanted = self._store.to_copy(job, region)
        if not self._copies:
            return not self._store.missing(job, region)
        return not wanted or self._store.has_room(wanted, region)

    def _why(self, job: Job) -> str:
        store, names, gpus = self._store, self._store.catalogue.regions, self.gpus(job)
        holding = store.regions_holding(job)
        if len(holding) == len(names):
            held = "all regions hold"
        elif holding:
            held = " and ".join(f"{names[x]} ({gpus[x]} GPUs)" for x in holding[:3])
            held = f"only {held} hold" if len(holding) > 1 else f"only {held} holds"
        else:
            held = "no region holds all of"
        kinds = f" of kind {' or '.join(job.gpu_kinds)}" if job.gpu_kinds else ""
        asks = (
            f"job {job.id!r} wants {job.gpus_min} GPUs{kinds} and reads {_tables(job)}: {held} them"
        )
        large = [x for x, count in enumerate(gpus) if count >= job.gpus_min]
        apart = " or " if large else " and "
        large = large or [x for x in range(len(names)) if x not in holding]
        where = apart.join(f"region {names[x]}" for x in large[:3])
        if not self._copies:
            return (
                f"{asks} and data.replicate=never, so it can never run; place the tables in "
                f"{where}, or let data move with data.replicate=on-demand"
            )
        size = size_text(min(store.missing_bytes(job, x) for x in large))
        return (
            f"{asks}, and no region with so many GPUs has room for the {size} that it lacks, so it "
            f"can never run; give {where} more storage, or place the tables there"
        )


def _tables(job: Job) -> str:
    return shortened(", ".join(job.tables))

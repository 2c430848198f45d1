"""Which regions hold which tables, while copies arrive.

`Store` answers policies (`artist.contract.DataView`) and `gate.py`. A copy counts only when all of
it has arrived, but it takes its room from the start.

`Store` also says in which regions a placement is, and whether any region can ever run a job: the
region needs enough GPUs, and the job's tables or room for them. Tables are never evicted, so a
region without room now never has room. A job for which no region is large enough spans regions.
Each of them then needs the tables, and together they need the GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree, gpus_of_kinds
from artist.data.catalogue import Catalogue
from artist.errors import TraceError, shortened
from artist.units import size_text
from artist.workload.job import Job


class Store:
    """The tables of a run and where they are now. `level` is the level of regions.

    `copied` says whether tables are copied to regions that lack them.
    """

    def __init__(
        self, catalogue: Catalogue, tree: ClusterTree, level: int, *, copied: bool
    ) -> None:
        self.catalogue, self.level = catalogue, level
        self._tree, self.copied = tree, copied
        self._held = [sum(1 << region for region in x.regions) for x in catalogue.pieces]
        """The regions that hold each piece, as a bit set."""
        self._coming = [0] * len(catalogue.pieces)
        self._used = [0] * len(catalogue.regions)
        for piece in catalogue.pieces:
            for region in piece.regions:
                self._used[region] += piece.size_bytes
        self._pieces: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._holding: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._by_kinds: dict[tuple[str, ...], Sequence[int]] = {}

    def pieces(self, job: Job) -> tuple[int, ...]:
        """The pieces that a job reads, each once."""
        if job.tables not in self._pieces:
            by_name = self.catalogue.by_name
            named = (piece for name in job.tables for piece in by_name[name])
            self._pieces[job.tables] = tuple(dict.fromkeys(named))
        return self._pieces[job.tables]

    def regions_holding(self, job: Job) -> tuple[int, ...]:
        """The regions that hold every table of a job, ascending; all if it names no table."""
        if job.tables not in self._holding:
            held = (1 << len(self.catalogue.regions)) - 1
            for piece in self.pieces(job):
                held &= self._held[piece]
            self._holding[job.tables] = tuple(_members(held))
        return self._holding[job.tables]

    def missing(self, job: Job, region: int) -> tuple[int, ...]:
        """The job's pieces that a region does not hold yet."""
        return tuple(x for x in self.pieces(job) if not self._held[x] >> region & 1)

    def missing_bytes(self, job: Job, region: int) -> int:
        """Bytes of the job's tables that a region does not hold yet."""
        return sum(self.catalogue.pieces[x].size_bytes for x in self.missing(job, region))

    def to_copy(self, job: Job, region: int) -> tuple[int, ...]:
        """The job's pieces that a region neither holds nor has on the way."""
        return tuple(x for x in self.missing(job, region) if not self._coming[x] >> region & 1)

    def has_room_for(self, job: Job, region: int) -> bool:
        """Whether a region can store what it lacks of a job's tables."""
        return self.has_room(self.to_copy(job, region), region)

    def has_room(self, pieces: Sequence[int], region: int) -> bool:
        """Whether a region can store pieces in addition to what it holds and what is on the way."""
        room = self.catalogue.storage_bytes[region]
        size = sum(self.catalogue.pieces[x].size_bytes for x in pieces)
        return room is None or self._used[region] + size <= room

    def sources(self, piece: int) -> list[int]:
        """The regions that hold a piece, home first."""
        home, *_ = self.catalogue.pieces[piece].regions
        return [home, *(region for region in _members(self._held[piece]) if region != home)]

    def leave(self, piece: int, region: int) -> None:
        """Note that a copy of a piece is on the way to a region."""
        self._coming[piece] |= 1 << region
        self._used[region] += self.catalogue.pieces[piece].size_bytes

    def arrive(self, piece: int, region: int) -> None:
        """Note that a copy of a piece has arrived in a region."""
        self._coming[piece] &= ~(1 << region)
        self._held[piece] |= 1 << region
        self._holding.clear()

    # -- regions ---------------------------------------------------------------------------

    def gpus(self, job: Job) -> Sequence[int]:
        """By region: GPUs of the kinds that a job accepts."""
        kinds = job.gpu_kinds
        if kinds not in self._by_kinds:
            self._by_kinds[kinds] = gpus_of_kinds(self._tree, self.level, kinds)
        return self._by_kinds[kinds]

    def regions_of(self, placement: Placement) -> list[int]:
        """The regions in which a placement has GPUs, ascending."""
        return list(self.gpus_by_region(placement))

    def gpus_by_region(self, placement: Placement) -> dict[int, int]:
        """The GPUs of a placement by region; regions ascend."""
        return unit_counts(self._tree, placement, self.level)

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
        wanted = self.to_copy(job, region)
        if not self.copied:
            return not self.missing(job, region)
        return not wanted or self.has_room(wanted, region)

    def _why(self, job: Job) -> str:
        names, gpus = self.catalogue.regions, self.gpus(job)
        holding = self.regions_holding(job)
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
        if not self.copied:
            return (
                f"{asks} and data.replicate=never, so it can never run; place the tables in "
                f"{where}, or let data move with data.replicate=on-demand"
            )
        size = size_text(min(self.missing_bytes(job, x) for x in large))
        return (
            f"{asks}, and no region with that many GPUs has room for the {size} that it "
            f"lacks, so it can never run; give {where} more storage, or place the tables there"
        )


def _members(bits: int) -> list[int]:
    return [index for index in range(bits.bit_length()) if bits >> index & 1]


def _tables(job: Job) -> str:
    return shortened(", ".join(job.tables))

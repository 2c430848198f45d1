"""Which regions hold which tables, while copies arrive.

It answers policies (`artist.contract.DataView`) and `gate.py`. A copy counts once all of it is
there. Its room is taken from the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.data.catalogue import Catalogue
from artist.workload.job import Job


class Store:
    """The tables of a run, where they are now."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._held = [sum(1 << region for region in x.regions) for x in catalogue.pieces]
        """Of each piece the regions that hold it, as a bit set."""
        self._coming = [0] * len(catalogue.pieces)
        self._used = [0] * len(catalogue.regions)
        for piece in catalogue.pieces:
            for region in piece.regions:
                self._used[region] += piece.size_bytes
        self._pieces: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._holding: dict[tuple[str, ...], tuple[int, ...]] = {}

    def pieces(self, job: Job) -> tuple[int, ...]:
        """What a job reads, each piece once."""
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
        """Of the missing pieces those that are not on the way to the region."""
        return tuple(x for x in self.missing(job, region) if not self._coming[x] >> region & 1)

    def has_room(self, pieces: Sequence[int], region: int) -> bool:
        """Whether a region can store pieces beside what it holds and what is on the way."""
        room = self.catalogue.storage_bytes[region]
        size = sum(self.catalogue.pieces[x].size_bytes for x in pieces)
        return room is None or self._used[region] + size <= room

    def sources(self, piece: int) -> list[int]:
        """The regions that hold a piece, home first."""
        home, *_ = self.catalogue.pieces[piece].regions
        return [home, *(region for region in _members(self._held[piece]) if region != home)]

    def leave(self, piece: int, region: int) -> None:
        """A copy of a piece sets out for a region."""
        self._coming[piece] |= 1 << region
        self._used[region] += self.catalogue.pieces[piece].size_bytes

    def arrive(self, piece: int, region: int) -> None:
        """The copy is there."""
        self._coming[piece] &= ~(1 << region)
        self._held[piece] |= 1 << region
        self._holding.clear()


def _members(bits: int) -> list[int]:
    return [index for index in range(bits.bit_length()) if bits >> index & 1]

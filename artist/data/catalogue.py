"""The data file: tables and partitions, how large they are, and which regions hold them.

    table,partition,size,regions
    ads,,103GB,east west
    user,2024-06-01,1TB,west
    user,2024-06-02,1TB,west north

The first region is the table's home, where its data is made (MAST, section 3.1). All partitions of
a table have one home. Sizes have a unit, or are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artist.cluster.cluster_file import Cluster
from artist.errors import TraceError, did_you_mean, shortened
from artist.io.csv_rows import csv_rows
from artist.io.reading import decode, read_bytes
from artist.units import SIZE_UNITS, quantity, size_text

COLUMNS = ("table", "partition", "size", "regions")
MOST_BYTES = 10**24
_BLANKS = set(" \t\r\n/")


@dataclass(frozen=True, slots=True)
class Piece:
    """A partition of a table, or a table without partitions."""

    table: str
    partition: str
    """Empty for a whole table."""
    size_bytes: int
    regions: tuple[int, ...]
    """The regions that hold it at the start; the first is its home."""

    @property
    def name(self) -> str:
        """Its name in jobs: `TABLE`, or `TABLE/PARTITION`."""
        return f"{self.table}/{self.partition}" if self.partition else self.table


@dataclass(frozen=True)
class Catalogue:
    """All tables. Regions are units of the outermost level of a cluster file."""

    pieces: tuple[Piece, ...]
    by_name: Mapping[str, tuple[int, ...]]
    """Table, or `TABLE/PARTITION` -> positions in `pieces`."""
    regions: tuple[str, ...]
    storage_bytes: tuple[int | None, ...]
    """Storage of each region; None if the cluster file does not say."""


def load_catalogue(path: Path, cluster: Cluster) -> Catalogue:
    """Read a data file.

    Raises:
        TraceError: an unreadable file, a bad row, an unknown region, or tables without room; names
            file and line.
    """
    columns, rows = csv_rows(path, decode(path, read_bytes(path)))
    _check_header(path, columns)
    pieces = tuple(_piece(where, cells, cluster) for where, cells in rows)
    by_name: dict[str, tuple[int, ...]] = {}
    homes: dict[str, int] = {}
    whole: dict[str, bool] = {}
    for index, ((where, _), piece) in enumerate(zip(rows, pieces, strict=True)):
        if piece.name in by_name or whole.setdefault(piece.table, not piece.partition) == bool(
            piece.partition
        ):
            raise TraceError(
                f"{where}: {piece.name!r} is described twice, or as a table and in partitions; "
                "keep one"
            )
        if homes.setdefault(piece.table, piece.regions[0]) != piece.regions[0]:
            raise TraceError(
                f"{where}: table {piece.table!r} has its home in region "
                f"{cluster.regions[homes[piece.table]]!r} further up; name that first here too"
            )
        by_name[piece.name] = (index,)
        if piece.partition:
            by_name[piece.table] = (*by_name.get(piece.table, ()), index)
    storage = cluster.storage_bytes[cluster.file.levels[0]]
    _check_storage([where for where, _ in rows], pieces, cluster, storage)
    return Catalogue(pieces, by_name, cluster.regions, storage)


def _check_header(path: Path, header: Sequence[str]) -> None:
    for name in header:
        if name not in COLUMNS or header.count(name) > 1:
            hint = did_you_mean(name, COLUMNS)
            raise TraceError(f"{path}:1: unknown or repeated column {shortened(name)}: {hint}")
    for name in COLUMNS:
        if name not in header and name != "partition":
            raise TraceError(f"{path}:1: column {name!r} is missing; add it")


def _piece(where: str, cells: Mapping[str, str], cluster: Cluster) -> Piece:
    table, partition = cells["table"], cells.get("partition", "")
    for name in (table, partition):
        if _BLANKS & set(name) or not table:
            raise TraceError(
                f"{where}: name {shortened(name)}: expected a name without spaces and '/'"
            )
    regions = [_region(where, name, cluster.regions) for name in cells["regions"].split()]
    if not regions or len(set(regions)) < len(regions):
        raise TraceError(
            f"{where}: field 'regions': expected its home and other regions, each once"
        )
    return Piece(table, partition, _size(where, cells["size"]), tuple(regions))


def _region(where: str, name: str, known: Sequence[str]) -> int:
    if name not in known:
        hint = did_you_mean(name, known)
        raise TraceError(f"{where}: region {shortened(name)} is not in the cluster: {hint}")
    return known.index(name)


def _size(where: str, text: str) -> int:
    read = quantity(text, SIZE_UNITS)
    size = None if read is None else read[0] * SIZE_UNITS[read[1] or "B"]
    if size is None or size.denominator != 1 or not 0 < size <= MOST_BYTES:
        raise TraceError(
            f"{where}: field 'size' is {shortened(text)}, expected whole bytes, such as 103GB; "
            "correct it"
        )
    return int(size)


def _check_storage(
    places: Sequence[str],
    pieces: Sequence[Piece],
    cluster: Cluster,
    storage: Sequence[int | None],
) -> None:
    """Refuse tables for which a region has no room."""
    held = [0] * len(storage)
    for where, piece in zip(places, pieces, strict=True):
        for region in piece.regions:
            held[region] += piece.size_bytes
            room = storage[region]
            if room is not None and held[region] > room:
                raise TraceError(
                    f"{where}: with {piece.name!r} region {cluster.regions[region]!r} holds "
                    f"{size_text(held[region])}, more than its storage of {size_text(room)}; give "
                    "the region more storage, or choose another region"
                )

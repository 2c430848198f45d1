"""The backend `recorded`: estimates from a table, to compare schedulers on other latencies.

The table is a CSV file with one row per query. `KEY_COLUMNS` describe the query and
`ANSWER_COLUMNS` the estimate. Times are microseconds; lists are separated by spaces, innermost
dimension first. Other columns are ignored, except `source`: if the table has this column, only rows
with one of `SOURCES` count. In artist's own recordings, other rows have altered inputs.
"""

from __future__ import annotations

from pathlib import Path

from artist.errors import BackendError, ConfigError, TraceError, shortened
from artist.estimates.query import Dimension, Estimate, LatencyBackend, LatencyQuery
from artist.io.csv_rows import csv_rows
from artist.io.digests import PREFIX, sha256
from artist.io.reading import as_float, decode, read_bytes
from artist.workload.models import canonical_if_known

KEY_COLUMNS = ("model", "topologies", "dim_types", "units", "bw_GBps", "latency_ns")
ANSWER_COLUMNS = ("total_comp_us", "finished_at_us")
# Larger than any time, rate or number of units. Its nanoseconds still fit a 64-bit integer.
_MOST = 1e15
SOURCES = ("java-run", "systematic")

Key = tuple[str, ...]


class RecordedBackend:
    """Looks queries up in a table. `fallback_uses` counts the answers of the fallback."""

    def __init__(self, path: Path, fallback: LatencyBackend | None = None) -> None:
        """Raises TraceError if the file is not such a table."""
        data = read_bytes(path)
        self._path = path
        self.source = f"recorded@{sha256(data)[: len(PREFIX) + 12]}"
        self._rows = _read(path, decode(path, data), self.source)
        self._fallback = fallback
        self.fallback_uses = 0

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Look one query up. The fallback answers a query without a row, with its own source.

        Raises:
            BackendError: the table has no row for the query, and there is no fallback.
        """
        key = query_key(query)
        # A row records one pass.
        estimate = self._rows.get(key) if query.passes == 1 else None
        if estimate is not None:
            return estimate
        if self._fallback is None:
            passes = "" if query.passes == 1 else f" for {query.passes} passes"
            raise BackendError(
                f"{self._path} holds no row{passes} with {_text(key)}: add one, or name a "
                "fallback backend"
            )
        self.fallback_uses += 1
        return self._fallback.estimate(query, profile=profile)


def query_key(query: LatencyQuery) -> Key:
    """The key of a query, in the normal form of the table's keys."""
    dims = query.dimensions
    return (
        canonical_if_known(query.workload.name),
        " ".join(dim.topology for dim in dims),
        " ".join(dimension_type(dim) for dim in dims),
        " ".join(str(dim.npus) for dim in dims),
        " ".join(f"{dim.bandwidth_gib_per_s:g}" for dim in dims),
        " ".join(f"{dim.latency_ns:g}" for dim in dims),
    )


def _read(path: Path, text: str, source: str) -> dict[Key, Estimate]:
    columns, rows = csv_rows(path, text)
    if missing := [name for name in (*KEY_COLUMNS, *ANSWER_COLUMNS) if name not in columns]:
        raise TraceError(f"{path}:1: columns are missing: {', '.join(missing)}; add them")
    estimates: dict[Key, Estimate] = {}
    for where, row in rows:
        if row.get("source", SOURCES[0]) in SOURCES:
            _add(estimates, row, where, source)
    return estimates


def _add(rows: dict[Key, Estimate], row: dict[str, str], where: str, source: str) -> None:
    key = _row_key(row, where)
    compute_ns, finish_ns = (_nanoseconds(row, name, where) for name in ANSWER_COLUMNS)
    if finish_ns < compute_ns:
        raise TraceError(f"{where}: finished_at_us is less than total_comp_us; correct the row")
    estimate = Estimate(finish_ns, compute_ns, source)
    if rows.setdefault(key, estimate) != estimate:
        raise TraceError(f"{where}: another answer for {_text(key)} than above; remove one")


def _row_key(row: dict[str, str], where: str) -> Key:
    """The key of a row. Numbers are in normal form, so that they compare by value."""
    texts = [row[name].split() for name in KEY_COLUMNS[1:]]
    if not row["model"] or not texts[0] or len({len(parts) for parts in texts}) != 1:
        raise TraceError(
            f"{where}: {', '.join(KEY_COLUMNS[1:])} need the same number of entries, one per "
            "dimension"
        )
    for name, parts in zip(KEY_COLUMNS[3:], texts[2:], strict=True):
        for index, part in enumerate(parts):
            parts[index] = f"{_number(part, name, where):g}"
    return (canonical_if_known(row["model"]), *(" ".join(parts) for parts in texts))


def _nanoseconds(row: dict[str, str], column: str, where: str) -> int:
    return round(1000 * _number(row[column], column, where))


def _number(text: str, column: str, where: str) -> float:
    value = as_float(text)
    if not 0 <= value <= _MOST:
        raise TraceError(
            f"{where}: {column} is {shortened(text)}, expected a number from 0 to {_MOST:.0e}"
        )
    return value


def _text(key: Key) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(KEY_COLUMNS, key, strict=True))


def recorded_backend(argument: str, fallback: LatencyBackend | None) -> RecordedBackend:
    """The backend of `--backend recorded:FILE`. The fallback answers what the table lacks.

    Raises:
        ConfigError: no file is given.
        TraceError: the file is not a table of latencies.
    """
    if not argument:
        raise ConfigError("backend recorded: name the table, recorded:FILE.csv")
    return RecordedBackend(Path(argument), fallback)


def dimension_type(dimension: Dimension) -> str:
    """ASTRA-sim 1.0's type of a dimension: N in a machine, P in a rack, PP between racks."""
    return {"rack": "P", "network": "PP"}.get(dimension.level, "N")

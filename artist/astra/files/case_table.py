"""Answers a table of ASTRA-sim cases in one process.

The input is a CSV file with one column per setting of ASTRA-sim (`|` separates dimensions). The
output has the same rows, each with the answer of the backend `analytical` or the reason why it
refuses. `artist latency --cases` does this.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from artist.astra.model.analytical import AnalyticalBackend
from artist.errors import BackendSettingError, TraceError
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.io.reading import as_float, decode, read_bytes
from artist.io.writing import whole_file
from artist.workload.astra_text import read_text

COLUMNS = (
    "backend",
    "workload",
    "num_passes",
    "topology",
    "npus_count",
    "bandwidth",
    "latency",
    "all_reduce_impl",
    "all_gather_impl",
    "reduce_scatter_impl",
    "all_to_all_impl",
    "scheduling_policy",
    "collective_optimization",
    "preferred_dataset_splits",
    "active_chunks_per_dimension",
    "endpoint_delay",
    "local_mem_bw",
    "num_queues_per_dim",
    "comm_scale",
    "injection_scale",
)
RESULTS = (
    "artist_finish_cycles_max",
    "artist_exposed_comm_cycles",
    "artist_error",
    "artist_wall_s",
)
BACKENDS = ("unaware", "aware")

_Value = TypeVar("_Value")


def run_cases(cases_csv: Path, workloads_dir: Path, out_csv: Path) -> None:
    """Evaluate every row of `cases_csv` and write `out_csv` whole.

    `artist_finish_cycles_max` and `artist_exposed_comm_cycles` are those of the NPU that finishes
    last, in ns. `artist_wall_s` is the time that the row took, including reading its workload.
    `artist_error` is empty, `unsupported-backend` (rows of the aware backend),
    `zero-endpoint-delay`, `deadlock` or `bad-setting`.

    Raises:
        TraceError: a column is missing or a value cannot be read; nothing is written.
        ConfigError: the output cannot be written.
    """
    columns, rows = _read(cases_csv)
    backend = AnalyticalBackend()
    results = [row.cells | _evaluate(row, workloads_dir, backend) for row in rows]
    kept = [column for column in columns if column not in RESULTS]
    _write(out_csv, [*kept, *RESULTS], results)


@dataclass(frozen=True, slots=True)
class _CaseRow:
    """One row. Its errors name the file, the line and the column."""

    path: Path
    line: int
    cells: dict[str, str]

    def query(self, workloads_dir: Path) -> LatencyQuery:
        return LatencyQuery(
            read_text(workloads_dir / f"{self.cells['workload']}.txt"),
            self._dimensions(),
            self._system(),
            self.whole("num_passes"),
        )

    def _dimensions(self) -> tuple[Dimension, ...]:
        names = self.cells["topology"].split("|")
        npus = self.listed("npus_count", _whole, "whole numbers")
        bandwidths = self.listed("bandwidth", float, "GiB/s")
        latencies = self.listed("latency", float, "nanoseconds")
        if not len(names) == len(npus) == len(bandwidths) == len(latencies):
            raise BackendSettingError(
                "topology, npus_count, bandwidth and latency differ in length"
            )
        return tuple(map(Dimension, map(_topology, names), npus, bandwidths, latencies))

    def _system(self) -> SystemSettings:
        """The system settings of a row."""
        # ASTRA-sim reads comm_scale and ignores it, but it must be a number.
        self.number("comm_scale")
        return SystemSettings(
            all_reduce=self.algorithms("all_reduce_impl"),
            all_gather=self.algorithms("all_gather_impl"),
            reduce_scatter=self.algorithms("reduce_scatter_impl"),
            all_to_all=self.algorithms("all_to_all_impl"),
            scheduling_policy=self.cells["scheduling_policy"],
            collective_optimization=self.cells["collective_optimization"],
            preferred_dataset_splits=self.whole("preferred_dataset_splits"),
            active_chunks_per_dimension=self.whole("active_chunks_per_dimension"),
            endpoint_delay_ns=self.endpoint_delay_ns(),
            local_mem_bandwidth_gb_per_s=self.number("local_mem_bw"),
            queues_per_dimension=self.whole("num_queues_per_dim"),
        )

    def endpoint_delay_ns(self) -> int:
        delay = self.whole("endpoint_delay") * self.number("injection_scale")
        if delay == math.inf:
            raise self.error("injection_scale", "a number that leaves the delay finite")
        return int(delay)

    def algorithms(self, column: str) -> tuple[str, ...]:
        return tuple(self.cells[column].split("|")) if self.cells[column] else ()

    def listed(
        self, column: str, parse: Callable[[str], _Value], expected: str
    ) -> tuple[_Value, ...]:
        try:
            return tuple(parse(item) for item in self.cells[column].split("|"))
        except ValueError:
            raise self.error(column, f"{expected}, separated by |") from None

    def whole(self, column: str) -> int:
        try:
            return _whole(self.cells[column])
        except ValueError:
            raise self.error(column, "a whole number") from None

    def number(self, column: str) -> float:
        try:
            return _finite(self.cells[column])
        except ValueError:
            raise self.error(column, "a number") from None

    def error(self, column: str, expected: str) -> TraceError:
        return TraceError(
            f"{self.path}:{self.line}: {column} is {self.cells[column][:40]!r}, "
            f"expected {expected}; correct the row"
        )


def _whole(text: str) -> int:
    value = _finite(text)
    if value != int(value):
        raise ValueError(text)
    return int(value)


def _finite(text: str) -> float:
    value = as_float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _topology(name: str) -> Topology:
    try:
        return Topology(name)
    except ValueError:
        known = ", ".join(Topology)
        raise BackendSettingError(f"topology is {name!r}, expected one of {known}") from None


def _evaluate(row: _CaseRow, workloads_dir: Path, backend: AnalyticalBackend) -> dict[str, str]:
    """The result columns of a row: its times or the reason for a refusal, and the wall time."""
    started_s = time.perf_counter()
    finish = exposed = error = ""
    if row.cells["backend"] not in BACKENDS:
        raise row.error("backend", "one of " + ", ".join(BACKENDS))
    if row.cells["backend"] == "aware":
        error = "unsupported-backend"
    else:
        try:
            estimate = backend.estimate(row.query(workloads_dir))
            finish, exposed = str(estimate.finish_ns), str(estimate.exposed_comm_ns)
        except BackendSettingError as refusal:
            error = refusal.reason
    wall_s = f"{time.perf_counter() - started_s:.6f}"
    return dict(zip(RESULTS, (finish, exposed, error, wall_s), strict=True))


def _read(path: Path) -> tuple[list[str], list[_CaseRow]]:
    """The columns of a table of cases, and its rows.

    Raises:
        TraceError: the file is not CSV, a column is missing, or a row has another length.
    """
    reader = csv.DictReader(io.StringIO(decode(path, read_bytes(path)), newline=""), strict=True)
    rows = []
    try:
        columns = list(reader.fieldnames or ())
        if missing := [column for column in COLUMNS if column not in columns]:
            raise TraceError(
                f"{path}:1: no column {', '.join(missing)}; add it (all of: {', '.join(COLUMNS)})"
            )
        for cells in reader:
            if None in cells or None in cells.values():
                raise TraceError(
                    f"{path}:{reader.line_num}: the row lacks fields or has more than the "
                    f"{len(columns)} of the header; correct the row"
                )
            rows.append(_CaseRow(path, reader.line_num, cells))
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: not CSV ({error}); correct it") from error
    return columns, rows


def _write(path: Path, columns: list[str], rows: list[dict[str, str]]) -> None:
    with (
        whole_file(path) as partial,
        partial.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

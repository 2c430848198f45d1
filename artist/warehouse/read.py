"""Reads a warehouse: checks its columns and rows, and turns names into numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from artist.errors import ConfigError, TraceError, did_you_mean, shortened
from artist.units import size_text
from artist.warehouse.instance import (
    PRIORITIES,
    Bools,
    Floats,
    Instance,
    Ints,
    NumberLists,
    starts_of,
)
from artist.warehouse.warehouse_schema import ApplicationRow, DemandRow, RegionRow, TableRow

FILES: dict[str, type[BaseModel]] = {
    "tables": TableRow,
    "regions": RegionRow,
    "demand": DemandRow,
    "applications": ApplicationRow,
}
MOST_BYTES = 2**62
"""Most bytes of all tables, and of all storage: sums are 64-bit integers."""
MOST_REGIONS = 62
"""The regions that hold a table are bits of a 64-bit integer."""


def read_warehouse(folder: Path, given: Mapping[str, Any] | None = None) -> Instance:
    """Read and check the four files. `applications.parquet` may be missing.

    `given` are Arrow tables in place of files (`measured.py`).

    Raises:
        TraceError: a file, a column or a row is wrong; names file, row (the first is 1) and value.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: is not a folder; give one with tables.parquet and others")
    tables, regions, demand, applications = (_File(folder, name, given or {}) for name in FILES)
    region_names = tuple(regions.texts("region"))
    kinds, supply = _supply(regions)
    storage, size = regions.sizes("storage_bytes"), tables.sizes("size_bytes")
    names = tables.texts("table")
    known = tables.names("table", names)
    places = regions.names("region", region_names)
    if len(region_names) > MOST_REGIONS:
        raise regions.error(
            MOST_REGIONS, f"is one of {len(region_names)}, expected at most {MOST_REGIONS} regions"
        )
    _check_sizes(tables, size, storage, names)
    reads = _reads(demand, known)
    apps, limit = _limits(applications, places)
    number = _positions(apps)
    return Instance(
        tables=names,
        regions=region_names,
        kinds=kinds,
        applications=apps,
        jobs=demand.texts("job"),
        size=size,
        home=tables.numbers_of("home", places),
        storage=storage,
        supply=supply,
        reads=reads,
        kind=demand.numbers_of("kind", {"": -1} | _positions(kinds)),
        priority=demand.priorities(),
        gpu_h=demand.hours("gpu_h"),
        cpu_h=demand.hours("cpu_h"),
        application=np.array([number.get(x, -1) for x in demand.texts("application")]),
        cpu_limit=limit,
    )


def read_parquet(path: Path) -> Any:
    """One of the files as an Arrow table.

    Raises:
        TraceError: it cannot be read.
    """
    import pyarrow as pa

    from artist.io import parquet

    try:
        return parquet.read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        raise TraceError(
            f"{path}: cannot be read as Parquet ({reason}); see: artist schema warehouse"
        ) from cause


class _File:
    """One of the four files, by columns."""

    def __init__(self, folder: Path, name: str, given: Mapping[str, Any]) -> None:
        self.path, self.model = folder / f"{name}.parquet", FILES[name]
        self.rows = 0
        self.columns: dict[str, Any] = {}
        if name == "applications" and name not in given and not self.path.exists():
            return
        table = given[name] if name in given else read_parquet(self.path)
        self.rows = table.num_rows
        fields = self.model.model_fields
        for column in table.column_names:
            if column not in fields or table.column_names.count(column) > 1:
                hint = did_you_mean(column, fields)
                raise TraceError(f"{self.path}: unknown or repeated column {column!r}: {hint}")
        for column, field in fields.items():
            if column in table.column_names:
                self.columns[column] = table[column].combine_chunks()
            elif field.is_required():
                raise TraceError(f"{self.path}: column {column!r} is missing; add it")
        if not self.rows and name != "applications":
            raise TraceError(f"{self.path}: has no rows; add some")

    def error(self, row: int, problem: str) -> TraceError:
        """About a row, counted from 0."""
        return TraceError(f"{self.path}: row {row + 1}: {problem}")

    def texts(self, column: str) -> list[str]:
        """A column of texts, empty where there is none."""
        if column not in self.columns:
            return [""] * self.rows
        values: list[Any] = self.columns[column].to_pylist()
        required = self.model.model_fields[column].is_required()
        for row, value in enumerate(values):
            if value is None and not required:
                values[row] = ""
            elif not isinstance(value, str) or (required and not value):
                raise self.error(row, f"{column} is {value!r}, expected text; correct it")
        return values

    def names(self, column: str, values: Sequence[str]) -> dict[str, int]:
        """Name -> position; names must differ."""
        known = _positions(values)
        if len(known) < len(values):
            first: dict[str, int] = {}
            row = next(i for i, name in enumerate(values) if first.setdefault(name, i) != i)
            raise self.error(row, f"{column} {shortened(values[row])} is repeated; keep one row")
        return known

    def numbers_of(self, column: str, known: dict[str, int]) -> Ints:
        """Positions of the names in a column."""
        values = self.texts(column)
        try:
            return np.array([known[name] for name in values], np.int64)
        except KeyError:
            row = next(row for row, name in enumerate(values) if name not in known)
            hint = did_you_mean(values[row], [name for name in known if name])
            raise self.error(row, f"{column} {shortened(values[row])} is unknown: {hint}") from None

    def hours(self, column: str) -> Floats:
        """A column of hours, 0 where there is none."""
        if column not in self.columns:
            return np.zeros(self.rows)
        values: Floats = self._numbers(column).astype(float)
        self._check(column, values, (values >= 0) & (values < 1e15), "hours")
        return values

    def sizes(self, column: str) -> Ints:
        """A column of bytes."""
        values = self._numbers(column)
        self._check(column, values, (values > 0) & (values < MOST_BYTES), "whole bytes")
        total = values.astype(float).sum()
        if total >= MOST_BYTES:
            raise TraceError(
                f"{self.path}: {column} sums to {total:.3g}, expected less than {MOST_BYTES:.3g}; "
                "plan namespaces one by one"
            )
        whole: Ints = values.astype(np.int64)
        return whole

    def priorities(self) -> Ints:
        """Priorities; 0 is the highest. Without the column, all jobs have the lowest."""
        if "priority" not in self.columns:
            return np.full(self.rows, PRIORITIES - 1)
        values = self._numbers("priority")
        good = (values >= 1) & (values <= PRIORITIES)
        self._check("priority", values, good, f"1 to {PRIORITIES}")
        whole: Ints = values.astype(np.int64)
        return whole - 1

    def _check(self, column: str, values: Any, good: Bools, expected: str) -> None:
        """Refuse a column in which a value is not as `expected`."""
        if not good.all():
            row = int(np.argmin(good))
            raise self.error(row, f"{column} is {values[row]:g}, expected {expected}; correct it")

    def _numbers(self, column: str) -> Any:
        """A column of numbers. Refuses empty cells."""
        values = self.columns[column]
        if values.null_count:
            row = values.is_null().to_numpy(zero_copy_only=False).argmax()
            raise self.error(int(row), f"{column} is empty, expected a number; add it")
        array = values.to_numpy(zero_copy_only=False)
        if array.dtype.kind not in "iuf":
            raise self.error(0, f"{column} is {array[0]!r}, expected a number; correct the column")
        return array

    def lists(self, column: str) -> tuple[Ints, Any]:
        """The start of each row's list, and the items of all lists."""
        import pyarrow as pa

        values = self.columns[column]
        if not pa.types.is_list(values.type) and not pa.types.is_large_list(values.type):
            raise self.error(0, f"{column} is {values[0]}, expected a list; correct the column")
        lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        return starts_of(lengths), values.flatten()

    def lists_by_row(self, column: str) -> list[list[Any]]:
        """The list of each row."""
        starts, items = self.lists(column)
        values = items.to_pylist()
        return [values[start:end] for start, end in pairwise(starts.tolist())]


def _supply(file: _File) -> tuple[tuple[str, ...], Floats]:
    """The kinds of GPUs in the order of the rows, and [R, K] hours."""
    kinds, hours = file.lists_by_row("kinds"), file.lists_by_row("supply_gpu_h")
    known = tuple(dict.fromkeys(chain.from_iterable(kinds)))
    supply = np.zeros((file.rows, len(known)))
    for row, (names, amounts) in enumerate(zip(kinds, hours, strict=True)):
        if len(names) != len(amounts):
            raise file.error(
                row,
                f"has {len(names)} kinds and {len(amounts)} of supply_gpu_h, expected the "
                "same number; "
                "correct the lists",
            )
        for name, amount in zip(names, amounts, strict=True):
            if not isinstance(amount, int | float) or not 0 <= amount < 1e15:
                raise file.error(row, f"supply_gpu_h is {amount!r}, expected hours; correct it")
            supply[row, known.index(name)] += amount
        if not supply[row].sum() > 0:
            name = file.texts("region")[row]
            raise file.error(
                row,
                f"region {shortened(name)} has a supply of 0 GPU hours, expected more than 0; give "
                "it GPU hours, or leave the region out",
            )
    return known, supply


def _check_sizes(file: _File, size: Ints, storage: Ints, names: Sequence[str]) -> None:
    """Refuse a table that no region can store."""
    largest, row = int(storage.max()), int(np.argmax(size > storage.max()))
    if size[row] > largest:
        raise file.error(
            row,
            f"table {shortened(names[row])} has {size_text(int(size[row]))}, more than the storage "
            f"of every region, at most {size_text(largest)}; split the table, or give a region "
            "more storage",
        )


def _reads(file: _File, known: dict[str, int]) -> NumberLists:
    """The tables of each job, each once, in the order of tables."""
    starts, items = file.lists("tables")
    names = items.to_pylist()
    try:
        numbers = np.array([known[name] for name in names], np.int64)
    except KeyError:
        place = next(i for i, name in enumerate(names) if name not in known)
        row = int(np.searchsorted(starts, place, side="right")) - 1
        raise file.error(
            row,
            f"job {shortened(file.texts('job')[row])} reads table {shortened(names[place])}, which "
            "tables.parquet does not have; add the table, or leave it out here",
        ) from None
    lengths = np.diff(starts)
    if not lengths.all():
        row = int(np.argmin(lengths))
        job = shortened(file.texts("job")[row])
        raise file.error(row, f"job {job} reads no table; name one, or leave the job out")
    owners = np.repeat(np.arange(file.rows), lengths)
    keys = np.unique(owners * len(known) + numbers)
    owners, items = np.divmod(keys, len(known))
    return NumberLists(starts_of(np.bincount(owners, minlength=file.rows)), items)


def _limits(file: _File, places: dict[str, int]) -> tuple[tuple[str, ...], Floats]:
    """Applications with limits, and [A, R] CPU hours; infinite without a row."""
    if not file.rows:
        return (), np.zeros((0, len(places)))
    names = file.texts("application")
    region, hours = file.numbers_of("region", places), file.hours("cpu_h")
    apps = tuple(dict.fromkeys(names))
    number = _positions(apps)
    limit = np.full((len(apps), len(places)), np.inf)
    limit[[number[name] for name in names], region] = hours
    return apps, limit


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}

"""Checks of what a policy gives besides its decisions: lease, jobs on a GPU, tables of results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from artist.contract import CORE_TABLES, MOST_JOBS_PER_GPU, Policy
from artist.errors import PolicyError, shortened
from artist.policies.own_file import in_a_sentence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Names of files on every system."""

_EXAMPLE = "rows by the table's name, as in {'queue': [{'time_s': 0.0, 'jobs': 3}]}"

_EXPECTED = "expected a list of rows, each a dict"


def check_lease(policy: Policy, name: str) -> None:
    """Refuse a lease that is not a whole number of ticks. The simulator refuses too short ones.

    Raises:
        PolicyError: names the policy and its lease.
    """
    lease: object = policy.lease
    if lease is not None and type(lease) is not int:
        raise PolicyError(
            f"policy {name}: its lease is {shortened(lease)}, expected None or whole nanoseconds, "
            "such as artist.units.ticks(3600)"
        )


def check_jobs_per_gpu(policy: Policy, name: str) -> None:
    """Refuse a number of jobs on a GPU that is not a whole number in range.

    Raises:
        PolicyError: names the policy and the number.
    """
    jobs: object = getattr(policy, "jobs_per_gpu", 1)
    # True equals 1 and would pass for it.
    if type(jobs) is not int or not 1 <= jobs <= MOST_JOBS_PER_GPU:
        raise PolicyError(
            f"policy {name}: its jobs_per_gpu is {shortened(jobs)}, expected a whole number from 1 "
            f"to {MOST_JOBS_PER_GPU}"
        )


def tables_of(policy: Policy, name: str) -> Mapping[str, dict[str, Any]]:
    """The tables that a policy adds to a run's: table -> column -> cells.

    Raises:
        PolicyError: the name of a table that every run has or that no file can have, rows that
            differ in their keys, something other than rows, or the policy's file raised.
    """
    try:
        return _columns_by_table(policy.tables(), f"policy {name}: tables()")
    except BaseException as cause:
        if error := in_a_sentence(cause, name):
            raise error from cause
        raise


def _columns_by_table(tables: object, place: str) -> dict[str, dict[str, Any]]:
    """The columns of every table, whose names must be free and fit for files."""
    if not isinstance(tables, Mapping):
        raise PolicyError(f"{place} gave {shortened(tables)}, expected {_EXAMPLE}; {{}} if none")
    taken: dict[str, str] = {table: f"the run's own table {table!r}" for table in CORE_TABLES}
    columns = {}
    for table, rows in tables.items():
        if not isinstance(table, str) or not _NAME.fullmatch(table):
            raise PolicyError(
                f"{place} names a table {shortened(table)}, expected up to 64 letters, digits, "
                "_, - and ., starting with a letter or a digit"
            )
        same = table.lower()  # as some systems compare names of files
        if same in taken:
            raise PolicyError(f"{place} would replace {taken[same]}; give the table another name")
        taken[same] = f"its table {table!r}"
        columns[table] = _columns(rows, f"{place}: table {table!r}")
    return columns


def _columns(rows: object, place: str) -> dict[str, list[Any]]:
    """The rows of a table as columns. All rows must have the same keys."""
    if not isinstance(rows, Sequence):
        raise PolicyError(f"{place} is {shortened(rows)}, {_EXPECTED}")
    columns: dict[str, list[Any]] = {}
    # One pass: a long table may make its rows only when they are read.
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise PolicyError(f"{place} is {shortened(rows)}, {_EXPECTED}")
        if not index:
            columns = {_column(key, place): [] for key in row}
        if row.keys() != columns.keys():
            raise PolicyError(
                f"{place}: row {index} has the columns {shortened(list(row))}, expected those of "
                f"row 0, {shortened(list(columns))}; use None for a cell without a value"
            )
        for key, cells in columns.items():
            cells.append(row[key])
    return columns


def _column(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise PolicyError(f"{place} has a column {shortened(key)}, expected text as its name")
    return key

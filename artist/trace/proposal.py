"""Proposes a mapping for a trace with unknown columns: columns, units and models.

Each entry has a confidence and a reason:

    columns  num_gpus  n_gpus     sure    a usual name, and its cells fit
    units    duration  h          sure    the column's name ends in it
    models   vgg_net   vgg11      sure    the name says so
    models   vgg13     vgg16      guess   the nearest name

`artist trace columns FILE` prints the mapping, and writes it with `--accept`. A guessed model is
only written as a comment, since nobody would notice a wrong one; its jobs are refused until the
user decides. A column guessed by its cells alone is not written: the user has to name it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artist.errors import ConfigError, TraceError, shortened
from artist.io.documents import validate
from artist.io.reading import as_float
from artist.trace.detect import Format, closest, format_named, needed_columns, open_table
from artist.trace.foreign.model_names import known_model, meant, recognised
from artist.trace.native.alike import alike, is_start
from artist.trace.native.formats import AXES, TIMES, OwnFormat, last_left, misspelt, unit_of
from artist.trace.native.mapping import SAME, TraceMapping
from artist.trace.native.model_words import core
from artist.trace.native.read_table import read_data, read_table
from artist.trace.native.table import HINT_PREFIX, Table
from artist.trace.native.time_units import (
    ARRIVALS,
    DATE,
    MS_FROM,
    US_FROM,
    clock_s,
    is_date,
    order_is_unknown,
)
from artist.units import counted
from artist.workload.division.job_parallelism import JobParallelism, words
from artist.workload.job import UNKNOWN_MODEL
from artist.workload.models import canonical, nearest_model

# Why a column is guessed whose name does not say what it holds.
_ONE_OF_LENGTHS, _ONE_LEFT = "the one column of lengths", "the one column that is left"
_ONE_OF_DATES = "the one column of dates"

_UNKNOWN_DAY = "its cells are dates, but which part is the day?"


class Confidence(StrEnum):
    """How sure an entry is."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "guess"


class MappingEntry(NamedTuple):
    """One entry of a mapping: `name: value` in the section `part`."""

    part: str
    name: str
    value: str
    confidence: Confidence
    why: str


class Proposal(NamedTuple):
    """The entries, and what has none.

    `unread` are columns of the file that are not used, `unknown` are names that resemble no model,
    and `missing` are columns without which the trace cannot be read.
    """

    entries: tuple[MappingEntry, ...]
    unread: tuple[str, ...]
    unknown: tuple[str, ...]
    missing: tuple[str, ...]
    format: str

    def nameless(self) -> dict[str, str]:
        """Columns guessed by their cells alone: artist's name -> the file's."""
        why = (_ONE_OF_LENGTHS, _ONE_OF_DATES, _ONE_LEFT)
        return {one.name: one.value for one in self.entries if one.why in why}

    def of_unknown_day(self) -> list[str]:
        """Columns of dates in which day and month cannot be told apart."""
        return [one.name for one in self.entries if one.why == _UNKNOWN_DAY]


OWN_IDS = ("native", "simple")
"""The formats that a mapping applies to unless it names another."""

_OPTIONAL = (
    "model", "iterations", "user", "tenant", "priority", "gpus_min", "gpus_max", "gpu_kinds", AXES
)  # fmt: skip
"""Optional columns that a file may well have under another name."""

_ROWS = 1000
"""Only the cells of this many rows are examined."""

_LIMITS = ("walltime", "timelimit")
"""Schedulers' names for the time after which a job is killed. It is not a run time."""

_SHORT_S = 10.0
"""A shorter median suggests another unit: the median job of public traces takes minutes."""


def propose(path: Path, mapping: TraceMapping, format_: str | None = None) -> Proposal:
    """What the columns, units and models of a trace file most likely are.

    `mapping` has the entries that the user states; nothing is proposed for these.

    Raises:
        TraceError: the file cannot be read as a table, or could be of several formats.
    """
    data = read_data(path)
    forced = format_named(format_) if format_ else None
    columns = dict(mapping.columns)
    entries: list[MappingEntry] = []
    found: Format
    refused: TraceError | None = None
    try:
        table, found, _ = open_table(path, data, forced, mapping, "given")
    except TraceError as refusal:
        refused, table = refusal, read_table(path, data)
        found = forced or closest(table.names)
    unread: tuple[str, ...] = ()
    if refused or isinstance(found, OwnFormat):
        table = read_table(path, data)
        entries += _columns(table, found, columns)
        columns |= {one.name: one.value for one in entries}
        if refused and not columns:
            raise refused
    if isinstance(found, OwnFormat):
        known = {*found.required, *found.optional, *SAME.values()}
        held = {name: name for name in table.columns if name in known} | columns
        entries += _units(table, held, mapping.units)
        read = {*known, *columns.values()}
        others = [x for x in table.names if x not in read and not x.startswith(HINT_PREFIX)]
        unread = tuple(others) if found.closed else ()
    models, unknown = _models(
        table, columns.get("model", "model"), mapping.models, own=isinstance(found, OwnFormat)
    )
    held_plain = {SAME.get(name, name) for name in (*table.columns, *columns)}
    needed = needed_columns(found, table.columns)
    missing = tuple(x for x in needed if SAME.get(x, x) not in held_plain)
    return Proposal((*entries, *models), unread, unknown, missing if refused else (), found.id)


class Accepted(NamedTuple):
    """A whole mapping, its format if that is none of artist's own, and comments to write.

    `comments` are about single entries. `remarks` are lines below them.
    """

    mapping: dict[str, Any]
    format: str | None
    comments: dict[tuple[str, str], str]
    remarks: tuple[str, ...]


def accepted(proposal: Proposal, mapping: TraceMapping) -> Accepted:
    """The mapping with the proposed entries, without guessed models."""
    whole: dict[str, Any] = mapping.model_dump(exclude_unset=True, exclude={"format"})
    comments, guessed = {}, []
    for one in proposal.entries:
        if one.part == "models" and one.confidence is Confidence.GUESS:
            guessed.append(f"  {shortened(one.name)}: {one.value}")
        else:
            whole.setdefault(one.part, {})[one.name] = one.value
            comments[one.part, one.name] = f"{one.confidence}: {one.why}"
    if guessed:
        guessed.insert(0, "Guessed, so not in force. Move what is right under models:.")
    columns = any(one.part == "columns" for one in proposal.entries)
    foreign = proposal.format if columns and proposal.format not in OWN_IDS else None
    return Accepted(whole, mapping.format or foreign, comments, tuple(guessed))


def _columns(table: Table, format_: Format, given: Mapping[str, str]) -> Iterator[MappingEntry]:
    """Entries for columns that have another name than in the format."""
    required = format_.required
    needed = needed_columns(format_, table.columns)
    plain = {SAME.get(name, name) for name in (*given, *table.columns)}
    missing = [name for name in needed if SAME.get(name, name) not in plain]
    known = {*required, *format_.optional, *SAME.values(), *given.values()}
    others = [name for name in table.columns if name not in known]
    spelled = alike(missing, others, spelled=True)
    near = alike(missing, [name for name in others if name not in spelled.values()])
    pairs = {**near, **spelled}
    rest = [name for name in others if name not in pairs.values()]
    optional = [x for x in _OPTIONAL if x in format_.optional and x not in plain]
    extra = {
        name: one
        for name, one in alike(optional, rest, spelled=True).items()
        if _odd(table, name, one) is None
    }
    for one in rest:
        meant_by = misspelt(one, [name for name in optional if name not in extra])
        if meant_by is not None and one not in extra.values():
            pairs[meant_by] = one
    rest = [name for name in rest if name not in (*extra.values(), *pairs.values())]
    last = last_left(table, missing, pairs, rest)
    found = {**pairs, **extra, **last}
    for name in (name for name in (*missing, *optional) if name in found):
        one = found[name]
        odd = _odd(table, name, one)
        if odd is not None:
            yield MappingEntry("columns", name, one, Confidence.GUESS, f"but {odd}")
        elif name == "duration" and is_limit(one):
            why = "but it is a limit in Slurm and PBS: jobs end before"
            yield MappingEntry("columns", name, one, Confidence.GUESS, why)
        elif name in ARRIVALS and is_start(one):
            why = "when jobs started: no column says when they arrived"
            yield MappingEntry("columns", name, one, Confidence.GUESS, why)
        elif name in last:
            dates = _ONE_OF_DATES if is_date(str(table.columns[one][0])) else _ONE_LEFT
            why = _ONE_OF_LENGTHS if table.has_clocks(one) else dates
            yield MappingEntry("columns", name, one, Confidence.GUESS, why)
        elif name == "gpu_kinds":
            why = "kinds that jobs accept; the cluster file must name them"
            yield MappingEntry("columns", name, one, Confidence.LIKELY, why)
        elif name in spelled or name in extra:
            yield MappingEntry(
                "columns", name, one, Confidence.SURE, "a usual name, and its cells fit"
            )
        else:
            yield MappingEntry(
                "columns", name, one, Confidence.LIKELY, "a similar name, its cells fit"
            )


def _odd(table: Table, name: str, source: str) -> str | None:
    """Why the cells of `source` do not fit the column `name`; None if they fit."""
    cells = [str(cell).strip() for cell in table.columns[source][:_ROWS] if cell is not None]
    if name in _OPTIONAL:
        cells = [cell for cell in cells if cell]
        if not cells:
            return "all cells are empty"
    if name == "job_id":
        return None if len({*cells}) == len(cells) else "ids are repeated"
    fits = _KINDS.get(name)
    odd = next((cell for cell in cells if fits is not None and not fits(cell)), None)
    return None if odd is None else f"a cell is {shortened(odd)}"


def is_limit(column: str) -> bool:
    """Whether a column's name says that it is a limit of times."""
    return "".join(filter(str.isalpha, column.casefold())).startswith(_LIMITS)


def _is_whole(cell: str) -> bool:
    return as_float(cell).is_integer() and _is_length(cell)


def _is_length(cell: str) -> bool:
    return as_float(cell) >= 0


def _is_arrival(cell: str) -> bool:
    return _is_length(cell) or is_date(cell)


def _are_axes(cell: str) -> bool:
    try:
        return bool(validate(words(cell), JobParallelism, AXES))
    except (ValueError, ConfigError):
        return False


def _are_kinds(cell: str) -> bool:
    return bool(np.isnan(as_float(cell)))


def _is_duration(cell: str) -> bool:
    return _is_length(cell) or clock_s(cell) >= 0


_KINDS: Mapping[str, Callable[[str], bool]] = {
    **dict.fromkeys(TIMES, _is_length),
    "duration": _is_duration,
    "gpu_kinds": _are_kinds,
    AXES: _are_axes,
    **dict.fromkeys(ARRIVALS, _is_arrival),
    **dict.fromkeys(
        ("gpus", "num_gpus", "iterations", "gpus_min", "gpus_max", "priority"), _is_whole
    ),
}


def _units(
    table: Table, columns: Mapping[str, str], given: Collection[str]
) -> Iterator[MappingEntry]:
    """The unit of each column of times."""
    plain = {SAME.get(name, name) for name in given}
    for name, source in columns.items():
        if name not in TIMES or source not in table.columns or SAME.get(name, name) in plain:
            continue
        unit = unit_of(table, name, source, dates=True)
        cells = table.columns[source][:_ROWS]
        if any(clock_s(cell) >= 0 for cell in cells):
            continue  # `1-02:03:04` shows its units
        numbers = [as_float(cell) for cell in cells]
        middle = float(np.median(numbers)) if numbers else 0.0
        if unit == DATE:
            texts = [str(cell).strip() for cell in table.columns[source]]
            unknown = order_is_unknown(texts)
            confidence = Confidence.GUESS if unknown else Confidence.SURE
            why = _UNKNOWN_DAY if unknown else "its cells are dates"
            yield MappingEntry("units", name, DATE, confidence, why)
        elif unit is not None:
            yield MappingEntry("units", name, unit, Confidence.SURE, "the column's name ends in it")
        elif name in ARRIVALS and middle >= MS_FROM:
            scale = "us" if middle >= US_FROM else "ms"
            why = f"a time since 1970, half of them after {middle:.3g}"
            yield MappingEntry("units", name, scale, Confidence.LIKELY, why)
        elif name != source:
            short = name == "duration" and middle < _SHORT_S
            why = (
                f"but half of the jobs take at most {middle:.3g}" if short else "no other is named"
            )
            yield MappingEntry(
                "units", name, "s", Confidence.GUESS if short else Confidence.LIKELY, why
            )


def _models(
    table: Table, column: str, given: Mapping[str, str], *, own: bool
) -> tuple[list[MappingEntry], tuple[str, ...]]:
    """Entries for names of models, and the names that resemble no model.

    `own`: whether the table is in no published format. Models of published formats are known.
    """
    entries, unknown = [], []
    cells = table.columns.get(column, ())
    names = Counter(str(cell).strip() for cell in cells if cell is not None)
    for name, jobs in names.most_common():
        if name in ("", UNKNOWN_MODEL) or meant(name, given):
            continue
        if known_model(name):
            if own and canonical(name) != name:
                why = f"a usual name of it: {counted(jobs, 'job')}"
                entries.append(MappingEntry("models", name, canonical(name), Confidence.SURE, why))
            continue
        said = recognised(name)
        near = said or nearest_model(core(name))
        if near is None:
            unknown.append(name)
        else:
            confidence = Confidence.SURE if said else Confidence.GUESS
            why = "the name says so" if said else "the nearest name"
            entries.append(
                MappingEntry("models", name, near, confidence, f"{why}: {counted(jobs, 'job')}")
            )
    return entries, tuple(unknown)

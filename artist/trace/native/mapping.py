"""Traces whose columns have other names: `FILE.columns.yaml`, or `--columns` and `--units`.

    columns: {gpus: n_gpus, arrival_s: submitted}
    units: {duration: h}
    models: {ResNet-18 (batch size 32): resnet18}

A mapping states which columns of a file are those of a format, in which units its times are, and
which models its names mean. Without `format` the columns are those of artist's own formats:
native if there is a `compute_s`, or `iterations` without `duration`, else simple. Either name of a
column will do, `gpus` or `num_gpus`, `arrival_s` or `submit_time`.

It is applied to the table of cells, so that all readers below are the same. Errors name the
file's own columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from artist.errors import ArtistError, ConfigError, TraceError, did_you_mean, one_line, shortened
from artist.io.documents import Document, load_yaml, validate
from artist.io.reading import as_float, is_file
from artist.trace.native.alike import unit_called
from artist.trace.native.formats import OWN_FORMATS, TIMES, OwnFormat, unit_of, units_text
from artist.trace.native.table import HINT_PREFIX, Source, Table
from artist.trace.native.time_units import (
    ARRIVALS,
    DATE,
    DATES,
    UNITS,
    Unit,
    day_and_month,
    is_date,
    order_is_unknown,
    reader_of_dates,
    scaled,
)

SUFFIX = ".columns.yaml"

SAME = {"submit_time": "arrival_s", "num_gpus": "gpus"}
"""Columns of the simple format that have another name in the native one."""

_NATIVE, _SIMPLE, *_ = OWN_FORMATS
_OWN = tuple(
    dict.fromkeys(
        name
        for format_ in (_NATIVE, _SIMPLE)
        for name in (*format_.required, *format_.optional)
        if name != "vc"
    )
)


class TraceMapping(Document):
    """The meaning of the columns, units and models of a trace."""

    format: str | None = Field(
        default=None,
        description="the trace format whose columns are given, instead of artist's own",
    )
    columns: dict[str, str] = Field(
        default_factory=dict, description="artist's column: the file's column"
    )
    units: dict[str, Unit] = Field(
        default_factory=dict, description="artist's column: unit of its times, if not seconds"
    )
    models: dict[str, str] = Field(
        default_factory=dict,
        description="the file's name of a model, or a pattern with *: artist's model",
    )
    model_rule: str | None = Field(
        default=None, description="for jobs without a known model: uniform, mix, keep or a model"
    )

    @field_validator("units", mode="before")
    @classmethod
    def _known_units(cls, value: Any) -> Any:
        """Refuse an unknown unit, and suggest the one that was probably meant."""
        pairs = value.items() if isinstance(value, Mapping) else ()
        for name, unit in pairs:
            known = [one for one in UNITS if one not in DATES or name in ARRIVALS]
            if isinstance(unit, str) and unit not in UNITS:
                meant = unit_called(unit)
                raise ValueError(
                    f"the unit of {shortened(name)} is {shortened(unit)}, expected "
                    f"{', '.join(known)}"
                    f"{f'; write {one_line(name)}={meant}' if meant else ''}"
                )
        return value

    @field_validator("columns")
    @classmethod
    def _each_column_once(cls, value: dict[str, str]) -> dict[str, str]:
        sources = list(value.values())
        for source in sources:
            if sources.count(source) > 1:
                raise ValueError(f"column {source!r} is given twice; name it once")
        for other, name in SAME.items():
            if {other, name} <= value.keys():
                raise ValueError(f"{other} and {name} are one column; give one of them")
        return value


def mapping_path(trace: str | Path) -> Path:
    """The mapping file that belongs to a trace, whether it is there or not."""
    return Path(f"{trace}{SUFFIX}")


def mapping_for(
    trace: str | Path, columns: Mapping[str, str] | str | None = None, **flags: Any
) -> tuple[TraceMapping, str]:
    """The mapping of a trace file, and where it comes from, in words (empty: there is none).

    It is read from the file `columns` if that is a name, otherwise from the file next to the trace
    if there is one. `columns` as pairs, and the `flags` (`units`, `models`, `model_rule`), replace
    single entries of that file. A flag that is None was not given.

    Raises:
        ConfigError: unreadable file, unknown key or bad value; names file and line.
    """
    path = Path(columns) if isinstance(columns, str) else mapping_path(trace)
    base: dict[str, Any] = {}
    places = []
    if isinstance(columns, str) or is_file(path):
        base = load_yaml(path, TraceMapping).model_dump(exclude_unset=True)
        places.append(str(path))
    given = {"columns": None if isinstance(columns, str) else columns, **flags}
    for key, value in given.items():
        if value is not None:
            if isinstance(value, Mapping):
                entries = base.get(key, {})
                if key == "columns":  # a flag for a column replaces the file's entry for it
                    entries = {x: y for x, y in entries.items() if y not in value.values()}
                # Flags come first, because the first pattern that fits a model's name applies.
                value = {**value, **entries, **value}
            base[key] = value
            places.append(f"--{key.replace('_', '-')}")
    return validate(base, TraceMapping, "mapping of a trace"), ", ".join(places)


def renamed(table: Table, mapping: TraceMapping, place: str, targets: Sequence[str] = ()) -> Table:
    """The table with its columns under the names of the format.

    `place` says in words where the mapping is from. `targets` are the columns of its format, or
    empty for artist's own formats.

    Raises:
        ConfigError: the format has no such column.
        TraceError: the file has no such column.
    """
    for target, source in mapping.columns.items():
        with _entry(table, f"columns {target}={source} ({place})"):
            _check_pair(table, target, source, targets or _OWN, hints=not targets)
    same = {} if targets else SAME
    names = {source: same.get(target, target) for target, source in mapping.columns.items()}
    for name in table.columns:
        plain = same.get(name, name)
        if name not in names and plain not in names.values():
            names[name] = plain
    if not targets and not _counts_steps(names.values()):
        simple = {plain: name for name, plain in SAME.items()}
        names = {source: simple.get(target, target) for source, target in names.items()}
    sources = {t: Source(s, table.columns[s]) for s, t in names.items() if s != t}
    columns = {target: table.columns[source] for source, target in names.items()}
    return replace(table, columns=columns, sources=sources, header=tuple(table.columns))


def own_format(table: Table) -> OwnFormat:
    """The own format that a renamed table is meant to have."""
    return _NATIVE if _counts_steps(table.columns) else _SIMPLE


def _counts_steps(names: Collection[str]) -> bool:
    """Whether these columns state the length of a job in steps, as native does."""
    return "compute_s" in names or ("iterations" in names and "duration" not in names)


def in_seconds(table: Table, mapping: TraceMapping, place: str) -> Table:
    """The table with its times in seconds.

    Raises:
        ConfigError: a column that does not hold times.
        TraceError: the table lacks a column, or a cell is not a date.
    """
    for name, unit in mapping.units.items():
        with _entry(table, f"units {name}={unit} ({place})"):
            column = _time_column(table, name, unit)
        table = _in_seconds(table, column, unit)
    return table


def check_units(table: Table, mapping: TraceMapping, place: str, *, dates: bool) -> None:
    """Refuse a renamed table whose times seem to have other units than the mapping states.

    Only columns without a given unit are judged: `duration=s` means that `run_hours` holds
    seconds. `dates`: the format reads dates only in columns of the unit `date`.

    Raises:
        TraceError: names the columns and the flag to add.
    """
    given = {SAME.get(name, name) for name in mapping.units}
    units = {
        target: unit
        for target, source in table.sources.items()
        if SAME.get(target, target) not in given
        and (unit := unit_of(table, target, source.name, dates=dates))
    }
    if units:
        columns = ", ".join(shortened(table.sources[target].name) for target in units)
        seconds = units_text({name: "s" for name, unit in units.items() if unit != DATE})
        raise TraceError(
            f"{table.header_place()}: {columns}: not in seconds by name or content, but no unit is "
            f"given{f' ({place})' if place else ''}; add --units {units_text(units)}"
            f"{f', or --units {seconds} if these are seconds' if seconds else ''}"
            "; artist trace columns FILE --accept takes what it proposes"
        )


def without_others(table: Table, format_: OwnFormat) -> tuple[Table, tuple[str, ...]]:
    """The table without the columns that the format lacks, and the names of these in the file."""
    known = {*format_.required, *format_.optional}
    kept = {
        name: cells
        for name, cells in table.columns.items()
        if name in known or name.startswith(HINT_PREFIX)
    }
    read = {table.sources[name].name if name in table.sources else name for name in kept}
    return replace(table, columns=kept), tuple(name for name in table.names if name not in read)


def in_words(mapping: TraceMapping, place: str, left_out: Sequence[str]) -> tuple[str, ...]:
    """What a mapping did to a trace, in words. `place` says where it is from."""
    words = [f"mapping: {place}"] if place else []
    if mapping.columns:
        pairs = (f"{target} from {shortened(one)}" for target, one in mapping.columns.items())
        words.append(f"columns: {', '.join(pairs)}")
    if mapping.units:
        words.append(f"units: {', '.join(f'{name} in {u}' for name, u in mapping.units.items())}")
    if left_out:
        words.append(f"columns that are not read: {one_line(', '.join(left_out), most=400)}")
    return tuple(words)


@contextmanager
def _entry(table: Table, entry: str) -> Iterator[None]:
    """Let errors in the block name this entry of a mapping, and the file."""
    try:
        yield
    except ArtistError as cause:
        raise type(cause)(f"{table.header_place()}: {entry}: {cause}") from None


def _check_pair(
    table: Table, target: str, source: str, targets: Sequence[str], *, hints: bool
) -> None:
    if target not in targets and not (hints and target.startswith(HINT_PREFIX)):
        turned = source in targets and target in table.columns
        hint = f"write {source}={target}" if turned else did_you_mean(target, targets)
        raise ConfigError(f"no column of artist is called {shortened(target)} ({hint})")
    if source not in table.columns:
        hint = one_line(did_you_mean(source, table.columns), most=400)
        raise TraceError(f"the file has no column {shortened(source)} ({hint})")


def _time_column(table: Table, name: str, unit: str) -> str:
    """The name of a column of times in a table. A name of either own format will do."""
    aliases = {name, SAME.get(name, name), *(k for k, plain in SAME.items() if plain == name)}
    if not aliases.isdisjoint(_OWN) and name not in TIMES:
        raise ConfigError(f"{name} is not a column of times; units are for {', '.join(TIMES)}")
    if unit in DATES and name not in ARRIVALS:
        raise ConfigError(f"only arrivals can be dates; give {name} in a unit of time")
    column = next((one for one in table.columns if one in aliases), None)
    if column is None:
        raise TraceError("the trace has no such column; name it with --columns")
    return column


def _in_seconds(table: Table, name: str, unit: str) -> Table:
    cells = table.columns[name]
    file_name = table.sources[name].name if name in table.sources else name
    changed = (
        _from_dates(table, name, unit)
        if unit in DATES
        else [_seconds(cell, unit) for cell in cells]
    )
    sources = {**table.sources, name: Source(file_name, cells, unit)}
    return replace(table, columns={**table.columns, name: changed}, sources=sources)


def _seconds(cell: object, unit: str) -> object:
    """The cell in seconds. A cell that is not a number is kept, and refused when it is read."""
    value = as_float(cell)
    return cell if np.isnan(value) else scaled(value, unit)


def _day_is_unknown(table: Table, name: str, texts: Sequence[str]) -> TraceError:
    """The error about the first date in which day and month cannot be told apart."""
    index = next(row for row, text in enumerate(texts) if day_and_month(text))
    expected = "a date whose day is known: no row like it has a part above 12, or two contradict"
    remedy = f"say --units {name}=day-first or {name}=month-first"
    return table.error(index, name, expected, remedy)


def _from_dates(table: Table, name: str, unit: str) -> list[float]:
    """Seconds since the first of the dates in a column; `unit` may say which part is the day."""
    texts = [str(cell).strip() for cell in table.columns[name]]
    read = reader_of_dates(texts, DATES[unit])
    moments = []
    for index, text in enumerate(texts):
        moment_s = read(text)
        if moment_s is None:
            good = next((one for one in texts if read(one) is not None), "2020-06-09 18:41:01")
            expected = f"a time such as {shortened(good)[1:-1]}"
            if is_date(text):
                expected += ", with a zone in all rows or in none"
            if unit == DATE and order_is_unknown(texts):
                raise _day_is_unknown(table, name, texts)
            others = [later for later in range(index + 1, len(texts)) if read(texts[later]) is None]
            raise table.error(index, name, expected, others=others)
        moments.append(moment_s)
    first_s = min(moments, default=0.0)
    return [moment_s - first_s for moment_s in moments]

"""Reading a trace file of any known format.

artist's own formats (`native/formats.py`), fields after the semicolon are optional:

| format | fields |
|---|---|
| native (CSV, Parquet) | job_id, arrival_s, gpus, model, iterations; compute_s, user, gpus_min, gpus_max, restart_s, checkpoint_*, tenant, priority, tables, gpu_kinds, cpu_cores, memory_gib, gpu_share, gpu_memory_gib, mig, parallelism, hint_* |
| simple (CSV, Parquet) | job_id, submit_time, num_gpus, duration; model, iterations, user or vc, gpus_min, gpus_max, restart_s, checkpoint_*, tenant, priority, tables, gpu_kinds, cpu_cores, memory_gib, gpu_share, gpu_memory_gib, mig, parallelism, hint_* |
| sensetime (JSON) | job_id, total_iterations, time_per_iteration, max_parallelism, model, arrival_time or start_time; user, gpus_min, gpus_max, restart_s, checkpoint_* |

`checkpoint_*` are checkpoint_interval_s and checkpoint_cost_s. `foreign/formats.py` lists the
foreign formats. Times are seconds. Without compute_s the catalogue times a step. A name of a model stays as the file has it, except that
`parallelism` becomes part of it; `native.trace.check_models` compares it with the catalogue.
"""  # noqa: E501  (a table row is one line)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from artist.errors import ArtistError, ConfigError, TraceError
from artist.io.documents import validate
from artist.io.reading import is_file
from artist.io.writing import write_whole
from artist.trace.detect import Format, format_named, known_columns, open_table, recognise
from artist.trace.foreign.formats import ForeignFormat
from artist.trace.native.assemble import assemble_own
from artist.trace.native.choices import Rules
from artist.trace.native.formats import AXES, OwnFormat
from artist.trace.native.mapping import TraceMapping, in_words, mapping_for, mapping_path
from artist.trace.native.model_words import says_more
from artist.trace.native.plain_csv import plain_table
from artist.trace.native.read_table import read_data
from artist.trace.native.table import CellError, Table
from artist.trace.native.trace import Trace, content_digest
from artist.trace.native.untimed import checked_untimed


def read_trace(
    path: Path,
    *,
    format_: str | None = None,
    rules: Rules | None = None,
    mapping: TraceMapping | None = None,
    mapping_place: str = "",
) -> Trace:
    """Read a trace. The content shows its format, unless `format_` or the mapping names it.

    `rules` say how to fill in what foreign formats lack. `mapping` says what the file calls its
    columns and models; `mapping_place` is where it is from, in words.

    Raises:
        TraceError: the file cannot be read or a job in it is malformed. One
            sentence names file, line (row in Parquet), field, value and remedy.
        ConfigError: an unknown format, rule or column of a mapping.
    """
    rules = rules or Rules()
    if mapping is not None:
        format_ = format_ or mapping.format
        rules = replace(rules, model=rules.model or mapping.model_rule, models=mapping.models)
    if rules.model is not None or rules.models:
        from artist.trace.foreign.fill import check_rules

        check_rules(rules)
    forced = format_named(format_) if format_ else None
    trace = _read(path, forced, rules, mapping, mapping_place)
    if mapping is None and not trace.mapped:
        return trace
    mapping = mapping or TraceMapping()
    mapped = in_words(mapping, mapping_place, trace.mapped)
    return replace(trace, mapped=mapped, units={**trace.units, **mapping.units})


def _read(
    path: Path, forced: Format | None, rules: Rules, mapping: TraceMapping | None, place: str
) -> Trace:
    """The trace; its `mapped` are the columns that are not read."""
    data = read_data(path)
    digest = content_digest(data)
    changed = mapping is not None and (mapping.columns or mapping.units)
    plain = None if changed or isinstance(forced, ForeignFormat) else plain_table(path, data)
    if plain is not None:
        try:
            plain_format = recognise(plain, forced)
            if isinstance(plain_format, OwnFormat):
                del data  # frees its memory before the jobs take theirs
                plain, left_out = known_columns(plain, plain_format)
                return _own(plain, plain_format, digest, rules, left_out)
        except TraceError:
            pass
        data = read_data(path)  # the careful reader below reads it again and reports the error
    table, recognised, left_out = open_table(path, data, forced, mapping, place)
    del data
    if isinstance(recognised, OwnFormat):
        return _own(table, recognised, digest, rules, left_out)
    from artist.trace.foreign.assemble import assemble_foreign

    return assemble_foreign(table, recognised, rules, digest)


def _own(
    table: Table, format_: OwnFormat, digest: str, rules: Rules, left_out: tuple[str, ...]
) -> Trace:
    """The trace in a table of one of artist's own formats."""
    trace = checked_untimed(_with_models(assemble_own(table, format_, digest), rules))
    if AXES in table.columns:
        from artist.trace.native.divided_models import with_axes_of_cells

        trace = with_axes_of_cells(trace, table)
    return replace(trace, mapped=left_out)


def _with_models(trace: Trace, rules: Rules) -> Trace:
    """As `fill.with_models`, but loads the catalogue only if a rule or a name needs it."""
    names = {job.model for job in trace.jobs}
    if rules.model is None and not rules.models and not any(map(says_more, names)):
        return trace
    from artist.trace.foreign.fill import with_models

    return with_models(trace, rules)


def write_mapping(
    trace: Path,
    format_: str | None,
    given: Mapping[str, Any],
    *,
    overwrite: bool = False,
    comments: Mapping[tuple[str, str], str] = MappingProxyType({}),
    remarks: Sequence[str] = (),
) -> Path:
    """Write `FILE.columns.yaml` next to a trace (`artist trace columns`), if it reads the trace.

    `given` are the entries of the mapping (`native.mapping.TraceMapping`); `columns` may name a
    mapping file, whose other entries stay. `comments` are about single entries, by section and
    name, and `remarks` stand below all. Returns the path.

    Raises:
        ConfigError: nothing given, a bad entry, or a file that is not to be overwritten.
        TraceError: the trace cannot be read so.
    """
    path = mapping_path(trace)
    if is_file(path) and not overwrite:
        raise ConfigError(f"{path}: exists already; change it, or replace it with --overwrite")
    if isinstance(given.get("columns"), str):
        mapping, _ = mapping_for(trace, **given)
    else:
        mapping = validate(given, TraceMapping, "mapping of a trace")
    if format_ is not None:
        mapping = mapping.model_copy(update={"format": format_named(format_).id})
    elif not given:
        raise ConfigError(f"{path}: nothing to write; give --columns, --units, --models or --from")
    required = frozenset(given.get("models") or ())
    read_trace(trace, rules=Rules(required=required), mapping=mapping)
    text = _yaml(mapping.model_dump(exclude_defaults=True), comments)
    write_whole(path, text + "".join(f"# {line}\n" for line in remarks))
    return path


def _yaml(entries: Mapping[str, Any], comments: Mapping[tuple[str, str], str]) -> str:
    """The entries of a mapping, one per line, each with its comment."""
    import yaml

    lines = []
    for part, value in entries.items():
        section = yaml.safe_dump({part: value}, sort_keys=False, allow_unicode=True, width=10**6)
        keys = ["", *value] if isinstance(value, dict) else [""]
        some = section.removesuffix("\n").split("\n")
        if len(some) != len(keys):  # a name takes several lines, which leaves no room for comments
            lines += some
            continue
        for key, line in zip(keys, some, strict=True):
            words = comments.get((part, key))
            lines.append(f"{line}  # {words}" if words else line)
    return "".join(f"{line}\n" for line in lines)


def bad_cells(path: Path, mapping: TraceMapping) -> Iterator[str]:
    """A sentence for each column that has bad cells: the first of them, and where others are.

    Readers stop at the first bad column; this lets the user correct all at once. It replaces the
    column's cells by good ones and reads the table again until there is no error. Foreign formats,
    and files that are not tables of jobs, have no sentences.
    """
    data = read_data(path)
    forced = None if mapping.format is None else format_named(mapping.format)
    named: set[str] = set()
    while True:
        try:
            table, format_, _ = open_table(path, data, forced, mapping, "given")
        except CellError as bad:  # while times are converted
            if bad.column in named:
                return
            yield str(bad)
            named.add(bad.column)
            # Numbers need no conversion, and `_without` puts some there.
            mapping = mapping.model_copy(update={"units": {**mapping.units, bad.column: "s"}})
        except ArtistError:
            return
        else:
            break
    if isinstance(format_, OwnFormat):
        for name in named:
            table = _without(table, name, format_)
        yield from _while_reading(table, format_)


def _while_reading(table: Table, format_: OwnFormat) -> Iterator[str]:
    """The first error of each column. A column is taken out once its error is known."""
    named: set[str] = set()
    while True:
        try:
            assemble_own(table, format_, "")
        except CellError as bad:
            if bad.column in named:
                return
            named.add(bad.column)
            yield str(bad)
            table = _without(table, bad.column, format_)
        except ArtistError:
            return  # the error is about several columns, one of which is named if any is bad
        else:
            return


def _without(table: Table, column: str, format_: OwnFormat) -> Table:
    """The table without a column, or with good cells in it if the format requires it."""
    columns = {name: cells for name, cells in table.columns.items() if name != column}
    if column in format_.required:
        columns[column] = [*map(str, range(len(table)))] if column == "job_id" else [1] * len(table)
    return replace(table, columns=columns)

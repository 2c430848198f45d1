"""Reading a job trace of any known format; `external.py` lists the foreign ones.

| format | fields |
|---|---|
| native (CSV, Parquet) | job_id, arrival_s, gpus, model, iterations, compute_s; user, gpus_min, gpus_max, restart_s, hint_* |
| simple (CSV, Parquet) | job_id, submit_time, num_gpus, duration; model, iterations, user or vc, hint_* |
| SenseTime (JSON) | job_id, total_iterations, time_per_iteration, max_parallelism, model, arrival_time or start_time; user |

Those after the semicolon are optional. Times are seconds. A reader refuses what
it cannot explain and keeps a model's name as written; `base.check_models` holds
it against the catalogue.
"""  # noqa: E501  (a table row is one line)

from __future__ import annotations

import hashlib
from pathlib import Path

from artist.errors import TraceError
from artist.trace.detect import named, open_table, recognise
from artist.trace.foreign.formats import External
from artist.trace.foreign.rules import Rules
from artist.trace.native.assemble import assemble
from artist.trace.native.file_bytes import read_data
from artist.trace.native.plain_csv import plain_table
from artist.trace.native.schemas import UNKNOWN_MODEL, Schema
from artist.trace.native.trace import Trace

__all__ = ["UNKNOWN_MODEL", "read_trace"]


def read_trace(path: Path, *, format_: str | None = None, rules: Rules | None = None) -> Trace:
    """Read a trace; its format shows in its content, unless `format_` names it.

    `rules` fill in what foreign formats do not tell; see `artist.trace.foreign.records.Rules`.

    Raises:
        TraceError: the file cannot be read or a job in it is malformed. One
            sentence names file, line (row in Parquet), field, value and remedy.
        ConfigError: an unknown format or rule.
    """
    rules = rules or Rules()
    if rules.model is not None:
        from artist.trace.foreign.fill import check_rule

        check_rule(rules.model)
    forced = named(format_) if format_ else None
    data = read_data(path)
    digest = hashlib.sha256(data).hexdigest()
    plain = None if isinstance(forced, External) else plain_table(path, data)
    if plain is not None:
        try:
            schema = recognise(plain, forced)
            if isinstance(schema, Schema):
                del data
                return _refilled(assemble(plain, schema, digest), rules)
        except TraceError:
            pass
        data = read_data(path)  # the careful reader below words the error
    table, kind = open_table(path, data, forced)
    del data
    if isinstance(kind, Schema):
        return _refilled(assemble(table, kind, digest), rules)
    from artist.trace.foreign.convert import foreign_trace

    return foreign_trace(table, kind, rules, digest)


def _refilled(trace: Trace, rules: Rules) -> Trace:
    """Only a rule needs the catalogue of models."""
    if rules.model is None:
        return trace
    from artist.trace.foreign.convert import refill

    return refill(trace, rules)

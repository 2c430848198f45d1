"""Reading a job trace of any known format; `artist/trace/external.py` lists the foreign ones.

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
from artist.trace.assemble import assemble
from artist.trace.base import Trace
from artist.trace.load import read_data
from artist.trace.plain import plain_table
from artist.trace.schemas import SCHEMAS, UNKNOWN_MODEL, Schema
from artist.trace.sources import read_table
from artist.trace.table import Table

__all__ = ["UNKNOWN_MODEL", "read_trace"]


def read_trace(path: Path) -> Trace:
    """Read a trace; its format shows in its content.

    Raises:
        TraceError: the file cannot be read or a job in it is malformed. One
            sentence names file, line (row in Parquet), field, value and remedy.
    """
    data = read_data(path)
    digest = hashlib.sha256(data).hexdigest()
    plain = plain_table(path, data)
    if plain is not None:
        del data
        try:
            return assemble(plain, _schema(plain), digest)
        except TraceError:
            data = read_data(path)  # the careful reader below words the error
    table = read_table(path, data)
    return assemble(table, _schema(table), digest)


def _schema(table: Table) -> Schema:
    names = set(table.columns)
    schema = max(SCHEMAS, key=lambda x: len(names.intersection(x.required)))
    schema.check(table)
    return schema

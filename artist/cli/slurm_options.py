"""The options of the commands that read what Slurm recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from artist.errors import TraceError

SlurmFolder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Output of Slurm's commands; see docs/how-to/slurm.md."),
]
KeepNames = Annotated[
    bool,
    typer.Option("--keep-names", help="Keep user names instead of replacing them by pseudonyms."),
]
Phases = Annotated[
    int,
    typer.Option(
        min=1, max=100, help="Number of runs, each with different phases of Slurm's cycles."
    ),
]

_COLUMNS = {
    "hint_nodes": "ReqNodes",
    "hint_partition": "Partition",
    "hint_qos": "QOS",
    "hint_time_limit_s": "Timelimit",
    "hint_dependency": "--dependency in SubmitLine",
    "gpu_kinds": "ReqTRES",
}


@contextmanager
def in_columns_of_sacct(flags: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Tell errors about a job in columns of sacct, not in those of artist's traces.

    `flags` are the words for the job that the user asks about.
    """
    try:
        yield
    except TraceError as cause:
        message = str(cause)
        asked = flags if message.startswith("job 'asked'") else {}
        for name, column in {**_COLUMNS, **asked}.items():
            message = message.replace(name, column)
        raise TraceError(message) from cause

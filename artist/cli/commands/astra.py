"""`artist astra`: the in-process model with the command line and output of ASTRA-sim.

It can replace ASTRA-sim's congestion-unaware analytical binary. So it keeps that program's exit
codes. Like that program, it ends with 0 but without a result after a deadlock.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.errors import BackendSettingError

if TYPE_CHECKING:
    from artist.astra.model.analytical import Finishes

app = typer.Typer()

# Typer ends with exit code 2 at an unknown flag, ASTRA-sim with 255. So Typer collects unknown
# flags in `context.args`, and `astra` refuses them.
_SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True}

Scale = Annotated[float, typer.Option(help="Only 1.")]


@app.command(context_settings=_SETTINGS)
def astra(
    context: typer.Context,
    workload: Annotated[
        Path | None,
        typer.Option("--workload-configuration", help="Prefix of the traces PREFIX.RANK.et."),
    ] = None,
    system: Annotated[
        Path | None, typer.Option("--system-configuration", help="System, JSON.")
    ] = None,
    network: Annotated[
        Path | None, typer.Option("--network-configuration", help="Network, YAML.")
    ] = None,
    memory: Annotated[
        Path | None, typer.Option("--remote-memory-configuration", help="Memory, JSON.")
    ] = None,
    num_queues_per_dim: Annotated[int, typer.Option(help="Queues per dimension.")] = 1,
    injection_scale: Scale = 1.0,
    comm_scale: Scale = 1.0,
    logging_folder: Annotated[Path | None, typer.Option(help="Folder for log.log.")] = None,
) -> None:
    """Answer as ASTRA-sim's congestion-unaware analytical binary does, with its flags."""
    from artist.astra.files.input_reader import ABORTED, AstraInputError, read_query
    from artist.astra.model.analytical import finishes

    if context.args:
        raise _refused(f"unknown argument {context.args[0]!r}; see artist astra --help")
    if workload is None or system is None or network is None or memory is None:
        raise _refused(
            "--workload-, --system-, --network- and --remote-memory-configuration are all needed"
        )
    if not injection_scale == comm_scale == 1:
        raise _refused("--injection-scale and --comm-scale: artist models only 1")
    query = read_query(workload, system, network, memory, num_queues_per_dim)
    try:
        lines = list(_results(finishes(query)))
    except BackendSettingError as cause:
        if cause.reason != "deadlock":
            raise AstraInputError(str(cause), ABORTED) from cause
        lines = [f"[workload] [critical] {cause}"]
    _print(lines, logging_folder)


def _results(result: Finishes) -> Iterator[str]:
    """ASTRA-sim's line about each NPU. One cycle is 1 ns."""
    for rank, finish_ns in enumerate(result.finish_ns):
        exposed_ns = finish_ns - result.compute_ns
        yield (
            f"[workload] [info] sys[{rank}] finished, {finish_ns} cycles, "
            f"exposed communication {exposed_ns} cycles."
        )


def _print(lines: list[str], folder: Path | None) -> None:
    """Print lines, each with the time before it, and write them to ASTRA-sim's log file."""
    # Local time, as ASTRA-sim prints it.
    now = datetime.now().isoformat(sep=" ", timespec="milliseconds")
    text = "".join(f"[{now}] {line}\n" for line in lines)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "log.log").write_text(text, encoding="utf-8")
        except OSError as cause:
            reason = cause.strerror or str(cause)
            raise _refused(f"{folder}: cannot be written ({reason})") from cause
    sys.stdout.write(text)


def _refused(message: str) -> Exception:
    from artist.astra.files.input_reader import REFUSED, AstraInputError

    return AstraInputError(message, REFUSED)

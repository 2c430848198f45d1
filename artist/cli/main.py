"""The command line: parse, call, print. No logic lives here.

stdout carries the result, stderr everything else. Exit codes: 0 ok, 2 usage or
configuration, 3 trace or data, 4 backend, 5 broken invariant, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated

import typer

from artist import __version__
from artist.cli.astra import SETTINGS as ASTRA_SETTINGS
from artist.cli.astra import astra
from artist.cli.cache import app as cache_app
from artist.cli.calibrate import calibrate
from artist.cli.compare import compare
from artist.cli.doctor import doctor
from artist.cli.inspect import explain, list_, schema
from artist.cli.interruption import Interrupted, listen
from artist.cli.latency import latency, render
from artist.cli.measure import measure
from artist.cli.report import export, report
from artist.cli.sim import sim
from artist.cli.sweep import sweep
from artist.cli.trace import app as trace_app
from artist.errors import ArtistError

app = typer.Typer(
    name="artist",
    help="Simulate GPU clusters that train many deep-learning jobs at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("sim")(sim)
app.command("compare")(compare)
app.command("sweep")(sweep)
app.command("calibrate")(calibrate)
app.command("measure")(measure)
app.command("report")(report)
app.command("export")(export)
app.command("list")(list_)
app.command("doctor")(doctor)
app.command("explain")(explain)
app.command("schema")(schema)
app.command("latency")(latency)
app.command("render")(render)
app.command("astra", context_settings=ASTRA_SETTINGS)(astra)
app.add_typer(trace_app, name="trace")
app.add_typer(cache_app, name="cache")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"artist {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["ARTIST_DEBUG"] = "1"


def main() -> None:
    """Entry point: turns every known error into one message and an exit code."""
    listen()
    _make_streams_safe()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where it can still be told that the disk is full
    except ArtistError as error:
        _end(str(error), error.exit_code)
    except Interrupted as interrupted:
        sys.stderr.write(f"artist: {interrupted}\n")
        sys.exit(interrupted.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone; that is not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # not once more at exit
        where = error.filename or "standard output or a scratch file"
        _end(f"{where}: {error.strerror or error}; make room, or choose another place", 2)
    except MemoryError:
        _end("out of memory; choose a smaller cluster, trace or number of workers", 2)


def _make_streams_safe() -> None:
    """Let output that is closed, or cannot show a character, be no reason to fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        else:
            stream.reconfigure(errors="backslashreplace")


def _end(message: str, exit_code: int) -> None:
    """Say what was wrong and leave; `--debug` shows where it came from."""
    if os.environ.get("ARTIST_DEBUG"):
        raise
    with contextlib.suppress(OSError):
        sys.stderr.write(f"artist: error: {message}\n")
    sys.exit(exit_code)

"""The command line: parse, call, print. No logic lives here.

stdout carries the result, stderr everything else. Exit codes: 0 ok, 2 usage or
configuration, 3 trace or data, 4 backend, 5 broken invariant, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from artist import __version__
from artist.cli.interruption import Interrupted, listen
from artist.errors import ArtistError
from artist.garbage import many_objects

COMMANDS = {
    "sim": "sim:sim",
    "compare": "compare:compare",
    "sweep": "sweep:sweep",
    "calibrate": "calibrate:calibrate",
    "measure": "measure:measure",
    "report": "report:report",
    "export": "report:export",
    "list": "inspect:list_",
    "doctor": "doctor:doctor",
    "explain": "inspect:explain",
    "schema": "inspect:schema",
    "latency": "latency:latency",
    "render": "latency:render",
    "astra": "astra:app",
    "trace": "trace:app",
    "cache": "cache:app",
}
"""Where each command is: a module of this package, and in it a function or a Typer app."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"artist {__version__}\n")
        raise typer.Exit


def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["ARTIST_DEBUG"] = "1"


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands. Typer works out the options of all it is given."""
    app = typer.Typer(
        name="artist",
        help="Simulate GPU clusters that train many deep-learning jobs at once.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"artist.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found)
        else:
            app.command(name)(found)
    return app


def main() -> None:
    """Entry point: turns every known error into one message and an exit code."""
    listen()
    _make_streams_safe()
    atexit.register(gc.freeze)  # all memory is about to go: a last look for cycles takes 30 ms
    asked = [name for name in sys.argv[1:2] if name in COMMANDS]
    if "measure" not in sys.argv:  # which times libraries as they are
        # Our arrays are too short to share, and threads that wait for work take 50 ms to tire.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        try:
            with many_objects():
                application(asked or COMMANDS)()
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

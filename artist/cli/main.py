"""The command line's entry point: finds the command, runs it, and turns errors into exit codes.

Each command is a file of `artist/cli/commands`. A command parses its options, calls the package
and prints. stdout carries the result, stderr everything else. Exit codes: 0 ok, 2 usage or
configuration, 3 trace or data, 4 backend, 5 broken invariant, 129 terminal closed, 130 interrupted,
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
from artist.cli.plain_command import PlainCommand
from artist.cli.streams import ReaderGone, forget_stdout, make_streams_safe
from artist.errors import ArtistError
from artist.garbage_collector import search_rarely

COMMANDS = {
    "sim": "sim:sim",
    "compare": "compare:compare",
    "sweep": "sweep:sweep",
    "reproduce": "reproduce:reproduce",
    "train": "train:train",
    "place-data": "place_data:place_data",
    "calibrate": "calibrate:app",
    "measure": "measure:measure",
    "why": "why:why",
    "report": "report:report",
    "export": "export:export",
    "list": "list:list_",
    "doctor": "doctor:doctor",
    "explain": "explain:explain",
    "schema": "schema:schema",
    "latency": "latency:latency",
    "circle": "circle:circle",
    "render": "render:render",
    "astra": "astra:app",
    "trace": "trace:app",
    "policy": "policy:app",
    "cluster": "cluster:app",
    "cache": "cache:app",
}
"""Where each command is: a module of `artist.cli.commands`, and its function or Typer app."""


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
    """The command line with these commands.

    Fewer commands start faster: each is imported, and Typer inspects its options.
    """
    app = typer.Typer(
        name="artist",
        help="Simulate GPU clusters that train many deep-learning jobs at once.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit it
    )
    app.callback()(_root)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"artist.cli.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            # Of an option given twice `astra` takes the last, as ASTRA-sim's own program does.
            for inner in command.registered_commands if name != "astra" else ():
                inner.cls = PlainCommand
            app.add_typer(command)
        else:
            app.command(name, cls=PlainCommand)(command)
    return app


def main() -> None:
    """Entry point: turns every known error into one message and an exit code."""
    listen()
    make_streams_safe()
    search_rarely()
    # Python's last search for cycles takes 30 ms. At exit it is useless: all memory is freed.
    atexit.register(gc.freeze)
    asked = [name for name in sys.argv[1:2] if name in COMMANDS]
    # pydantic would look for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    if "measure" not in sys.argv:  # `artist measure` times the libraries as they are
        # Our arrays are too short for several threads, and idle threads spin for 50 ms.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        try:
            application(asked or COMMANDS)()
        finally:
            sys.stdout.flush()  # at exit it would be too late to report a full disk
    except ArtistError as error:
        _end(str(error), error.exit_code)
    except Interrupted as interrupted:
        with contextlib.suppress(OSError):  # the terminal may be gone
            sys.stderr.write(f"artist: {interrupted}\n")
        sys.exit(interrupted.exit_code)
    except ReaderGone:
        forget_stdout()
        sys.exit(0)
    except OSError as error:
        forget_stdout()
        where = error.filename or "standard output or a scratch file"
        _end(f"{where}: {error.strerror or error}; make room, or choose another place", 2)
    except MemoryError:
        _end("out of memory; choose a smaller cluster, trace or number of workers", 2)


def _end(message: str, exit_code: int) -> None:
    """Print the message and exit. With `--debug`, raise the error again, for its traceback."""
    if os.environ.get("ARTIST_DEBUG"):
        raise
    with contextlib.suppress(OSError):
        sys.stderr.write(f"artist: error: {message}\n")
    sys.exit(exit_code)

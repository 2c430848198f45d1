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
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from artist import __version__
from artist.cli.interruption import (
    Interrupted,
    ReaderGone,
    forget_stdout,
    listen,
    make_streams_safe,
    raise_if_lost,
    stop_listening,
)
from artist.errors import ArtistError, ConfigError, did_you_mean, printable, shortened
from artist.garbage_collector import search_rarely

COMMANDS = {
    "sim": "sim:sim",
    "compare": "compare:compare",
    "sweep": "sweep:sweep",
    "replay": "replay:replay",
    "whatif": "whatif:whatif",
    "forecast": "forecast:forecast",
    "reproduce": "reproduce:reproduce",
    "train": "train:train",
    "place-data": "place_data:place_data",
    "fill": "fill:fill",
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

_UsageError: Any = typer.BadParameter.__base__
"""The base of all usage errors. Its module depends on the version of Typer."""


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


_WHOLE = 500
"""Longer than any first sentence of a command, so that none is cut."""


class PlainCommand(TyperCommand):
    """A command that refuses bad options in the words of artist's other messages.

    Typer words a bad value as pydantic or click does, depending on its version. It silently takes
    the last value of an option that is given twice.
    """

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first sentence. The list of commands wraps it instead of cutting it."""
        del limit
        return super().get_short_help_str(_WHOLE)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options.

        Raises:
            ConfigError: a bad value, an option given twice that takes one value, or blanks where
                commas belong.
        """
        with _printable():
            _, extra, given = self.make_parser(ctx).parse_args(args=list(args))
            _check_commas(args, extra, {name: one for one in given for name in one.opts})
            for param, times in Counter(map(id, given)).items():
                option = next(one for one in given if id(one) == param)
                if times > 1 and _takes_one(option):
                    raise ConfigError(f"{option.opts[0]} is given {times} times; give it once")
            try:
                return super().parse_args(ctx, args)
            except typer.BadParameter as cause:
                if words := _in_words(cause):
                    raise ConfigError(words) from cause
                raise


class PlainGroup(TyperGroup):
    """A group of commands. Its messages escape the control characters of what was typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command."""
        with _printable():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command."""
        with _printable():
            return super().resolve_command(ctx, args)


@contextlib.contextmanager
def _printable() -> Iterator[None]:
    """Escape the control characters in messages that repeat what was typed."""
    try:
        yield
    except _UsageError as error:
        if hasattr(error, "possibilities") and hasattr(error, "option_name"):
            near = f"did you mean {' or '.join(error.possibilities or ())}?"
            remedy = near if error.possibilities else "--help lists all"
            raise ConfigError(f"no option {shortened(error.option_name)}: {remedy}") from error
        error.message = printable(error.message)
        raise


def _check_commas(args: list[str], extra: list[str], options: Mapping[str, Any]) -> None:
    """Refuse `--policies A B C`: the values must be separated by commas."""
    if not extra:
        return
    end = len(args) - args[::-1].index(extra[-1])
    begin = next((i for i in reversed(range(end)) if args[i].startswith("-")), 0)
    option, _, first = args[begin].partition("=")
    file = extra[-1].endswith((".yaml", ".yml"))
    if option in options and "," in (options[option].metavar or "") and not file:
        listed = [one.strip(",") for one in (first, *args[begin + 1 : end]) if one.strip(",")]
        raise ConfigError(f"separate the values of {option} by commas: {','.join(listed)}")


def _takes_one(param: Any) -> bool:
    """Whether an option may be given only once. A flag may be repeated unless it has a `--no-`."""
    if param.param_type_name != "option" or param.multiple or getattr(param, "count", False):
        return False
    return not param.is_flag or bool(param.secondary_opts)


def _in_words(error: Any) -> str:
    """A sentence about a bad value; empty where Typer's own message is clear."""
    from artist.cli.options import compare_several
    from artist.config import Scenario
    from artist.io.documents import expected_in_words

    if error.param is None:
        return ""
    is_option = error.param.param_type_name == "option"
    name = error.param.opts[0] if is_option else "the argument"
    choice = re.search(r"'(.*)' is not one of (.*?)\.?$", error.message)
    if choice:
        known = re.findall(r"'([^']*)'", choice[2])
        hint = did_you_mean(choice[1], known)
        listed = ", ".join(known)
        if hint.startswith("known"):
            return f"{name} is {_typed(choice[1])}, expected one of {listed}"
        return f"{name} is {_typed(choice[1])}: {hint} (known: {listed})"
    problems = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    words = expected_in_words(problems[0]) if problems else ""
    if not words:
        return ""
    typed = str(problems[0]["input"])
    several = "," in typed and error.param.name in {*Scenario.model_fields} - {"seed"}
    remedy = compare_several(error.param.name, typed) if several else ""
    return f"{name} is {_typed(typed)}, expected {words}{remedy}"


def _typed(value: object) -> str:
    """What was typed; a number without quotation marks."""
    text = shortened(value)
    return text[1:-1] if re.fullmatch(r"'[-+]?[0-9.]+'", text) else text


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands.

    Fewer commands start faster: each is imported, and Typer inspects its options.
    """
    app = typer.Typer(
        name="artist",
        cls=PlainGroup,
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
            # `astra` takes the last value of a repeated option, as ASTRA-sim's own program does.
            for inner in command.registered_commands if name != "astra" else ():
                inner.cls = PlainCommand
            own = command.info.cls  # `calibrate` has a group of its own
            app.add_typer(command, cls=own if isinstance(own, type) else PlainGroup)
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
        except Exception:
            raise_if_lost()  # pydantic wraps the exception of a signal in one of its own
            raise
        finally:
            sys.stdout.flush()  # at exit it would be too late to report a full disk
    except ArtistError as error:
        _end(str(error), error.exit_code)
    except Interrupted as interrupted:
        stop_listening()
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

"""Policies in a file of the user: `FILE.py:CLASS`, relative to the working directory.

The file is a program. It runs when its policy is named, with the rights of whoever runs artist.

It is loaded by its content: a file that has changed is reloaded, even within one process (a
notebook). Only the file itself is read, and only its digest stands in a manifest
(`artist.results.named_files`). So its folder is not searched for other modules.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from artist.contract import WrapperPolicy
from artist.errors import ArtistError, ConfigError, PolicyError, did_you_mean, one_line, shortened
from artist.io.digests import PREFIX, sha256
from artist.io.reading import is_file, read_text
from artist.registry import Entry

_SUFFIX = ".py"
_MODULE = "artist_policy_in_a_file_"
_HOW_TO = "docs/write-a-policy.md"

_loaded: set[str] = set()
"""Names of the files that were loaded, as tracebacks have them."""


def is_in_a_file(name: str) -> bool:
    """Whether a policy's name is that of a file, `FILE.py:CLASS`, or of a file without class."""
    return name.endswith(_SUFFIX) or f"{_SUFFIX}:" in name


def entry_in_file(name: str) -> Entry:
    """The row of a policy `FILE.py:CLASS`. Its id is the name as it was given.

    Raises:
        ConfigError: no such file or class, a file that cannot be imported, or a class that is not
            a policy.
    """
    if name.endswith(_SUFFIX):
        module = _module(name, Path(name))
        raise ConfigError(
            f"policy {shortened(name)}: name the class too, as in {name}:CLASS; the file has "
            f"{_classes_in_words(module)}"
        )
    file, _, class_name = name.rpartition(":")
    module = _module(name, Path(file))
    implementation = vars(module).get(class_name)
    if not isinstance(implementation, type):
        hint = did_you_mean(class_name, _classes(module)) if _classes(module) else "it has none"
        raise ConfigError(f"policy {shortened(name)}: {file} has no class {class_name!r} ({hint})")
    _check(file, implementation)
    summary = (implementation.__doc__ or "").strip().partition("\n")[0]
    wraps = issubclass(implementation, WrapperPolicy)
    target = f"{module.__name__}:{class_name}"
    knows = getattr(implementation, "knows_run_times", False) is True
    return Entry(name, target, summary, file, wraps=wraps, knows_run_times=knows)


def in_a_sentence(error: BaseException, name: str) -> ArtistError | None:
    """An error inside a policy's file as one that names the file's line; None if it is not there.

    `name` is the policy's. What artist refuses in an answer has the line of `decide`.
    """
    place = _place(error)
    if isinstance(error, PolicyError):
        place = place or _place_of_decide(name)
        return None if place is None else PolicyError(f"{place}: {error}")
    if place is None or isinstance(error, ArtistError) or not is_of_a_file(error):
        return None
    return PolicyError(f"{place}: policy {name} raised {_in_words(error)}; --debug shows more")


def is_of_a_file(error: BaseException) -> bool:
    """Whether a policy's file may have raised it, and not a signal or a reader that has gone."""
    kind = type(error)
    return (
        isinstance(error, Exception | SystemExit)
        or kind is BaseException
        or kind.__module__.startswith(_MODULE)
    )


def cannot_be_made(error: BaseException, name: str) -> ConfigError:
    """The error about a policy whose constructor or options fail."""
    place = _place(error)
    return ConfigError(
        f"{place + ': ' if place else ''}policy {name} cannot be made from its options "
        f"({_in_words(error)}); {_HOW_TO} has an example"
    )


def _module(name: str, path: Path) -> ModuleType:
    """The module in a file, run once for each content."""
    if not is_file(path):
        raise ConfigError(
            f"policy {shortened(name)}: there is no file {path}; paths count from the working "
            "directory"
        )
    text = read_text(path)
    digest = sha256(f"{path.absolute()}\0{text}").removeprefix(PREFIX)
    module_name = f"{_MODULE}{digest[:32]}"
    known = sys.modules.get(module_name)
    if known is not None:
        return known
    module = ModuleType(module_name)
    module.__file__ = str(path)
    _loaded.add(str(path))
    # Pickling, dataclasses and pydantic look a class's module up by its name.
    sys.modules[module_name] = module
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102
    except BaseException as cause:
        del sys.modules[module_name]
        if isinstance(cause, SyntaxError) and cause.filename == str(path):
            raise ConfigError(f"{path}:{cause.lineno or 1}: not Python ({cause.msg})") from cause
        if not is_of_a_file(cause):
            raise
        place = _place(cause) or f"{path}:1"
        raise ConfigError(f"{place}: the file raised {_in_words(cause)}; correct it") from cause
    return module


def _check(file: str, implementation: type[Any]) -> None:
    """Refuse a class that is not a policy."""
    where = f"{file}: class {implementation.__name__}"
    for method in ("decide", "contests", "tables"):
        if not callable(getattr(implementation, method, None)):
            raise ConfigError(
                f"{where} has no method {method!r}, so it is not a policy; derive it from "
                f"artist.contract.BasePolicy and give it decide ({_HOW_TO})"
            )
    options = getattr(implementation, "Options", BaseModel)
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise ConfigError(
            f"{where}: Options is {shortened(options)}, expected a class derived from "
            "artist.contract.Options"
        )


def _classes(module: ModuleType) -> list[str]:
    """Names of the policies that a module defines; if there are none, of all its classes."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    policies = [name for name, value in own.items() if callable(getattr(value, "decide", None))]
    return policies or list(own)


def _classes_in_words(module: ModuleType) -> str:
    return ", ".join(_classes(module)) or "no class"


def _place(error: BaseException) -> str | None:
    """`FILE:LINE` of the innermost line of a policy's file on the way to an error."""
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in _loaded
    ]
    return places[-1] if places else None


def _place_of_decide(name: str) -> str | None:
    """`FILE:LINE` of the method that answers, if the policy is in a file and wraps no other."""
    if not is_in_a_file(name) or "(" in name:
        return None
    code = getattr(entry_in_file(name).load().decide, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None


def _in_words(error: BaseException) -> str:
    """`ZeroDivisionError: division by zero`."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the error's class is the user's
        text = ""
    return one_line(f"{type(error).__name__}: {text}".removesuffix(": "), most=300)

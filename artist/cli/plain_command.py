"""Commands that refuse bad options in the words of artist's other messages.

Typer's words about a bad value are those of pydantic or of click, whichever its version uses. And
of an option that is given twice it takes the last value without a word.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand


class PlainCommand(TyperCommand):
    """A command of artist."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options.

        Raises:
            ConfigError: a bad value, or an option given twice that takes one value.
        """
        from artist.errors import ConfigError

        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for param, times in Counter(map(id, given)).items():
            if times > 1 and _takes_one(option := next(one for one in given if id(one) == param)):
                raise ConfigError(f"{option.opts[0]} is given {times} times; give it once")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as cause:
            if words := _in_words(cause):
                raise ConfigError(words) from cause
            raise


def _takes_one(param: Any) -> bool:
    """Whether an option has one value; a flag may be repeated, unless it can be turned off too."""
    if param.param_type_name != "option" or param.multiple or getattr(param, "count", False):
        return False
    return not param.is_flag or bool(param.secondary_opts)


def _in_words(error: Any) -> str:
    """A sentence about a bad value; empty where Typer's words will do."""
    from artist.errors import did_you_mean
    from artist.io.documents import expected_in_words

    if error.param is None:
        return ""
    is_option = error.param.param_type_name == "option"
    name = error.param.opts[0] if is_option else "the argument"
    choice = re.search(r"'(.*)' is not one of (.*?)\.?$", error.message)
    if choice:
        known = re.findall(r"'([^']*)'", choice[2])
        return f"{name} is {_typed(choice[1])}: {_of(known, did_you_mean(choice[1], known))}"
    problems = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    words = expected_in_words(problems[0]) if problems else ""
    return f"{name} is {_typed(problems[0]['input'])}, expected {words}" if words else ""


def _typed(value: object) -> str:
    """What was typed; a number without quotation marks."""
    from artist.errors import shortened

    text = shortened(value)
    return text[1:-1] if re.fullmatch(r"'[-+]?[0-9.]+'", text) else text


def _of(known: list[str], hint: str) -> str:
    """The hint, and all that is known if the hint does not name it."""
    return hint if hint.startswith("known") else f"{hint} (known: {', '.join(known)})"

"""Which policy an option goes to: a policy itself, or the one inside it.

`policy.KEY` goes to the outermost policy that has an option KEY which may have the value. So
`policy.placement=any` reaches `fifo` and `cassini(fifo)` alike. `policy.host.KEY` skips a policy
that has one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from artist.errors import did_you_mean
from artist.policies.own_file import entry_in_file, is_in_a_file
from artist.policies.table import POLICIES
from artist.registry import Entry

ESTIMATES = "estimates"
WITH_ESTIMATES = ("easy", "conservative")
"""The policies with that option, which has a flag of its own."""

MOST_WRAPPERS = 20
"""Policies inside one another. No run needs more than a few."""


def entry_of(name: str) -> Entry:
    """The row of the table, or of a policy in a file of the user.

    Raises:
        ConfigError: unknown name.
    """
    return entry_in_file(name) if is_in_a_file(name) else POLICIES[name]


def takes_option(policy: str, key: str, value: Any) -> bool:
    """Whether a policy, or the one that it wraps, has an option that may have this value.

    `host` holds the options of the policy that it wraps.
    """
    entry, host = entry_and_host(policy)
    if _takes(entry, key, value):
        return True
    return bool(host) and (key == "host" or takes_option(host, key, value))


def with_host_options(entry: Entry, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, where those that go to the policy inside stand under `host`.

    What `host` says already comes first.
    """
    inside = {
        key: value
        for key, value in options.items()
        if key != "host" and _goes_inside(entry, host, key, value)
    }
    own = {key: value for key, value in options.items() if key not in inside}
    if not inside or not isinstance(given := own.get("host", {}), Mapping):
        return own
    return {**own, "host": {**inside, **given}}


def _goes_inside(entry: Entry, host: str, key: str, value: Any) -> bool:
    """A bad value goes where an option of that name is, so that the message is about it."""
    if _takes(entry, key, value):
        return False
    return takes_option(host, key, value) or (key not in own_options(entry) and _knows(host, key))


def _knows(policy: str, key: str) -> bool:
    """Whether a policy or the one that it wraps has an option of that name."""
    return key in known_options(policy)


def known_options(policy: str) -> list[str]:
    """The options of a policy, then those of the policy that it wraps."""
    entry, host = entry_and_host(policy)
    return [*own_options(entry), *(["host", *known_options(host)] if host else ())]


def about_unknown(key: str, known: Iterable[str]) -> str:
    """What a message says about an option that a policy lacks."""
    if key == ESTIMATES:
        return f"only policies {' and '.join(WITH_ESTIMATES)} take it"
    return did_you_mean(key, known)


def own_options(entry: Entry) -> Mapping[str, FieldInfo]:
    """The options of a policy itself, by name."""
    options: Any = getattr(entry.load(), "Options", None)
    return {} if options is None else options.model_fields


def _takes(entry: Entry, key: str, value: Any) -> bool:
    """Whether a policy itself has an option that may have this value."""
    if key not in own_options(entry):
        return False
    try:
        entry.load().Options.model_validate({key: value})
    except ValidationError as refused:
        # Other options may be missing, or may not go with this one.
        return not any(error["loc"][:1] == (key,) for error in refused.errors())
    return True


def entry_and_host(policy: str) -> tuple[Entry, str]:
    """A policy's row of the table, and the name of the policy inside it; empty if there is none."""
    name, _, inner = policy.partition("(")
    entry = entry_of(name.strip())
    if policy.count("(") > MOST_WRAPPERS:  # refused where it is built
        return entry, ""
    return entry, inner.removesuffix(")") if entry.wraps else entry.host

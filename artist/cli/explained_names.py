"""What `artist explain` says of a policy, of a setting of a scenario and of an option of policies.

Their registries and the descriptions of their fields say it. Nothing is listed twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from artist.registry import Entry


def policy_facts(name: str) -> dict[str, str]:
    """What a policy of the table is and knows, and its options; empty if there is no such one."""
    from artist.policies.run_times import KNOWS
    from artist.policies.table import POLICIES

    entry = next((one for one in POLICIES if one.id == name), None)
    if entry is None:
        return {}
    facts = {
        "what it does": entry.summary,
        "knows": KNOWS if entry.knows_run_times else "",
        "source": entry.paper,
        "starts from": ", ".join(f"{key}={value}" for key, value in entry.preset.items()),
        "options": ", ".join(f"policy.{key}" for key in _options(entry)),
        "options of the host": _options_of_host(entry),
        "more": f"artist sim --policy {entry.usage}",
    }
    return {key: value for key, value in facts.items() if value}


def setting_facts(name: str) -> dict[str, str]:
    """What a setting of a scenario, or an option of policies, means; empty if there is none.

    An option may be written with or without `policy.` before it.
    """
    from artist.config import GROUPS, Scenario

    if name in Scenario.model_fields:
        field = Scenario.model_fields[name]
        facts = {"meaning": field.description or "", "default": _default(field)}
        if name in GROUPS.values():  # the meaning of a group tells its form of --set
            return {**facts, "set it": f"{name}: {{KEY: VALUE}} in a scenario"}
        return {**facts, "set it": f"--set {name}=VALUE, or {name}: VALUE in a scenario"}
    by_policy = policies_by_option()
    option = name.removeprefix("policy.")
    if option not in by_policy:
        return {}
    entries = by_policy[option]
    field = _options(entries[0])[option]
    return {
        "meaning": field.description or "",
        "default": _default(field),
        "policies": ", ".join(entry.id for entry in entries),
        "set it": f"--set policy.{option}=VALUE",
    }


def policies_by_option() -> dict[str, list[Entry]]:
    """The policies of the table that have an option, by its name."""
    from artist.policies.table import POLICIES

    by_option: dict[str, list[Entry]] = {}
    for entry in POLICIES:
        for option in _options(entry):
            by_option.setdefault(option, []).append(entry)
    return by_option


def names() -> list[str]:
    """All policies, settings and options."""
    from artist.config import Scenario
    from artist.policies.table import POLICIES

    return [*(entry.id for entry in POLICIES), *Scenario.model_fields, *policies_by_option()]


def _options_of_host(entry: Entry) -> str:
    if entry.host:
        return f"policy.host.KEY, those of {entry.host} (artist explain {entry.host})"
    return "policy.host.KEY, those of POLICY" if entry.wraps else ""


def _options(entry: Entry) -> dict[str, FieldInfo]:
    options: Any = getattr(entry.load(), "Options", None)
    return {} if options is None else options.model_fields


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return "" if value in (None, {}, ()) else str(value)

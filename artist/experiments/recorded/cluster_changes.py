"""Changes of a cluster that was imported from Slurm: more machines, other limits and settings.

| key | |
| --- | --- |
| `racks`, `machines` | how many; new ones are copies of the last one, in its partitions |
| `partition.NAME.machines` | the same with the last machine of a partition |
| `qos.NAME.KEY` | `priority`, `preempt_mode`, `grace_s`, or a limit: `GrpTRES`, `MaxJobsPU` ... |
| `account.NAME.KEY`, `user.NAME.KEY` | `shares`, or a limit: `GrpTRES`, `MaxJobs` ... |
| `partition.NAME.KEY` | `priority_tier`, `priority_job_factor`, `preempt_mode`, `grace_s` |
| `config.KEY` | of slurm.conf: `PriorityWeightAge`, `SchedulerParameters.bf_interval` ... |

A value replaces the present one, or is relative to it: `x2`, `+2`. `none` lifts a limit.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from artist.errors import ConfigError, did_you_mean, shortened
from artist.experiments.relative_values import changed_number, is_relative
from artist.io.digests import pseudonym
from artist.io.reading import as_float
from artist.policies.slurm.settings import PARAMETER_BOUNDS, RESOURCES, is_counted
from artist.slurm.facts import ASSOC_LIMITS, QOS_LIMITS, UNLIMITED
from artist.slurm.texts import host_list, hosts

SIZES = ("racks", "machines")
GROUPS = ("qos", "account", "user", "partition", "config")
_NUMBERED = re.compile(r"(.*?)(\d*)")
_PARTITION_KEYS = ("priority_tier", "priority_job_factor", "preempt_mode", "grace_s")
_QOS_KEYS = ("priority", "preempt_mode", "grace_s")
_PARAMETERS = "SchedulerParameters"
_OF_EACH_USER = ("MaxJobs",)
"""Limits of an account that apply to each user; Grp... limits apply to all users together."""

Document = dict[str, Any]


def is_of_cluster(key: str) -> bool:
    """Whether a change is one of the cluster."""
    return key in SIZES or key.partition(".")[0] in GROUPS


def with_change(document: Mapping[str, Any], key: str, value: str, where: str) -> Document:
    """The content of a cluster file with a change; the values themselves are checked by its reader.

    Raises:
        ConfigError: there is no such thing to change; begins with `where`.
    """
    changed = copy.deepcopy(dict(document))
    if key in SIZES:
        _resize(changed, units(changed, key.removesuffix("s")), key, value, where)
        return changed
    group, _, rest = key.partition(".")
    slurm = changed["slurm"]
    if group == "config":
        _configure(slurm["settings"], rest, value, where)
        return changed
    name, _, what = rest.rpartition(".")
    if group == "user":
        _limit_user(slurm["accounts"], name, what, value, where)
        return changed
    kind = {"qos": "qos", "account": "accounts", "partition": "partitions"}[group]
    one = _named(slurm[kind], name, f"{where}: {group}")
    if sizes_a_partition(key):
        machines = units(changed, "machine")
        if one["nodes"] != "ALL":
            names = set(hosts(one["nodes"], "nodes"))
            machines = [machine for machine in machines if machine["name"] in names]
        _resize(changed, machines, "machines", value, where)
        return changed
    if group == "partition":
        _set(one, what, _PARTITION_KEYS, value, where)
    elif group == "qos":
        _set_or_limit(one, what, _QOS_KEYS, QOS_LIMITS, value, where)
    elif what in _OF_EACH_USER:
        _limit_users(slurm["accounts"], one, what, value, where)
    else:
        _set_or_limit(one, what, ("shares",), ASSOC_LIMITS, value, where)
    return changed


def is_a_limit(key: str) -> bool:
    """Whether a change is one of a limit of a QOS, an account or a user."""
    return key.rpartition(".")[2] in {*QOS_LIMITS, *ASSOC_LIMITS}


def sizes_a_partition(key: str) -> bool:
    """Whether a change sets the machines of a partition, which affects all policies."""
    return key.startswith("partition.") and key.endswith(".machines")


def _named(things: Sequence[Document], name: str, where: str) -> Document:
    for thing in things:
        if thing["name"] == name:
            return thing
    known = [thing["name"] for thing in things]
    if not known:
        raise ConfigError(f"{where} {shortened(name)}: Slurm's texts name none")
    raise ConfigError(f"{where} {shortened(name)}: {did_you_mean(name, known)}")


def _set_or_limit(
    one: Document, key: str, keys: Sequence[str], limits: Sequence[str], value: str, where: str
) -> None:
    if key in limits:
        _limit(one.setdefault("limits", {}), key, value, where)
    else:
        _set(one, key, (*keys, *limits), value, where)


def _set(one: Document, key: str, keys: Sequence[str], value: str, where: str) -> None:
    if key not in keys:
        raise ConfigError(
            f"{where}: {shortened(key)} cannot be changed ({did_you_mean(key, keys)})"
        )
    one[key] = _not_negative(_value(one.get(key), value, where), where)


def _not_negative(value: Any, where: str) -> Any:
    if isinstance(value, int | float) and value < 0:
        raise ConfigError(f"{where}: expected 0 or more")
    return value


def _limit(limits: Document, key: str, value: str, where: str) -> None:
    """Set a limit; `none` or an empty value lifts it."""
    if value.lower() in ("", UNLIMITED):
        limits.pop(key, None)
        return
    if "TRES" in key:
        value = _limited(limits.get(key, ""), value, where)
    limits[key] = str(_value(_as_number(limits.get(key)), value, where))
    if not value:
        del limits[key]


def _limited(now: str, value: str, where: str) -> str:
    """A list of resources with changes; as with sacctmgr, others stay, and -1 lifts one."""
    amounts = {x.partition("=")[0].lower(): x.partition("=")[2] for x in now.split(",") if x}
    for part in value.split(","):
        resource, _, text = part.partition("=")
        if not is_counted(resource) or not (is_relative(text) or _as_number(text) is not None):
            raise ConfigError(
                f"{where}: {shortened(part)} is not a limit here, expected "
                f"{' or '.join(f'{one}=16' for one in RESOURCES)}, or {UNLIMITED} to lift it"
            )
        before = _as_number(amounts.pop(resource.lower(), None))
        if text != "-1":
            amounts[resource.lower()] = str(_value(before, text, where))
    return ",".join(f"{name}={amount}" for name, amount in amounts.items())


def _limit_users(
    accounts: Sequence[Document], account: Document, key: str, value: str, where: str
) -> None:
    """Set a limit of an account for each user in it and below it, unless they have their own.

    sacctmgr prints inherited limits like own ones, so a limit equal to the account's counts as
    inherited.
    """
    limits = account.setdefault("limits", {})
    before = limits.get(key)
    _limit(limits, key, value, where)
    if limits.get(key) == before:
        return
    for user in account["users"]:
        theirs = account.setdefault("user_limits", {}).setdefault(user, {})
        if theirs.get(key) == before:
            _limit(theirs, key, value, where)
    for below in accounts:
        inherits = below.get("limits", {}).get(key) == before
        if inherits and below.get("parent") == account["name"]:
            _limit_users(accounts, below, key, value, where)


def _limit_user(accounts: Sequence[Document], name: str, key: str, value: str, where: str) -> None:
    """Change a user, by name or by pseudonym, in every account that has them."""
    known = sorted({user for account in accounts for user in account["users"]})
    if not {name, pseudonym(name)} & {*known}:
        raise ConfigError(f"{where}: user {shortened(name)}: {did_you_mean(name, known)}")
    name = name if name in known else pseudonym(name)
    theirs = [account for account in accounts if name in account["users"]]
    for account in theirs:
        if key in ASSOC_LIMITS:
            limits = account.setdefault("user_limits", {}).setdefault(name, {})
            _limit(limits, key, value, where)
            if key in _OF_EACH_USER:  # without one of their own they have the account's
                limits.setdefault(key, UNLIMITED)
        elif key == "shares":
            shares = _value(account["users"][name], value, where)
            account["users"][name] = _not_negative(shares, where)
        else:
            hint = did_you_mean(key, ("shares", *ASSOC_LIMITS))
            raise ConfigError(f"{where}: {shortened(key)} cannot be changed ({hint})")


def _configure(settings: Document, key: str, value: str, where: str) -> None:
    """Change a setting of slurm.conf, or one of its SchedulerParameters."""
    name, _, parameter = key.partition(".")
    name = next((one for one in settings if one.lower() == name.lower()), name)
    if not parameter:
        settings[name] = str(_value(_as_number(settings.get(name)), value, where))
        return
    if name != _PARAMETERS:
        raise ConfigError(f"{where}: only {_PARAMETERS} has parts")
    parts = [part for part in settings.get(name, "").split(",") if part]
    now = {part.partition("=")[0]: part.partition("=")[2] for part in parts}
    changed = _value(_as_number(now.get(parameter)), value, where)
    if (bounds := PARAMETER_BOUNDS.get(parameter)) and isinstance(changed, int | float):
        least, most = bounds
        if 0 <= changed < least or changed > most:
            raise ConfigError(
                f"{where}: Slurm takes its default in place of {changed:,}; use {least:,} to "
                f"{most:,}"
            )
    now[parameter] = str(changed)
    settings[name] = ",".join(f"{one}={text}" if text else one for one, text in now.items())


def _value(now: Any, value: str, where: str) -> Any:
    """The new value: as written, or computed from the present one if it is relative."""
    if not is_relative(value):
        number = _as_number(value)
        return value if number is None else number
    if isinstance(now, bool) or not isinstance(now, int | float):
        is_now = "is not set" if now is None else f"is {shortened(str(now))}"
        raise ConfigError(f"{where}: it {is_now}, and only a number takes +2 or x2")
    return changed_number(now, value, where)


def _as_number(text: str | None) -> float | None:
    """The number that a text is; None if it is another text."""
    number = as_float(text or "")
    if number != number or abs(number) > 1e15:
        return None
    return int(number) if number == int(number) else number


# -- machines ----------------------------------------------------------------------------


def _resize(
    document: Document, there: Sequence[Document], key: str, value: str, where: str
) -> None:
    """Add copies of the last of some racks or machines, or leave the last ones out."""
    if not there and key == "machines":
        raise ConfigError(f"{where}: it has no machines with GPUs")
    if not there:
        raise ConfigError(
            f"{where}: the cluster has no racks, since topology.txt names no switches; say "
            "machines=+8"
        )
    last, now = there[-1], len(there)
    siblings = _siblings(document["tree"], last)
    mine = [one for one in siblings if one in there]
    wanted = _value(now, value, where)
    if not isinstance(wanted, int) or not 1 <= wanted <= 100 * now:
        fewer = ""
        if isinstance(wanted, int) and -now < wanted < 0:
            fewer = f"; it has {now}, so {key}={now + wanted} leaves {-wanted} out"
        raise ConfigError(f"{where}: expected +2 or a number from 1 to {100 * now}{fewer}")
    if now - wanted >= len(mine):
        raise ConfigError(
            f"{where}: at most {len(mine) - 1} can be left out, those of the last unit"
        )
    taken = {name for one in document["tree"] for name in _names(one)}
    at = siblings.index(last) + 1
    for _ in range(wanted - now):
        renamed: dict[str, str] = {}
        siblings.insert(at, _copy(last, taken, renamed))
        at += 1
        _join(document["slurm"], renamed)
    if wanted < now:
        gone = mine[wanted - now :]
        siblings[:] = [one for one in siblings if one not in gone]
        _leave(document, {name for one in gone for name in _names(one)}, where)


def _siblings(level: list[Document], unit: Document) -> list[Document]:
    """The list in which a unit stands; empty if it is not below this one."""
    if unit in level:
        return level
    inner = (value for one in level for value in one.values() if isinstance(value, list))
    return next((found for some in inner if (found := _siblings(some, unit))), [])


def resized(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Which machines a cluster gets, and in which partitions, or loses, in words."""
    old, now = ([one["name"] for one in units(x, "machine")] for x in (before, after))
    new = [name for name in now if name not in {*old}]
    gone = [name for name in old if name not in {*now}]
    if gone:
        return f"leaves out {host_list(gone)}"
    if not new:
        return ""
    of_all = [
        one["name"]
        for one in after["slurm"]["partitions"]
        if one["nodes"] == "ALL" or new[0] in hosts(one["nodes"], "nodes")
    ]
    return f"adds {host_list(new)} in {', '.join(of_all) or 'no partition'}"


def units(document: Mapping[str, Any], level: str) -> list[Document]:
    """The units of a level, in order; none if the cluster lacks it."""
    found = document["tree"]
    if level not in document["levels"]:
        return []
    for inner in document["levels"][1 : document["levels"].index(level) + 1]:
        found = [one for unit in found for one in unit[inner]]
    return list(found)


def cluster_gpus(document: Mapping[str, Any]) -> int:
    """How many GPUs a cluster has."""
    return sum(machine["gpus"] for machine in units(document, "machine"))


def _names(unit: Document) -> list[str]:
    """The names of a unit and of all units inside it."""
    inside = (one for key in unit for one in (unit[key] if isinstance(unit[key], list) else ()))
    return [unit["name"], *(name for one in inside for name in _names(one))]


def _copy(unit: Document, taken: set[str], renamed: dict[str, str]) -> Document:
    """A copy of a unit, in which each name has the next number that is not taken."""
    match = _NUMBERED.fullmatch(unit["name"])
    assert match is not None
    before, digits = match.groups()
    number = int(digits or 0) + 1
    while (name := f"{before}{number:0{len(digits)}d}") in taken:
        number += 1
    taken.add(name)
    renamed[unit["name"]] = name
    return {
        key: [_copy(one, taken, renamed) for one in value] if isinstance(value, list) else value
        for key, value in unit.items()
    } | {"name": name}


def _join(slurm: Document, renamed: Mapping[str, str]) -> None:
    """Put copies of machines where the machines are."""
    for thing in (*slurm["machines"], *slurm["partitions"]):
        if thing["nodes"] != "ALL":
            names = hosts(thing["nodes"], "nodes")
            thing["nodes"] = host_list([*names, *(renamed[x] for x in names if x in renamed)])


def _leave(document: Document, gone: set[str], where: str) -> None:
    """Remove machines everywhere, and entries that have no machine with GPUs left.

    A partition must keep one.
    """
    slurm, there = document["slurm"], {one["name"] for one in units(document, "machine")}
    for kind in ("machines", "partitions", "reservations"):
        left = []
        for thing in slurm[kind]:
            if thing["nodes"] not in ("", "ALL"):
                names = [x for x in hosts(thing["nodes"], "nodes") if x not in gone]
                if there.isdisjoint(names):
                    if kind != "partitions":
                        continue
                    raise ConfigError(f"{where}: partition {thing['name']} would have no machine")
                thing["nodes"] = host_list(names)
            left.append(thing)
        slurm[kind] = left

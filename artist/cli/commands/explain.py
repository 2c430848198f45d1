"""`artist explain`: what a metric, a word, a setting, or whatever artist knows by name means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from artist.cli.output import print_facts
from artist.errors import ConfigError, closest_three, shortened

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from artist.registry import Entry

_LEVEL = re.compile(r"\d+(\.\d+)? ?%")
"""A level of confidence, as headings have it."""

_SIGNATURE = re.compile(r"\d+([+,/]+\d+)+(@.*)?")
"""A placement, as tables have it."""

_SHAPE = re.compile(r"\d+(x\d+){2,}")
"""A cluster, as summaries have it."""

_NEAR = 0.65
"""Least similarity of a suggested name; among so many words, others would be poor guesses."""


def explain(
    term: Annotated[
        list[str], typer.Argument(help="A metric, column, setting, printed word, or a name.")
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Of a fabric: fabric.LEVEL.KEY, to see its effect."
        ),
    ] = None,
) -> None:
    """Say what a metric, column, setting, printed word or name means, with units and formulas."""
    from artist.registry import UnknownNameError

    try:
        _explain(" ".join(term), sets or [])
    except UnknownNameError:
        if len(term) == 1:
            raise
        for one in term:
            _explain(one, sets or [])


def _explain(asked: str, sets: Sequence[str]) -> None:
    """Print all that is known by a name.

    Raises:
        UnknownNameError: nothing is.
    """
    from artist.cluster.fabric import fabric_names
    from artist.io.shipped import document_path
    from artist.registry import UnknownNameError
    from artist.results.terms import columns, glossary
    from artist.results.waiting.job_story import CAUSE_WORDS

    if _LEVEL.fullmatch(asked):
        asked = "confidence"
    if _SHAPE.fullmatch(asked):
        asked = "cluster-shape"
    if _SIGNATURE.fullmatch(asked):
        asked = "signature"
    entry = glossary.find(asked) or columns.find(asked)
    cause = glossary.find(CAUSE_WORDS.get(asked, ""))
    if entry is not None:
        facts = {"meaning": entry.meaning, "unit": entry.unit, "formula": entry.formula}
        print_facts(entry.name, {key: value for key, value in facts.items() if value})
    is_fabric = document_path("fabrics", asked) is not None
    if is_fabric:
        from artist.cli.fabric_text import print_fabric

        print_fabric(asked, sets)
    elif sets:
        raise ConfigError(
            f"--set {shortened(sets[0])}: only of a fabric, and {shortened(asked)} is none; see "
            "artist list fabrics"
        )
    policy, setting = _policy_facts(asked), _setting_facts(asked)
    if policy:
        print_facts(f"policy {asked}", policy)
    if setting:
        print_facts(f"setting {asked}", {key: value for key, value in setting.items() if value})
    table = columns.TABLE_TERMS.get(asked.removesuffix(".parquet"))
    if table is not None:
        names = ", ".join(one.name for one in columns.TABLES[table.table])
        print_facts(f"table {table.table}", {"meaning": table.meaning, "columns": names})
    if cause:
        print_facts(f"cause of a wait: {cause.name}", {"meaning": cause.meaning})
    known_otherwise = entry or is_fabric or policy or setting or table or cause
    name = {} if known_otherwise else _name_facts(_catalogued(asked))
    for title, facts in name.items():
        print_facts(title, facts)
    if not (known_otherwise or name):
        known = [*glossary.names(), *columns.names(), *fabric_names(), *_other_names()]
        known = list(dict.fromkeys(known))
        near = closest_three(asked, known, _NEAR)
        remedy = "; ".join(filter(None, [near, "artist list metrics has all"]))
        raise UnknownNameError("term", asked, known, remedy, _NEAR)


# -- names that `artist list` shows ---------------------------------------------------

_MORE = {
    "clusters": "artist cluster show {}",
    "traces": "artist sim --trace {}",
    "backends": "artist sim --backend {}",
    "contention": "artist sim --contention {}",
    "failures": "artist sim --failures {}",
    "models": "artist latency --model {}",
    "placers": "artist fill PODS.csv --placers {}",
}
"""Kind of `artist list` -> a command that tells more about a name, or uses it."""


def _name_facts(name: str) -> dict[str, dict[str, str]]:
    """What `artist list` says about a name: heading -> facts; empty if no list has it."""
    from artist.cli.commands.list import Listed, rows_of

    found: dict[str, dict[str, str]] = {}
    for kind, more in _MORE.items():
        if name not in _names_of(kind):
            continue
        row = next(row for row in rows_of(Listed(kind)) if next(iter(row.values())) == name)
        facts = {key: str(value) for key, value in [*row.items()][1:] if value not in ("", None)}
        facts.update({"computes as on": _gpu_of_model(name)} if kind == "models" else {})
        command = more.format(name)
        found[f"{kind.removesuffix('s')} {name}"] = {**facts, "more": command}
    return found


def _gpu_of_model(name: str) -> str:
    """The GPU that a model computes on, and how its name asks for another."""
    from artist.workload.gpus import ASSUMED_GPU, GPU_NAMES, in_words

    others = "|".join(GPU_NAMES)
    assumed = f"the fabric's GPU, or {in_words(ASSUMED_GPU)} if it names none"
    return f"{assumed}, unless named {name}@gpu={others}"


def _catalogued(name: str) -> str:
    """The catalogue's name of a model in another spelling; any other name as it is."""
    from artist.workload.models import canonical, is_spelled, model_names

    try:
        spec = canonical(name) if is_spelled(name) else name
    except ConfigError:
        return name
    return spec if spec in model_names() else name


def _names_of(kind: str) -> list[str]:
    """The names of a list. Those of models are read directly: their rows take long to compute."""
    from artist.cli.commands.list import Listed, rows_of

    if kind == "models":
        from artist.workload.models import model_names

        return list(model_names())
    return [str(next(iter(row.values()))) for row in rows_of(Listed(kind))]


# -- policies, settings of a scenario and options of policies ------------------------
#
# Their texts come from the registries and from the descriptions of pydantic fields.


def _policy_facts(name: str) -> dict[str, str]:
    """What a policy does and knows, and its options; empty if the table lacks it."""
    from artist.policies.option_places import own_options
    from artist.policies.run_times import KNOWS
    from artist.policies.table import POLICIES

    entry = next((one for one in POLICIES if name in (one.id, one.usage)), None)
    if entry is None:
        return {}
    facts = {
        "what it does": entry.summary,
        "knows": KNOWS if entry.knows_run_times else "",
        "source": entry.paper,
        "starts from": ", ".join(f"{key}={value}" for key, value in entry.preset.items()),
        "options": ", ".join(f"policy.{key}" for key in own_options(entry)),
        "options of the host": _options_of_host(entry),
        "more": f"artist sim --policy {entry.usage}",
    }
    return {key: value for key, value in facts.items() if value}


def _setting_facts(name: str) -> dict[str, str]:
    """What a setting of a scenario, or an option of policies, means; empty if there is none.

    An option may be written with or without `policy.` before it.
    """
    from artist.config import Scenario
    from artist.experiments.relative_values import fields_of_groups
    from artist.settings import GROUPS

    if name in Scenario.model_fields:
        field = Scenario.model_fields[name]
        facts = {
            "meaning": field.description or "",
            "default": _default(field),
            "values": ", ".join(dict.fromkeys(_literals(field.annotation))),
        }
        if name in GROUPS.values():  # the description of a group says how --set names its keys
            group = next(group for group, field in GROUPS.items() if field == name)
            level = ".LEVEL" if group == "fabric" else ""
            keys = ", ".join(f"{group}{level}.{key}" for key in fields_of_groups().get(group, {}))
            return {**facts, "keys": keys, "set it": f"{name}: {{KEY: VALUE}} in a scenario"}
        return {**facts, "set it": f"--set {name}=VALUE, or {name}: VALUE in a scenario"}
    by_option = _fields_by_option()
    option = name.removeprefix("policy.")
    if option not in by_option:
        return _key_facts(name)
    fields = by_option[option]
    field = next(iter(fields.values()))
    values = [one for each in fields.values() for one in _literals(each.annotation)]
    return {
        "meaning": field.description or "",
        "default": _default(field),
        "values": ", ".join(dict.fromkeys(values)),
        "policies": ", ".join(fields),
        "set it": f"--set policy.{option}=VALUE",
    }


def _key_facts(name: str) -> dict[str, str]:
    """What a key of a group means, such as `checkpoint.interval_s` or `fabric.rack.bandwidth`.

    The group may be left out.
    """
    from artist.experiments.relative_values import fields_of_groups

    group, _, key = name.rpartition(".")
    for known, fields in fields_of_groups().items():
        if key in fields and group.partition(".")[0] in ("", known):
            asked = group or (f"{known}.LEVEL" if known == "fabric" else known)
            values = dict.fromkeys(_literals(fields[key].annotation))
            return {
                "meaning": fields[key].description or "",
                "default": _default(fields[key]),
                "values": ", ".join(values),
                "set it": f"--set {asked}.{key}=VALUE",
            }
    return {}


def _fields_by_option() -> dict[str, dict[str, FieldInfo]]:
    """Option -> policy -> its field, for all policies of the table."""
    from artist.policies.option_places import own_options
    from artist.policies.table import POLICIES

    by_option: dict[str, dict[str, FieldInfo]] = {}
    for entry in POLICIES:
        for option, field in own_options(entry).items():
            by_option.setdefault(option, {})[entry.id] = field
    return by_option


def _other_names() -> list[str]:
    """All policies, settings, options, keys of groups and listed names."""
    from artist.config import Scenario
    from artist.experiments.relative_values import fields_of_groups
    from artist.policies.table import POLICIES

    listed = [name for kind in _MORE for name in _names_of(kind)]
    own = [*(entry.id for entry in POLICIES), *Scenario.model_fields, *_fields_by_option()]
    keys = [
        f"{'fabric.LEVEL' if group == 'fabric' else group}.{key}"
        for group, fields in fields_of_groups().items()
        for key in fields
    ]
    return [*own, *keys, *listed]


def _options_of_host(entry: Entry) -> str:
    if entry.host:
        return f"policy.KEY or policy.host.KEY, those of {entry.host} (artist explain {entry.host})"
    return "policy.KEY or policy.host.KEY, those of POLICY" if entry.wraps else ""


def _literals(annotation: Any) -> Iterator[str]:
    """The values of a `Literal` anywhere in an annotation; nothing if it has none."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    else:
        for part in get_args(annotation):
            yield from _literals(part)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None and field.default_factory_takes_validated_data:
        return "auto"
    value = field.get_default(call_default_factory=True)
    return "" if value in (None, {}, ()) else str(value)

"""Writes the manual from the code: `make docs`, or `python docs/generate.py FOLDER`.

The pages are not committed: `artist --help`, `list`, `explain` and `schema` print the same facts.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import typer
from pydantic import BaseModel

from artist.cluster.fabric import Fabric


def pages() -> dict[str, str]:
    """Every page of the manual with its text."""
    return {
        "commands.md": commands(),
        "files.md": files(),
        "results.md": results(),
        "names.md": names(),
        "policies.md": policies(),
        "glossary.md": glossary(),
    }


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return str(value).replace("\n", " ").replace("|", "\\|")


# Commands ---------------------------------------------------------------------------------------


def commands() -> str:
    """All commands with their options, and the exit codes."""
    from artist.cli.main import application

    root = typer.main.get_command(application())
    parts = ["# Commands\n\nstdout carries the result, stderr everything else.\n"]
    parts += [_command(path, command) for path, command in _leaves("artist", root)]
    parts.append("## Exit codes\n\n" + table(("code", "meaning"), _exit_codes()))
    return "\n".join(parts)


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(getattr(command, "commands", None), dict):
        for name, inner in command.commands.items():
            yield from _leaves(f"{path} {name}", inner)
    elif not command.hidden:
        yield path, command


def _command(path: str, command: Any) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context)).replace("[[", "[").replace("]]", "]")
    text = f"## {path}\n\n{inspect.cleandoc(command.help or '')}\n\n    {path} {usage}\n"
    rows = []
    for option in command.params:
        record = option.get_help_record(context)
        if record is not None:
            rows.append((f"`{record[0].strip()}`", record[1]))
    return f"{text}\n{table(('option', 'meaning'), rows)}" if rows else text


def _exit_codes() -> list[tuple[str, str]]:
    """Codes and meanings, from the docstring of the command line's module."""
    from artist.cli import main

    text = " ".join((main.__doc__ or "").split()).partition("Exit codes: ")[2].rstrip(".")
    pairs = [part.strip().split(" ", 1) for part in text.split(",")]
    return [(code, meaning) for code, meaning in pairs]


# Files ------------------------------------------------------------------------------------------


def files() -> str:
    """The fields of every YAML file."""
    from artist.cluster.cluster_file import ClusterFile, UnitEntry
    from artist.config import Scenario
    from artist.data.gate import DataOptions
    from artist.estimates.calibration import Calibration
    from artist.experiments.experiment import Experiment
    from artist.trace.native.mapping import TraceMapping

    parts = ["# Files\n\n`artist schema KIND` prints the JSON Schema of a file, for editors.\n"]
    for title, model in (
        ("Scenario", Scenario),
        ("Experiment", Experiment),
        ("Fabric", Fabric),
        ("Cluster", ClusterFile),
        ("Unit of a cluster's tree", UnitEntry),
        ("Options of data (data.KEY)", DataOptions),
        ("Calibration", Calibration),
        ("Columns of a trace (FILE.columns.yaml)", TraceMapping),
    ):
        parts.append(f"## {title}\n\n{_models(model)}")
    return "\n".join(parts)


def _models(model: type[BaseModel]) -> str:
    """The fields of a model and of the models inside it."""
    schema = model.model_json_schema()
    text = _fields(model, schema)
    for name, inner in schema.get("$defs", {}).items():
        if "properties" in inner:
            text += f"\n### {name}\n\n{inner.get('description', '')}\n\n"
            text += _fields(_inner(model, name), inner)
    return text


def _inner(model: type[BaseModel], name: str) -> type[BaseModel]:
    """A model inside another, which may come from another module of artist."""
    others = [module for at, module in sorted(sys.modules.items()) if at.startswith("artist.")]
    for module in (sys.modules[model.__module__], *others):
        inner = vars(module).get(name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    raise LookupError(f"no model {name}")


def _fields(model: type[BaseModel], schema: Mapping[str, Any]) -> str:
    sources = comments(model)
    required = schema.get("required", [])
    rows = []
    for name, field in schema["properties"].items():
        default = "required" if name in required else _default(field.get("default"))
        meaning = field.get("description", "")
        rows.append((f"`{name}`", type_in_words(field), default, meaning, sources.get(name, "")))
    columns = ("key", "type", "default", "meaning", "source of the default")
    if not any(row[-1] for row in rows):
        return table(columns[:-1], [row[:-1] for row in rows])
    return table(columns, rows)


def _default(value: Any) -> str:
    return "" if value in (None, {}, [], "") else f"`{value}`"


def type_in_words(field: Mapping[str, Any]) -> str:
    """A JSON Schema's type in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(type_in_words(one) for one in field["anyOf"]))
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    name = str(field.get("type", "any"))
    if name == "array":
        inner = field.get("items") or {}
        return f"list of {type_in_words(inner)}" if inner else "list"
    words = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
    }
    limits = [text.format(field[key]) for key, text in words.items() if key in field]
    plain = {"object": "mapping", "null": "none", "boolean": "true or false"}.get(name, name)
    return ", ".join([plain, *limits])


def comments(model: type[BaseModel]) -> dict[str, str]:
    """The comment above each field of a model. It says where the default comes from."""
    above: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, BaseModel) or owner.__module__.startswith("pydantic"):
            continue
        lines = textwrap.dedent(inspect.getsource(owner)).splitlines()
        body = ast.parse("\n".join(lines)).body[0]
        assert isinstance(body, ast.ClassDef)
        for node in body.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                above[node.target.id] = _comment_above(lines, node.lineno - 1)
    return above


def _comment_above(lines: Sequence[str], index: int) -> str:
    comment: list[str] = []
    while index and lines[index - 1].strip().startswith("#"):
        index -= 1
        comment.insert(0, lines[index].strip().removeprefix("#").strip())
    return " ".join(comment)


# Results ----------------------------------------------------------------------------------------


def results() -> str:
    """The columns of every table of a run directory, and the keys of its summary."""
    from artist.results.terms.columns import TABLE_TERMS, TABLES
    from artist.results.terms.glossary import METRICS

    parts = [
        "# Results\n\n`--out DIR` writes a run directory. `artist explain NAME` prints an entry.\n",
        "Unit 1 marks a plain number. Times count from time 0 of the trace.\n",
    ]
    for name, terms in TABLES.items():
        rows = TABLE_TERMS[name].meaning
        parts.append(f"## {name}.parquet\n\n{rows[0].upper()}{rows[1:]}.\n\n{_terms(terms)}")
    parts.append(f"## summary.json\n\nStatistics are over finished jobs.\n\n{_terms(METRICS)}")
    return "\n".join(parts)


def _terms(terms: Iterable[Any]) -> str:
    rows = [(f"`{t.name}`", t.unit, t.meaning, t.formula) for t in terms]
    return table(("name", "unit", "meaning", "formula"), rows)


def glossary() -> str:
    """The words of the glossary, in alphabetical order."""
    from artist.results.terms.glossary import TERMS

    return "# Glossary\n\n" + _terms(sorted(TERMS, key=lambda term: term.name))


# Names ------------------------------------------------------------------------------------------


def names() -> str:
    """Everything that a user chooses by name, except policies."""
    from dataclasses import asdict

    from artist.cluster.cluster_file import cluster_names, load_cluster
    from artist.cluster.fabric import fabric_names, load_fabric
    from artist.cluster.links import oversubscription_text
    from artist.estimates.backends import BACKENDS
    from artist.trace.detect import FORMATS
    from artist.trace.named import builtin_traces
    from artist.workload.models import model_names, summary

    fabrics = [load_fabric(name) for name in fabric_names()]
    clusters = [load_cluster(name) for name in cluster_names()]
    models = [asdict(summary(name)) for name in model_names()]
    formats = [(f"`{one.id}`", one.title, getattr(one, "source", "")) for one in FORMATS.values()]
    entries = ("id", "what it does", "source")
    parts = {
        "Backends": table(entries, [(f"`{e.id}`", e.summary, e.paper) for e in BACKENDS]),
        "Fabrics": table(
            ("name", "levels", "Gbit/s per direction", "oversubscription", "summary"),
            [
                (
                    f"`{f.name}`",
                    ", ".join(f.level_names),
                    _gbits(f),
                    oversubscription_text(f),
                    f.summary,
                )
                for f in fabrics
            ],
        ),
        "Clusters": table(
            ("name", "GPUs", "fabric", "summary"),
            [
                (f"`{c.file.name}`", f"{c.gpus:,}", c.file.fabric or "", c.file.summary)
                for c in clusters
            ],
        ),
        "Built-in traces": table(
            entries, [(f"`{e.id}`", e.summary, e.paper) for e in builtin_traces]
        ),
        "Trace formats": table(("id", "file", "source"), formats),
        "Models": table(list(models[0]), [list(model.values()) for model in models]),
    }
    text = "# Names\n\n`artist list KIND` prints these.\n\n"
    return text + "\n".join(f"## {title}\n\n{body}" for title, body in parts.items())


def _gbits(fabric: Any) -> str:
    """The bandwidth of each level, inner to outer."""
    from artist.units import bandwidth_texts

    texts = (bandwidth_texts(level.bandwidth_gib_per_s)[0] for level in fabric.levels)
    return ", ".join(text.partition(" ")[0] for text in texts)


def policies() -> str:
    """Every policy with its options."""
    from artist.policies.run_times import KNOWS
    from artist.policies.table import POLICIES

    rows = [
        (f"`{e.usage}`", e.summary, KNOWS if e.knows_run_times else "", e.paper) for e in POLICIES
    ]
    text = "# Policies\n\nOptions: `--set policy.KEY=VALUE`, or `policy_options` in a file.\n"
    text += "\nA policy that knows run times reads how long jobs will run. No real scheduler can.\n"
    text += "\n" + table(("id", "what it does", "knows", "source"), rows)
    shared: dict[Any, list[Any]] = {}
    for entry in POLICIES:
        shared.setdefault(entry.load(), []).append(entry)
    for implementation, entries in shared.items():
        fields = _fields(implementation.Options, implementation.Options.model_json_schema())
        ids = ", ".join(f"`{entry.id}`" for entry in entries)
        about = inspect.cleandoc(sys.modules[implementation.__module__].__doc__ or "")
        text += f"\n## {implementation.__name__}\n\n{about}\n\nOptions of {ids}:\n\n{fields}"
        fixed = [(e.id, e.preset) for e in entries if e.preset]
        for name, preset in fixed:
            settings = ", ".join(f"`{key}={value}`" for key, value in preset.items())
            text += f"\n`{name}` starts from {settings}.\n"
    return text


def main(arguments: Sequence[str]) -> int:
    """Write the pages to the folder that the arguments name."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python docs/generate.py FOLDER\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(f"{text.strip()}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

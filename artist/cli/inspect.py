"""`artist list` and `artist explain`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from artist.cli.output import Format, print_facts, print_json, print_table


class Kind(StrEnum):
    """What can be listed."""

    POLICIES = "policies"
    MODELS = "models"
    FABRICS = "fabrics"
    TRACES = "traces"
    BACKENDS = "backends"
    METRICS = "metrics"


def list_(
    what: Annotated[Kind, typer.Argument(help="What to list.")],
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
) -> None:
    """List what artist knows by name."""
    rows = _rows(what)
    if format_ is Format.JSON:
        print_json(rows)
    else:
        print_table(what.value, list(rows[0]), [list(row.values()) for row in rows])


class Schema(StrEnum):
    """Files that have a JSON Schema."""

    SCENARIO = "scenario"
    EXPERIMENT = "experiment"
    FABRIC = "fabric"
    CALIBRATION = "calibration"


def schema(of: Annotated[Schema, typer.Argument(help="Kind of file.")]) -> None:
    """Print the JSON Schema of a YAML file, for editors."""
    from pydantic import BaseModel

    from artist.cluster.fabric import Fabric
    from artist.config import Scenario
    from artist.estimates.calibration import Calibration
    from artist.experiments.experiment import Experiment

    models: dict[Schema, type[BaseModel]] = {
        Schema.SCENARIO: Scenario,
        Schema.EXPERIMENT: Experiment,
        Schema.FABRIC: Fabric,
        Schema.CALIBRATION: Calibration,
    }
    print_json(models[of].model_json_schema())


def explain(term: Annotated[str, typer.Argument(help="A metric, a column or a word.")]) -> None:
    """Say what a metric, a column or a word means, with unit and formula."""
    from artist.errors import UnknownNameError
    from artist.results import columns, glossary

    found = glossary.find(term) or columns.find(term)
    if found is None:
        known = list(dict.fromkeys([*glossary.names(), *columns.names()]))
        raise UnknownNameError("term", term, known, "known: " + ", ".join(known))
    facts = {"meaning": found.meaning, "unit": found.unit, "formula": found.formula}
    print_facts(found.name, {key: value for key, value in facts.items() if value})


def _rows(what: Kind) -> list[dict[str, Any]]:
    match what:
        case Kind.POLICIES:
            from artist.policies.table import POLICIES

            return [{"id": e.id, "summary": e.summary, "paper": e.paper} for e in POLICIES]
        case Kind.BACKENDS:
            from artist.estimates.backends import BACKENDS

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in BACKENDS]
        case Kind.MODELS:
            from dataclasses import asdict

            from artist.workload.models import model_names, summary

            return [asdict(summary(name)) for name in model_names()]
        case Kind.FABRICS:
            from artist.cluster.fabric import fabric_names, load_fabric

            found = [load_fabric(name) for name in fabric_names()]
            return [
                {"id": f.name, "levels": ", ".join(f.level_names), "summary": f.summary}
                for f in found
            ]
        case Kind.TRACES:
            from artist.trace.named import builtin_traces

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in builtin_traces]
        case Kind.METRICS:
            from artist.results.glossary import METRICS

            return [
                {"id": t.name, "unit": t.unit, "meaning": t.meaning, "formula": t.formula}
                for t in METRICS
            ]

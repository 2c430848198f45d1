"""`artist list`: the policies, models, fabrics, traces, backends and metrics known by name."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, print_json, print_table


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
    format_: FormatOption = Format.TABLE,
) -> None:
    """List what artist knows by name."""
    rows = _rows(what)
    if format_ is Format.JSON:
        print_json(rows)
    else:
        print_table(what.value, list(rows[0]), [list(row.values()) for row in rows])


def _rows(what: Kind) -> list[dict[str, Any]]:
    """The rows of a list; the first column is the name that a user writes."""
    match what:
        case Kind.POLICIES:
            from artist.policies.table import POLICIES

            return [{"id": e.usage, "summary": e.summary, "paper": e.paper} for e in POLICIES]
        case Kind.BACKENDS:
            from artist.estimates.backends import BACKENDS

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in BACKENDS]
        case Kind.MODELS:
            from dataclasses import asdict

            from artist.workload.models import model_names, summary

            return [asdict(summary(name)) for name in model_names()]
        case Kind.FABRICS:
            from artist.cluster.fabric import fabric_names, load_fabric

            fabrics = [load_fabric(name) for name in fabric_names()]
            return [
                {"id": f.name, "levels": ", ".join(f.level_names), "summary": f.summary}
                for f in fabrics
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

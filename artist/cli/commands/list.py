"""`artist list`: policies, models, fabrics, clusters, and whatever else artist knows by name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, print_json, print_table
from artist.io.shipped import document_names
from artist.results.terms.number_text import time_text
from artist.units import bandwidth_texts

if TYPE_CHECKING:
    from artist.cluster.cluster_file import Cluster
    from artist.cluster.fabric import Fabric
    from artist.estimates.speeds import SpeedTable
    from artist.failures.model_file import FailureFile
    from artist.pods.machine_file import MachineFile


class Listed(StrEnum):
    """What can be listed."""

    POLICIES = "policies"
    MODELS = "models"
    FABRICS = "fabrics"
    CLUSTERS = "clusters"
    SPEEDS = "speeds"
    INTERFERENCE = "interference"
    TRACES = "traces"
    BACKENDS = "backends"
    CONTENTION = "contention"
    FAILURES = "failures"
    MACHINES = "machines"
    PLACERS = "placers"
    METRICS = "metrics"


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")],
    format_: FormatOption = Format.TABLE,
) -> None:
    """List what artist knows by name."""
    rows = rows_of(what)
    if format_ is Format.JSON:
        print_json(rows)
    else:
        print_table(what.value, list(rows[0]), [list(row.values()) for row in rows])


def _fabric_row(fabric: Fabric) -> dict[str, Any]:
    """A fabric, with the bandwidths of its levels in each common unit."""
    from artist.cluster.links import oversubscription_text

    texts = [bandwidth_texts(level.bandwidth_gib_per_s) for level in fabric.levels]
    in_units = {
        text.partition(" ")[2]: ", ".join(column.partition(" ")[0] for column in columns)
        for text, columns in zip(texts[0], zip(*texts, strict=True), strict=True)
    }
    levels = ", ".join(fabric.level_names)
    return {
        "id": fabric.name,
        "levels": levels,
        **in_units,
        "oversubscription": oversubscription_text(fabric),
        "figures": fabric.origin_words,
        "summary": fabric.summary,
    }


def _failures_row(name: str, file: FailureFile) -> dict[str, Any]:
    """A failure model, and the mean times between failures of its units."""
    fails = ", ".join(f"{kind} every {time_text(one.mtbf_s)}" for kind, one in file.model.random)
    return {"id": name, "fails": fails, "summary": file.model.summary}


def _cluster_row(cluster: Cluster) -> dict[str, Any]:
    """A cluster file: how many units each of its levels has."""
    file = cluster.file
    units = (f"{len(cluster.names[level]):,} {level}s" for level in file.levels)
    return {
        "id": file.name,
        "units": ", ".join(units),
        "gpus": cluster.gpus,
        "fabric": file.fabric or "",
        "summary": file.summary,
    }


def _speeds_row(table: SpeedTable) -> dict[str, Any]:
    """A table of speeds: its kinds, the reference first."""
    kinds = dict.fromkeys([table.reference, *(k for row in table.speeds.values() for k in row)])
    return {
        "id": table.name,
        "kinds": ", ".join(kinds),
        "models": len(table.speeds),
        "summary": table.summary,
        "source": table.source,
    }


def _interference_row(name: str) -> dict[str, Any]:
    """A table of jobs that share GPUs: its models, and speeds relative to GPUs of their own."""
    from artist.network.rates.interference import (
        TAKING_TURNS,
        TIME_SLICING,
        read_speeds,
        table_path,
    )

    pairs = {} if name == TIME_SLICING else read_speeds(table_path(name))
    models = dict.fromkeys(one for one, _, _ in pairs)
    speeds = pairs.values() or [TAKING_TURNS]
    return {
        "id": name,
        "models": ", ".join(models) or "any",
        "lowest_speed": round(min(speeds), 3),
        "highest_speed": round(max(speeds), 3),
    }


def _machines_row(file: MachineFile) -> dict[str, Any]:
    """A machine file: how many machines and GPUs, and which kinds."""
    return {
        "id": file.name,
        "machines": file.count,
        "gpus": file.capacity_milli // 1000,
        "kinds": ", ".join(dict.fromkeys(group.kind for group in file.machines if group.kind)),
        "summary": file.summary,
    }


def rows_of(what: Listed) -> list[dict[str, Any]]:
    """The rows of a list; the first column is the name that a user writes."""
    match what:
        case Listed.POLICIES:
            from artist.policies.run_times import KNOWS
            from artist.policies.table import POLICIES

            knows = {True: KNOWS, False: ""}
            return [
                {"id": e.usage, "summary": e.summary, "knows": knows[e.knows_run_times],
                 "paper": e.paper}
                for e in POLICIES
            ]  # fmt: skip
        case Listed.BACKENDS:
            from artist.estimates.backends import BACKENDS

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in BACKENDS]
        case Listed.MODELS:
            from dataclasses import asdict

            from artist.workload.models import model_names, summary

            return [asdict(summary(name)) for name in model_names()]
        case Listed.FABRICS:
            from artist.cluster.fabric import fabric_names, load_fabric

            return [_fabric_row(load_fabric(name)) for name in fabric_names()]
        case Listed.CLUSTERS:
            from artist.cluster.cluster_file import cluster_names, load_cluster

            return [_cluster_row(load_cluster(name)) for name in cluster_names()]
        case Listed.SPEEDS:
            from artist.estimates.speeds import load_speeds

            return [_speeds_row(load_speeds(name)) for name in document_names("speeds")]
        case Listed.INTERFERENCE:
            from artist.network.rates.interference import interference_names

            return [_interference_row(name) for name in interference_names()]
        case Listed.TRACES:
            from artist.trace.named import builtin_traces

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in builtin_traces]
        case Listed.CONTENTION:
            from artist.network.rates.rate_functions import CONTENTION

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in CONTENTION]
        case Listed.FAILURES:
            from artist.failures.model_file import failure_names, load_failures

            return [_failures_row(name, load_failures(name)) for name in failure_names()]
        case Listed.MACHINES:
            from artist.pods.machine_file import load_machines

            return [_machines_row(load_machines(name)) for name in document_names("machines")]
        case Listed.PLACERS:
            from artist.pods.placers import PLACERS

            return [{"id": e.id, "summary": e.summary, "source": e.paper} for e in PLACERS]
        case Listed.METRICS:
            from artist.results.terms.glossary import METRICS

            return [
                {"id": t.name, "unit": t.unit, "meaning": t.meaning, "formula": t.formula}
                for t in METRICS
            ]

"""`artist latency` and `artist render`: one placement, one iteration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.output import Format, note, print_facts, print_json
from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.estimates.query_from_text import Question

Model = Annotated[str | None, typer.Option(help="See: artist list models.")]
WorkloadFile = Annotated[Path | None, typer.Option(help="An ASTRA-sim text workload instead.")]
Placement = Annotated[
    str | None, typer.Option(help="GPUs, '+' socket, ',' machine, '/' rack: 4+4,8/2.")
]
FabricName = Annotated[str, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")]
Topologies = Annotated[str | None, typer.Option("--topology", help="Ring,Switch: inner first.")]
Npus = Annotated[str | None, typer.Option(help="NPUs per dimension: 4,2.")]
Bandwidths = Annotated[str | None, typer.Option("--bandwidth", help="GiB/s: 450,50.")]
Latencies = Annotated[str | None, typer.Option("--latency", help="ns per hop: 0,500.")]
Systems = Annotated[
    list[str] | None, typer.Option("--system", metavar="K=V", help="ASTRA-sim system setting.")
]


def latency(
    model: Model = None,
    workload: WorkloadFile = None,
    placement: Placement = None,
    fabric: FabricName = "dally2025",
    topology: Topologies = None,
    npus: Npus = None,
    bandwidth: Bandwidths = None,
    latency_: Latencies = None,
    system: Systems = None,
    backend: Annotated[str, typer.Option(help="See: artist list backends.")] = "analytical",
    cases: Annotated[Path | None, typer.Option(help="Many cases, a CSV file.")] = None,
    workloads: Annotated[Path | None, typer.Option(help="Folder of the cases' workloads.")] = None,
    out: Annotated[Path | None, typer.Option(help="Results of --cases, a CSV file.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
) -> None:
    """Communication time of one training iteration."""
    if cases is not None:
        _cases(cases, workloads, out)
        return
    from artist.estimates.service import answer
    from artist.run import open_backend

    columns = {"topology": topology, "npus": npus, "bandwidth": bandwidth, "latency": latency_}
    question = _question(model, workload, placement, fabric, columns, system or [])
    started = time.perf_counter()
    estimate = answer(open_backend(backend), question.query)
    facts = {
        "finish_cycles": estimate.finish_ns,
        "exposed_comm_cycles": estimate.exposed_comm_ns,
        "compute_cycles": estimate.compute_ns,
        "comm_ratio": estimate.comm_ratio,
        "source": estimate.source,
        "signature": question.signature,
        "wall_s": time.perf_counter() - started,
    }
    if format_ is Format.JSON:
        print_json(facts)
    else:
        print_facts(f"{question.query.workload.name}, one iteration (1 cycle = 1 ns)", facts)


def render(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: Model = None,
    workload: WorkloadFile = None,
    placement: Placement = None,
    fabric: FabricName = "dally2025",
    topology: Topologies = None,
    npus: Npus = None,
    bandwidth: Bandwidths = None,
    latency_: Latencies = None,
    system: Systems = None,
    dialect: Annotated[str, typer.Option(help="astra2 or astra1.")] = "astra2",
) -> None:
    """Write the exact files that ASTRA-sim is given, of divided models a folder per collective."""
    from artist.astra.files.render import render
    from artist.astra.files.render_collectives import render_collectives
    from artist.estimates.layer_wise import composed

    columns = {"topology": topology, "npus": npus, "bandwidth": bandwidth, "latency": latency_}
    question = _question(model, workload, placement, fabric, columns, system or [])
    if composed(question.query):
        render_collectives(question.query, out, dialect)
    else:
        render(question.query, out, dialect)
    note(f"wrote {out}")


def _question(
    model: str | None,
    workload: Path | None,
    placement: str | None,
    fabric: str,
    columns: dict[str, Any],
    system: list[str],
) -> Question:
    from artist.cluster.fabric import load_fabric
    from artist.estimates.query_from_text import on_dimensions, on_placement, parse_system
    from artist.workload.astra_text import read_text
    from artist.workload.models import workload as model_workload

    if (model is None) == (workload is None):
        raise ConfigError("give either --model NAME or --workload FILE")
    if (placement is None) == all(value is None for value in columns.values()):
        raise ConfigError(
            "give either --placement, e.g. 4+4,8/2, or --topology, --npus, --bandwidth, --latency"
        )
    chosen = read_text(workload) if workload is not None else model_workload(model or "")
    changes = parse_system(system)
    if placement is not None:
        return on_placement(chosen, placement, load_fabric(fabric), changes)
    return on_dimensions(chosen, columns, changes)


def _cases(cases: Path, workloads: Path | None, out: Path | None) -> None:
    from artist.astra.files.case_table import run_cases

    if workloads is None or out is None:
        raise ConfigError("--cases needs --workloads DIR and --out RESULTS.csv")
    run_cases(cases, workloads, out)
    note(f"wrote {out}")

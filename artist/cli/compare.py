"""`artist compare`: policies side by side, with the noise told apart from the difference."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.output import Format, print_json, print_table

if TYPE_CHECKING:
    from artist.experiments.compare import Comparison, Difference


def compare(
    scenario: options.ScenarioFile = None,
    policies: Annotated[
        str, typer.Option(metavar="A,B,...", help="The first is the baseline.")
    ] = "dally,dally-no-wait,dally-fully-consolidated,las,fifo",
    seeds: Annotated[int, typer.Option(help="Seeds of drawn traces.")] = 1,
    permutations: Annotated[
        int, typer.Option(help="Orders in which machines and simultaneous arrivals are visited.")
    ] = 5,
    workers: Annotated[int | None, typer.Option(help="Processes (default: cores).")] = None,
    racks: options.Racks = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    trace: options.TraceName = None,
    arrivals: options.Arrivals = None,
    jobs: options.Jobs = None,
    fabric: options.FabricName = None,
    backend: options.Backend = None,
    calibration: options.CalibrationName = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare policies on the same work; says when a difference is within noise."""
    from artist.config import load_scenario
    from artist.experiments.compare import compare as run
    from artist.experiments.executors import cores

    flags = {
        "racks": racks,
        "machines_per_rack": machines_per_rack,
        "gpus_per_machine": gpus_per_machine,
        "trace": trace,
        "arrivals": arrivals,
        "jobs": jobs,
        "fabric": fabric,
        "backend": backend,
        "calibration": calibration,
        "seed": seed,
    }
    chosen = load_scenario(scenario, flags, sets or [])
    names = [name.strip() for name in policies.split(",") if name.strip()]
    with _progress(quiet) as on_done:
        found = run(
            chosen,
            names,
            seeds=seeds,
            permutations=permutations,
            workers=workers or cores(),
            on_done=on_done,
        )
    if format_ is Format.JSON:
        print_json(_as_json(found))
    else:
        _print(found)


def _print(found: Comparison) -> None:
    baseline = found.policies[0]
    rows = []
    for metric in found.values[baseline]:
        rows.append((metric, baseline, _spread(found.values[baseline][metric]), "", ""))
        for policy in found.policies[1:]:
            difference = next(d for d in found.differences[policy] if d.metric == metric)
            spread = _spread(found.values[policy][metric])
            rows.append(("", policy, spread, _interval(difference), difference.verdict))
    count = len(found.replicates)
    columns = ("metric", "policy", "median [min .. max]", f"against {baseline}, 95 %", "verdict")
    print_table(f"{count} replicates (seed x permutation), paired", columns, rows)


def _spread(values: tuple[float, ...]) -> str:
    middle = sorted(values)[len(values) // 2]
    return f"{middle:,.0f} [{min(values):,.0f} .. {max(values):,.0f}]"


def _interval(difference: Difference) -> str:
    if difference.low != difference.low:  # NaN: one replicate has no interval
        return f"{difference.mean:+.1%}"
    return f"{difference.mean:+.1%} [{difference.low:+.1%} .. {difference.high:+.1%}]"


def _as_json(found: Comparison) -> dict[str, Any]:
    return {
        "policies": list(found.policies),
        "replicates": [{"seed": s, "permutation": p} for s, p in found.replicates],
        "values": {policy: dict(metrics) for policy, metrics in found.values.items()},
        "differences": {
            policy: [
                {key: None if value != value else value for key, value in asdict(d).items()}
                | {"verdict": d.verdict}
                for d in differences
            ]
            for policy, differences in found.differences.items()
        },
    }


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Runs done of all, on a stderr where a person watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

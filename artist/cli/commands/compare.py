"""`artist compare`: compares policies, and tells their differences from noise."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.output import Format, print_json, print_table
from artist.cli.progress_bar import bar_of_runs

if TYPE_CHECKING:
    from artist.experiments.compare import Comparison, Difference


def compare(
    context: typer.Context,
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
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare policies on the same work; says when a difference is within noise."""
    chosen = options.scenario_of(context.params)
    from artist.experiments.compare import compare as run
    from artist.experiments.executors import cores

    names = [name.strip() for name in policies.split(",") if name.strip()]
    with bar_of_runs(quiet=quiet) as show:
        comparison = run(
            chosen,
            names,
            seeds=seeds,
            permutations=permutations,
            workers=workers or cores(),
            on_done=show,
        )
    if format_ is Format.JSON:
        print_json(_as_json(comparison))
    else:
        _print(comparison)


def _print(comparison: Comparison) -> None:
    baseline = comparison.policies[0]
    rows = []
    for metric in comparison.values[baseline]:
        rows.append((metric, baseline, _spread(comparison.values[baseline][metric]), "", ""))
        for policy in comparison.policies[1:]:
            difference = next(d for d in comparison.differences[policy] if d.metric == metric)
            spread = _spread(comparison.values[policy][metric])
            rows.append(("", policy, spread, _interval(difference), difference.verdict))
    count = len(comparison.replicates)
    columns = ("metric", "policy", "median [min .. max]", f"against {baseline}, 95 %", "verdict")
    print_table(f"{count} replicates (seed x permutation), paired", columns, rows)


def _spread(values: tuple[float, ...]) -> str:
    middle = sorted(values)[len(values) // 2]
    return f"{middle:,.0f} [{min(values):,.0f} .. {max(values):,.0f}]"


def _interval(difference: Difference) -> str:
    if difference.low != difference.low:  # NaN: one replicate has no interval
        return f"{difference.mean:+.1%}"
    return f"{difference.mean:+.1%} [{difference.low:+.1%} .. {difference.high:+.1%}]"


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "policies": list(comparison.policies),
        "replicates": [{"seed": s, "permutation": p} for s, p in comparison.replicates],
        "values": {policy: dict(metrics) for policy, metrics in comparison.values.items()},
        "differences": {
            policy: [
                {key: None if value != value else value for key, value in asdict(d).items()}
                | {"verdict": d.verdict}
                for d in differences
            ]
            for policy, differences in comparison.differences.items()
        },
    }

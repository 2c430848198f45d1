"""`artist compare`: compares policies, and tells their differences from noise."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.output import Format, print_json, print_table
from artist.cli.progress_bar import bar_of_runs

if TYPE_CHECKING:
    from artist.experiments.compare import Comparison
    from artist.results.compare_values import ComparedValues


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
    """Compare policies on the same work; says which differences are more than noise."""
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
            compared = comparison.differences[policy][metric]
            spread = _spread(comparison.values[policy][metric])
            rows.append(("", policy, spread, _interval(compared), _verdict(compared)))
    count = len(comparison.replicates)
    columns = ("metric", "policy", "median [min .. max]", f"against {baseline}, 95 %", "verdict")
    print_table(f"{count} replicates (seed x permutation), paired", columns, rows)


def _spread(values: tuple[float, ...]) -> str:
    return f"{median(values):,.0f} [{min(values):,.0f} .. {max(values):,.0f}]"


def _interval(compared: ComparedValues) -> str:
    """A share where there is a ratio, else seconds."""
    if isnan(compared.ratio):
        middle, low, high, form = compared.difference, compared.low, compared.high, "{:+,.0f} s"
    else:
        middle, low, high = (x - 1 for x in (compared.ratio, compared.low, compared.high))
        form = "{:+.1%}"
    if isnan(compared.low):
        return form.format(middle)
    return f"{form} [{form} .. {form}]".format(middle, low, high)


def _verdict(compared: ComparedValues) -> str:
    if compared.enough is None:
        return compared.verdict
    return f"{compared.verdict}; about {compared.enough} replicates would decide"


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "policies": list(comparison.policies),
        "replicates": [{"seed": s, "permutation": p} for s, p in comparison.replicates],
        "values": {policy: dict(metrics) for policy, metrics in comparison.values.items()},
        "differences": {
            policy: [
                {"metric": metric}
                | {key: None if value != value else value for key, value in asdict(one).items()}
                for metric, one in metrics.items()
            ]
            for policy, metrics in comparison.differences.items()
        },
    }

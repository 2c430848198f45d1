"""`artist compare`: compares policies, and tells their differences from noise."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from math import isfinite, isnan
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options, trace_options
from artist.cli.output import Format, print_json, print_table
from artist.cli.progress_bar import bar_of_runs

if TYPE_CHECKING:
    from artist.experiments.compare import Comparison
    from artist.results.compare_values import ComparedValues


def compare(
    context: typer.Context,
    scenario: options.ScenarioFile = None,
    policies: Annotated[
        str,
        typer.Option(metavar="A,B,...", help="Names, or FILE.py:CLASS; the first is the baseline."),
    ] = "dally,dally-no-wait,dally-fully-consolidated,las,fifo",
    seeds: Annotated[
        int,
        typer.Option(help="Seeds of drawn traces; with --permutations 1 each has its own order."),
    ] = 1,
    permutations: Annotated[
        int, typer.Option(help="Orders in which machines and simultaneous arrivals are visited.")
    ] = 5,
    until: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Add replicates until intervals are so narrow: 2%."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="With --until: replicates at most (default 100).")
    ] = None,
    equivalence: Annotated[
        str, typer.Option(metavar="SHARE", help="Differences within it are no difference.")
    ] = "2%",
    workers: Annotated[int | None, typer.Option(help="Processes (default: cores).")] = None,
    racks: options.Racks = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    trace: options.TraceName = None,
    columns: trace_options.Columns = None,
    units: trace_options.Units = None,
    models: trace_options.Models = None,
    model_rule: trace_options.ModelRule = None,
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
    from artist.errors import ConfigError
    from artist.experiments.compare import compare as run
    from artist.experiments.executors import cores
    from artist.experiments.until import BUDGET

    if budget is not None and until is None:
        raise ConfigError(f"--budget {budget}: needs --until SHARE, which it ends")
    names = [name.strip() for name in policies.split(",") if name.strip()]
    with bar_of_runs(quiet=quiet) as show:
        comparison = run(
            chosen,
            names,
            seeds=seeds,
            permutations=permutations,
            equivalence=options.share_of("--equivalence", equivalence),
            until=None if until is None else options.share_of("--until", until),
            budget=BUDGET if budget is None else budget,
            workers=workers or cores(),
            on_done=show,
            on_trace=partial(trace_options.say_what_was_read, quiet=quiet),
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
            verdict = _verdict(compared, comparison.kind)
            rows.append(("", policy, spread, _interval(compared), verdict))
    columns = ("metric", "policy", "median [min .. max]", f"against {baseline}, 95 %", "verdict")
    print_table(f"{comparison.design}, paired", columns, rows)
    if comparison.until is not None:
        sys.stdout.write(_how_narrow(comparison, comparison.until) + "\n")


def _how_narrow(comparison: Comparison, until: float) -> str:
    copies, every = comparison.without_interval, "every"
    note = ""
    if copies:
        every = "every other"
        note = f"; {copies} of the comparisons have no interval: their replicates are copies of one"
    if comparison.missing == 0:
        return f"{every} interval reaches at most {_percent(until)} from its middle{note}"
    from artist.results.compare_values import MOST_REPLICATES

    widest, missing = comparison.widest, comparison.missing
    more = f"more than {MOST_REPLICATES:,}" if missing is None else f"about {missing:,} more"
    return (
        f"the budget ended: {widest.metric} of {widest.policy} reaches "
        f"{_percent(widest.half_width)} from its middle; {more} "
        f"{comparison.kind} would make it {_percent(until)}{note}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _spread(values: tuple[float, ...]) -> str:
    middle, low, high = (_plain(value) for value in (median(values), min(values), max(values)))
    return f"{middle} [{low} .. {high}]"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _interval(compared: ComparedValues) -> str:
    """A share where there is a ratio, else seconds; empty where nothing differs."""
    if compared.verdict == "identical":
        return ""
    if isnan(compared.ratio):
        middle, low, high, form = compared.difference, compared.low, compared.high, "{:+,.0f} s"
    else:
        middle, low, high = (x - 1 for x in (compared.ratio, compared.low, compared.high))
        form = "{:+.1%}"
    if isnan(compared.low):
        return form.format(middle)
    return f"{form} [{form} .. {form}]".format(middle, low, high)


def _verdict(compared: ComparedValues, kind: str) -> str:
    from artist.results.compare_values import TOO_FEW, what_would_decide

    if compared.verdict == TOO_FEW and compared.replicates == 1:
        return f"{compared.verdict}: copies of one"
    return "; ".join(text for text in (compared.verdict, what_would_decide(compared, kind)) if text)


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "policies": list(comparison.policies),
        "replicates": [{"seed": s, "permutation": p} for s, p in comparison.replicates],
        "until": comparison.until,
        "widest": _finite(comparison.widest._asdict()),
        "missing": comparison.missing,
        "values": {policy: dict(metrics) for policy, metrics in comparison.values.items()},
        "differences": {
            policy: [{"metric": metric} | _finite(asdict(one)) for metric, one in metrics.items()]
            for policy, metrics in comparison.differences.items()
        },
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what JSON cannot say: NaN and infinity become null."""
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in record.items()
    }

"""`artist place-data`: where tables should live (MAST's slow path, Tetris)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from artist.cli.options import FormatOption, Overwrite, Quiet
from artist.cli.output import Format, note, print_json, print_table
from artist.cli.progress_bar import bar_of_runs
from artist.errors import ConfigError, shortened
from artist.warehouse.solver import Solver


def place_data(
    warehouse: Annotated[
        Path,
        typer.Argument(metavar="WAREHOUSE", help="Folder of four tables, or a run with data."),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the plan.")] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run with data: use its demand and homes instead."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the measured warehouse here.")
    ] = None,
    solver: Annotated[
        Solver, typer.Option(help="highs: the optimum of a small warehouse.")
    ] = Solver.CLIMB,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="quota=0.02, days=7, replicas=none, ..."),
    ] = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Plan which regions hold which tables: first homes, by hill climbing, then replicas."""
    from artist.io.writing import check_folder
    from artist.warehouse.files import PLAN, details, write_plan
    from artist.warehouse.measured import is_run, pieces_of
    from artist.warehouse.plan import balance, place

    options = _options(set_ or [])
    if out is not None:
        check_folder(out, PLAN.what, PLAN.foreign, overwrite=overwrite)
    run = warehouse if is_run(warehouse) else measured
    instance = _read(warehouse, measured, keep, overwrite=overwrite)
    with bar_of_runs(quiet=quiet, what="tables") as show:
        plan = place(instance, options, solver, show)
    if out is not None:
        pieces = None if run is None else pieces_of(run)
        write_plan(plan, solver, out, overwrite=overwrite, pieces=pieces)
        if not quiet:
            again = f"artist sim --cluster FILE --trace FILE --data {out / 'tables.csv'}"
            note(f"wrote {out}: moves.csv to review; {again}")
    if format_ is Format.JSON:
        print_json(plan.facts())
        return
    facts = details(plan, solver)
    del facts["options"]
    print_table(f"plan of {warehouse}", ("", ""), list(facts.items()), header=False)
    even = balance(plan)
    print_table("demand over supply", tuple(even), zip(*even.values(), strict=True))


def _read(warehouse: Path, run: Path | None, keep: Path | None, *, overwrite: bool) -> Any:
    """The warehouse, with the demand of a run if there is one."""
    from artist.io.writing import check_folder
    from artist.warehouse.files import WAREHOUSE, write_warehouse
    from artist.warehouse.measured import is_run, measured
    from artist.warehouse.read import read_warehouse

    base: Path | None = warehouse
    if is_run(warehouse):
        if run is not None:
            raise ConfigError(f"--measured {run}: {warehouse} is a run too; give one of them")
        base, run = None, warehouse
    if run is None:
        if keep is not None:
            raise ConfigError(f"--keep {keep}: nothing is measured; add --measured RUN")
        return read_warehouse(warehouse)
    tables = measured(run, base)
    if keep is not None:
        check_folder(keep, WAREHOUSE.what, WAREHOUSE.foreign, overwrite=overwrite)
        write_warehouse(tables, keep, overwrite=overwrite)
    return read_warehouse(warehouse, tables)


def _options(sets: list[str]) -> Any:
    """The options that `--set` gives."""
    from artist.io.documents import validate
    from artist.warehouse.warehouse_schema import PlanOptions

    given: dict[str, str] = {}
    for text in sets:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals or not value:
            raise ConfigError(f"--set {shortened(text)}: expected KEY=VALUE")
        given[key] = value
    return validate(given, PlanOptions, "--set")

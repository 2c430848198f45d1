"""`artist place-data`: where tables should live (MAST's slow path, Tetris)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from artist.cli.options import FormatOption, Overwrite, Quiet
from artist.cli.output import Format, note, print_json, print_table
from artist.warehouse.solver import Solver


def place_data(
    warehouse: Annotated[Path, typer.Argument(metavar="WAREHOUSE", help="Folder of four tables.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the plan.")] = None,
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
    """Plan which regions hold which tables: homes by hill climbing, and then replicas."""
    from artist.cli.progress_bar import bar_of_runs
    from artist.io.folders import check_folder
    from artist.warehouse.files import details, is_plan, write_plan
    from artist.warehouse.plan import balance, place
    from artist.warehouse.read import read_warehouse

    options = _options(set_ or [])
    if out is not None:
        check_folder(out, "plan", is_plan, overwrite=overwrite)
    instance = read_warehouse(warehouse)
    with bar_of_runs(quiet=quiet, what="tables") as show:
        plan = place(instance, options, solver, show)
    if out is not None:
        write_plan(plan, solver, out, overwrite=overwrite)
        if not quiet:
            note(f"wrote {out}: moves.csv to review; artist sim --data {out / 'tables.csv'}")
    if format_ is Format.JSON:
        print_json(plan.facts())
        return
    facts = details(plan, solver)
    del facts["options"]
    print_table(f"plan of {warehouse}", ("", ""), list(facts.items()), header=False)
    even = balance(plan)
    print_table("demand over supply", tuple(even), zip(*even.values(), strict=True))


def _options(sets: list[str]) -> Any:
    """The options that `--set` gives.

    Raises:
        ConfigError: no pair, an unknown name or a value out of range.
    """
    from artist.errors import ConfigError, shortened
    from artist.io.documents import validate
    from artist.warehouse.columns import PlanOptions

    given: dict[str, str] = {}
    for text in sets:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals or not value:
            raise ConfigError(f"--set {shortened(text)}: expected KEY=VALUE")
        given[key] = value
    return validate(given, PlanOptions, "--set")

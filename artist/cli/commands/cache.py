"""`artist cache`: looks after the estimates that are kept on disk between runs."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, print_facts

if TYPE_CHECKING:
    from artist.estimates.cache import DiskStore

app = typer.Typer(
    name="cache", help="Manage the estimates kept between runs.", no_args_is_help=True
)


@app.command()
def info(format_: FormatOption = Format.TABLE) -> None:
    """Show the folder, the number of entries and the size."""
    with _store() as store:
        _show(store.info(), format_)


@app.command()
def verify(format_: FormatOption = Format.TABLE) -> None:
    """Read every entry and delete damaged ones. A damaged database is set aside."""
    with _store() as store:
        sound, damaged = store.verify()
        _show(
            {
                "sound": sound,
                "damaged_and_dropped": damaged,
                "database": f"damaged, moved to {store.set_aside}" if store.set_aside else "sound",
            },
            format_,
        )


@app.command()
def clear(format_: FormatOption = Format.TABLE) -> None:
    """Delete every entry."""
    with _store() as store:
        _show({"dropped": store.clear()}, format_)


def _store() -> closing[DiskStore]:
    from artist.estimates.cache import DiskStore, cache_dir

    return closing(DiskStore(cache_dir()))


def _show(facts: dict[str, Any], format_: Format) -> None:
    print_facts("estimates kept between runs", facts, format_)

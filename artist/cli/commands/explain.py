"""`artist explain`: what a metric, a column or a word means."""

from __future__ import annotations

from typing import Annotated

import typer

from artist.cli.output import print_facts


def explain(term: Annotated[str, typer.Argument(help="A metric, a column or a word.")]) -> None:
    """Say what a metric, a column or a word means, with unit and formula."""
    from artist.registry import UnknownNameError
    from artist.results import columns, glossary

    entry = glossary.find(term) or columns.find(term)
    if entry is None:
        known = list(dict.fromkeys([*glossary.names(), *columns.names()]))
        raise UnknownNameError("term", term, known, "known: " + ", ".join(known))
    facts = {"meaning": entry.meaning, "unit": entry.unit, "formula": entry.formula}
    print_facts(entry.name, {key: value for key, value in facts.items() if value})

"""Every statistic that artist reports, and every word that it uses, with unit and formula."""

from __future__ import annotations

from typing import NamedTuple

from artist.results.terms import read_cells


class Term(NamedTuple):
    """One entry. The formula is plain text, and empty if there is none."""

    name: str
    unit: str
    meaning: str
    formula: str = ""
    better: str = ""
    """`less` or `more` of a metric; empty where neither is good for its own sake."""


METRICS = tuple(Term(*cells) for cells in read_cells("metrics.tsv"))
"""The statistics in `summary.json`."""

TERMS = tuple(Term(*cells) for cells in read_cells("words.tsv"))


def find(name: str) -> Term | None:
    """The entry of a term or metric; `-`, `_`, blanks and case do not matter.

    A time in seconds is also known without its unit, as tables name it: `jct_mean`.
    """
    known = {_plain(term.name): term for term in (*METRICS, *TERMS)}
    return known.get(_plain(name)) or known.get(f"{_plain(name)}s")


def unit_after(name: str) -> str:
    """What follows a number of this metric: ` s`, or nothing for counts and shares."""
    term = find(name)
    return "" if term is None or term.unit in ("", "1") else f" {term.unit}"


def column_of(setting: str) -> str:
    """The column of a setting in a table with metrics: its name, unless a metric has that name.

    >>> column_of("racks"), column_of("failures")
    ('racks', 'failures_setting')
    """
    return f"{setting}_setting" if any(term.name == setting for term in METRICS) else setting


def names() -> list[str]:
    """The names of all terms and metrics."""
    return [term.name for term in (*TERMS, *METRICS)]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")

"""How a result shows itself: a short line in a Python shell, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from artist.results.terms import glossary
from artist.results.terms.chief_metrics import OF_A_RESULT
from artist.results.terms.number_text import plain

if TYPE_CHECKING:  # `result.py` imports this module
    from artist.results.result import Result

_SETTING = ("policy", "trace", "cluster", "jobs_total", "calibration", "fabric_changes", "seed")

# `cluster` and `fabric_changes` say these.
_TOLD = ("racks", "machines_per_rack", "gpus_per_machine", "tree", "fabric_options")


def short_text(result: Result) -> str:
    """What ran and what came out, in one line.

    `<Result: dally on tiny-poisson, 64 GPUs, 20 jobs: makespan 41,230 s, mean JCT 9,876 s>`
    """
    summary = result.summary
    what = f"{summary['policy']} on {summary['trace']}, {summary['gpus']:,} GPUs"
    jobs = f"{summary['jobs_total']:,} jobs"
    times = f"makespan {summary['makespan_s']:,.0f} s, mean JCT {summary['jct_mean_s']:,.0f} s"
    return f"<Result: {what}, {jobs}: {times}>"


def html_table(result: Result) -> str:
    """The setting of a run and its main statistics with units, as HTML without scripts or styles.

    Whatever a name holds, it is text.
    """
    shown = [name for name in OF_A_RESULT if name in result.summary]
    rows = "".join(_row(name, result.summary[name]) for name in shown)
    return (
        f"<table><caption>{_setting(result)}</caption>"
        f"<thead><tr><th>statistic</th><th>value</th><th>unit</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _setting(result: Result) -> str:
    """The settings of the run in words: the main ones, then what else its scenario gives."""
    known: Mapping[str, Any] = {**result.summary, "fabric": result.scenario.own_fabric}
    named = {
        name: known[name] for name in (*_SETTING, "fabric") if known.get(name) not in ("", None)
    }
    given = {
        name: value
        for name, value in result.scenario.model_dump(exclude_unset=True).items()
        if name not in named and name not in _TOLD
    }
    return escape("; ".join(f"{name}: {value}" for name, value in {**named, **given}.items()))


def _row(name: str, value: float) -> str:
    term = glossary.find(name)
    unit, meaning = (term.unit, term.meaning) if term else ("", "")
    text = plain(value)
    cells = (
        f'<td title="{escape(meaning)}">{escape(name)}</td><td>{text}</td><td>{escape(unit)}</td>'
    )
    return f"<tr>{cells}</tr>"

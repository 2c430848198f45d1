"""A finished run: its summary, its tables, their plots, and the inputs that it came from."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from artist.config import Scenario
from artist.errors import ConfigError, shortened
from artist.io.optional_libraries import check_import
from artist.registry import UnknownNameError
from artist.results.run_directory import check_target, write_run
from artist.results.table_files import arrow_table
from artist.results.terms import glossary
from artist.results.terms.chief_metrics import OF_A_RESULT
from artist.results.terms.columns import Table
from artist.results.terms.number_text import plain
from artist.units import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class LazyTables(Mapping[str, Table]):
    """Tables by name. Some are computed when they are first read."""

    def __init__(
        self, there: Mapping[str, Table], later: Mapping[str, Callable[[], Table]]
    ) -> None:
        self._there = dict(there)
        self._later = dict(later)
        self._names = tuple(dict.fromkeys((*there, *later)))

    def __getitem__(self, name: str) -> Table:
        if name not in self._there:
            self._there[name] = self._later[name]()
            del self._later[name]
        return self._there[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A finished run. Columns and units are those of the files in a run directory."""

    scenario: Scenario
    summary: Mapping[str, Any]
    """The run's statistics, as in `summary.json`; `artist explain KEY` gives formulas."""
    tables: Mapping[str, Table]
    """`jobs`, `placements`, `timeline`, the tables that the policy adds, and `waits`, by name.

    `waits` is computed when it is first asked for.
    """
    inputs: Mapping[str, str]
    """SHA-256 of each input."""
    store_hits: int
    """Estimates that came from the disk cache instead of the backend."""
    trace_filled: Sequence[str]
    """What the trace lacks and artist filled in: by which rule, and in how many jobs."""
    trace_dropped: Mapping[str, int]
    """How many rows of the trace were left out, by reason."""
    trace_mapped: Sequence[str] = ()
    """What a mapping of the trace's columns and models did, and its source."""
    waited_by_cause: Callable[[], Mapping[str, float]] = dict
    """Seconds that jobs waited in all by cause, the longest first: totals of `waits`."""
    world: str = ""
    """The fabric and where its figures come from, and the calibration, in half a sentence."""

    def __repr__(self) -> str:
        """One line: what ran, and what came out."""
        return _short_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: a small table of the summary, below the run's setting."""
        return _html_table(self)

    @property
    def plot(self) -> Plots:
        """Its plots on matplotlib axes: `plot.jct_cdf()`, `.timeline()`, `.compare(other)`."""
        return Plots(self)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the order of arrival."""
        return self.table("jobs")

    @cached_property
    def placements(self) -> pd.DataFrame:
        """One row per interval: a job on the same GPUs at one speed. In the order of their ends."""
        return self.table("placements")

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """The cluster's state, one row per change."""
        return self.table("timeline")

    @cached_property
    def waits(self) -> pd.DataFrame:
        """Why jobs waited: one row per stretch of time without GPUs, by its begin."""
        return self.table("waits")

    def table(self, name: str) -> pd.DataFrame:
        """A fresh copy of a table of the run. Dally adds the table `autotuner`.

        `wait_causes` may be empty: then it has no file.

        Raises:
            UnknownNameError: the run has no table of that name.
        """
        if name not in self.tables:
            raise UnknownNameError(
                "table", name, self.tables, f"this run has {', '.join(self.tables)}"
            )
        frame: pd.DataFrame = arrow_table(self.tables[name]).to_pandas(use_threads=False)
        return frame

    def save(self, out: str | Path, *, overwrite: bool = False) -> None:
        """Write a run directory, as `artist sim --out` does.

        Raises:
            ConfigError: the path holds something else, or an earlier run and not `overwrite`, or
                it cannot be written.
        """
        check_target(Path(out), overwrite=overwrite)
        write_run(self, Path(out), ["artist.Result.save"], overwrite=overwrite)


# -- how a result shows itself -------------------------------------------------------

_SETTING = ("policy", "trace", "cluster", "jobs_total", "calibration", "fabric_changes", "seed")

# `cluster` and `fabric_changes` contain these.
_REPEATED = ("racks", "machines_per_rack", "gpus_per_machine", "tree", "fabric_options")


def _short_text(result: Result) -> str:
    """What ran and what came out, in one line.

    `<Result: dally on tiny-poisson, 64 GPUs, 20 jobs: makespan 41,230 s, mean JCT 9,876 s>`
    """
    summary = result.summary
    what = f"{summary['policy']} on {summary['trace']}, {counted(summary['gpus'], 'GPU')}"
    jobs = f"{counted(summary['jobs_total'], 'job')}"
    times = f"makespan {summary['makespan_s']:,.0f} s, mean JCT {summary['jct_mean_s']:,.0f} s"
    return f"<Result: {what}, {jobs}: {times}>"


def _html_table(result: Result) -> str:
    """The setting of a run and its main statistics with units, as HTML without scripts or styles.

    All names are escaped.
    """
    shown = [name for name in OF_A_RESULT if name in result.summary]
    rows = "".join(_html_row(name, result.summary[name]) for name in shown)
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
        if name not in named and name not in _REPEATED
    }
    return html.escape("; ".join(f"{name}: {value}" for name, value in {**named, **given}.items()))


def _html_row(name: str, value: float) -> str:
    term = glossary.find(name)
    unit, meaning = (term.unit, term.meaning) if term else ("", "")
    text = plain(value)
    named = f'<td title="{html.escape(meaning)}">{html.escape(name)}</td>'
    return f"<tr>{named}<td>{text}</td><td>{html.escape(unit)}</td></tr>"


_S_PER_HOUR = 3600


class Plots:
    """The plots of a run: each draws on matplotlib `Axes` and returns them.

    Without `ax`, new axes are made, which a notebook shows. Colours and sizes are those that the
    notebook has set (`rcParams`). Times are hours. Needs the extra `plot`; decision 31 says why
    matplotlib.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def jct_cdf(self, ax: Axes | None = None) -> Axes:
        """The share of finished jobs that took at most this long from arrival to end."""
        return self.compare(ax=ax)

    def timeline(self, ax: Axes | None = None) -> Axes:
        """GPUs that jobs held, of these those that computed, and the number of waiting jobs."""
        ax = _axes(ax)
        rows, gpus = self._result.timeline, self._result.summary["gpus"]
        hours = rows.time_s / _S_PER_HOUR
        ax.fill_between(hours, rows.gpus_held, step="post", alpha=0.3, label="GPUs held")
        ax.step(hours, rows.gpus_computing, where="post", label="GPUs computing")
        ax.step(hours, rows.jobs_waiting, where="post", linestyle=":", label="jobs waiting")
        ax.axhline(gpus, color="gray", linewidth=0.8, label=f"{gpus:,} GPUs")
        ax.set(xlabel="time [h]", ylabel="GPUs, jobs", title=_name(self._result))
        ax.set_ylim(bottom=0)
        ax.legend()
        return ax

    def compare(self, *others: Result, ax: Axes | None = None) -> Axes:
        """Draw the distributions of completion times of finished jobs in this and other runs.

        The legend shows the mean of each run and the settings in which the runs differ, including
        runs that were drawn on these axes before. A difference between two single runs may be
        chance: `artist.compare` gives intervals.

        Raises:
            ConfigError: one of the others is not a result, but a name of a policy, say.
        """
        for other in others:
            if not isinstance(other, Result):
                raise ConfigError(
                    f"plot.compare({shortened(other)}): expected results of other runs, as "
                    "artist.simulate or artist.load returns them"
                )
        ax = _axes(ax)
        curves = _CURVES.setdefault(ax, [])
        for run in (self._result, *others):
            jobs = run.jobs
            done = jobs[jobs.cancelled == 0] if "cancelled" in jobs else jobs
            hours = np.sort(done.jct_s.dropna().to_numpy()) / _S_PER_HOUR
            shares = np.arange(1, len(hours) + 1) / len(hours)
            curves.append(_Curve(run, hours.mean(), *ax.step(hours, shares, where="post")))
        for one, label in zip(curves, labels([one.run for one in curves]), strict=True):
            one.line.set_label(f"{label}: mean {one.mean_h:.3g} h")
        title = _name(self._result) if len(curves) == 1 else f"{len(curves)} runs"
        ax.set(xlabel="completion time [h]", ylabel="share of jobs", title=title, ylim=(0, 1.02))
        ax.legend()
        return ax


class _Curve(NamedTuple):
    """The curve of a run."""

    run: Result
    mean_h: float
    line: Line2D


_CURVES: WeakKeyDictionary[Axes, list[_Curve]] = WeakKeyDictionary()
"""The curves on each axes, so that the legend can distinguish all of them."""


def labels(runs: Sequence[Result]) -> list[str]:
    """Names of runs: their policies, and the other settings in which they differ."""
    settings = [run.scenario.model_dump() for run in runs]
    differing = [
        name
        for name in dict.fromkeys(name for each in settings for name in each)
        if name != "policy" and len({repr(each.get(name)) for each in settings}) > 1
    ]
    return [
        ", ".join([each["policy"], *(f"{name} {each.get(name)}" for name in differing)])
        for each in settings
    ]


def _name(run: Result) -> str:
    return f"{run.summary['policy']} on {run.summary['trace']}"


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    check_import("Result.plot", "matplotlib.pyplot", extra="plot")
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]

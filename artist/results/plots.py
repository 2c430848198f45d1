"""Plots of runs for notebooks, `result.plot`: each draws on matplotlib `Axes` and returns them.

Colours and sizes are those that the notebook has set (`rcParams`). Times are hours.
`docs/decisions/0031-axes-in-notebooks.md` says why matplotlib. Needs the extra `plot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from artist.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from artist.results.result import Result

_S_PER_HOUR = 3600


class Plots:
    """The plots of a run. Without `ax`, new axes are made, which a notebook shows."""

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
        """The completion times of this run's finished jobs and of other runs', as shares of them.

        The legend has the mean of each, and what tells them apart, also from runs that were drawn
        on these axes before. A difference between two single runs may be chance:
        `artist.compare` gives intervals.
        """
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
"""What stands on axes, so that the legend can tell all of it apart."""


def labels(runs: Sequence[Result]) -> list[str]:
    """What tells runs apart: their policies, and the other settings that differ."""
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
    """The axes given, or new ones.

    Raises:
        ConfigError: matplotlib is missing.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as cause:
        raise ConfigError(
            "plots need matplotlib; install it with: pip install 'artist-sim[plot]'"
        ) from cause
    return pyplot.subplots(layout="constrained")[1]

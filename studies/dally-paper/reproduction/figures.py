"""The figures of the pages as SVG. The same rows give the same bytes."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claims import CLAIMS, METRICS, Claim
from evidence import Cell, Evidence
from pairs import RACKS
from sources import DRAWN, OWN, Original
from values import POLICIES
from verdicts import DRAWN_JOBS, compared

from artist.experiments.experiment import load_experiment, runs
from artist.io.figures import draw_to
from artist.report.drawing import draw, style
from artist.report.grouping import group
from artist.report.page import figures
from artist.report.reader import read_runs
from artist.results.run_directory import write_run
from artist.results.statistics.compare_values import LESS, MORE, ComparedValues
from artist.results.terms.number_text import DAY, HOUR
from artist.run import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH_IN = 7.2
STYLE: Any = {
    "font.size": 8, "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.6, "grid.linewidth": 0.4, "grid.color": "#dddddd", "axes.axisbelow": True,
    "legend.frameon": False, "lines.linewidth": 1.1, "text.parse_math": False,
    "svg.fonttype": "none", "svg.hashsalt": "artist",
}  # fmt: skip

CURVES = ("jct-cdf",)
TIME_TICKS = (
    (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (HOUR, "1 h"),
    (10 * HOUR, "10 h"), (DAY, "1 d"), (10 * DAY, "10 d"), (100 * DAY, "100 d"),
    (1000 * DAY, "1000 d"),
)  # fmt: skip
"""Ticks of a logarithmic axis of seconds."""


def write_rows(evidence: Evidence, original: Original, folder: Path) -> None:
    """Draw the figures that need nothing but the rows of the results."""
    folder.mkdir(exist_ok=True)
    for claim in CLAIMS:
        if claim.main:
            _save(folder / f"claim-{claim.id}.svg", 1.9, partial(_claim, evidence, claim))
    _save(folder / "values.svg", 5.4, lambda canvas: _values(evidence, original, canvas))


def write_curves(studies: Path, folder: Path) -> None:
    """Figure 9 of the paper (upside down, Figure 12): the first drawn batch on 8 racks.

    These runs are made again, because `results.csv` holds no completion times of single jobs.
    """
    folder.mkdir(exist_ok=True)
    chosen = [
        run
        for run in runs(load_experiment(studies / "default.yaml"))
        if run.scenario.racks == 8 and run.scenario.seed == 0
        if run.scenario.trace == DRAWN["batch"]
    ]
    with tempfile.TemporaryDirectory() as scratch:
        paths = []
        for run in chosen:
            paths.append(Path(scratch) / run.scenario.policy)
            write_run(simulate(run.scenario), paths[-1], ())
        study = group(read_runs(paths))
    for name in CURVES:
        figure = next(one for one in figures(study) if one.name.startswith(name))
        _save(folder / f"{name}.svg", 2.6, partial(draw, figure))


def _save(path: Path, height_in: float, paint: Callable[[Canvas], None]) -> None:
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH_IN, height_in), layout="constrained")
        paint(canvas)
        draw_to(canvas, path, "svg")


def _claim(evidence: Evidence, claim: Claim, canvas: Canvas) -> None:
    """One claim in every regime: a panel per number of racks, a line per regime.

    A filled mark is a sure difference. Grey: what the paper says.
    """
    panels = canvas.subplots(1, len(RACKS), sharey=True)
    for axes, racks in zip(panels, RACKS, strict=True):
        axes.axvline(0, color="black", lw=0.6)
        said = [int(number) for number in re.findall(r"[-+]\d+", claim.paper)]
        if said:
            axes.axvspan(min(said), max(said), color="#dddddd", lw=1)
        for at, regime in enumerate(DRAWN_JOBS):
            difference = compared(evidence, claim, regime, racks)
            # Without replicates that differ there is no interval.
            if difference is not None and not math.isnan(difference.low):
                _whisker(axes, at, difference, style(f"s{at}")[0])
        axes.set_yticks(range(len(DRAWN_JOBS)), DRAWN_JOBS)
        axes.set_ylim(len(DRAWN_JOBS) - 0.5, -0.5)
        axes.set_xscale("symlog", linthresh=100)
        axes.set_xlim(-100, 3000)
        axes.set_xticks([-100, 0, 100, 1000], ["-100", "0", "100", "1000"])
        axes.grid(visible=True, axis="x")
        axes.set_title(f"{racks} racks" if racks in claim.racks else f"{racks} racks: not claimed")
    canvas.supxlabel(f"{claim.policy} over {claim.rival}, {METRICS[claim.metric]} (%)")


def _whisker(axes: Axes, at: int, difference: ComparedValues, colour: str) -> None:
    """The ratio as a percentage with its interval. These metrics are never zero."""
    mean, low, high = (
        100 * (end - 1) for end in (difference.ratio, difference.low, difference.high)
    )
    axes.plot([low, high], [at, at], color=colour)
    face = colour if difference.verdict in (LESS, MORE) else "white"
    axes.plot([mean], [at], "o", color=colour, markerfacecolor=face, markersize=3.5)


def _values(evidence: Evidence, original: Original, canvas: Canvas) -> None:
    """Makespan and mean JCT: ours, and the original program with and without its leak."""
    panels = canvas.subplots(2, 2, sharex=True, sharey="col")
    for row, arrivals in zip(panels, DRAWN, strict=True):
        for axes, (metric, label) in zip(row, _METRICS.items(), strict=True):
            for order, policy in enumerate(POLICIES):
                shift = (order - (len(POLICIES) - 1) / 2) * 0.11
                colour = style(f"s{order}")[0]
                for index, racks in enumerate(RACKS):
                    cell = Cell("default", DRAWN[arrivals], racks, policy)
                    if not evidence.has(cell):
                        continue
                    values = evidence.values(cell, metric)
                    x = index + shift
                    axes.plot([x, x], [min(values), max(values)], color=colour)
                    name = policy if not index else None
                    axes.plot(x, evidence.middle(cell, metric), "o", color=colour, ms=3, label=name)
                    _theirs(axes, original, (OWN[arrivals], policy, racks, metric), (x, colour))
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            inside = [(at, name) for at, name in TIME_TICKS if low <= at <= high]
            axes.set_yticks([at for at, _ in inside], [name for _, name in inside])
            axes.minorticks_off()
            axes.set_xticks(range(len(RACKS)), [f"{racks} racks" for racks in RACKS])
            axes.grid(visible=True, axis="y")
            axes.set_ylabel(f"{label}, {arrivals}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=4)


def _theirs(
    axes: Axes, original: Original, key: tuple[str, str, int, str], where: tuple[float, str]
) -> None:
    trace, policy, racks, metric = key
    x, colour = where
    for variant, marker in (("asis", "x"), ("fix", "_")):
        run: Mapping[str, float] | None = original.get((variant, trace, policy, racks))
        if run is not None:
            axes.plot(x, run[metric], marker, color=colour, ms=4, alpha=0.7)


_METRICS = {"makespan_s": "makespan", "jct_mean_s": "mean JCT"}

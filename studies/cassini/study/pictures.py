"""The pictures of the page as SVG. The same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artist.report.drawing import style
from studies.cassini.study.judging import Judged, judged_links
from studies.cassini.study.links import CENTRE, FIRST, JITTERS, LINKS
from studies.cassini.study.observations import QUANTILES
from studies.cassini.study.plan import (
    CASSINI,
    HOST,
    HOSTS,
    HOSTS_CELL,
    IDEAL,
    PAIRS,
    RACKS_2,
    RACKS_4,
    RANDOM,
)
from studies.cassini.study.workloads import CATALOGUE, DIVIDED, MATCHED
from studies.common.pictures import save
from studies.common.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_COLOURS = 6

_WIDE = (0.03, 0.1, 0.3, 1.0, 3.0)
_WIDE_DIVIDED = (1.0, 3.0, 10.0, 30.0)
PANELS = (
    ((CATALOGUE, "poisson", RACKS_2), "Fig. 11: Poisson, 2:1", "paper: 1.6, P99 1.8", _WIDE),
    ((DIVIDED, "poisson", RACKS_2), "Fig. 12: divided, 2:1", "paper: 1.2, P99 1.6", _WIDE_DIVIDED),
    ((CATALOGUE, "dynamic", RACKS_2), "Fig. 13: dynamic, 2:1", "paper: 1.5, P99 2.2", _WIDE),
    ((DIVIDED, "dynamic", RACKS_2), "Fig. 14: divided, 2:1", "paper: 1.2, P99 1.6", _WIDE_DIVIDED),
    ((CATALOGUE, "dynamic", PAIRS), "Fig. 16: pairs", "paper: 1.4, P99 1.9", _WIDE),
    ((MATCHED, "poisson", RACKS_4), "matched, Poisson, 4:1", "", (0.3, 0.4, 0.5)),
    ((CATALOGUE, "dynamic", RACKS_4), "dynamic, 4:1", "", _WIDE),
    ((MATCHED, "dynamic", RACKS_4), "matched, dynamic, 4:1", "", (0.3, 0.4, 0.5)),
)
"""Cells of the picture of iteration times, what the paper gains there, and ticks in seconds."""


def draw_all(rows: Sequence[Row], folder: Path) -> None:
    """Draw every picture into a folder."""
    one = Judged(rows)
    save(folder / "iterations.svg", 2.6, partial(_iterations, one))
    save(folder / "hosts.svg", 2.6, partial(_hosts, one))
    save(folder / "jitter.svg", 2.6, _jitter)


def _iterations(one: Judged, canvas: Canvas) -> None:
    """Which share of the iterations takes up to how long: means of the replicates' quantiles."""
    canvas.set_figheight(4.8)
    panels = canvas.subplots(2, len(PANELS) // 2, sharey=True).ravel()
    names = {HOST: "Themis", CASSINI: "Themis with CASSINI", IDEAL: "Ideal"}
    for axes, (cell, title, paper, ticks) in zip(panels, PANELS, strict=True):
        for index, (variant, label) in enumerate(names.items()):
            times = [one.mean(cell, "themis", variant, f"q{q}_s") for q in QUANTILES]
            axes.plot(times, QUANTILES, "o-", ms=2, color=style(f"s{index}")[0], label=label)
        axes.set_title(title, fontsize=8)
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        if axes in panels[len(PANELS) // 2 :]:
            axes.set_xlabel("iteration (s)")
        axes.text(0.98, 0.12, paper, transform=axes.transAxes, ha="right", fontsize=7)
        axes.grid(visible=True)
    for axes in panels[:: len(PANELS) // 2]:
        axes.set_ylabel("iterations (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=len(names))


def _hosts(one: Judged, canvas: Canvas) -> None:
    """The gain of each host, beside the share of its iterations that others slow."""
    axes = canvas.subplots()
    axes.axhline(1, color="black", lw=0.6)
    for index, host in enumerate(("themis", *HOSTS, RANDOM)):
        gain = one.hosts[host, "stretch_mean"]
        x = 100 * one.mean(HOSTS_CELL, host, HOST, "slowed_share")
        colour = style(f"s{index % _COLOURS}")[0]
        axes.plot([x, x], [gain.low, gain.high], color=colour, lw=0.8)
        axes.plot(x, gain.ratio, "osD"[index // _COLOURS], color=colour, ms=3.5, label=host)
    axes.set_xlabel("iterations that other jobs slow, without CASSINI (%)")
    axes.set_ylabel("gain, mean stretch")
    axes.grid(visible=True)
    canvas.legend(loc="outside right center", ncols=1)


def _jitter(canvas: Canvas) -> None:
    """The gain on one link over jitter."""
    links = judged_links(LINKS.read())
    panels: Sequence[Axes] = canvas.subplots(1, 4, sharey=True)
    for axes, snapshot in zip(panels, (1, 2, 3, 4), strict=True):
        axes.axhline(1, color="black", lw=0.6)
        for index, variant in enumerate((FIRST, CENTRE)):
            gains = [links[snapshot, variant, x].ratio for x in JITTERS]
            x = [100 * x for x in JITTERS]
            axes.plot(x, gains, "o-", ms=3, color=style(f"s{index}")[0], label=variant)
        axes.set_title(f"snapshot {snapshot}")
        axes.set_xlabel("jitter (%)")
        axes.grid(visible=True)
    panels[0].set_ylabel("gain, time not computing")
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=2)

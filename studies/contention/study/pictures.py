"""The pictures of the page as SVG. The same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artist.report.drawing import style
from studies.common.pictures import save
from studies.common.rows import Row
from studies.contention.study.judging import SETTINGS, Judged, is_sure
from studies.contention.study.observations import POLICIES, RATIOS
from studies.contention.study.wording import SPEEDS, judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

HOUR = 3600.0
HOURS = (6, 8, 10, 12, 15, 20, 25, 30)
"""Ticks of the mean JCT."""
METRIC = "jct_mean_s"


def draw_all(rows: Sequence[Row], folder: Path) -> None:
    """Draw every picture into a folder."""
    experiments = judged(rows)
    save(folder / "order.svg", 3.0, partial(_paint, experiments, _order))
    save(folder / "cost.svg", 3.0, partial(_paint, experiments, _cost))


def _paint(
    experiments: dict[str, Judged], panel: Callable[[Judged, Axes], None], canvas: Canvas
) -> None:
    panels = canvas.subplots(1, len(experiments), sharey=True)
    for axes, (name, one) in zip(panels, experiments.items(), strict=True):
        panel(one, axes)
        axes.set_title(f"links of {SPEEDS[name]}")
        axes.grid(visible=True, axis="y")
    panels[0].set_ylabel(_LABELS[panel])
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=len(POLICIES))


def _order(one: Judged, axes: Axes) -> None:
    """Mean JCT of each policy, from no contention to 4:1. Lines that cross change order."""
    for index, policy in enumerate(POLICIES):
        means = [one.mean(policy, setting, METRIC) / HOUR for setting in SETTINGS]
        axes.plot(
            range(len(SETTINGS)), means, "o-", color=style(f"s{index}")[0], ms=3, label=policy
        )
    axes.set_xticks(range(len(SETTINGS)), ["none", *(f"{ratio}:1" for ratio in RATIOS)])
    axes.set_xlabel("contention, by oversubscription of the racks")
    axes.set_yscale("log")
    axes.set_yticks(HOURS, [str(hours) for hours in HOURS])
    axes.minorticks_off()


def _cost(one: Judged, axes: Axes) -> None:
    """What contention adds to the mean JCT, with 95 % intervals. A filled mark is sure."""
    axes.axhline(0, color="black", lw=0.6)
    for index, policy in enumerate(POLICIES):
        colour = style(f"s{index}")[0]
        for at, ratio in enumerate(RATIOS):
            cost = one.costs[METRIC, ratio, policy]
            mean, low, high = (100 * (end - 1) for end in (cost.ratio, cost.low, cost.high))
            x = at + (index - (len(POLICIES) - 1) / 2) * 0.12
            face = colour if is_sure(cost) else "white"
            axes.plot([x, x], [low, high], color=colour)
            label = None if at else policy
            axes.plot(x, mean, "o", color=colour, markerfacecolor=face, ms=3.5, label=label)
    axes.set_xticks(range(len(RATIOS)), [f"{ratio}:1" for ratio in RATIOS])
    axes.set_xlabel("oversubscription of the racks")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_yticks([-1, 0, 1, 10, 100], ["-1", "0", "1", "10", "100"])
    axes.minorticks_off()


_LABELS: dict[Callable[[Judged, Axes], None], str] = {
    _order: "mean JCT (h)",
    _cost: "JCT added by contention (%)",
}

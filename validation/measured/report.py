"""What `make measured` prints, and the tables and the picture of docs/fidelity.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from artist.calibrate.fit_machine import MachineFit
from artist.calibrate.step_prediction import StepErrors
from artist.io.writing import whole_file
from validation.measured.accuracy import (
    Prediction,
    errors,
    groups,
    measured_again,
    order,
    uneven_ratios,
)
from validation.page import markdown_table

FITTED_TASK = "resnet50"
"""The numbers of a kind of machine are fitted to its steps of this task."""


def errors_table(predictions: Sequence[Prediction]) -> str:
    """Errors per kind of machine, task and number of machines."""
    rows = [
        [hardware, _task(task), machines, *_errors(errors(group))]
        for (hardware, task, machines), group in groups(predictions)
    ]
    return markdown_table(["hardware", "task", "machines", "steps", "median error", "P90"], rows)


def summary_table(predictions: Sequence[Prediction]) -> str:
    """Per kind of machine and task: errors, uneven over even shapes, the order of placements."""
    rows = []
    for hardware, task in sorted({(x.step.hardware, x.step.task) for x in predictions}):
        group = [x for x in predictions if (x.step.hardware, x.step.task) == (hardware, task)]
        uneven, ranks, again = uneven_ratios(group), order(group), measured_again(group)
        rows.append(
            [
                hardware,
                _task(task),
                *_errors(errors(group)),
                "" if again is None else " / ".join(_errors(again)[1:]),
                "" if uneven is None else f"{uneven.measured:.3f}",
                "" if uneven is None else f"{uneven.predicted:.3f} ({100 * uneven.near:.0f} %)",
                f"{100 * ranks.noise:.0f} %",
                "" if not ranks.pairs else f"{ranks.tau:.2f} ({ranks.pairs:,} pairs)",
            ]
        )
    header = ["hardware", "task", "steps", "median error", "P90", "measured again"]
    header += ["uneven / even, measured", "predicted (near 1)", "noise", "Kendall's tau"]
    return markdown_table(header, rows)


def numbers_table(fitted: Mapping[str, MachineFit]) -> str:
    """The fitted numbers of each kind of machine."""
    rows = []
    for hardware, fit in fitted.items():
        numbers = fit.numbers
        bandwidths = [
            f"at least {fit.at_least[name]:.3g} GiB/s"
            if name in fit.at_least
            else f"{getattr(numbers, name):.3g} GiB/s"
            for name in ("inside_gib_per_s", "outside_gib_per_s")
        ]
        shares = [f"{100 * share:.0f} %" for share in (numbers.pair_share, numbers.hidden_share)]
        rows.append([hardware, *bandwidths, *shares])
    header = ["hardware", "bandwidth in a machine", "between machines", "of which two reach"]
    return markdown_table([*header, "hidden share"], rows)


def choices_table(outcomes: Mapping[str, Sequence[Prediction]]) -> str:
    """Per kind of machine and way to ask ASTRA-sim: errors, uneven shapes, order, by task."""
    rows = []
    for kind in sorted({x.step.hardware for each in outcomes.values() for x in each}):
        for choice, predictions in outcomes.items():
            tasks = sorted({x.step.task for x in predictions if x.step.hardware == kind})
            by_task = [
                [x for x in predictions if (x.step.hardware, x.step.task) == (kind, task)]
                for task in tasks
            ]
            cells = (" / ".join(_errors(errors(group))[1:]) for group in by_task)
            ratios = filter(None, map(uneven_ratios, by_task))
            near = min((ratio.near for ratio in ratios), default=math.nan)
            taus = ", ".join(f"{order(group).tau:.2f}" for group in by_task)
            rows.append([kind, choice, *cells, f"{100 * near:.0f} %", taus])
    tasks = sorted({x.step.task for each in outcomes.values() for x in each})
    header = ["hardware", "asked", *tasks, "uneven near even", "Kendall's tau"]
    return markdown_table(header, rows)


def transfer_table(outcomes: Mapping[str, Sequence[Prediction]]) -> str:
    """Per kind of machine and origin of the numbers: errors by task."""
    tasks = sorted({x.step.task for each in outcomes.values() for x in each})
    rows = []
    for kind in sorted({x.step.hardware for each in outcomes.values() for x in each}):
        for origin, predictions in outcomes.items():
            mine = [x for x in predictions if x.step.hardware == kind]
            by_task = ([x for x in mine if x.step.task == task] for task in tasks)
            cells = (" / ".join(_errors(errors(group))[1:]) if group else "" for group in by_task)
            rows.append([kind, origin, *cells])
    return markdown_table(["hardware", "numbers", *tasks], rows)


def draw(predictions: Sequence[Prediction], path: Path) -> None:
    """Predicted over measured steps, a panel per kind of machine, a colour per task."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "measured", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    kinds = sorted({x.step.hardware for x in predictions})
    tasks = sorted({x.step.task for x in predictions})
    figure, panels = plt.subplots(1, len(kinds), figsize=(4.2 * len(kinds), 4), squeeze=False)
    for panel, kind in zip(panels[0], kinds, strict=True):
        for number, task in enumerate(tasks):
            group = [x for x in predictions if (x.step.hardware, x.step.task) == (kind, task)]
            measured = [x.step.step_s for x in group]
            colour = mpl.colormaps["viridis"](number / len(tasks))
            style = {"s": 7, "color": colour, "alpha": 0.6, "linewidths": 0, "rasterized": True}
            panel.scatter(measured, [x.predicted_s for x in group], label=_task(task), **style)
        times_s = [x.step.step_s for x in predictions if x.step.hardware == kind]
        ends = (0.8 * min(times_s), 1.25 * max(times_s))
        panel.plot(ends, ends, color="black", linewidth=0.8)
        for factor in (0.7, 1.3):
            panel.plot(ends, [factor * x for x in ends], "--", color="grey", linewidth=0.6)
        panel.set(xscale="log", yscale="log", title=kind, xlabel="measured step, s")
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("predicted step, s")
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    with whole_file(path) as partial:
        figure.savefig(partial, format="svg", metadata={"Date": None}, dpi=150)


def _task(task: str) -> str:
    return f"{task} (fitted)" if task == FITTED_TASK else task


def _errors(of: StepErrors) -> list[str]:
    return [f"{of.steps:,}", f"{100 * of.median:.1f} %", f"{100 * of.p90:.1f} %"]

"""Draw what moving bytes buys: `python studies/tetris/curve.py`.

It plans a synthetic warehouse of 6,000 jobs with several daily quotas, for three seeds, and writes
`curve.csv` (a row per day) and `curve.svg`.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from artist.io.figures import new_figure, save_figure
from artist.warehouse.files import write_warehouse
from artist.warehouse.plan import place
from artist.warehouse.read import read_warehouse
from artist.warehouse.synthetic import synth_warehouse
from artist.warehouse.warehouse_schema import PlanOptions, Replicas

HERE = Path(__file__).parent
JOBS, GPUS, DAYS = 6000, 100_000, 14
QUOTAS = (0.005, 0.02, 1.0)
COLUMNS = ("seed", "quota", "day", "moved_share", "ratio_max", "ratio_sd", "objective")


def days(seed: int, quota: float, folder: Path) -> list[tuple[float, ...]]:
    """A row per day; day 0 is V0."""
    warehouse = folder / f"warehouse-{seed}"
    write_warehouse(synth_warehouse(JOBS, GPUS, seed), warehouse, overwrite=True)
    instance = read_warehouse(warehouse)
    plan = place(instance, PlanOptions(quota=quota, days=DAYS, replicas=Replicas.NONE))
    facts, done = plan.facts(), plan.climb
    start = (facts["ratio_max_before"], facts["ratio_sd_before"], facts["objective_before"])
    rows: list[tuple[float, ...]] = [(seed, quota, 0, 0.0, *start)]
    moved = 0
    for day, size in enumerate(done.day_bytes):
        moved += size
        ratios = done.day_ratios[day]
        share = moved / int(instance.size.sum())
        numbers = (share, float(ratios.max()), float(ratios.std()), done.day_cost[day])
        rows.append((seed, quota, day + 1, *numbers))
    return rows


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row for seed in range(3) for quota in QUOTAS for row in days(seed, quota, Path(folder))
        ]
    with (HERE / "curve.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*row[:3], *(f"{x:.5f}" for x in row[3:])] for row in rows)
    figure = new_figure()
    figure.set_size_inches(7, 4)
    axes = figure.subplots()
    for quota, style in zip(QUOTAS, ("-", "--", ":"), strict=True):
        for seed in range(3):
            mine = [row for row in rows if row[:2] == (seed, quota)]
            x, y = [100 * row[3] for row in mine], [row[4] for row in mine]
            label = f"{100 * quota:g} % a day" if seed == 0 else None
            axes.plot(x, y, style, color=f"C{seed}", marker=".", label=label)
    axes.axhline(0.98, color="grey", linewidth=0.8, label="the paper's V1")
    axes.set_xlabel("bytes moved, % of all (colours are seeds)")
    axes.set_ylabel("demand / supply, most overloaded region")
    axes.set_ylim(bottom=0)
    axes.legend()
    save_figure(figure, HERE / "curve.svg")


if __name__ == "__main__":
    main()

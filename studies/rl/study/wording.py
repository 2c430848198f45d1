"""The page: every cell, wins and losses."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from artist.results.statistics.compare_values import ComparedValues
from studies.common.rows import Row
from studies.rl.study.judging import Judged, verdict
from studies.rl.study.paper import PAPER
from studies.rl.study.plan import (
    BASELINE,
    BASES,
    BATCH,
    BATCH_JOBS,
    FIRST_SEED,
    JOBS,
    LOADS,
    MACHINES,
    POLICIES,
    SEEDS,
    WAITING,
    cells,
    ran,
)
from studies.rl.study.trainings import CELLS, TRAININGS, seeds_table

PRINTED = {"las as coded": 6082, "srtf as coded": 5975}
"""Service time in seconds that the authors' code prints for the trace."""

LEARNED = ("rl-base", "rl-hybrid")
OVER_WAITING = (BASELINE, *BASES, *LEARNED)


def page_text(rows: Sequence[Row]) -> str:
    """README.md."""
    judged = Judged(rows)
    against, waiting = judged.against(), judged.against(WAITING)
    searches = judged.of_searches()
    parts = [
        "<!-- Written by `make study-rl` from results.csv, trainings.csv and paper.csv. "
        "Do not edit. -->",
        "# Do learned policies beat good rules under contention?",
        _summary(against, waiting, searches),
        "## Mean JCT, hours",
        _means(judged),
        f"## Against `{BASELINE}`",
        "Mean JCT of the policy over that of the baseline on the same trace: mean difference and "
        "its 95 % interval. A policy's cells are judged together (Holm).",
        *[_cells(against, machines) for machines in MACHINES],
        f"## Against `{WAITING}`",
        "The same against SRSF that waits until one machine has room, or the cluster if a job is "
        "larger: `--policy srsf --set policy.placement=consolidate-or-wait`. The networks place "
        "jobs by this placer, too.",
        *[_cells(waiting, machines, OVER_WAITING) for machines in MACHINES],
        "## Searches, each against its base",
        "What doubting starts gains over the policy that makes them.",
        *[_cells(searches, machines) for machines in MACHINES],
        "## Trainings with several seeds",
        _trainings(judged),
        "## The paper's table, with correct baselines",
        _paper(),
        _how(),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(
    against: dict[tuple[int, str, str], ComparedValues],
    waiting: dict[tuple[int, str, str], ComparedValues],
    searches: dict[tuple[int, str, str], ComparedValues],
) -> str:
    lines = ["## What came out", ""]
    for policy in LEARNED:
        for name, table in ((BASELINE, against), (WAITING, waiting)):
            lines.append(f"- `{policy}` against `{name}`: {_count(table, policy)}.")
    for search, base in BASES.items():
        lines.append(f"- `{search}` against its base `{base}`: {_count(searches, search)}.")
    lines += [
        f"- The rule that only waits for one machine, against `{BASELINE}`: "
        f"{_count(against, WAITING)}. What a network gains over it is what learning gains.",
    ]
    return "\n".join(lines)


def _count(table: dict[tuple[int, str, str], ComparedValues], policy: str) -> str:
    words = [verdict(table[key]).strip("*") for key in table if key[2] == policy]
    kinds = ("win", "loss", "no difference", "undecided")
    counted = [f"{words.count(kind)} {_plural(kind, words.count(kind))}" for kind in kinds]
    return f"{', '.join(counted)}, of {len(words)} cells"


def _plural(kind: str, count: int) -> str:
    return {"win": "wins", "loss": "losses"}.get(kind, kind) if count != 1 else kind


def _means(judged: Judged) -> str:
    head = [f"{machines} machines, {load}" for machines, load in cells()]
    lines = [_row(["policy", *head]), _row(["---"] * (1 + len(head)))]
    for policy in POLICIES:
        means = [
            f"{fmean(judged.values(machines, load, policy)) / 3600:.1f}"
            if ran(machines, load, policy)
            else ""
            for machines, load in cells()
        ]
        lines.append(_row([f"`{policy}`", *means]))
    return "\n".join(lines)


def _cells(
    table: dict[tuple[int, str, str], ComparedValues], machines: int, only: Sequence[str] = ()
) -> str:
    columns = [load for of, load in cells() if of == machines]
    head = [f"batch of {BATCH_JOBS[machines]}" if x == BATCH else f"load {x}" for x in columns]
    lines = [_row([f"{machines} machines", *head]), _row(["---"] * (1 + len(head)))]
    for policy in POLICIES:
        if policy in only or not only:
            cells_ = [_cell(table.get((machines, x, policy))) for x in columns]
            if any(cells_):
                lines.append(_row([f"`{policy}`", *cells_]))
    return "\n".join(lines)


def _cell(compared: ComparedValues | None) -> str:
    if compared is None:
        return ""
    low, mean, high = (
        f"{100 * (x - 1):+.1f}" for x in (compared.low, compared.ratio, compared.high)
    )
    return f"{mean} % [{low} .. {high}] {verdict(compared)}"


def _trainings(judged: Judged) -> str:
    if not TRAININGS.path.is_file():
        return (
            "`trainings.csv` is missing. Train with several seeds (the model cards say how), then "
            "`python -m studies.rl.study trainings --folder FOLDER`."
        )
    base = {cell: judged.values(*cell, WAITING) for cell in CELLS}
    return "\n\n".join(
        [
            f"Mean JCT over that of `{WAITING}`, less 1, mean over the traces of the judgement. "
            "Which training ships was chosen on traces of seeds 5000 on, not on these. A network "
            "that was trained from nothing and may wait loses by its waits, not by its order or "
            "its placer: with the greedy rule where it answers none, nearly all of its loss is "
            "gone.",
            seeds_table(TRAININGS.read(), base),
        ]
    )


def _paper() -> str:
    if not PAPER.path.is_file():
        return (
            "`paper.csv` is missing: it needs the authors' tables, which do not ship "
            "(`python -m studies.rl.study paper --tables FOLDER --trace FILE`)."
        )
    lines = [
        "4 machines of 8 GPUs, 256 jobs at time 0, rounds of 300 s, with the authors' own tables "
        "of throughputs, which do not ship (`python -m studies.rl.study paper --tables FOLDER "
        "--trace FILE`). Service is what their code prints as JCT: it leaves out waiting.",
        "",
        _row(
            [
                "policy",
                "placement",
                "service, s",
                "they print",
                "mean JCT, s",
                "P90, s",
                "GPUs held",
            ]
        ),
        _row(["---"] * 7),
    ]
    for row in PAPER.read():
        printed = PRINTED.get(row["policy"])
        service = float(row["service_s"])
        theirs = f"{printed:,} ({100 * (service / printed - 1):+.1f} %)" if printed else ""
        cells_ = [
            f"`{row['policy']}`",
            row["placement"],
            f"{service:,.0f}",
            theirs,
            f"{float(row['jct_mean_s']):,.0f}",
            f"{float(row['jct_p90_s']):,.0f}",
            f"{float(row['utilisation']):.2f}",
        ]
        lines.append(_row(cells_))
    lines += [
        "",
        "As coded, LAS serves the most served job first and SRTF the job of which the least is "
        "done, jobs are spread over as many machines as possible, and a job never lies on one. "
        "`pack` takes the fewest machines but two at least, `one machine` may take a single one, "
        "and `0.6 or wait` starts no job where anybody would keep less than that of its speed.",
    ]
    return "\n".join(lines)


def _how() -> str:
    small, large = MACHINES
    poisson = f"Poisson, {JOBS[small]} and {JOBS[large]} jobs"
    batch = f"{BATCH_JOBS[small]} and {BATCH_JOBS[large]} jobs at time 0"
    points = {
        "Cluster": "[`training/machines.yaml`](training/machines.yaml): machines of eight GPUs "
        "that share a card of 10 Gbit/s, contention `mean`. The networks were trained on "
        f"{small} machines; on {large} they are used as they are.",
        "Jobs": f"`synth` at loads {', '.join(LOADS)} ({poisson}) and a batch ({batch}), seeds "
        f"{FIRST_SEED} to {FIRST_SEED + SEEDS - 1}. No training and no choice used these seeds.",
        "What is missing": "LAS ran on four machines only: on sixteen it joins many jobs on links, "
        "and a run takes up to 20 s. `lookahead(las)` did not run: a run takes up to half a minute "
        "on four machines. The authors' published networks are not ranked: nobody gave their "
        "weights.",
        "Again": "`make study-rl` repeats all runs and writes this page. Each row of `results.csv` "
        "is one run.",
    }
    lines = [f"- **{name}.** {text}" for name, text in points.items()]
    return "\n".join(["## How it was asked", "", *lines])


def _row(cells_: Sequence[str]) -> str:
    return f"| {' | '.join(cells_)} |"

"""The values of the page: every cell, wins and losses. `page.md.j2` has the words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from artist.results.statistics.compare_values import ComparedValues
from studies.common.page import rendered
from studies.common.rows import Row
from studies.rl.study.judging import Judged, verdict
from studies.rl.study.observations import HERE
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
_PLURALS = {"win": "wins", "loss": "losses"}

Comparisons = Mapping[tuple[int, str, str], ComparedValues]
Line = tuple[str, list[str]]
"""A policy and its cells."""


def page_text(rows: Sequence[Row]) -> str:
    """README.md."""
    judged = Judged(rows)
    return rendered(
        HERE,
        learned=LEARNED,
        baseline=BASELINE,
        waiting=WAITING,
        bases=BASES,
        against=judged.against(),
        against_waiting=judged.against(WAITING),
        over_waiting=OVER_WAITING,
        searches=judged.of_searches(),
        count=_count,
        tables=_tables,
        means_head=[f"{machines} machines, {load}" for machines, load in cells()],
        means=[(policy, _means(judged, policy)) for policy in POLICIES],
        trainings=_trainings(judged) if TRAININGS.path.is_file() else "",
        paper=[_paper(row) for row in PAPER.read()] if PAPER.path.is_file() else [],
        machines=MACHINES,
        loads=LOADS,
        jobs=JOBS,
        batch=BATCH_JOBS,
        seeds=(FIRST_SEED, FIRST_SEED + SEEDS - 1),
    )


def _count(table: Comparisons, policy: str) -> str:
    """How many cells of a policy have which verdict."""
    words = [verdict(table[key]).strip("*") for key in table if key[2] == policy]
    counts = {kind: words.count(kind) for kind in ("win", "loss", "no difference", "undecided")}
    counted = [
        f"{count} {kind if count == 1 else _PLURALS.get(kind, kind)}"
        for kind, count in counts.items()
    ]
    return f"{', '.join(counted)}, of {len(words)} cells"


def _means(judged: Judged, policy: str) -> list[str]:
    """Mean JCT in hours in every cell; empty where the policy did not run."""
    return [
        f"{fmean(judged.values(*cell, policy)) / 3600:.1f}" if ran(*cell, policy) else ""
        for cell in cells()
    ]


def _tables(
    table: Comparisons, only: Collection[str] = POLICIES
) -> Iterator[tuple[int, list[str], list[Line]]]:
    """For each number of machines: the names of its columns, and the policies that ran."""
    for machines in MACHINES:
        columns = [load for of, load in cells() if of == machines]
        lines = [
            (policy, [_cell(table.get((machines, x, policy))) for x in columns])
            for policy in POLICIES
            if policy in only
        ]
        head = [f"batch of {BATCH_JOBS[machines]}" if x == BATCH else f"load {x}" for x in columns]
        yield machines, head, [line for line in lines if any(line[1])]


def _cell(compared: ComparedValues | None) -> str:
    if compared is None:
        return ""
    low, mean, high = (
        f"{100 * (x - 1):+.1f}" for x in (compared.low, compared.ratio, compared.high)
    )
    return f"{mean} % [{low} .. {high}] {verdict(compared)}"


def _trainings(judged: Judged) -> str:
    base = {cell: judged.values(*cell, WAITING) for cell in CELLS}
    return seeds_table(TRAININGS.read(), base)


def _paper(row: Row) -> Line:
    """A policy of the paper: our service time beside the one that the authors' code prints."""
    service, printed = float(row["service_s"]), PRINTED.get(row["policy"])
    theirs = f"{printed:,} ({100 * (service / printed - 1):+.1f} %)" if printed else ""
    jct_s, p90_s, held = (float(row[x]) for x in ("jct_mean_s", "jct_p90_s", "utilisation"))
    numbers = [f"{jct_s:,.0f}", f"{p90_s:,.0f}", f"{held:.2f}"]
    return row["policy"], [row["placement"], f"{service:,.0f}", theirs, *numbers]

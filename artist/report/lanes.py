"""Which of a machine's GPUs a job is drawn on.

A run directory says how many GPUs of a machine a job held, not which. Lanes are given
by first fit in the order of time, so that nothing overlaps and a job stays put where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from artist.cluster.tree import MAX_GPUS
from artist.errors import ArtistError, TraceError
from artist.report.reader import Run

Strip = tuple[int, int, int]
"""Machine, first lane, number of lanes."""


@dataclass(frozen=True, slots=True)
class Machines:
    """The cluster as a picture needs it."""

    count: int
    gpus: int
    """Lanes of the largest machine."""
    racks: tuple[int, ...]
    """The first machine of each rack."""


def machines(run: Run) -> Machines:
    """The machines of a run, from its scenario; from its rows where that says too little.

    Raises:
        TraceError: no run had so many.
    """
    scenario = run.scenario
    keys = ("racks", "machines_per_rack", "gpus_per_machine")
    sizes = [size for size in map(scenario.get, keys) if isinstance(size, int) and size > 0]
    if len(sizes) < len(keys) or scenario.get("tree") is not None:
        return _irregular(run)
    racks, per_rack, gpus = sizes
    if (total := racks * per_rack * gpus) > MAX_GPUS:
        raise TraceError(
            f"{run.name}: its scenario has {total} GPUs, but at most {MAX_GPUS} are supported; "
            "restore its manifest.json"
        )
    return Machines(racks * per_rack, gpus, tuple(range(0, racks * per_rack, per_rack)))


def _irregular(run: Run) -> Machines:
    from artist.cluster.fabric import load_fabric
    from artist.config import Scenario
    from artist.io.documents import validate
    from artist.run import build_cluster

    try:
        scenario = validate(run.scenario, Scenario, "scenario")
        tree = build_cluster(scenario, load_fabric(scenario.fabric))
    except ArtistError:  # a fabric file that is elsewhere now
        used = [m for strips in strips_of(run) for m in strips]
        return Machines(1 + max(m for m, _, _ in used), max(lane + n for _, lane, n in used), (0,))
    outer = tree.machine + 1
    first = tree.levels[outer].first_child[:-1] if outer < tree.root else (0,)
    return Machines(len(tree.levels[tree.machine]), tree.largest(tree.machine), tuple(first))


def parse_placement(text: str, where: str) -> dict[int, int]:
    """`0:8 5:4` to machine -> GPUs.

    Raises:
        TraceError: it is not of that form.
    """
    try:
        found = {int(m): int(g) for m, _, g in (part.partition(":") for part in text.split())}
    except ValueError as cause:
        raise TraceError(f"{where}: placement {text!r} is not of the form '0:8 5:4'") from cause
    if not found or min(found) < 0 or min(found.values()) < 1:
        raise TraceError(f"{where}: placement {text!r} is not of the form '0:8 5:4'")
    return found


def strips_of(run: Run) -> list[tuple[Strip, ...]]:
    """For each row of `placements.parquet` where it is drawn."""
    rows = run.placements
    where = f"{run.name}/placements.parquet"
    known: dict[str, Mapping[int, int]] = {}
    free_at: dict[int, list[float]] = {}
    holder: dict[int, list[str]] = {}
    found: list[tuple[Strip, ...]] = [()] * rows.count
    starts, ends = rows["start_s"].tolist(), rows["end_s"].tolist()
    # At one instant, rows that last come after rows that take no time.
    for index in np.lexsort((rows["end_s"], rows["start_s"])).tolist():
        text, job = rows.text["placement"][index], rows.text["job_id"][index]
        if text not in known:
            known[text] = parse_placement(text, where)
        strips: list[Strip] = []
        for machine, gpus in known[text].items():
            free = free_at.setdefault(machine, [])
            names = holder.setdefault(machine, [])
            lanes = _take(free, names, gpus, starts[index], job)
            for lane in lanes:
                free[lane], names[lane] = ends[index], job
            strips += [(machine, first, count) for first, count in _joined(lanes)]
        found[index] = tuple(strips)
    return found


def _take(free_at: list[float], holder: list[str], gpus: int, start: float, job: str) -> list[int]:
    """Free lanes: those that the job held before, then the first ones."""
    free = [lane for lane, at in enumerate(free_at) if at <= start]
    free.sort(key=lambda lane: holder[lane] != job)
    while len(free) < gpus:
        free.append(len(free_at))
        free_at.append(0.0)
        holder.append("")
    return sorted(free[:gpus])


def _joined(lanes: list[int]) -> list[tuple[int, int]]:
    """Neighbouring lanes as (first, count)."""
    found: list[tuple[int, int]] = []
    for lane in lanes:
        if found and sum(found[-1]) == lane:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((lane, 1))
    return found

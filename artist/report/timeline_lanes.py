"""Assigns lanes of the cluster timeline: on which rows of a machine a job is drawn.

A run directory says how many GPUs of a machine a job held, but not which. The timeline has one
lane per GPU. Jobs get lanes by first fit in the order of time, so that no two jobs overlap. A job
keeps its lanes if they are still free. Jobs that share GPUs have the same lanes, and each draws on
an equal part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from artist.cluster.tree import MAX_GPUS
from artist.config import Scenario
from artist.errors import ArtistError, TraceError
from artist.io.documents import validate
from artist.report.reader import RecordedRun
from artist.run import build_cluster, build_fabric

Strip = tuple[int, float, float]
"""Machine, first lane, number of lanes; parts of lanes where jobs share GPUs."""


@dataclass(frozen=True, slots=True)
class DrawnMachines:
    """The machines of a cluster, as a picture needs them."""

    count: int
    gpus: int
    """The number of GPUs, and so of lanes, of the largest machine."""
    racks: tuple[int, ...]
    """The first machine of each rack."""


def machines(run: RecordedRun) -> DrawnMachines:
    """The machines of a run, from its scenario, or from its rows if the scenario is not enough.

    Raises:
        TraceError: the scenario has more GPUs than artist supports.
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
    return DrawnMachines(racks * per_rack, gpus, tuple(range(0, racks * per_rack, per_rack)))


def _irregular(run: RecordedRun) -> DrawnMachines:
    """The machines of a cluster whose machines differ, from its tree or its rows."""
    try:
        scenario = validate(run.scenario, Scenario, "scenario")
        tree = build_cluster(scenario, build_fabric(scenario))
    except ArtistError:
        # The fabric file may have moved since the run: take the machines that jobs used.
        used = [strip for strips in strips_of(run) for strip in strips]
        lanes = round(max(lane + n for _, lane, n in used))
        return DrawnMachines(1 + max(m for m, _, _ in used), lanes, (0,))
    outer = tree.machine + 1
    first = tree.levels[outer].first_child[:-1] if outer < tree.root else (0,)
    return DrawnMachines(len(tree.levels[tree.machine]), tree.largest(tree.machine), tuple(first))


def parse_placement(text: str, where: str) -> dict[int, int]:
    """The GPUs on each machine of a placement: `0:8 5:4` is `{0: 8, 5: 4}`.

    Raises:
        TraceError: the text is not of that form.
    """
    try:
        gpus = {int(m): int(g) for m, _, g in (part.partition(":") for part in text.split())}
    except ValueError as cause:
        raise TraceError(f"{where}: placement {text!r} is not of the form '0:8 5:4'") from cause
    if not gpus or min(gpus) < 0 or min(gpus.values()) < 1:
        raise TraceError(f"{where}: placement {text!r} is not of the form '0:8 5:4'")
    return gpus


def strips_of(run: RecordedRun) -> list[tuple[Strip, ...]]:
    """For each row of `placements.parquet` the lanes that it is drawn on."""
    rows = run.placements
    where = f"{run.name}/placements.parquet"
    known: dict[str, Mapping[int, int]] = {}
    free_at: dict[int, list[float]] = {}
    holders: dict[int, list[frozenset[str]]] = {}
    strips_at: list[tuple[Strip, ...]] = [()] * rows.count
    starts, ends = rows["start_s"].tolist(), rows["end_s"].tolist()
    beside = rows.lists.get("beside", [[]] * rows.count)
    # Of rows that start at the same time, those of length zero come first. Otherwise a longer row
    # would already occupy the lane.
    for index in np.lexsort((rows["end_s"], rows["start_s"])).tolist():
        text, job = rows.text["placement"][index], rows.text["job_id"][index]
        if text not in known:
            known[text] = parse_placement(text, where)
        together = frozenset([job, *beside[index]])
        strips: list[Strip] = []
        for machine, gpus in known[text].items():
            free = free_at.setdefault(machine, [])
            held_by = holders.setdefault(machine, [])
            lanes = _take(free, held_by, gpus, starts[index], together)
            for lane in lanes:
                if ends[index] >= free[lane]:  # else a job that shares the lane stays longer
                    free[lane], held_by[lane] = ends[index], together
            strips += [(machine, *_part(block, job, together)) for block in _joined(lanes)]
        strips_at[index] = tuple(strips)
    return strips_at


def _take(
    free_at: list[float],
    held_by: list[frozenset[str]],
    gpus: int,
    start: float,
    together: frozenset[str],
) -> list[int]:
    """Take the lanes that these jobs already share, else free lanes.

    Free lanes that one of these jobs held last come first, then the lowest. Rows of jobs that share
    GPUs need not begin and end together.
    """
    shared = [i for i, at in enumerate(free_at) if at > start and held_by[i] == together]
    if shared:
        return shared
    free = [lane for lane, at in enumerate(free_at) if at <= start]
    free.sort(key=lambda lane: together.isdisjoint(held_by[lane]))
    while len(free) < gpus:
        free.append(len(free_at))
        free_at.append(0.0)
        held_by.append(frozenset())
    return sorted(free[:gpus])


def _part(block: tuple[int, int], job: str, together: frozenset[str]) -> tuple[float, float]:
    """A job's part of neighbouring lanes, as first and count."""
    first, count = block
    if len(together) == 1:
        return block
    height = count / len(together)
    return first + sorted(together).index(job) * height, height


def _joined(lanes: list[int]) -> list[tuple[int, int]]:
    """Runs of neighbouring lanes as (first, count)."""
    blocks: list[tuple[int, int]] = []
    for lane in lanes:
        if blocks and sum(blocks[-1]) == lane:
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + 1)
        else:
            blocks.append((lane, 1))
    return blocks

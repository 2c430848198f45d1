"""What a run's communication waits for on one level: hops, bytes, or neither.

More bandwidth shortens only the time of bytes. So if hops take most of the communication, or most
jobs do not cross the level, doubling the bandwidth changes next to nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from artist.cluster.fabric_options import level_of
from artist.cluster.placement_shape import depth, parse_signature
from artist.config import Scenario
from artist.estimates.sensitivity import LevelShares, level_fabrics, shares_of
from artist.results.terms.columns import Table
from artist.run import build_calibration, build_fabric, build_latency, simulate

_MOST_ASKED = 20
"""How many pairs of model and shape are asked about: those whose jobs hold most GPU time."""


class Split(NamedTuple):
    """What communication of a run waits for on one level, weighted by GPU time."""

    held: float
    """Communication's share of the GPU time in which jobs make progress."""
    past: Mapping[str, float]
    """Share of communication that does not reach the level, by the outermost level of its
    placements."""
    across: LevelShares
    """What the other communication waits for on the level."""


def communication_split(scenario: Scenario, level: str) -> Split | None:
    """How much communication one run of a scenario has, and what it waits for on a level.

    None if no job communicates, or if a cluster file, speeds or `absolute` communication make
    estimates differ from those of models on one fabric.

    Raises:
        ArtistError: as `simulate`.
    """
    if scenario.backend == "none" or scenario.cluster is not None or scenario.speeds is not None:
        return None
    if scenario.communication == "absolute":
        return None
    fabric = build_fabric(scenario)
    names = fabric.level_names
    outer = names.index(level_of(fabric, level).name)
    calibration = build_calibration(scenario, fabric)
    fabrics = (fabric, *level_fabrics(fabric, level))
    now, *without = (build_latency(scenario, changed, calibration) for changed in fabrics)
    past: dict[str, float] = defaultdict(float)
    across = 0.0
    left = [0.0, 0.0, 0.0]
    tables = simulate(scenario).tables
    held = sorted(_held_gpu_s(tables).items(), key=lambda pair: -pair[1])
    for (model, signature), gpu_s in held[:_MOST_ASKED]:
        shape = parse_signature(signature, names, fabric.gpus_per_socket)
        ratio = now.estimate(model, shape).comm_ratio
        per_ratio = gpu_s / (1 + ratio)
        if (outermost := depth(shape)) < outer:
            past[names[outermost]] += per_ratio * ratio
            continue
        across += per_ratio * ratio
        for index, service in enumerate(without):
            left[index] += per_ratio * service.estimate(model, shape).comm_ratio
    whole = sum(past.values()) + across
    if not whole:
        return None
    asked_s = sum(gpu_s for _, gpu_s in held[:_MOST_ASKED])
    inside = {name: gpu_s / whole for name, gpu_s in past.items() if gpu_s}
    return Split(whole / asked_s, inside, shares_of(across, left))


def _held_gpu_s(tables: Mapping[str, Table]) -> dict[tuple[str, str], float]:
    """By (model, signature): GPU-seconds in which jobs made progress; shared GPUs count in part."""
    models = dict(zip(tables["jobs"]["job_id"], tables["jobs"]["model"], strict=True))
    held: dict[tuple[str, str], float] = defaultdict(float)
    columns = ("job_id", "signature", "gpus", "start_s", "end_s", "stalled_s")
    placements = tables["placements"]
    beside = placements.get("beside", [()] * len(placements["job_id"]))
    for job, signature, gpus, start_s, end_s, stalled_s, others in zip(
        *(placements[name] for name in columns), beside, strict=True
    ):
        shape = str(signature).partition("@")[0]
        held_s = float(end_s - start_s - stalled_s)
        held[str(models[job]), shape] += float(gpus) * held_s / (1 + len(others))
    return held

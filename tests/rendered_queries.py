"""Small queries and programs that stand in for ASTRA-sim."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

GOLDEN = Path(__file__).parent / "astra" / "golden_files"


def tiny(*npus: int, passes: int = 1) -> LatencyQuery:
    """Two layers, and a dimension per number."""
    layers = (
        Layer(
            "conv1",
            Phase(13),
            Phase(7),
            Phase(32, Collective.ALL_REDUCE, 37632),
            update_us=5,
        ),
        Layer("fc", Phase(0), Phase(300), Phase(9, Collective.ALL_GATHER, 8_192_000)),
    )
    topologies = (Topology.FULLY_CONNECTED, Topology.RING, Topology.SWITCH)
    levels = ("machine", "rack", "network")
    dims = tuple(
        Dimension(topologies[i], n, 600.0 / (i + 1), 500.0 * i, levels[i])
        for i, n in enumerate(npus or (2, 3))
    )
    rings = ("ring",) * len(dims)
    system = SystemSettings(rings, rings, rings, ("direct",) * len(dims))
    return LatencyQuery(Workload("tiny", Parallelism.DATA, layers), dims, system, passes)


def with_phase(query: LatencyQuery, phase: Phase) -> LatencyQuery:
    """The query with another forward pass in its first layer."""
    first, *others = query.workload.layers
    layers = (replace(first, forward=phase), *others)
    return replace(query, workload=replace(query.workload, layers=layers))


def program(folder: Path, body: str) -> Path:
    """An executable Python script; `NPUS` and `finished(rank, cycles, exposed)` are given to it."""
    path = folder / "fake-astra"
    path.write_text(
        f"#!{sys.executable}\n"
        "import glob, os, signal, sys, time\n"
        "NPUS = len(glob.glob('workload.*.et'))\n"
        "def finished(rank, cycles=22240, exposed=2240):\n"
        "    print(f'[2026-01-01 00:00:00.000] [workload] [info] sys[{rank}] finished, '\n"
        "          f'{cycles} cycles, exposed communication {exposed} cycles.')\n"
        f"{body}\n"
    )
    path.chmod(0o755)
    return path

"""Times runs in which jobs slow each other down on links, beside the same runs without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import PHILLY

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.run import prepare


def oversubscribed(folder: Path) -> Path:
    """A fabric of H100 machines whose racks can send half of what their GPUs could."""
    fabric = load_fabric("h100-quantum2-spectrum4")
    machine, rack, network = fabric.levels
    assert rack.uplink is not None
    half = rack.uplink.model_copy(update={"count": rack.uplink.count // 2})
    levels = (machine, rack.model_copy(update={"uplink": half}), network)
    path = folder / "oversubscribed.yaml"
    # JSON is YAML, too.
    path.write_text(fabric.model_copy(update={"levels": levels}).model_dump_json(exclude_none=True))
    return path


def contended_loop(folder: Path, contention: str) -> Callable[[], Rows]:
    """The loop alone: Philly's jobs with models by `mix`, under FIFO."""
    scenario = Scenario(
        trace=str(PHILLY.trace(folder)),
        racks=PHILLY.racks,
        policy="fifo",
        fabric=str(oversubscribed(folder)),
        model_rule="mix",
        contention=contention,
    )
    prepared = prepare(scenario)
    return lambda: prepared.simulator.run(prepared.policy)


@pytest.mark.parametrize("contention", ["none", "mean"])
def bench_long_contended_loop(measure: Callable[..., None], traces: Path, contention: str) -> None:
    """Three months of a cluster whose racks are oversubscribed 2:1."""
    measure(prepare=lambda: contended_loop(traces, contention), rounds=1, items=PHILLY.jobs)

"""The networks and cases of the ground truth, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GROUND_TRUTH = Path(__file__).parents[3] / "shared" / "groundwork" / "contention"


def rack_links(racks: list[int], source: int, target: int) -> tuple[int, ...]:
    """Links from machine to machine: out of a NIC, up, down, into a NIC; numbered in this order."""
    machines, count = len(racks), max(racks) + 1
    inner = (source, machines + target)
    if racks[source] == racks[target]:
        return inner
    return (inner[0], 2 * machines + racks[source], 2 * machines + count + racks[target], inner[1])


def rack_capacities(case: dict[str, Any]) -> list[float]:
    """Capacities of the links in the order of `rack_links`."""
    return [*case["nic_bps"], *case["nic_bps"], *case["uplink_bps"], *case["uplink_bps"]]


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file of the ground truth."""
    text = (GROUND_TRUTH / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]

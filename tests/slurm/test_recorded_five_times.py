"""Simulated starts beside those of a real Slurm that got the same jobs five times.

`five_runs.csv` has the starts that slurmctld 22.05.8 recorded on a busy machine, in seconds after
the first job was submitted. Starts depend on the phase of its periods, and on the load.
"""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from artist.experiments.recorded.replay import replay

SESSIONS = Path(__file__).parents[3] / "shared" / "groundwork" / "slurm"
pytestmark = pytest.mark.skipif(
    not SESSIONS.is_dir(), reason="the recorded sessions of Slurm are not here"
)
PHASES = 5


def recorded(session: str) -> dict[str, list[float]]:
    """By job, its starts in the five runs."""
    starts = dict[str, list[float]]()
    with Path(__file__).with_name("five_runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["session"] == session:
                starts[row["job"]] = [float(row[f"start_{n}_s"]) for n in range(1, 6)]
    return starts


@pytest.mark.parametrize("session", ["fifo-backfill", "shares", "topology"])
def test_starts_are_as_near_to_real_runs_as_these_to_each_other(
    session: str, tmp_path: Path
) -> None:
    found = replay(SESSIONS / session, tmp_path, keep_names=True, phases=PHASES)
    runs = recorded(session)
    first_s = min(found.result.tables["jobs"]["arrival_s"])
    real = np.array([runs[x.job_id] for x in found.starts])
    simulated = np.array([x.phases_s for x in found.starts]) - first_s
    inside, real_inside = [], []
    for left_out in range(5):
        others = np.delete(real, left_out, axis=1)
        earliest = others.min(axis=1, keepdims=True) - found.cycle_s
        latest = others.max(axis=1, keepdims=True) + found.cycle_s
        inside.append(np.mean((earliest <= simulated) & (simulated <= latest)))
        own = real[:, [left_out]]
        real_inside.append(np.mean((earliest <= own) & (own <= latest)))
    apart = np.mean([np.abs(real[:, i] - real[:, j]) for i, j in combinations(range(5), 2)])
    off = np.mean(np.abs(simulated[:, :, None] - real[:, None, :]))
    # What is left is chance: a fifth real run lies no more often between four others.
    assert np.mean(inside) >= np.mean(real_inside)
    assert off <= apart

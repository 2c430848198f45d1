"""Simulated starts beside those of a real Slurm that got the same jobs five times.

`five_runs.csv` has the starts that slurmctld 22.05.8 recorded on a busy machine, in seconds after
the first job was submitted. Starts depend on the phase of its periods, and on the load.
"""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from recordings import SLURM, needs_slurm

from artist.experiments.recorded.replay import replay

pytestmark = needs_slurm
PHASES = 5
Starts = npt.NDArray[np.float64]
"""In seconds, by job and run."""


def recorded(session: str) -> dict[str, list[float]]:
    """By job, its starts in the five runs."""
    starts = dict[str, list[float]]()
    with Path(__file__).with_name("five_runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["session"] == session:
                starts[row["job"]] = [float(row[f"start_{n}_s"]) for n in range(1, 6)]
    return starts


def _within(starts: Starts, runs: Starts, cycle_s: float) -> npt.NDArray[np.bool_]:
    """Which starts lie in the envelope of some runs, a cycle wider."""
    earliest = runs.min(axis=1, keepdims=True) - cycle_s
    latest = runs.max(axis=1, keepdims=True) + cycle_s
    return np.asarray((earliest <= starts) & (starts <= latest))


# On the busiest cluster, a real run has 79 % of its starts in the envelope of the four others.
@pytest.mark.parametrize(
    ("session", "least"), [("fifo-backfill", 0.95), ("shares", 0.95), ("topology", 0.8)]
)
def test_starts_are_as_near_to_real_runs_as_these_to_each_other(
    session: str, least: float, tmp_path: Path
) -> None:
    found = replay(SLURM / session, tmp_path, keep_names=True, phases=PHASES)
    runs = recorded(session)
    first_s = min(found.result.tables["jobs"]["arrival_s"])
    real = np.array([runs[x.job_id] for x in found.starts])
    simulated = np.array([x.phases_s for x in found.starts]) - first_s
    assert np.mean(_within(simulated, real, found.cycle_s)) >= least
    inside, real_inside = [], []
    for left_out in range(5):
        others = np.delete(real, left_out, axis=1)
        inside.append(np.mean(_within(simulated, others, found.cycle_s)))
        real_inside.append(np.mean(_within(real[:, [left_out]], others, found.cycle_s)))
    apart = np.mean([np.abs(real[:, i] - real[:, j]) for i, j in combinations(range(5), 2)])
    off = np.mean(np.abs(simulated[:, :, None] - real[:, None, :]))
    # What is left is chance: a fifth real run lies no more often between four others.
    assert np.mean(inside) >= np.mean(real_inside)
    assert off <= apart

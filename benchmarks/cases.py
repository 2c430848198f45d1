"""What the benchmarks measure: traces on clusters under policies, without a network.

loop(COMMON1000.trace(folder), COMMON1000.racks, "las")()    # simulates; returns the rows
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from artist.config import Scenario
from artist.engine.rows import Rows
from artist.policies.table import POLICIES
from artist.run import prepare
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.generate import synth_jobs

TRACES = Path(os.environ.get("TRACES", Path(__file__).parents[2] / "shared" / "traces"))
LOAD, SEED = 0.9, 7

# A wrapper needs another policy, and `learned` a file.
POLICY_NAMES = [
    entry.id for entry in POLICIES if not (entry.wraps or entry.host or entry.id == "learned")
]


class Case(NamedTuple):
    """A trace file on a cluster. If the file is absent, a generated trace takes its place."""

    name: str
    file: str
    jobs: int
    racks: int

    @property
    def gpus(self) -> int:
        """A rack has 8 machines with 8 GPUs."""
        return self.racks * 64

    @property
    def present(self) -> bool:
        """Whether the file exists."""
        return (TRACES / self.file).is_file()

    def __str__(self) -> str:
        return self.name if self.present else f"{self.name}-like"

    def trace(self, folder: Path) -> Path:
        """The file, or in `folder` a generated one with as many jobs for as many GPUs."""
        return TRACES / self.file if self.present else synthetic(self.jobs, self.gpus, folder)


COMMON480 = Case("common480", "common480_64gpu.csv", 480, 1)
COMMON1000 = Case("common1000", "common1000_128gpu.csv", 1000, 2)
COMMON5000 = Case("common5000", "common5000_256gpu.csv", 5000, 4)
PHILLY = Case("philly82k", "philly_82k.csv", 82_247, 39)


def synthetic(jobs: int, gpus: int, folder: Path) -> Path:
    """The file that `artist trace synth --jobs JOBS --load 0.9 --gpus GPUS --seed 7` writes."""
    path = folder / f"synth-{jobs}-{gpus}.csv"
    if not path.exists():
        write_csv(synth_jobs(jobs, LOAD, gpus, SEED), path)
    return path


def loop(trace: Path, racks: int, policy: str) -> Callable[[], Rows]:
    """A function that runs the simulation loop alone. Trace and cluster are already built."""
    scenario = Scenario(trace=str(trace), racks=racks, policy=policy, backend="none")
    prepared = prepare(scenario)
    return lambda: prepared.simulator.run(prepared.policy)

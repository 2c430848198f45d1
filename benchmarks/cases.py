"""What is measured: traces on clusters under policies, without the network unless said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from artist.cluster.fabric import load_fabric
from artist.cluster.visiting_order import VisitingOrder
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.estimates.service import NoCommunication
from artist.network.iteration_time_alone import AloneRates
from artist.run import build_cluster, build_policy, build_trace
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.generate import synth_jobs

TRACES = Path(os.environ.get("TRACES", Path(__file__).parents[2] / "shared" / "traces"))
LOAD, SEED = 0.9, 7


class Shape(NamedTuple):
    """A trace file, and what to generate in its place where it is absent."""

    name: str
    file: str
    jobs: int
    racks: int

    @property
    def gpus(self) -> int:
        """Racks of 8 machines with 8 GPUs."""
        return self.racks * 64

    @property
    def present(self) -> bool:
        """Whether the file is here."""
        return (TRACES / self.file).is_file()

    def __str__(self) -> str:
        return self.name if self.present else f"{self.name}-like"

    def trace(self, folder: Path) -> Path:
        """The file, or a generated one of as many jobs at the same load."""
        return TRACES / self.file if self.present else synthetic(self.jobs, self.gpus, folder)


COMMON480 = Shape("common480", "common480_64gpu.csv", 480, 1)
COMMON1000 = Shape("common1000", "common1000_128gpu.csv", 1000, 2)
COMMON5000 = Shape("common5000", "common5000_256gpu.csv", 5000, 4)
PHILLY = Shape("philly82k", "philly_82k.csv", 82_247, 39)


def synthetic(jobs: int, gpus: int, folder: Path) -> Path:
    """As `artist trace synth --jobs JOBS --load 0.9 --gpus GPUS --seed 7` writes it."""
    path = folder / f"synth-{jobs}-{gpus}.csv"
    if not path.exists():
        write_csv(synth_jobs(jobs, LOAD, gpus, SEED), path)
    return path


def loop(trace: Path, racks: int, policy: str) -> Callable[[], Rows]:
    """The simulation loop alone: everything before the first event has been done."""
    scenario = Scenario(trace=str(trace), racks=racks, policy=policy, backend="none")
    tree = build_cluster(scenario, load_fabric(scenario.fabric))
    chosen = build_policy(scenario)
    jobs = build_trace(scenario, tree).jobs
    rates = AloneRates(tree, NoCommunication().estimate)
    visits = VisitingOrder(tree, scenario.permutation)
    simulator = Simulator(tree, jobs, rates, lease=chosen.lease, visiting_order=visits)
    return lambda: simulator.run(chosen)

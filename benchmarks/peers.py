"""Compares the CPU time of other simulators with that of artist, on the same traces in one run.

    python benchmarks/peers.py --traces DIR
        [--compiled DIR] [--tiresias DIR --tiresias-python PYTHON]
        [--gavel DIR --gavel-python PYTHON]

`--tiresias` is the folder `simulator` of SymbioticLab/Tiresias, `--gavel` the folder `scheduler` of
stanford-futuredata/gavel. docs/performance.md says which changes they need. Each command runs
`--repeats` times, turn by turn, and its least CPU time counts, with child processes. The same
command on a trace of one job gives the time of its start-up; the difference is the time of
simulating. artist's loop alone, without tables and files, is measured beside it as in `cores.py`.
Every simulator's mean JCT is read from its output and printed: it shows that the simulator did the
work.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from cases import COMMON480, COMMON1000, COMMON5000, Case
from cores import measured
from timing import cpu_s

from artist.cli.output import print_table

ROOT = Path(__file__).resolve().parents[1]
MACHINE_GPUS = 8
ROUND_S = 360
"""How long a round of Gavel lasts: its own default."""


# A fixed hash seed keeps the order of sets in the other simulators the same in every run. They
# may write bytecode.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}


class Run(NamedTuple):
    """Least CPU seconds of a command, those of its start-up alone, and the mean JCT it reports.

    Also those of the loop alone; nan where it is not measured.
    """

    cpu_s: float
    start_up_s: float
    jct_mean_s: float
    loop_s: float

    @property
    def simulating_s(self) -> float:
        """CPU seconds without start-up."""
        return self.cpu_s - self.start_up_s


class Job(NamedTuple):
    """A row of a trace that all simulators can run."""

    submit_s: int
    gpus: int
    duration_s: int


Simulate = Callable[[Sequence[Job], Case, str, Path], float]
"""Runs a policy on jobs, in an empty folder. Returns the mean JCT in seconds."""


def main() -> None:
    """Run every simulator on every trace under every policy, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compiled", type=Path, help="what `hatch_build.py FOLDER` wrote")
    parser.add_argument("--tiresias", type=Path)
    parser.add_argument("--tiresias-python", default=sys.executable)
    parser.add_argument("--gavel", type=Path)
    parser.add_argument("--gavel-python", default=sys.executable)
    parser.add_argument("--most-gavel-jobs", type=int, default=1000)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    chosen = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    for case in (COMMON480, COMMON1000, COMMON5000):
        jobs = read(chosen.traces / case.file)
        for policy in ("fifo", "las"):
            runners: dict[str, Simulate] = {"artist": artist}
            packages = {"artist": ROOT}
            if chosen.compiled:
                packages["compiled"] = chosen.compiled.resolve()
                runners["compiled"] = partial(artist, package=chosen.compiled)
            if chosen.tiresias:
                runners["Tiresias"] = tiresias(chosen.tiresias, chosen.tiresias_python)
            if chosen.gavel and len(jobs) <= chosen.most_gavel_jobs:
                runners["Gavel"] = gavel(chosen.gavel, chosen.gavel_python)
            loops = {
                name: partial(_loop_s, package, chosen.traces / case.file, case.racks, policy)
                for name, package in packages.items()
            }
            runs = measure(runners, loops, jobs, case, policy, chosen.repeats)
            ours = runs["artist"]
            for name, run in runs.items():
                rows.append(_row(case, policy, name, run, ours))
                print(*rows[-1], flush=True, file=sys.stderr)
    columns = ("trace", "policy", "simulator", "CPU s", "simulating s", "jobs per simulating s",
               "whole / artist", "simulating / artist", "loop s", "mean JCT s")  # fmt: skip
    print_table(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", columns, rows)
    if chosen.csv:
        with chosen.csv.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])


def _row(case: Case, policy: str, name: str, run: Run, ours: Run) -> tuple[object, ...]:
    return (
        case.name,
        policy,
        name,
        f"{run.cpu_s:.2f}",
        f"{run.simulating_s:.3f}",
        f"{case.jobs / run.simulating_s:,.0f}",
        f"{run.cpu_s / ours.cpu_s:.2f}",
        f"{run.simulating_s / ours.simulating_s:.1f}",
        "" if isnan(run.loop_s) else f"{run.loop_s:.3f}",
        f"{run.jct_mean_s:,.0f}",
    )


def read(path: Path) -> list[Job]:
    """The jobs of a file, in the order of submission."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    jobs = [Job(int(r["submit_time"]), int(r["num_gpus"]), int(r["duration"])) for r in rows]
    return sorted(jobs, key=lambda job: job.submit_s)


def measure(
    runners: dict[str, Simulate],
    loops: Mapping[str, Callable[[], float]],
    jobs: Sequence[Job],
    case: Case,
    policy: str,
    repeats: int,
) -> dict[str, Run]:
    """Run the simulators in turn, so that other load on the machine hits all of them.

    A first run of each does not count. It writes bytecode, as an installed package has it.
    """
    whole: dict[str, list[float]] = {name: [] for name in runners}
    start: dict[str, list[float]] = {name: [] for name in runners}
    loop: dict[str, list[float]] = {name: [] for name in runners}
    jct: dict[str, float] = {}
    for simulate in runners.values():
        with tempfile.TemporaryDirectory() as folder:
            simulate(jobs[:1], case, policy, Path(folder))
    for _ in range(repeats):
        for name, simulate in runners.items():
            for part, times in ((jobs, whole[name]), (jobs[:1], start[name])):
                with tempfile.TemporaryDirectory() as folder:
                    before = cpu_s()
                    mean = simulate(part, case, policy, Path(folder))
                    times.append(cpu_s() - before)
                if part is jobs:
                    jct[name] = mean
            if name in loops:
                loop[name].append(loops[name]())
    return {
        name: Run(min(whole[name]), min(start[name]), jct[name], min(loop[name], default=nan))
        for name in runners
    }


def _loop_s(package: Path, trace: Path, racks: int, policy: str) -> float:
    """CPU seconds of a package's simulation loop, in a fresh process."""
    told = measured(package, trace, racks, policy)
    return float(told["loop_cpu_s"])


def artist(
    jobs: Sequence[Job], case: Case, policy: str, folder: Path, package: Path = ROOT
) -> float:
    """`artist sim`: places every job on machines and racks, and writes a run directory."""
    trace = folder / "trace.csv"
    header = ("job_id", "submit_time", "num_gpus", "duration")
    write(trace, header, [(i, *job) for i, job in enumerate(jobs)])
    command = [sys.executable, "-m", "artist", "sim", "--trace", trace, "--racks", case.racks]
    rest = ["--policy", policy, "--backend", "none", "--format", "json", "--out", folder / "run"]
    told = run([*command, *rest], folder, PYTHONPATH=str(package.resolve()))
    mean: float = json.loads(told)["jct_mean_s"]
    return mean


def tiresias(checkout: Path, python: str) -> Simulate:
    """Tiresias, event by event. Its scheme `count` adds GPUs up and places nothing."""

    def simulate(jobs: Sequence[Job], case: Case, policy: str, folder: Path) -> float:
        machines = case.gpus // MACHINE_GPUS
        header = ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node",
                  "mem_p_node")  # fmt: skip
        write(folder / "cluster.csv", header, [(machines // 4, 4, MACHINE_GPUS, 64, 256)])
        header = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration",
                  "interval")  # fmt: skip
        rows = [(i, j.gpus, j.submit_s, 1, "resnet50", j.duration_s, 0) for i, j in enumerate(jobs)]
        write(folder / "trace.csv", header, rows)
        command = [python, "run_sim.py", f"--cluster_spec={folder}/cluster.csv"]
        command += [f"--trace_file={folder}/trace.csv", f"--log_path={folder}/log"]
        schedule = {"fifo": "fifo", "las": "dlas-gpu"}[policy]
        run([*command, "--scheme=count", f"--schedule={schedule}"], checkout)
        with (folder / "log" / "job.csv").open(newline="") as file:
            jct_s = [float(row["JCT"]) for row in csv.DictReader(file)]
        assert len(jct_s) == len(jobs), "Tiresias did not finish every job"
        return fmean(jct_s)

    return simulate


def gavel(checkout: Path, python: str) -> Simulate:
    """Gavel, round by round. A step takes a second on every GPU."""

    def simulate(jobs: Sequence[Job], case: Case, policy: str, folder: Path) -> float:
        lines = [f"any\tx\tx\tx\t0\t{j.duration_s}\t{j.gpus}\t1\t-1\t{j.submit_s}" for j in jobs]
        (folder / "jobs.trace").write_text("\n".join(lines) + "\n")
        speeds = {str(("any", size)): {"null": 1.0} for size in sorted({job.gpus for job in jobs})}
        kinds = dict.fromkeys(("v100", "p100", "k80"), speeds)
        (folder / "speeds.json").write_text(json.dumps(kinds))
        command = [python, "scripts/drivers/simulate_scheduler_with_trace.py"]
        command += ["-t", f"{folder}/jobs.trace", "--throughputs_file", f"{folder}/speeds.json"]
        command += ["-c", f"{case.gpus}:0:0", "--num_gpus_per_server", f"{MACHINE_GPUS}:1:1"]
        command += ["--seed", "0", "--solver", "ECOS", "--time_per_iteration", str(ROUND_S)]
        name = {"fifo": "fifo", "las": "max_min_fairness"}[policy]
        line = re.search(r"completion time: ([\d.]+)", run([*command, "-p", name], checkout))
        assert line is not None, "Gavel printed no job completion time"
        return float(line[1])

    return simulate


def run(command: Sequence[object], folder: Path, **settings: str) -> str:
    """The standard output of a command; a failed command ends this program."""
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **settings},
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode != 0:
        sys.exit(f"{command[0]} in {folder} failed:\n{ended.stderr[-2000:]}")
    return ended.stdout


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main()

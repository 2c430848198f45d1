"""How far a simulated Slurm can be trusted: its starts against the recorded ones.

The jobs of a recording (`recording.py`) are simulated on its cluster under the policy `slurm`. Then
each simulated start is compared with the recorded one, the first with the first, and so on.

Starts depend on the phase of the schedulers' periods at which jobs arrive, which is not recorded.
On a busy cluster, a start that is a second later moves others by minutes, and the same jobs
submitted again to the same Slurm start at other times. So the jobs are simulated in several phases
(`permutation`). The envelope of a start goes from a cycle before its earliest time in any phase to
a cycle after its latest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artist.cluster.cluster_file import load_cluster
from artist.experiments.recorded.recording import Recording, moment_of, read_recording
from artist.policies.slurm.settings import settings_of
from artist.results.result import Result
from artist.results.terms.number_text import time_text
from artist.run import simulate
from artist.settings import load_scenario
from artist.slurm.facts import SlurmFacts
from artist.slurm.texts import Record, hosts
from artist.trace.native.trace import Trace
from artist.units import counted

CLOSE_S = 10.0
"""Starts within this time of the recorded one are close. The default `batch_sched_delay` is 3 s."""


@dataclass(frozen=True)
class RecordedStart:
    """A recorded start of a job, and the simulated one; None if there is none."""

    job_id: str
    nth: int
    recorded_s: float | None
    simulated_s: float | None
    recorded_machines: frozenset[str] = frozenset()
    simulated_machines: frozenset[str] = frozenset()
    why: str = ""
    phases_s: tuple[float, ...] = ()
    """The simulated start in each phase that has one."""

    @property
    def difference_s(self) -> float | None:
        """How much later it starts in the simulation."""
        if self.recorded_s is None or self.simulated_s is None:
            return None
        return self.simulated_s - self.recorded_s

    def row(self) -> tuple[object, ...]:
        """Job, number of the start, both times, their difference, and the reason."""
        times = self.recorded_s, self.simulated_s, self.difference_s
        return self.job_id, self.nth + 1, *times, self.why


@dataclass(frozen=True)
class Replay:
    """A simulated recording."""

    results: tuple[Result, ...]
    """One of each phase."""
    starts: tuple[RecordedStart, ...]
    cycle_s: float
    """The longer of the two schedulers' periods."""
    not_modelled: tuple[str, ...]
    dropped: Mapping[str, int]

    @property
    def result(self) -> Result:
        """The result of the first phase, which is compared with the recording."""
        return self.results[0]

    @property
    def phases(self) -> int:
        """In how many phases it was simulated."""
        return len(self.results)

    def facts(self) -> dict[str, Any]:
        """The figures of the comparison."""
        differences = [x.difference_s for x in self.starts if x.difference_s is not None]
        sizes = np.abs(np.array(differences)) if differences else np.zeros(0)
        recorded = sum(x.recorded_s is not None for x in self.starts)
        simulated = sum(x.simulated_s is not None for x in self.starts)
        both = [x for x in self.starts if x.difference_s is not None]
        same = sum(x.recorded_machines == x.simulated_machines for x in both)
        quantiles = np.quantile(sizes, [0.5, 0.9, 0.99]) if differences else [float("nan")] * 3
        every = max(1, len(self.starts))
        return {
            "starts_recorded": recorded,
            "starts_simulated": simulated,
            "within_10_s": float((sizes <= CLOSE_S).sum() / every),
            "within_a_cycle": float((sizes <= self.cycle_s).sum() / every),
            "cycle_s": self.cycle_s,
            "difference_mean_s": float(np.mean(differences)) if differences else float("nan"),
            "difference_abs_mean_s": float(sizes.mean()) if differences else float("nan"),
            "difference_abs_p50_s": float(quantiles[0]),
            "difference_abs_p90_s": float(quantiles[1]),
            "difference_abs_p99_s": float(quantiles[2]),
            "wait_mean_recorded_s": self._wait_s("recorded_s"),
            "wait_mean_simulated_s": self._wait_s("simulated_s"),
            "same_machines": same / max(1, len(both)),
            "phases": self.phases,
            "in_the_envelope": sum(map(self._in_the_envelope, self.starts)) / every,
        }

    def _in_the_envelope(self, start: RecordedStart) -> bool:
        if start.recorded_s is None or not start.phases_s:
            return False
        earliest_s, latest_s = min(start.phases_s), max(start.phases_s)
        return earliest_s - self.cycle_s <= start.recorded_s <= latest_s + self.cycle_s

    def _wait_s(self, which: str) -> float:
        """The mean wait for the first start; `which` names the field with the start."""
        arrivals = dict(
            zip(
                self.result.tables["jobs"]["job_id"],
                self.result.tables["jobs"]["arrival_s"],
                strict=True,
            )
        )
        firsts = [x for x in self.starts if x.nth == 0 and getattr(x, which) is not None]
        waits = [getattr(x, which) - arrivals[x.job_id] for x in firsts]
        return float(np.mean(waits)) if waits else float("nan")

    def sentence(self) -> str:
        """How far the simulation can be trusted, in a sentence."""
        facts = self.facts()
        waits_s = (facts[f"wait_mean_{x}_s"] for x in ("simulated", "recorded"))
        simulated, recorded = map(time_text, waits_s)
        return (
            f"{100 * facts['within_10_s']:.0f} % of {counted(len(self.starts), 'start')} are "
            f"within 10 s of the recorded ones; mean wait for the first start {simulated} instead "
            f"of {recorded}; {100 * facts['in_the_envelope']:.0f} % lie in the envelope of "
            f"{counted(self.phases, 'phase')}"
        )

    def largest(self, count: int = 10) -> list[RecordedStart]:
        """The starts that differ most, those without a counterpart first."""
        alone = [x for x in self.starts if x.difference_s is None]
        both = [x for x in self.starts if x.difference_s is not None]
        both.sort(key=lambda x: -abs(x.difference_s or 0.0))
        return [*alone, *both][:count]


def replay(
    folder: Path,
    inputs: Path,
    *,
    keep_names: bool = False,
    sets: Sequence[str] = (),
    phases: int = 1,
) -> Replay:
    """Simulate what was recorded. The cluster file and the trace are written to `inputs`.

    `sets` change the scenario (`KEY=VALUE`).

    Raises:
        ConfigError: a text is missing or broken; names file and line.
        TraceError: the log is broken; names file and line.
    """
    return replayed(read_recording(folder, inputs, keep_names=keep_names), sets=sets, phases=phases)


def replayed(recording: Recording, *, sets: Sequence[str] = (), phases: int) -> Replay:
    """A recording, simulated in this number of phases and compared."""
    trace, runs, epoch_s = recording.trace, recording.runs, recording.epoch_s
    cluster = load_cluster(str(recording.inputs / "cluster.yaml"))
    results = [
        simulate(load_scenario(None, {**recording.settings, "permutation": phase}, sets))
        for phase in range(phases)
    ]
    names = cluster.names["machine"]
    described = settings_of(cluster.file.slurm or SlurmFacts())
    return Replay(
        results=tuple(results),
        starts=tuple(
            _compared(
                trace, runs, [_simulated(x, names) for x in results], _reasons(results[0]), epoch_s
            )
        ),
        cycle_s=float(max(described.numbers[x] for x in ("bf_interval", "sched_interval"))),
        not_modelled=recording.not_modelled(),
        dropped=trace.dropped,
    )


Simulated = dict[str, list[tuple[float, frozenset[str]]]]
"""By job, when it starts and on which machines."""


def _simulated(result: Result, names: Sequence[str]) -> Simulated:
    """The starts of a run."""
    simulated: Simulated = {}
    stays = result.tables["placements"]
    for id_, start_s, placement in zip(
        stays["job_id"], stays["start_s"], stays["placement"], strict=True
    ):
        machines = frozenset(names[int(x.partition(":")[0])] for x in str(placement).split())
        simulated.setdefault(str(id_), []).append((float(start_s), machines))
    for starts in simulated.values():
        starts.sort(key=lambda start: start[0])
    return simulated


def _reasons(result: Result) -> dict[str, list[tuple[float, str]]]:
    """Job -> the begin of each wait, and the reason for it."""
    reasons: dict[str, list[tuple[float, str]]] = {}
    causes = result.tables.get("wait_causes")
    if causes is not None:
        for id_, start_s, reason in zip(
            causes["job_id"], causes["start_s"], causes["reason"], strict=True
        ):
            reasons.setdefault(str(id_), []).append((float(start_s), str(reason)))
    return reasons


def _compared(
    trace: Trace,
    runs: Mapping[str, Sequence[Record]],
    phases: Sequence[Simulated],
    reasons: Mapping[str, Sequence[tuple[float, str]]],
    epoch_s: float,
) -> list[RecordedStart]:
    """Recorded and simulated starts of all jobs, by job and number.

    Simulated starts are from the first phase.
    """
    starts = []
    for job in trace.jobs:
        there, here = runs.get(job.id, ()), phases[0].get(job.id, [])
        for nth in range(max(len(there), len(here))):
            record = there[nth] if nth < len(there) else None
            start_s, machines = here[nth] if nth < len(here) else (None, frozenset[str]())
            at_s = None if record is None else moment_of(record, "Start")
            starts.append(
                RecordedStart(
                    job_id=job.id,
                    nth=nth,
                    recorded_s=None if at_s is None else at_s - epoch_s,
                    simulated_s=start_s,
                    recorded_machines=frozenset()
                    if record is None
                    else frozenset(hosts(record.text("NodeList"), record.place)),
                    simulated_machines=machines,
                    why=_why(record, start_s, at_s, epoch_s)
                    + _simulated_reason(reasons.get(job.id, ()), start_s),
                    phases_s=tuple(
                        phase[job.id][nth][0] for phase in phases if nth < len(phase[job.id])
                    ),
                )
            )
    return starts


def _simulated_reason(reasons: Sequence[tuple[float, str]], start_s: float | None) -> str:
    """Why a job waited in the simulation, in words."""
    waits = [x for x in reasons if start_s is not None and x[0] < start_s]
    return f" ({max(waits)[1]})" if waits else ""


def _why(
    record: Record | None, simulated_s: float | None, at_s: float | None, epoch_s: float
) -> str:
    """Which scheduler started the job, and why it had waited, as far as Slurm recorded it."""
    if record is None:
        return "simulated only: it lost its GPUs once more than recorded"
    flags = record.text("Flags")
    by = "backfill" if "SchedBackfill" in flags else "the main scheduler" if flags else "Slurm"
    reason = record.text("Reason")
    waited = f", after waiting for {reason}" if reason else ""
    if simulated_s is None or at_s is None:
        return f"recorded only, by {by}{waited}"
    which = "later" if simulated_s > at_s - epoch_s else "earlier"
    return f"started by {by}{waited}; {which} in the simulation"

"""Recorded jobs on other links: the part of their run times that is communication changes.

A job took its recorded time on the present fabric. If the comm ratio of its model (exposed
communication / compute, as in `artist.network.rates.isolated`) is r there and r' on other links,

    computing = recorded / (1 + r)        run time = computing x (1 + r')

both on the machines that the job had. GPUs compute as before: the calibration of the present fabric
holds for both. A job that Slurm stopped at its time limit keeps its run time, since its remaining
work is unknown. A job that would run longer than its limit is stopped there, and its work is lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from artist.cluster.fabric_options import changes_text
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.cluster.tree import ClusterTree
from artist.config import Scenario
from artist.errors import ArtistError, ConfigError
from artist.experiments.recorded.cluster_changes import units
from artist.experiments.recorded.recording import Recording
from artist.experiments.relative_values import scenario_at
from artist.run import build_calibration, build_cluster, build_fabric, build_latency
from artist.slurm.texts import hosts
from artist.trace.divided import with_axes
from artist.trace.native.trace import Trace
from artist.units import counted
from artist.workload.job import UNKNOWN_MODEL, Job

KEYS = ("fabric", "system", "collectives")
"""Keys of a change of links; keys below them (`fabric.rack.bandwidth`) are allowed, too."""

_DIGITS = re.compile(r"\d+")
_MOST_NAMES = 3


@dataclass(frozen=True)
class OtherLinks:
    """What other links do to a recording."""

    stretch: Mapping[str, float]
    """Job -> its run time over the recorded one; other jobs keep theirs."""
    known: float
    """The share of GPU-hours of jobs whose communication is known."""
    change: float
    """The relative change of these GPU-hours."""
    stopped: frozenset[str]
    """The jobs that would run into their time limits."""
    words: str
    """Both fabrics, with where their figures come from."""

    def job(self, job: Job) -> Job:
        """A job as it runs on the other links."""
        return replace(job, compute_s=job.compute_s * self.stretch.get(job.id, 1.0))


class PresentLinks:
    """The links on which a recording was made; `fabric` is their name."""

    def __init__(self, recording: Recording, fabric: str | None) -> None:
        self._recording, self._fabric = recording, fabric

    def changed(self, point: Sequence[tuple[str, Any]], where: str) -> OtherLinks:
        """The recording on the links that these settings of a scenario describe.

        Raises:
            ConfigError: no present fabric, no job whose model is known, or a bad setting; begins
                with `where`.
        """
        if self._fabric is None:
            raise ConfigError(
                f"{where}: cannot be judged, since it is unknown on which links jobs took their "
                "recorded time; name them with --fabric, one of artist list fabrics"
            )
        if not self._known:
            jobs = counted(len(self._recording.trace.jobs), "job")
            raise ConfigError(
                f"{where}: cannot be judged, since the models of all {jobs} are unknown, and "
                f"so is what they communicate; say which they are{self._remedy()}"
            )
        try:
            scenario = scenario_at(self._settings, point, where)
            before, after = self._ratios(self._present), self._ratios(scenario)
        except ArtistError as cause:
            reason = str(cause).removeprefix(f"{where}: ")
            raise ConfigError(f"{where}: {reason}") from cause
        stretch, hours_before, hours_after = {}, 0.0, 0.0
        stopped = set()
        for job in self._known:
            ratio = 1.0 if self._stopped(job) else (1 + after[job.id]) / (1 + before[job.id])
            limit_s = float(str(job.hints.get("hint_time_limit_s") or "inf"))
            limit_s = max(job.ideal_s, limit_s)
            run_s = min(job.ideal_s * ratio, limit_s)
            if job.ideal_s * ratio > limit_s:
                stopped.add(job.id)
            stretch[job.id] = run_s / job.ideal_s
            hours_before += job.gpus * job.ideal_s
            hours_after += job.gpus * run_s
        every = sum(job.gpus * job.ideal_s for job in self._recording.trace.jobs)
        words = " instead of ".join(map(_words, (scenario, self._present)))
        change = hours_after / hours_before - 1
        return OtherLinks(stretch, hours_before / every, change, frozenset(stopped), words)

    @cached_property
    def _settings(self) -> Mapping[str, Any]:
        chosen = {x: self._recording.settings[x] for x in ("cluster", "trace")}
        return {**chosen, "policy": "fifo", "fabric": self._fabric}

    @cached_property
    def _present(self) -> Scenario:
        return scenario_at(self._settings, [], f"--fabric {self._fabric}")

    @cached_property
    def _machines(self) -> Mapping[str, int]:
        machines = units(self._recording.document, "machine")
        return {machine["name"]: index for index, machine in enumerate(machines)}

    def _hosts(self, job: Job) -> list[int]:
        """The machines that a job had in its last run; none if any is unknown."""
        runs = self._recording.runs.get(job.id, ())
        names = hosts(runs[-1].text("NodeList"), runs[-1].place) if runs else []
        return [self._machines[x] for x in names] if {*names} <= self._machines.keys() else []

    def _stopped(self, job: Job) -> bool:
        return self._recording.runs[job.id][-1].text("State").startswith("TIMEOUT")

    @cached_property
    def _known(self) -> list[Job]:
        """The jobs whose model and machines are known."""
        sizes = [machine["gpus"] for machine in units(self._recording.document, "machine")]
        return [
            job
            for job in self._recording.trace.jobs
            if job.model != UNKNOWN_MODEL
            and job.gpus <= sum(sizes[machine] for machine in self._hosts(job))
        ]

    def _ratios(self, scenario: Scenario) -> dict[str, float]:
        """The comm ratio of each known job on the machines that it had."""
        fabric = build_fabric(scenario)
        present = build_fabric(self._present)
        calibration = build_calibration(self._present, present)
        # Only links change, so the GPUs are those of the present fabric.
        same_gpus = fabric.model_copy(update={"machine": present.machine})
        latency = build_latency(scenario, same_gpus, calibration)
        tree = build_cluster(scenario, fabric)
        jobs = with_axes(self._trace_of_known, scenario.parallelism).jobs
        ratios = {}
        for job in jobs:
            placement = _even(tree, self._hosts(job), job.gpus)
            ratios[job.id] = latency.estimate(job.model, shape(tree, placement)).comm_ratio
        return ratios

    @cached_property
    def _trace_of_known(self) -> Trace:
        trace, known = self._recording.trace, {job.id for job in self._known}
        pairs = zip(trace.jobs, trace.numbers, strict=True)
        kept = [pair for pair in pairs if pair[0].id in known]
        jobs, numbers = zip(*kept, strict=True)
        return replace(trace, jobs=jobs, numbers=numbers)

    def _remedy(self) -> str:
        """As in `with --models 'train-*=MODEL'`: the names that hold most GPU time."""
        held: dict[str, float] = defaultdict(float)
        for job in self._recording.trace.jobs:
            runs = self._recording.runs.get(job.id)
            name = runs[-1].text("JobName") if runs else ""
            held[_DIGITS.sub("*", name)] += job.gpus * job.ideal_s
        most = sorted((name for name in held if name), key=lambda name: -held[name])[:_MOST_NAMES]
        pairs = ",".join(f"{name}=MODEL" for name in most)
        return f", e.g. --models '{pairs or 'account:NAME=MODEL'}'"


def _even(tree: ClusterTree, machines: Sequence[int], gpus: int) -> Placement:
    """GPUs spread over machines as evenly as possible, as sacct does not say how many on each."""
    sizes = tree.levels[tree.machine].gpus
    taken: dict[int, int] = {}
    left = gpus
    for nth, machine in enumerate(sorted(machines, key=lambda machine: (sizes[machine], machine))):
        share = min(sizes[machine], left // (len(machines) - nth))
        left -= share
        for leaf in tree.leaves(tree.machine, machine):
            of_leaf = min(share, int(tree.leaf_gpus[leaf]))
            share -= of_leaf
            if of_leaf:
                taken[leaf] = of_leaf
    return Placement.of(taken)


def _words(scenario: Scenario) -> str:
    """A fabric, its changes, and where its figures come from."""
    fabric = build_fabric(scenario)
    changes = changes_text(scenario.fabric_options)
    return f"{fabric.name}{f' with {changes}' if changes else ''} ({fabric.origin_words})"

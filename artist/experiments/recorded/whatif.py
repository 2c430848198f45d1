"""What if: a changed Slurm against the present one, both simulated from a recording.

Both run the same jobs, in the same phases of Slurm's cycles, so most errors of the simulation are
in both. `Replay.sentence` says how large they are, and is always shown beside a what-if. Run times
are the recorded ones, unless links change (`other_links.py`), and jobs arrive as they did.

A queue is chaotic: a job that ends a little earlier lets another one start, and everything after it
differs. So the present is also simulated a few times with each run time up to a millisecond shorter
or longer. Its effect on waits is chance, and a change with no larger effect proves nothing.

A change is `KEY=VALUE`; several, separated by blanks, are made together. `cluster_changes.py` has
the keys of the cluster. `policy` and `policy.KEY` are as in a scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from artist.cluster.cluster_file import cluster_from
from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, nearest, shortened
from artist.experiments.recorded.cluster_changes import (
    GROUPS,
    SIZES,
    cluster_gpus,
    is_a_limit,
    is_of_cluster,
    resized,
    sizes_a_partition,
    units,
    with_change,
)
from artist.experiments.recorded.other_links import KEYS, OtherLinks, PresentLinks
from artist.experiments.recorded.outcomes import JobGroup, Loss, Mask, Outcome
from artist.experiments.recorded.recording import Recording, read_recording, write_cluster
from artist.experiments.recorded.replay import Replay, replayed
from artist.experiments.relative_values import scenario_at
from artist.policies.slurm.settings import settings_of
from artist.results.result import Result
from artist.results.statistics.block_bootstrap import BlockDifference, block_difference
from artist.results.statistics.paired_input import Floats
from artist.rng import stream
from artist.run import simulate
from artist.slurm.facts import SlurmFacts
from artist.trace.native.writer import write_native
from artist.units import counted

DAY_S = 86400.0
LEAST_WEEKS = 5
"""With at least this many weeks, the bootstrap draws weeks and not days, as weekends differ."""

NUDGE_S = 1e-3
"""Run times change by at most this to show the effect of chance. Slurm records whole seconds."""
NUDGES = 5
"""Nudged simulations; our choice. A change without effect exceeds all n of them with probability
1 / (n + 1)."""

_SIMULATION = ("contention", "backend", "calibration", "uneven")


@dataclass(frozen=True)
class RecordedWhatIf:
    """Changes, each against the replayed present."""

    replay: Replay
    present: Outcome
    outcomes: tuple[Outcome, ...]
    nudged: tuple[Outcome, ...]
    """The present with other run times, up to `NUDGE_S` shorter or longer, `NUDGES` times."""
    epoch_s: float
    machine_gpus: int
    """GPUs of the largest machine."""
    assumed: tuple[str, ...]
    """The assumptions behind these changes that a reader should know."""

    @cached_property
    def jobs(self) -> Mapping[str, Any]:
        """The columns of all jobs, ordered as `Outcome.waits_s`."""
        table = self.present.results[0].tables["jobs"]
        order = np.argsort(table["job_id"], kind="stable")
        return {name: np.asarray(table[name])[order] for name in _SHOWN if name in table}

    @cached_property
    def finish(self) -> Mask:
        """Whether each job finishes in the present and under every change, in all phases.

        Only these are compared: a cancelled job stops waiting, and that is not a gain.
        """
        every = [one.cancelled for one in (self.present, *self.outcomes)]
        gone: Mask = np.asarray(np.concatenate(every).any(axis=0))
        return ~gone

    @cached_property
    def days(self) -> Floats:
        """The day on which each job arrives, as the cluster's clock has it."""
        days: Floats = (self.jobs["arrival_s"] + self.epoch_s) // DAY_S
        return days

    @cached_property
    def blocks(self) -> Floats:
        """The blocks that the bootstrap draws: days, or weeks if there are enough of them."""
        first = self.days.min()
        if self.days.max() - first + 1 < 7 * LEAST_WEEKS:
            return self.days
        weeks: Floats = (self.days - first) // 7
        return weeks

    @property
    def block_name(self) -> str:
        """`day` or `week`."""
        return "day" if self.blocks is self.days else "week"

    def groups(self) -> list[JobGroup]:
        """All jobs; by size, by account, by hour of arrival: at most eleven groups."""
        found = [JobGroup("", "all jobs" if self.finish.all() else "jobs that finish", self.finish)]
        gpus, machine = self.jobs["gpus"], self.machine_gpus
        found += [
            JobGroup("size", name, jobs)
            for name, jobs in (
                ("1 GPU", gpus == 1),
                (f"2 to {machine - 1} GPUs", (gpus > 1) & (gpus < machine)),
                (f"{machine} GPUs", (gpus == machine) & (gpus > 1)),
                (f"more than {machine} GPUs", gpus > machine),
            )
            if jobs.any()
        ]
        found += [
            JobGroup("account", f"account {x}", self.jobs["tenant"] == x) for x in self._tops()
        ]
        hours = (self.jobs["arrival_s"] + self.epoch_s) % DAY_S // 3600
        by_hour = [
            JobGroup("hour", f"arrived {first:02d} to {first + 8:02d} h", jobs)
            for first in (0, 8, 16)
            if (jobs := (hours >= first) & (hours < first + 8)).any()
        ]
        found += by_hour if len(by_hour) > 1 else []
        finish = [JobGroup(one.kind, one.name, one.jobs & self.finish) for one in found]
        return [one for one in finish if one.jobs.any()]

    def _tops(self) -> list[str]:
        """The three accounts whose jobs wait longest in all."""
        if "tenant" not in self.jobs:
            return []
        waits_s, accounts = self.present.waits_s.mean(axis=0), self.jobs["tenant"]
        named = sorted({str(x) for x in accounts if x})
        return sorted(named, key=lambda x: -float(waits_s[accounts == x].sum()))[:3]

    def compared(self, outcome: Outcome, group: JobGroup) -> BlockDifference:
        """The mean waits of a group's jobs, over all phases."""
        present_s, changed_s = (x.waits_s.mean(axis=0)[group.jobs] for x in (self.present, outcome))
        return block_difference(present_s, changed_s, self.blocks[group.jobs].tolist())

    def chance_s(self, group: JobGroup) -> float:
        """The largest change by chance of the mean wait of a group's jobs, in seconds."""
        present_s = self._mean_wait_s(self.present, group)
        return max(abs(self._mean_wait_s(one, group) - present_s) for one in self.nudged)

    @staticmethod
    def _mean_wait_s(outcome: Outcome, group: JobGroup) -> float:
        """The mean wait, computed as in `compared`, to the last bit."""
        return float(outcome.waits_s.mean(axis=0)[group.jobs].mean())

    def same_sign(self, outcome: Outcome) -> int:
        """In how many phases the mean wait changes as it does on average."""
        by_phase = (outcome.waits_s - self.present.waits_s)[:, self.finish].mean(axis=1)
        return int((np.sign(by_phase) == np.sign(by_phase.mean())).sum())

    def losses(self, outcome: Outcome) -> list[Loss]:
        """Accounts, then users, that lose by a change; worst first.

        Their jobs wait longer on average in every phase, and by more than chance moved the wait of
        any account (or user).
        """
        found = []
        for column, kind in (("tenant", "account "), ("user", "")):
            names = self.jobs.get(column)
            if names is None:
                continue
            groups = [
                JobGroup(column, name, theirs)
                for name in sorted({str(x) for x in names if x})
                if (theirs := (names == name) & self.finish).any()
            ]
            chance_s = max(map(self.chance_s, groups), default=0.0)
            some = []
            for group in groups:
                more_s = (outcome.waits_s - self.present.waits_s)[:, group.jobs].mean(axis=1)
                before_s, after_s = (self._mean_wait_s(x, group) for x in (self.present, outcome))
                if (more_s > 0).all() and after_s - before_s > chance_s:
                    count = int(group.jobs.sum())
                    some.append(Loss(f"{kind}{group.name}", count, before_s, after_s))
            found += sorted(some, key=lambda x: x.present_s - x.changed_s)
        return found

    def gpu_hours(self, outcome: Outcome) -> tuple[float, float]:
        """GPU-hours that count until the last job arrives, and those lost with preempted runs."""
        return outcome.gpu_hours(float(self.jobs["arrival_s"].max()))


_SHOWN = ("arrival_s", "gpus", "tenant", "user")


def what_if(
    folder: Path,
    inputs: Path,
    changes: Sequence[str],
    *,
    keep_names: bool = False,
    phases: int = 1,
    fabric: str | None = None,
    models: Mapping[str, str] = MappingProxyType({}),
) -> RecordedWhatIf:
    """Simulate a recording without changes and with each change. Files go to `inputs`.

    `fabric` names the links on which the jobs were recorded, and `models` are those of names of
    jobs, accounts and sizes (`artist.trace.foreign.sacct`); only other links need them.

    Raises:
        ConfigError: a change cannot be made, or a text is missing or broken.
        TraceError: the log is broken; names file and line.
    """
    recording = read_recording(folder, inputs, keep_names=keep_names, models=models)
    present = PresentLinks(recording, fabric)
    changed = [_changed(recording, present, n, x) for n, x in enumerate(changes, start=1)]
    replay = replayed(recording, phases=phases)
    found = RecordedWhatIf(
        replay=replay,
        present=Outcome("present", replay.results),
        outcomes=tuple(
            Outcome(change, _simulated(scenario, change, phases), links)
            for change, (scenario, links, _) in zip(changes, changed, strict=True)
        ),
        nudged=tuple(_nudged(recording, nth, phases) for nth in range(NUDGES)),
        epoch_s=recording.epoch_s,
        machine_gpus=max(one["gpus"] for one in units(recording.document, "machine")),
        assumed=tuple(_assumed(changes, changed)),
    )
    if not found.finish.any():
        raise ConfigError("no job finishes in the present and under every change; ask for fewer")
    return found


def _changed(
    recording: Recording, present: PresentLinks, number: int, change: str
) -> tuple[Scenario, OtherLinks | None, str]:
    """The scenario with a change, the other links if it has some, and its machines in words.

    Raises:
        ConfigError: it cannot be made; names it.
    """
    where = f"--change {shortened(change)}"
    pairs = [part.partition("=") for part in change.split()]
    if not pairs or not all(key and equals for key, equals, _ in pairs):
        raise ConfigError(f"{where}: expected KEY=VALUE, e.g. racks=+2 or policy=easy")
    settings, document = dict(recording.settings), recording.document
    of_scenario, of_links = list[tuple[str, Any]](), list[tuple[str, Any]]()
    for key, _, value in pairs:
        if is_of_cluster(key):
            document = with_change(document, key, value, where)
            continue
        group = key.partition(".")[0]
        if group in KEYS:
            of_links.append((key, value))
            continue
        if group in _SIMULATION:
            raise ConfigError(
                f"{where}: is not part of a cluster, but of how jobs are simulated; convert the "
                "log with --models and use artist compare"
            )
        if group != "policy":
            near = nearest(group, (*SIZES, "policy", "fabric", *GROUPS))
            meant = f" (did you mean {near!r}?)" if near else ""
            known = ", ".join((*SIZES, "policy", "fabric", *(f"{x}.NAME.KEY" for x in GROUPS[:-1])))
            raise ConfigError(
                f"{where}: {shortened(key)} cannot be changed{meant}; expected {known} or "
                "config.KEY"
            )
        of_scenario.append((key, value))
    policy = next((value for key, value in of_scenario if key == "policy"), "slurm")
    if document is not recording.document:
        _check(document, recording, policy, where, [key for key, _, _ in pairs])
        file = write_cluster(document, recording.inputs / f"cluster-{number}.yaml")
        settings["cluster"] = str(file)
    links = present.changed(of_links, where) if of_links else None
    if policy != "slurm" or links is not None:
        # Preemptions of other policies keep what was done, so iterations count.
        jobs = recording.trace.jobs if policy != "slurm" else recording.jobs
        settings["trace"] = str(recording.inputs / f"trace-{number}.csv")
        write_native([x if links is None else links.job(x) for x in jobs], Path(settings["trace"]))
    if policy != "slurm":
        del settings["policy_options"]
    return scenario_at(settings, of_scenario, where), links, resized(recording.document, document)


def _check(
    document: Mapping[str, Any],
    recording: Recording,
    policy: str,
    where: str,
    keys: Sequence[str],
) -> None:
    """Refuse a cluster that cannot be read, and changes without effect on the policy."""
    before = cluster_from(recording.document, where).file.slurm or SlurmFacts()
    after = cluster_from(document, where).file.slurm or SlurmFacts()
    of_slurm = [x for x in keys if x.partition(".")[0] in GROUPS and not sizes_a_partition(x)]
    if policy != "slurm" and of_slurm:
        raise ConfigError(f"{where}: only policy slurm reads {of_slurm[0]}; leave one out")
    try:
        then, now = settings_of(before), settings_of(after)
    except ConfigError as cause:
        raise ConfigError(f"{where}: {cause}") from cause
    gpus, largest = cluster_gpus(document), max(recording.trace.jobs, key=lambda x: x.gpus)
    if largest.gpus > gpus:
        raise ConfigError(
            f"{where}: job {shortened(largest.id)} had {counted(largest.gpus, 'GPU')}, and the "
            f"cluster would have {gpus}; leave fewer machines out"
        )
    if any(map(is_a_limit, keys)) and not now.limits:
        raise ConfigError(
            f"{where}: limits are not in force, as AccountingStorageEnforce does not name them; "
            "add config.AccountingStorageEnforce=limits"
        )
    if new := [x for x in now.not_modelled if x not in then.not_modelled]:
        raise ConfigError(f"{where}: policy slurm does not model {'; '.join(new)}")
    if before.settings != after.settings and then == now:
        raise ConfigError(f"{where}: policy slurm reads no such setting of slurm.conf")


def _simulated(scenario: Scenario, change: str, phases: int) -> tuple[Result, ...]:
    try:
        return tuple(
            simulate(scenario.model_copy(update={"permutation": phase})) for phase in range(phases)
        )
    except ArtistError as cause:
        raise ConfigError(f"--change {shortened(change)}: {cause}") from cause


def _nudged(recording: Recording, nth: int, phases: int) -> Outcome:
    """The present with each run time up to `NUDGE_S` shorter or longer."""
    file, jobs = recording.inputs / "trace-nudged.csv", [*recording.jobs]
    by_s = stream(nth, "nudged run times").uniform(-NUDGE_S, NUDGE_S, len(jobs)).tolist()
    nudged = [
        replace(job, compute_s=max(job.compute_s + by, NUDGE_S))
        for job, by in zip(jobs, by_s, strict=True)
    ]
    write_native(nudged, file)  # a list: some jobs alone may say the kind of their GPUs
    scenario = scenario_at({**recording.settings, "trace": str(file)}, [], "the present, nudged")
    return Outcome("present, nudged", _simulated(scenario, "present, nudged", phases))


def _assumed(
    changes: Sequence[str], changed: Sequence[tuple[Scenario, OtherLinks | None, str]]
) -> list[str]:
    """The assumptions that a reader of the outcome should know."""
    others = [links for _, links, _ in changed if links is not None]
    run = "and run as long as they did"
    if others:
        run = "as they did and, but for other links, run as long"
    both = zip(changes, changed, strict=True)
    machines = [f"{change} {does}" for change, (*_, does) in both if does]
    found = [*machines, f"jobs arrive {run}; users who adapt are not simulated"]
    for links in others:
        found.append(
            f"{links.words}: communication of each job as if it were alone on the machines that it "
            "had, as long as simulated; GPUs compute as before, and time limits stay"
        )
    policies = sorted({x.policy for x, _, _ in changed if x.policy != "slurm"})
    if policies:
        found.append(
            f"{', '.join(policies)}: without cycles, partitions, limits, reservations and "
            "priorities of Slurm, so that a job that may start never waits for a cycle; jobs that "
            "lose their GPUs go on where they stopped, while those that Slurm requeues begin again"
        )
    return found

"""When will my job start? Many futures of a recorded Slurm, from its queue at a moment on.

Each future draws how long jobs run (`run_time_law.py`) and goes on in another phase of Slurm's
cycles. Jobs that arrive later are drawn too: the past of the log comes again, from a random day at
the same time of day if it has two, else from a random moment, with the same users and sizes. What
fair share knows at the moment is simulated once from the log. A future ends when all jobs that were
asked for have started, or at the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from artist.cluster.cluster_file import Cluster, load_cluster
from artist.cluster.visiting_order import VisitingOrder
from artist.config import load_scenario
from artist.engine.simulator import Simulator
from artist.errors import ConfigError, did_you_mean, shortened
from artist.experiments.recorded.queue_at import Log, QueueAt, moment_in, queue_at, read_log
from artist.experiments.recorded.recording import moment_of
from artist.experiments.recorded.run_time_law import Observed, RunTimes
from artist.io.digests import pseudonym
from artist.network.rates.rate_functions import open_contention
from artist.policies.options import SlurmOptions
from artist.policies.slurm.continued import Continued, Past
from artist.policies.slurm.fair_share import UsageState
from artist.policies.slurm.preemption import REQUEUE_DELAY_S
from artist.rng import Draws, stream
from artist.run import Prepared, prepare
from artist.slurm.queue_text import Expected, expected_starts
from artist.slurm.texts import hosts
from artist.trace.native.time_units import moment_s
from artist.units import TICKS_PER_S, ticks
from artist.workload.job import Job

DAY_S = 86400.0
LONGEST_S = 7 * DAY_S
"""No horizon is longer unless it is asked for: nobody plans by what is farther away."""

ASKED = "asked"
"""The id of a job that is not in the queue yet."""

SECOND_S = 1.0
"""Logs cut times to whole seconds: what waits at a moment by the log still waited a second later,
and starts that are forecast are cut as the log will cut them."""

BEYOND = 10
"""One in so many starts lies beyond each end of an 80 % interval."""


@dataclass(frozen=True)
class Asked:
    """A job that may be submitted at the moment."""

    gpus: int
    limit_s: float | None = None
    hints: Sequence[tuple[str, str]] = ()
    account: str = ""
    user: str = ""


@dataclass(frozen=True)
class StartForecast:
    """When a job starts, in seconds after the moment; infinite where it does not in time."""

    job_id: str
    gpus: int
    waited_s: float
    starts_s: tuple[float, ...]
    """In order."""
    group: str
    """What its own run time is drawn from; of no effect on its start."""
    slurm_s: float | None
    """When Slurm expected it to start."""
    recorded_s: float | None
    """When it did, if the log tells."""

    @property
    def interval_s(self) -> tuple[float, float, float]:
        """The ends of the 80 % interval, and the median between them.

        Among n futures and what really comes, that is as often the first, the second ... of n + 1
        (Hill, 1968). So a tenth of these n + 1 places lies beyond each end, not of n: the tenth and
        ninetieth percentile of 20 futures would hold 16 of 21 places, 76 %. With fewer than nine
        futures the ends are the first and the last.
        """
        count = len(self.starts_s)
        beyond = max(1, (count + 1) // BEYOND)
        return self.starts_s[beyond - 1], self.starts_s[(count - 1) // 2], self.starts_s[-beyond]

    @property
    def never(self) -> float:
        """The share of futures in which it does not start before the horizon."""
        return sum(map(math.isinf, self.starts_s)) / len(self.starts_s)


@dataclass(frozen=True)
class Forecast:
    """Forecasts of all jobs that were asked for."""

    at_s: float
    horizon_s: float
    cycle_s: float
    futures: int
    jobs: tuple[StartForecast, ...]
    running: int
    waiting: int
    seen: int
    """Jobs whose run times were learned from."""


def forecast(
    folder: Path,
    inputs: Path,
    *,
    at: str | None = None,
    job: str | None = None,
    asked: Asked | None = None,
    futures: int = 100,
    horizon_s: float | None = None,
    seed: int = 0,
    keep_names: bool = False,
) -> Forecast:
    """When jobs start: one, one that is not there yet, or all that wait.

    Raises:
        ConfigError: a text is missing or broken, the job does not wait, or no moment.
        TraceError: the log is broken; names file and line.
    """
    log = read_log(folder, inputs)
    queue = queue_at(folder, inputs, log, moment_in(at, log), keep_names=keep_names)
    futures_ = Futures(queue, log, expected_starts(folder), asked, horizon_s, seed, keep_names)
    if job is not None and job not in queue.waiting:
        raise ConfigError(f"--job {shortened(job)}: {_why_not(queue, log, job)}")
    watched = [ASKED] if asked else [job] if job else queue.waiting
    return futures_.forecast(watched, futures)


def _why_not(queue: QueueAt, log: Log, job: str) -> str:
    state = queue.states.get(job)
    if state is not None:
        return f"it {'runs already' if state == 'runs' else 'has ended'} at that moment"
    if job in log.rows:
        return "it could not start yet, since it was not eligible; choose a later --at"
    if not queue.waiting:
        return "no job waits at that moment; choose an earlier --at, or ask with --gpus"
    return did_you_mean(job, queue.waiting)


class Futures:
    """Draws futures from a queue, and simulates them."""

    def __init__(
        self,
        queue: QueueAt,
        log: Log,
        expected: Sequence[Expected],
        asked: Asked | None,
        horizon_s: float | None,
        seed: int,
        keep_names: bool = False,
    ) -> None:
        self._queue, self._log, self._expected, self._seed = queue, log, expected, seed
        recording = queue.recording
        self._zero_s = float(recording.settings["policy_options"]["epoch_s"])
        self._at_s = queue.at_s - self._zero_s
        self._by_id = {job.id: job for job in recording.trace.jobs}
        self.laws = RunTimes(self._observed(x) for x in (*queue.ended, *queue.running))
        self._asked = None if asked is None else self._asked_job(asked, keep_names)
        if horizon_s is None:
            limits = [self._limit_s(job.id) or 0.0 for job in recording.trace.jobs]
            horizon_s = min(LONGEST_S, max(self._at_s, 2 * max(limits)))
        self._horizon_s = horizon_s

    # -- jobs --------------------------------------------------------------------------

    def _asked_job(self, asked: Asked, keep_names: bool) -> Job:
        user = asked.user if keep_names or not asked.user else pseudonym(asked.user)
        limit = {} if asked.limit_s is None else {"hint_time_limit_s": f"{asked.limit_s:.0f}"}
        hints: dict[str, object] = {**limit, **dict(asked.hints)}
        hints["hint_job_number"] = str(self._last_number() + 1)
        return Job(
            id=ASKED, arrival_s=self._at_s, gpus=asked.gpus, model="unknown", iterations=1,
            compute_s=asked.limit_s or 3600.0, user=user, tenant=asked.account or None,
            hints=hints,
        )  # fmt: skip

    def _last_number(self) -> int:
        numbers = (str(x.hints.get("hint_job_number", "0")) for x in self._by_id.values())
        return max((int(x) for x in numbers if x.isdecimal()), default=0)

    def _limit_s(self, id_: str) -> float | None:
        text = str(self._by_id[id_].hints.get("hint_time_limit_s") or "")
        return float(text) if text else None

    def _who(self, id_: str) -> tuple[str, str, float | None]:
        return self._by_id[id_].user, self._queue.rows[id_].text("JobName"), self._limit_s(id_)

    def _observed(self, id_: str) -> Observed:
        has_ended = self._queue.states[id_] == "ended"
        return Observed(*self._who(id_), self._by_id[id_].ideal_s, has_ended)

    def _start_s(self, id_: str) -> float:
        start_s = moment_of(self._queue.rows[id_], "Start")
        assert start_s is not None
        return start_s - self._zero_s

    def _drawn(self, laws: RunTimes, id_: str, uniform: float) -> Job:
        """A job that runs or waits, with a run time that is drawn."""
        ran_s = self._by_id[id_].ideal_s if self._queue.states[id_] == "runs" else 0.0
        return self._running_for(id_, laws.draw(*self._who(id_), uniform, ran_s))

    def _running_for(self, id_: str, run_s: float) -> Job:
        limit_s = self._limit_s(id_)
        run_s = run_s if limit_s is None else min(run_s, max(limit_s, self._by_id[id_].ideal_s + 1))
        return replace(self._by_id[id_], iterations=1, compute_s=max(1.0, run_s))

    def _arrivals(self, laws: RunTimes, draws: np.random.Generator) -> list[Job]:
        """The past of the log once more, from a random moment on, again and again."""
        past = self._queue.recording.trace.jobs
        days = int(self._at_s // DAY_S)
        if days >= 2:
            back_s = DAY_S * int(draws.integers(1, days + 1))
        else:
            back_s = float(draws.uniform(0.0, self._at_s))
        number, found, begin_s = self._last_number() + 2, list[Job](), self._at_s
        while begin_s < self._at_s + self._horizon_s and back_s > 0:
            for job in past:
                after_s = job.arrival_s - (self._at_s - back_s)
                if after_s <= 0:
                    continue
                hints = {**job.hints, "hint_dependency": "", "hint_job_number": str(number)}
                ended = self._queue.states[job.id] == "ended"
                run = job if ended else self._drawn(laws, job.id, float(draws.uniform()))
                found.append(
                    replace(
                        run, id=f"later-{number}", arrival_s=begin_s + after_s, iterations=1,
                        compute_s=run.ideal_s, hints=hints,
                    )
                )  # fmt: skip
                number += 1
            begin_s, back_s = begin_s + back_s, self._at_s
        return [x for x in found if x.arrival_s <= self._at_s + self._horizon_s]

    # -- simulation --------------------------------------------------------------------

    @cached_property
    def _prepared(self) -> Prepared:
        return prepare(load_scenario(None, self._queue.recording.settings, ()))

    @cached_property
    def _cluster(self) -> Cluster:
        return load_cluster(str(self._queue.recording.inputs / "cluster.yaml"))

    def _past(self, jobs: Sequence[Job], usage: UsageState | None) -> Past:
        starts = {}
        for handle, job in enumerate(jobs):
            if self._queue.states.get(job.id) in ("ended", "runs"):
                row = self._queue.rows[job.id]
                machines = tuple(hosts(row.text("NodeList"), row.place))
                starts[handle] = ticks(self._start_s(job.id)), machines
        eligible_s = {
            handle: round(self._queue.requeued_s[job.id]) + REQUEUE_DELAY_S
            for handle, job in enumerate(jobs)
            if job.id in self._queue.requeued_s
        }
        return Past(ticks(self._at_s + SECOND_S), starts, eligible_s, usage)

    def _policy(
        self, jobs: Sequence[Job], future: int, watched: Sequence[int], usage: UsageState | None
    ) -> Continued:
        options = dict(self._queue.recording.settings["policy_options"])
        # The clock of PriorityCalcPeriod goes on; others start anywhere.
        shifted = options["calc_phase_s"] - jobs[0].arrival_s
        options["calc_phase_s"] = shifted % DAY_S
        draws = Draws(self._seed, future)
        past = self._past(jobs, usage)
        return Continued(SlurmOptions(**options), draws, self._cluster, past, watched)

    def _simulated(
        self, jobs: Sequence[Job], policy: Continued, go_on: Callable[[Simulator], bool]
    ) -> None:
        prepared = self._prepared
        tree = prepared.simulator.tree
        rates = open_contention("none", {}, prepared.network)
        simulator = Simulator(tree, jobs, rates, visiting_order=VisitingOrder(tree, 0))
        while (view := simulator.next_question(policy)) is not None:
            simulator.answer(policy.decide(view), "slurm")
            if not go_on(simulator):
                return

    @cached_property
    def _usage(self) -> UsageState | None:
        """What fair share knows at the moment, by the runs of the log."""
        jobs = [
            self._running_for(x.id, x.ideal_s + (self._queue.states[x.id] == "runs"))
            for x in self._queue.recording.trace.jobs
        ]
        policy = self._policy(jobs, 0, (), None)
        if not policy.settings.multifactor:
            return None
        until, found = ticks(self._at_s), list[UsageState]()

        def go_on(simulator: Simulator) -> bool:
            if simulator.now < until:
                found[:] = [policy.usage()]
                return True
            return False

        self._simulated(jobs, policy, go_on)
        return found[0] if found else None

    def forecast(self, watched: Sequence[str], futures: int) -> Forecast:
        """When these jobs start in so many futures."""
        starts: dict[str, list[float]] = {id_: [] for id_ in watched}
        usage = self._usage if watched else None
        for future in range(1, futures + 1 if watched else 1):
            for id_, start_s in self._future(future, watched, usage).items():
                starts[id_].append(start_s)
        numbers = Continued(
            SlurmOptions(**self._queue.recording.settings["policy_options"]),
            Draws(), self._cluster, Past(0, {}, {}),
        ).settings.numbers  # fmt: skip
        return Forecast(
            at_s=self._queue.at_s,
            horizon_s=self._horizon_s,
            cycle_s=float(max(numbers["bf_interval"], numbers["sched_interval"])),
            futures=futures,
            jobs=tuple(self._start(id_, starts[id_]) for id_ in watched),
            running=len(self._queue.running),
            waiting=len(self._queue.waiting),
            seen=len(self._queue.ended) + len(self._queue.running),
        )

    def _future(
        self, future: int, watched: Sequence[str], usage: UsageState | None
    ) -> dict[str, float]:
        """When jobs start in a future, in seconds after the moment."""
        draws = stream(self._seed, "forecast", future)
        there = [*self._queue.running, *self._queue.waiting]
        uniforms = draws.uniform(size=len(there)).tolist()
        batches: dict[object, float] = {}
        for index, own in enumerate(draws.uniform(size=len(there)).tolist()):
            batch = self.laws.batch(*self._who(there[index]))
            common = batches.setdefault(batch, uniforms[index])
            if own < self.laws.likeness:
                uniforms[index] = common
        laws = self.laws.weighed(stream(self._seed, "forecast-laws", future))
        jobs = [self._drawn(laws, id_, u) for id_, u in zip(there, uniforms, strict=True)]
        jobs += [] if self._asked is None else [self._asked]
        jobs = sorted([*jobs, *self._arrivals(laws, draws)], key=lambda job: job.arrival_s)
        handles = {job.id: handle for handle, job in enumerate(jobs)}
        policy = self._policy(jobs, future, [handles[id_] for id_ in watched], usage)
        last = ticks(self._at_s + self._horizon_s)
        self._simulated(jobs, policy, lambda x: not policy.is_done and x.now < last)
        never = math.inf
        return {
            id_: math.floor(policy.started[handles[id_]] / TICKS_PER_S - self._at_s)
            if policy.started.get(handles[id_], last + 1) <= last
            else never
            for id_ in watched
        }

    def _start(self, id_: str, starts_s: Sequence[float]) -> StartForecast:
        job = self._asked if self._asked and id_ == ASKED else self._by_id[id_]
        group, count = ("", 0) if id_ == ASKED else self.laws.group(*self._who(id_))
        recorded_s = self._log.start_after(id_, self._queue.at_s)
        return StartForecast(
            job_id=id_,
            gpus=job.gpus,
            waited_s=self._at_s - job.arrival_s,
            starts_s=tuple(sorted(starts_s)),
            group=f"{group} ({count})" if group else "",
            slurm_s=self._slurm_s(id_),
            recorded_s=None if recorded_s is None else recorded_s - self._queue.at_s,
        )

    def _slurm_s(self, id_: str) -> float | None:
        """What Slurm said last before the moment."""
        said = [x for x in self._expected if x.job_id == id_]
        before = [
            x for x in said if not x.said_at or (moment_s(x.said_at) or 0) <= self._queue.at_s
        ]
        if not before:
            return None
        starts_s = moment_s(before[-1].starts_at)
        return None if starts_s is None else starts_s - self._queue.at_s


def calibration(
    folder: Path,
    inputs: Path,
    *,
    moments: int,
    futures: int,
    horizon_s: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """How often the 80 % intervals of a log's own past held, at moments spread over it.

    Only what was known at each moment is used. Jobs whose start the log does not tell are left out.
    A start after the horizon counts as one at the horizon in widths and errors.

    Raises:
        ConfigError: a text is missing or broken.
    """
    log, expected = read_log(folder, inputs), expected_starts(folder)
    inside, near, widths, errors, slurm, ours = [], [], [], [], [], []
    # The first third is only learned from.
    for nth in range(moments):
        share = 1 / 3 + (2 / 3) * (nth + 0.5) / moments
        at_s = float(round(log.first_s + share * (log.last_s - log.first_s)))
        queue = queue_at(folder, inputs, log, at_s)
        found = Futures(queue, log, expected, None, horizon_s, seed).forecast(
            queue.waiting, futures
        )
        for one in found.jobs:
            if one.recorded_s is None:
                continue
            low, median, high = one.interval_s
            inside.append(low <= one.recorded_s <= high)
            near.append(low - found.cycle_s <= one.recorded_s <= high + found.cycle_s)
            low, median, high = (min(x, found.horizon_s) for x in (low, median, high))
            widths.append(high - low)
            errors.append(abs(median - one.recorded_s))
            if one.slurm_s is not None:
                slurm.append(abs(one.slurm_s - one.recorded_s))
                ours.append(errors[-1])
    if not inside:
        raise ConfigError(f"{folder}: no job waited at {moments} moments; give more with --check")

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values else None

    return {
        "forecasts": len(inside),
        "inside_80": mean(inside),
        "inside_80_and_a_cycle": mean(near),
        "width_median_s": float(np.median(widths)),
        "error_of_median_s": mean(errors),
        "forecasts_of_slurm": len(slurm),
        "error_of_slurm_s": mean(slurm),
        "error_of_median_where_slurm_says_s": mean(ours),
    }

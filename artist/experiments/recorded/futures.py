"""Futures of a recorded Slurm, simulated from its queue at some moment.

Each future draws run times (`run_time_law.py`) and later arrivals (`later_arrivals.py`), and has
its own phase of Slurm's cycles. The usage that fair share knows at the moment is simulated once
from the log. A future ends when all jobs that were asked for have started, or at the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from artist.cluster.cluster_file import Cluster, load_cluster
from artist.cluster.visiting_order import VisitingOrder
from artist.engine.simulator import Simulator
from artist.experiments.recorded.later_arrivals import DAY_S, LaterArrivals
from artist.experiments.recorded.queue_at import QueueAt
from artist.experiments.recorded.recording import moment_of
from artist.experiments.recorded.run_time_law import Observed, RunTimes
from artist.io.digests import pseudonym
from artist.network.rates.rate_functions import open_contention
from artist.policies.slurm.continued import Continued, Past
from artist.policies.slurm.fair_share import UsageState
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.preemption import REQUEUE_DELAY_S
from artist.policies.slurm.settings import settings_of
from artist.rng import Draws, stream
from artist.run import Prepared, prepare
from artist.settings import load_scenario
from artist.slurm.facts import SlurmFacts
from artist.slurm.texts import hosts
from artist.units import TICKS_PER_S, ticks
from artist.workload.job import Job

LONGEST_S = 7 * DAY_S
"""The default horizon: nobody can plan with later starts."""

ASKED = "asked"
"""The id of a job that is not in the queue yet."""

SECOND_S = 1.0
"""Logs truncate times to whole seconds. So a job that waits at a moment by the log still waited a
second later, and forecast starts are truncated in the same way."""


@dataclass(frozen=True)
class Asked:
    """A job that the user may submit at the moment."""

    gpus: int
    limit_s: float | None = None
    hints: Sequence[tuple[str, str]] = ()
    account: str = ""
    user: str = ""
    gpu_kind: str = ""


class Futures:
    """Draws futures from a queue, and simulates them."""

    def __init__(
        self,
        queue: QueueAt,
        asked: Asked | None = None,
        horizon_s: float | None = None,
        seed: int = 0,
        *,
        keep_names: bool = False,
    ) -> None:
        self._queue, self._seed = queue, seed
        recording = queue.recording
        self._zero_s = float(recording.settings["policy_options"]["epoch_s"])
        self._at_s = queue.at_s - self._zero_s
        self._by_id = {job.id: job for job in recording.trace.jobs}
        self._there = [*queue.running, *queue.waiting]
        self._laws = RunTimes(self._observed(x) for x in (*queue.ended, *queue.running))
        self._later = LaterArrivals(recording.trace.jobs, self._at_s, self._zero_s)
        if horizon_s is None:
            limits = [self._limit_s(id_) or 0.0 for id_ in self._by_id]
            horizon_s = min(LONGEST_S, max(self._at_s, 2 * max(limits)))
        self.horizon_s = horizon_s
        self._new = []
        if asked is not None:
            self._new = [self._asked_job(asked, keep_names)]
            self._by_id[ASKED] = self._new[0]

    def starts_s(
        self, watched: Sequence[str], futures: int, on_done: Callable[[], None]
    ) -> dict[str, list[float]]:
        """By job, when it starts in each future: seconds after the moment, or infinite."""
        found: dict[str, list[float]] = {id_: [] for id_ in watched}
        usage = self._usage if watched else None
        for future in range(1, futures + 1 if watched else 1):
            for id_, start_s in self._future(future, watched, usage).items():
                found[id_].append(start_s)
            on_done()
        return found

    def job(self, id_: str) -> Job:
        """A job in the queue, or the one that is not there yet."""
        return self._by_id[id_]

    def waited_s(self, id_: str) -> float:
        """How long a job has waited at the moment."""
        return self._at_s - self._by_id[id_].arrival_s

    def learned_from(self, id_: str) -> str:
        """The group that a job's run time is drawn from, and its size."""
        group, count = ("", 0) if id_ == ASKED else self._laws.group(*self._who(id_))
        return f"{group} ({count})" if group else ""

    @cached_property
    def cycle_s(self) -> float:
        """The longer of the two schedulers' periods."""
        numbers = settings_of(self._cluster.file.slurm or SlurmFacts()).numbers
        return float(max(numbers["bf_interval"], numbers["sched_interval"]))

    # -- jobs --------------------------------------------------------------------------

    def _asked_job(self, asked: Asked, keep_names: bool) -> Job:
        user = asked.user if keep_names or not asked.user else pseudonym(asked.user)
        limit = {} if asked.limit_s is None else {"hint_time_limit_s": f"{asked.limit_s:.0f}"}
        hints: dict[str, object] = {**limit, **dict(asked.hints)}
        hints["hint_job_number"] = str(self._next_number)
        return Job(
            id=ASKED, arrival_s=self._at_s, gpus=asked.gpus, model="unknown", iterations=1,
            compute_s=asked.limit_s or 3600.0, user=user, tenant=asked.account or None,
            hints=hints, gpu_kinds=(asked.gpu_kind,) if asked.gpu_kind else (),
        )  # fmt: skip

    @cached_property
    def _next_number(self) -> int:
        numbers = (str(x.hints.get("hint_job_number", "0")) for x in self._by_id.values())
        return 1 + max((int(x) for x in numbers if x.isdecimal()), default=0)

    def _limit_s(self, id_: str) -> float | None:
        text = str(self._by_id[id_].hints.get("hint_time_limit_s") or "")
        return float(text) if text else None

    def _who(self, id_: str) -> tuple[str, str, float | None]:
        return self._by_id[id_].user, self._queue.rows[id_].text("JobName"), self._limit_s(id_)

    def _observed(self, id_: str) -> Observed:
        has_ended = self._queue.states[id_] == "ended"
        return Observed(*self._who(id_), self._by_id[id_].ideal_s, has_ended)

    def _drawn(
        self, laws: RunTimes, id_: str, uniforms: tuple[float, float], draws: np.random.Generator
    ) -> Job:
        """A running or waiting job with a drawn run time.

        The log truncates starts and ends to whole seconds. The missing fractions are drawn, too:
        otherwise jobs would end exactly at the moments at which Slurm looks.
        """
        runs = self._queue.states[id_] == "runs"
        ran_s = self._by_id[id_].ideal_s if runs else 0.0
        uniform, wider = uniforms
        run_s = laws.draw(*self._who(id_), uniform, ran_s, wider=wider)
        if (limit_s := self._limit_s(id_)) is not None:
            run_s = min(run_s, max(limit_s, ran_s + SECOND_S))
        cut_s = draws.uniform() - (0.0 if runs else draws.uniform())
        return self._running_for(id_, run_s + cut_s)

    def _running_for(self, id_: str, run_s: float) -> Job:
        return replace(self._by_id[id_], iterations=1, compute_s=max(SECOND_S, run_s))

    def _arrivals(self, laws: RunTimes, draws: np.random.Generator) -> list[Job]:
        """Jobs that arrive later."""
        found, first = list[Job](), self._next_number + 1
        numbers: dict[tuple[object, int], int] = {}
        for index, (arrival_s, job) in enumerate(self._later.draw(self.horizon_s, draws), first):
            # Tasks of one array that are drawn together form one array again.
            again = job.hints.get("hint_job_number") or job.id, round(arrival_s - job.arrival_s)
            number = numbers.setdefault(again, index)
            ended = self._queue.states[job.id] == "ended"
            run = job if ended else self._drawn(laws, job.id, _two(draws), draws)
            hints = {**job.hints, "hint_dependency": "", "hint_job_number": str(number)}
            found.append(
                replace(
                    run, id=f"later-{index}", arrival_s=arrival_s, iterations=1,
                    compute_s=run.ideal_s, hints=hints,
                )
            )  # fmt: skip
        return found

    # -- simulation --------------------------------------------------------------------

    @cached_property
    def _prepared(self) -> Prepared:
        return prepare(load_scenario(None, self._queue.recording.settings, ()))

    @cached_property
    def _cluster(self) -> Cluster:
        return load_cluster(str(self._queue.recording.inputs / "cluster.yaml"))

    def _past(self, jobs: Sequence[Job], usage: UsageState | None) -> Past:
        """The recorded starts up to the moment, which the policy repeats."""
        starts, eligible_s = {}, {}
        for handle, job in enumerate(jobs):
            if self._queue.states.get(job.id) in ("ended", "runs"):
                row = self._queue.rows[job.id]
                start_s = moment_of(row, "Start")
                assert start_s is not None
                machines = tuple(hosts(row.text("NodeList"), row.place))
                starts[handle] = ticks(start_s - self._zero_s), machines
            elif job.id in self._queue.requeued_s:
                eligible_s[handle] = round(self._queue.requeued_s[job.id]) + REQUEUE_DELAY_S
        return Past(ticks(self._at_s + SECOND_S), starts, eligible_s, usage)

    def _policy(
        self, jobs: Sequence[Job], future: int, watched: Sequence[int], usage: UsageState | None
    ) -> Continued:
        options = dict(self._queue.recording.settings["policy_options"])
        # PriorityCalcPeriod keeps its phase; other cycles start at a random one.
        options["calc_phase_s"] = (options["calc_phase_s"] - jobs[0].arrival_s) % DAY_S
        draws, past = Draws(self._seed, future), self._past(jobs, usage)
        return Continued(SlurmOptions(**options), draws, self._cluster, past, watched)

    def _simulated(
        self, jobs: Sequence[Job], policy: Continued, go_on: Callable[[Simulator], bool]
    ) -> None:
        """Simulate the jobs without a network, while `go_on` returns True."""
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
        """The usage that fair share knows at the moment, from the runs of the log."""
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

    def _future(
        self, future: int, watched: Sequence[str], usage: UsageState | None
    ) -> dict[str, float]:
        """When jobs start in a future, in seconds after the moment."""
        draws = stream(self._seed, "forecast", future)
        laws = self._laws.weighed(stream(self._seed, "forecast-laws", future))
        jobs = [
            self._drawn(laws, id_, uniforms, draws)
            for id_, uniforms in zip(self._there, self._uniforms(draws), strict=True)
        ]
        jobs += [*self._new, *self._arrivals(laws, draws)]
        jobs.sort(key=lambda job: job.arrival_s)
        handles = {job.id: handle for handle, job in enumerate(jobs)}
        policy = self._policy(jobs, future, [handles[id_] for id_ in watched], usage)
        last = ticks(self._at_s + self.horizon_s)
        self._simulated(jobs, policy, lambda x: not policy.is_done and x.now < last)
        return {
            id_: math.floor(policy.started[handles[id_]] / TICKS_PER_S - self._at_s)
            if policy.started.get(handles[id_], last + 1) <= last
            else math.inf
            for id_ in watched
        }

    def _uniforms(self, draws: np.random.Generator) -> list[tuple[float, float]]:
        """The uniform numbers for run times of the queue; jobs of a batch may share theirs."""
        found = list[tuple[float, float]]()
        batches: dict[object, tuple[float, float]] = {}
        for id_ in self._there:
            own = _two(draws)
            common = batches.setdefault(self._laws.batch(*self._who(id_)), own)
            found.append(common if draws.uniform() < self._laws.likeness else own)
        return found


def _two(draws: np.random.Generator) -> tuple[float, float]:
    return float(draws.uniform()), float(draws.uniform())

"""A job inside the engine: what changes between its arrival and its finish."""

from __future__ import annotations

from math import lcm
from typing import Final

from artist.cluster.placement import Placement
from artist.contract import MOST_JOBS_PER_GPU, NO_CHECKPOINT, Hold, Rate, Turn, Wait
from artist.engine.events import FINISH, LEASE_END, RATE_END, EventQueue
from artist.engine.progress import Progress
from artist.engine.rows import FAILED, HELD, MIGRATED, RE_RATED, EndReason, JobRow, PlacementRow
from artist.errors import TraceError
from artist.units import GPU_MILLI, Tick, seconds
from artist.workload.goodput import Batch
from artist.workload.job import Job

# Failures in a row, without any work saved between them, after which a run is given up.
MOST_FAILURES_IN_A_ROW = 10_000
# Stays in a row, without a completed iteration that is kept, after which a run is given up.
MOST_WASTED_STAYS = 10_000

PARTS: Final = lcm(*range(1, MOST_JOBS_PER_GPU + 1), GPU_MILLI)
"""Parts of a GPU-tick. However many jobs share it, equally or by thousandths, each gets a whole
number of parts."""


class JobState:
    """Mutable state of one job, owned by the simulator; policies see it as a `JobView`.

    Life cycle: waiting (no placement) -> running (placement, rate) -> waiting ... -> finished.

    - `epoch` counts how often its events were scheduled. Events of an older epoch are stale.
    - `gpus` is how many GPUs it holds; `finish` is when its last iteration ends at its rate.
    - `beside` holds the handles of the other jobs on its GPUs.
    - `interval_start` is when the interval of constant rate began, `started` when the stay did.
    - `last_wait` is the policy's last reason why it waits; None if the policy gave none.
    - `checkpoint` says when it writes its state, `checkpoint_s` what that adds to an iteration.
    - `failures_in_a_row` counts the failures that stopped it since it last saved any work.
    - `productive_from` is when a restart or a hold ends. Time before it counts as stalled.
    - `kept` is the most work (`Progress.work`) with which it has ended a stay.
    - `wasted_stays` counts the stays in a row that did not exceed `kept`.
    """

    __slots__ = (
        "_batch", "_beside", "_ceded", "_gpu_ticks", "_run_ticks", "_saved", "arrival", "batch",
        "beside", "checkpoint", "checkpoint_s", "entered", "epoch", "failures", "failures_in_a_row",
        "finish", "first_start", "former_placement", "gpus", "handle", "interval_start", "job",
        "kept", "last_wait", "lease_due", "migrations", "placement", "preemptions",
        "productive_from", "progress", "rate", "started", "tier", "turn", "wasted_stays",
    )  # fmt: skip

    def __init__(self, job: Job, handle: int, arrival: Tick) -> None:
        self.job = job
        self.handle = handle
        self.arrival = arrival
        self.entered = arrival
        self.started: Tick = 0
        self.first_start: Tick | None = None
        self.interval_start: Tick = 0
        self.lease_due: Tick = 0
        self.finish: Tick = 0
        self.productive_from: Tick = 0
        self.placement: Placement | None = None
        self.former_placement: Placement | None = None
        self.beside: tuple[int, ...] = ()
        self.gpus = 0
        self.tier = -1
        self.last_wait: Wait | None = None
        self.turn: Turn | None = None
        self.batch: Batch | None = None
        self._batch = 0
        self.rate: Rate | None = None
        self.epoch = 0
        self.preemptions = 0
        self.migrations = 0
        self.failures = 0
        self.failures_in_a_row = 0
        self.wasted_stays = 0
        self.kept = 0
        self._saved = 0
        self.checkpoint = NO_CHECKPOINT
        self.checkpoint_s = 0.0
        self.progress = Progress(job.iterations)
        self._run_ticks: Tick = 0
        self._gpu_ticks = 0
        self._beside: tuple[int, ...] = ()
        # GPU time that other jobs attained on this job's GPUs, in parts of a GPU-tick (`PARTS`).
        self._ceded = 0

    def run_ticks(self, now: Tick) -> Tick:
        """Ticks for which the job has held GPUs."""
        held = now - self.started if self.placement else 0
        return self._run_ticks + held

    def service_gpu_ticks(self, now: Tick) -> int:
        """Attained service: GPUs x ticks held, less what other jobs on these GPUs attained."""
        held = self._gpu_ticks + (now - self.started) * self.gpus
        if self._ceded or self._beside:
            held -= -(-(self._ceded + self._cedes(now)) // PARTS)
        return held

    def _cedes(self, now: Tick) -> int:
        """Parts of GPU-ticks that other jobs attained on its GPUs in this interval."""
        jobs = 1 + len(self._beside)
        return (now - self.interval_start) * self.gpus * (PARTS - PARTS // jobs)

    @property
    def regrouped(self) -> bool:
        """Whether the jobs that share its GPUs have changed since the interval began."""
        return self.beside != self._beside

    def service_gpu_s(self, now: Tick) -> float:
        """Attained service in GPU-seconds (`service_gpu_ticks`)."""
        return seconds(self.service_gpu_ticks(now))

    def iterations_done(self, now: Tick) -> int:
        """Whole iterations completed."""
        return self.progress.done(now)

    def phase(self, now: Tick) -> float:
        """The part of the iteration in progress that is done, from 0 to below 1."""
        return self.progress.phase(now)

    def place(self, placement: Placement, tier: int, now: Tick, restart: Tick) -> None:
        """Take GPUs and stand still for `restart` ticks."""
        self.placement = placement
        self.last_wait = None
        self.gpus = placement.gpus
        self.tier = tier
        self.started = self.interval_start = now
        self.rate = None
        self.productive_from = now + restart
        self.progress.start(self.productive_from)
        if self.first_start is None:
            self.first_start = now

    def unplace(self, now: Tick) -> None:
        """Give the GPUs back; the interval's row is already written."""
        assert self.placement is not None  # only running jobs get here
        held = now - self.started
        self._run_ticks += held
        self._gpu_ticks += held * self.gpus
        self.former_placement, self.placement = self.placement, None
        self.beside = self._beside = ()
        self.gpus = 0
        self.tier = -1
        self.turn = None
        self.batch = None
        self.rate = None

    def count_stop(self, reason: EndReason) -> None:
        """Count a stay that ended before the job finished; the interval's row is already written.

        Raises:
            TraceError: too many stays in a row came to nothing, so the job would never finish.
        """
        if reason is MIGRATED:
            self.migrations += 1
        else:  # an outage counts as a preemption
            self.preemptions += 1
        if reason is FAILED:
            self._count_failure()
        if (work := self.progress.work) > self.kept:
            self.kept, self.wasted_stays = work, 0
            return
        self.wasted_stays += 1
        if self.wasted_stays > MOST_WASTED_STAYS:
            raise TraceError(
                f"job {self.job.id!r} lost its GPUs {self.wasted_stays:,} times in a row before "
                "it could keep an iteration; let it restart faster, or choose longer rounds or "
                "leases"
            )

    def _count_failure(self) -> None:
        self.failures += 1
        saved = self.progress.saved_work.done
        self.failures_in_a_row = self.failures_in_a_row + 1 if saved == self._saved else 1
        self._saved = saved
        if self.failures_in_a_row > MOST_FAILURES_IN_A_ROW:
            raise TraceError(
                f"job {self.job.id!r} was stopped by {self.failures_in_a_row:,} failures in a row "
                "before it had saved anything; let it write checkpoints more often, restart "
                "faster, or reduce the failure rate"
            )

    def set_rate(self, rate: Rate) -> None:
        """Run at another rate; the interval's row is already written."""
        self.rate = rate
        self._beside = self.beside
        if (goodput := self.job.goodput) is not None:
            batch = goodput.submitted(self.gpus) if self.batch is None else self.batch
            self._batch = batch.total(self.gpus)
        self.checkpoint_s = self.progress.set_rate(rate, self.checkpoint)

    def hold(self, hold: Hold) -> None:
        """Stand still until a tick; the interval's row is already written."""
        self.progress.hold(hold.until)
        self.productive_from = max(self.productive_from, hold.until)
        self.turn = hold.turn

    def close_interval(self, now: Tick, reason: EndReason, note: str) -> PlacementRow | None:
        """Settle the progress at the end of an interval of constant rate, and return its row.

        An interval of no length gets no row, unless it is the last of its stay.
        """
        start, rate = self.interval_start, self.rate
        assert self.placement is not None  # running jobs have GPUs
        assert rate is not None  # and a rate
        whole = self.progress.settle(now)
        drops = reason not in (RE_RATED, HELD)
        if reason is FAILED:
            lost = self.progress.fall_back()
        else:
            lost = self.progress.stop() if drops else 0
        stalled = max(0, min(now, self.productive_from) - start)
        beside = self._beside
        if beside:
            self._ceded += self._cedes(now)
        self.interval_start = now
        if now == start and not drops:
            return None
        return PlacementRow(
            self.handle,
            self.placement,
            self.tier,
            start,
            now,
            whole,
            rate.iteration_s,
            rate.alone_iteration_s,
            stalled,
            lost,
            rate.source,
            reason,
            note,
            self.checkpoint_s,
            rate.compute_scale,
            beside,
            self._batch,
            rate.stretch,
            own_longer_s=rate.own_longer_s,
        )

    def schedule(self, queue: EventQueue, now: Tick, *, leased: bool) -> None:
        """Put the events of the present rate into the queue; older ones become stale.

        All of them follow from the progress without a loop over iterations. A lease or a rate that
        would end at the finish or later needs no event.
        """
        assert self.rate is not None  # a job without a rate has no events
        self.epoch += 1
        progress, handle, epoch, rate = self.progress, self.handle, self.epoch, self.rate
        self.finish = finish = progress.finish()
        queue.push(finish, FINISH, handle, epoch)
        if leased:
            self.schedule_lease(queue)
        if rate.until_iteration is not None:
            until = progress.reach(rate.until_iteration)
            if now < until < finish:
                queue.push(until, RATE_END, handle, epoch)
        if rate.until is not None and now < rate.until < finish:
            queue.push(rate.until, RATE_END, handle, epoch)

    def schedule_lease(self, queue: EventQueue) -> None:
        """Schedule the end of the lease: the first iteration boundary at or after it is due."""
        end = self.progress.boundary(self.lease_due)
        if end < self.finish:
            queue.push(end, LEASE_END, self.handle, self.epoch)

    def row(self, finish: Tick) -> JobRow:
        """The row of a job that has finished, or is cancelled before its last iteration."""
        assert self.first_start is not None  # the job ran
        return JobRow(
            self.job,
            self.handle,
            self.arrival,
            self.first_start,
            finish,
            self.run_ticks(finish),
            self.preemptions,
            self.migrations,
            self.failures,
            self.job.iterations - self.progress.done(finish),
        )

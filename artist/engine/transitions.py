"""What happens to a job: it enters the queue, gets GPUs, runs at a rate, loses its GPUs, finishes.

A stay on GPUs is a sequence of intervals of constant rate, and each interval is a row.
`simulator.py` decides when these steps happen and in which order. This module says what each step
changes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from artist.cluster.placement import Placement, tier
from artist.contract import (
    CheckpointRule,
    Hold,
    Notice,
    OutsideEvent,
    RateFunction,
    Restore,
    Wait,
    Withdraw,
)
from artist.engine import outages
from artist.engine.answers import CheckedAnswer
from artist.engine.events import EventQueue
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.engine.progress import check_rate
from artist.engine.rows import (
    CANCELLED,
    FINISHED,
    HELD,
    LEASE_ENDED,
    MIGRATED,
    PREEMPTED,
    RE_RATED,
    EndReason,
    OutageRow,
    Rows,
    WaitRow,
)
from artist.errors import InvariantError
from artist.units import Tick, ticks
from artist.workload.job import Job, start_cost_s


class Transitions:
    """Changes the states of jobs, writes the rows, and keeps news for policy and rate function.

    - `entered`, `lease_ended` and `finished` are jobs with news for the policy. A job that the last
      answer preempted has entered.
    - `changed` are jobs with news for the rate function, by handle.
    """

    def __init__(
        self,
        holdings: Holdings,
        queue: EventQueue,
        rates: RateFunction,
        lease: Tick | None,
        checkpoints: CheckpointRule | None,
    ) -> None:
        self.rows = Rows()
        self.entered: list[JobState] = []
        self.lease_ended: list[JobState] = []
        self.finished: list[int] = []
        self.changed: dict[int, JobState] = {}
        self._holdings = holdings
        self._queue = queue
        self._rates = rates
        self._lease = lease
        self._checkpoints = checkpoints

    def elsewhere(self, rows: Rows, queue: EventQueue) -> Transitions:
        """A twin with other rows and another queue, which shares everything else with this one."""
        twin = copy.copy(self)
        twin.rows, twin._queue = rows, queue
        return twin

    # -- events ------------------------------------------------------------------

    def arrive(self, job: Job, handle: int, now: Tick) -> None:
        """Let a job enter the system."""
        state = self._holdings.arrives(job, handle, now)
        self._holdings.waiting[handle] = state
        self.entered.append(state)

    def finish(self, state: JobState, now: Tick) -> None:
        """Let a job leave that has done its last iteration."""
        self._release(state)
        self._stop(state, now, FINISHED)
        if not state.progress.complete:
            raise InvariantError(f"job {state.job.id!r} finished before its last iteration")
        self.finished.append(state.handle)
        self._keep_out(now, state.former_placement)
        self.rows.jobs.append(state.row(now))

    def end_lease(self, state: JobState, now: Tick) -> None:
        """Note that a lease ended. The next is due whole leases after the start of the stay."""
        assert self._lease is not None  # only leases end
        state.lease_due = now + self._lease - (now - state.started) % self._lease
        self.lease_ended.append(state)

    def outage(self, event: OutsideEvent, now: Tick) -> None:
        """Let GPUs leave or enter service."""
        holdings = self._holdings
        outages.expire_notices(holdings, now)
        match event:
            case Withdraw(_, placement, outage, position):
                outages.end_notice(holdings, self.rows, placement, now)
                # Jobs enter the queue in order of arrival, as after any other loss of GPUs.
                stopped = outages.victims(holdings, placement, position)[::-1]
                for state in stopped:
                    self._release(state)
                    self._stop(state, now, outages.reason(outage), outage.text if outage else "")
                    self._enter_again(state, now)
                self.rows.outages.append(
                    OutageRow(now, placement, outage, tuple(job.handle for job in stopped))
                )
                # A job without GPUs has no lease to ask about.
                self.lease_ended = [state for state in self.lease_ended if state.gpus]
                outages.withdraw(holdings, placement)
                left = [job.former_placement for job in stopped]
                self._keep_out(now, placement, *left)
            case Restore(_, placement):
                outages.restore(holdings, placement)
                self.rows.outages.append(OutageRow(now, placement, back=True))
                self._keep_out(now, placement)
            case Notice():
                outages.put_on_notice(holdings, self.rows, event)
        self.rows.note_withdrawn(now, sum(holdings.withdrawn.values()))

    def _keep_out(self, now: Tick, *left: Placement | None) -> None:
        """Take GPUs that became free out of service, where their leaf is on notice."""
        if self._holdings.on_notice:
            for placement in left:
                if placement is not None:
                    outages.keep_out(self._holdings, self.rows, placement.leaves, now)

    # -- decisions ---------------------------------------------------------------

    def heard(self) -> None:
        """Drop the news for the policy, which has answered and so has seen it."""
        self.entered, self.finished = [], []

    def apply(self, answer: CheckedAnswer, now: Tick) -> None:
        """Apply an answer whose GPUs have been exchanged already."""
        self.heard()
        ended = {state.handle for state in self.lease_ended} if answer.preempted else ()
        for state in answer.preempted:
            if state.handle in answer.cancelled:
                self._cancel(state, now, answer.reasons[state.handle])
                continue
            reason = LEASE_ENDED if state.handle in ended else PREEMPTED
            self._stop(state, now, reason, answer.reasons[state.handle])
            self._enter_again(state, now)
        for state in answer.moved:
            self._stop(state, now, MIGRATED, answer.reasons[state.handle])
        for state, placement in answer.placed:
            self._place(state, placement, answer.beside.get(state.handle), now)
        for state, hold in answer.holds:
            self._hold(state, hold, now)
        for state, batch in answer.batches:
            state.batch = batch
            self.changed[state.handle] = state  # its rate depends on the batch
        for state, wait in answer.wait_reasons:
            self._tell(state, wait, now)
        if self._holdings.on_notice:
            gone = [*answer.preempted, *answer.moved]
            self._keep_out(now, *(state.former_placement for state in gone))

    def _place(
        self, state: JobState, placement: Placement, host: JobState | None, now: Tick
    ) -> None:
        """Start or restart a job on GPUs that are already claimed for it, or beside a host."""
        stands_still = ticks(start_cost_s(state.job, again=state.first_start is not None))
        self._holdings.waiting.pop(state.handle, None)
        self._holdings.running[state.handle] = state
        if host is not None:
            self._holdings.join(state, host)
            self._regrouped(state.beside)
        state.place(placement, tier(self._holdings.tree, placement), now, stands_still)
        if self._checkpoints is not None:
            state.checkpoint = self._checkpoints(state.job, placement)
        self.changed[state.handle] = state
        if self._lease is not None:
            state.lease_due = now + self._lease

    def _release(self, state: JobState) -> None:
        """Free the GPUs of a running job, unless other jobs hold them too, or its share of one."""
        if not state.beside or state.job.is_share:
            assert state.placement is not None  # running jobs have GPUs
            self._holdings.free.release(state.placement, state.job)

    def _regrouped(self, handles: Sequence[int]) -> None:
        """Note that the jobs beside these jobs have changed, and so perhaps their rates."""
        for handle in handles:
            self.changed[handle] = self._holdings.running[handle]

    def _stop(self, state: JobState, now: Tick, reason: EndReason, note: str = "") -> None:
        """End the stay of a job whose GPUs are already released."""
        self._close_interval(state, now, reason, note)
        if state.beside:
            self._regrouped(state.beside)
            self._holdings.part(state)
        state.unplace(now)
        del self._holdings.running[state.handle]
        if reason is not FINISHED:
            state.count_stop(reason)
        self.changed[state.handle] = state

    def _cancel(self, state: JobState, now: Tick, note: str) -> None:
        """Let a job that lost its GPUs leave the run, with the iterations that it has done."""
        self._stop(state, now, CANCELLED, note)
        self.finished.append(state.handle)
        self.rows.jobs.append(state.row(now))

    def _enter_again(self, state: JobState, now: Tick) -> None:
        """Put a job that lost its GPUs back into the queue."""
        state.entered = now
        self._holdings.waiting[state.handle] = state
        self.entered.append(state)

    def _tell(self, state: JobState, wait: Wait, now: Tick) -> None:
        """Write down why a job waits, unless the last record says the same."""
        if wait != state.last_wait and (wait.reason or state.last_wait is not None):
            state.last_wait = wait
            self.rows.wait_reasons.append(
                WaitRow(now, state.handle, wait.reason, wait.cause, wait.until)
            )

    def _hold(self, state: JobState, hold: Hold, now: Tick) -> None:
        """Let a running job stand still on its GPUs until a tick. It keeps its phase."""
        if state.rate is not None:  # else the job starts at this tick: no interval to close
            self._close_interval(state, now, HELD, hold.reason)
        state.hold(hold)
        if state.rate is not None:
            self._reschedule(state, now)
            # This has scheduled the lease too, so it must not be renewed a second time.
            self.lease_ended = [ended for ended in self.lease_ended if ended is not state]
        self.changed[state.handle] = state

    # -- leases and rates ----------------------------------------------------------

    def renew_leases(self, now: Tick) -> None:
        """Give another lease to the jobs whose lease ended and that still have their GPUs."""
        ended, self.lease_ended = self.lease_ended, []
        for state in ended:
            if state.gpus and state.started < now:  # else it lost its GPUs, or moved at this tick
                state.schedule_lease(self._queue)

    def rate(self, now: Tick) -> None:
        """Ask the rate function once, and reschedule the jobs whose rates have changed."""
        # The rate function hears of a job once, however often it changed at this instant.
        changed, self.changed = list(self.changed.values()), {}
        running = self._holdings.running
        rates: Mapping[int, Any] = self._rates(now, MappingProxyType(running), changed)
        for handle, rate in rates.items():  # `Any` until `check_rate` has seen it
            if handle not in running:
                raise InvariantError(
                    f"a rate for {self._holdings.name(handle)}, which does not run"
                )
            check_rate(rate)
            state = running[handle]
            if state.rate is not None:
                if rate == state.rate and not state.regrouped:
                    continue  # its events stay valid
                # A change of `until` alone reschedules the job, but starts no new interval.
                if state.regrouped or not rate.same_speed(state.rate):
                    self._close_interval(state, now, RE_RATED)
            state.set_rate(rate)
            self._reschedule(state, now)
        for state in changed:
            if state.placement is not None and state.rate is None:
                raise InvariantError(f"job {state.job.id!r} runs, but was given no rate")

    def _reschedule(self, state: JobState, now: Tick) -> None:
        state.schedule(self._queue, now, leased=self._lease is not None)

    def _close_interval(
        self, state: JobState, now: Tick, reason: EndReason, note: str = ""
    ) -> None:
        row = state.close_interval(now, reason, note)
        if row is not None:
            self.rows.placements.append(row)

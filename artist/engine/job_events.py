"""The events of a running job: its finish, the end of its lease, the end of its rate.

All of them are computed from the job's progress, never found by looping over iterations.
"""

from __future__ import annotations

from artist.engine.events import FINISH, LEASE_END, RATE_END, EventQueue
from artist.engine.job_state import JobState
from artist.units import Tick


def schedule(queue: EventQueue, state: JobState, now: Tick, *, leased: bool) -> None:
    """Put the events of a job's present rate into the queue; older ones become stale.

    A lease or a rate that would end at the finish or later needs no event of its own.
    """
    assert state.rate is not None  # a job without a rate has no events
    state.epoch += 1
    progress, handle, epoch, rate = state.progress, state.handle, state.epoch, state.rate
    state.finish = finish = progress.finish()
    queue.push(finish, FINISH, handle, epoch)
    if leased:
        schedule_lease(queue, state)
    if rate.until_iteration is not None:
        until = progress.reach(rate.until_iteration)
        if now < until < finish:
            queue.push(until, RATE_END, handle, epoch)
    if rate.until is not None and now < rate.until < finish:
        queue.push(rate.until, RATE_END, handle, epoch)


def schedule_lease(queue: EventQueue, state: JobState) -> None:
    """A lease ends at the first iteration boundary at or after it is due."""
    end = state.progress.boundary(state.lease_due)
    if end < state.finish:
        queue.push(end, LEASE_END, state.handle, state.epoch)

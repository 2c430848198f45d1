"""Orders in which jobs come forward: the job with the smallest key is first.

Keys are compared without rounding: 3 iterations of 0.1 s are as long as 1 of 0.3 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from artist.contract import JobView
from artist.policies.shared.exact import exact_key
from artist.policies.shared.ranking import Rank
from artist.units import Tick, exact_ticks

OrderName: TypeAlias = Literal["arrival", "length", "remaining", "area", "service"]


def _by_arrival(job: JobView, now: Tick) -> Rank:
    return ()


def _by_length(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(job.job.iterations * num, den)


def _by_remaining(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(_left(job, now) * num, den)


def _by_area(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(_left(job, now) * num * job.job.gpus, den)


def _left(job: JobView, now: Tick) -> int:
    """Iterations that are not done."""
    return job.job.iterations - job.iterations_done(now)


def _by_service(job: JobView, now: Tick) -> Rank:
    return (job.service_gpu_ticks(now),)


ORDERS: Mapping[OrderName, Callable[[JobView, Tick], Rank]] = {
    "arrival": _by_arrival,
    "length": _by_length,
    "remaining": _by_remaining,
    "area": _by_area,
    "service": _by_service,
}
"""By name: the key of a job at a tick."""

"""When will my job start? Many futures of a recorded Slurm, and what their intervals are worth.

`futures.py` simulates them. The errors of intervals at earlier moments of the same log correct the
present intervals (`margins.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from artist.errors import ConfigError, TraceError, did_you_mean, shortened
from artist.experiments.recorded.asked_job import checked_job
from artist.experiments.recorded.futures import ASKED, Asked, Futures
from artist.experiments.recorded.margins import Earlier, Interval, Margins, share_and_error
from artist.experiments.recorded.queue_at import Log, QueueAt, moment_in, queue_at, read_log
from artist.slurm.queue_text import Expected, expected_starts
from artist.trace.native.time_units import moment_s
from artist.units import counted

FEW = 9
"""Futures at earlier moments: the fewest of which a tenth can lie beyond each end."""

BEYOND = 10
"""One start in ten lies beyond each end of an 80 % interval."""


@dataclass(frozen=True)
class StartForecast:
    """When a job starts, in seconds after the moment; infinite if that is beyond the horizon."""

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
    """When it started by the log, if it did."""

    moved_s: Interval | None = None
    """The interval of the futures, corrected by earlier forecasts of the log; None if it is not."""

    @property
    def interval_s(self) -> Interval:
        """The ends of the 80 % interval, and the median between them."""
        return self.drawn_s if self.moved_s is None else self.moved_s

    @property
    def drawn_s(self) -> Interval:
        """The interval among the futures.

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
    """Number of jobs from which run times were learned."""
    moved: Interval = (0.0, 0.0, 0.0)
    """By how much earlier forecasts move the ends and the median of intervals: shares of their
    scale (`margins.py`)."""
    not_modelled: tuple[str, ...] = ()
    """What the log's Slurm does but futures leave out, in words."""


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
    earlier: int = 0,
    show: Callable[[int, int], None] | None = None,
) -> Forecast:
    """When jobs start: one, one that is not there yet, or all that wait.

    It also forecasts from this many `earlier` moments of the log, to correct the intervals. `show`
    is told how many futures are done, and how many there are at most.

    Raises:
        ConfigError: a text is missing or broken, the job does not wait, no such account, or no
            moment.
        TraceError: the log is broken; names file and line.
    """
    log = read_log(folder, inputs)
    queue = queue_at(folder, inputs, log, moment_in(at, log), keep_names=keep_names)
    asked = None if asked is None else checked_job(asked, queue.recording)
    simulated = Futures(queue, asked, horizon_s, seed, keep_names=keep_names)
    if job is not None and job not in queue.waiting:
        raise ConfigError(f"--job {shortened(job)}: {_why_not(queue, log, job)}")
    watched = [ASKED] if asked else [job] if job else queue.waiting
    few = min(futures, FEW)
    on_done = _counter(show, futures + earlier * few)
    found = _forecast(simulated, watched, futures, queue, log, expected_starts(folder), on_done)
    found = replace(found, not_modelled=(*queue.recording.not_modelled(), *_left_out(log)))
    checked = list[Earlier]()
    for then in _queues(folder, inputs, log, queue.at_s, earlier if watched else 0, keep_names):
        past = Futures(then, None, horizon_s, seed, keep_names=keep_names)
        checked += _checked(_forecast(past, then.waiting, few, then, log, (), on_done), log)
    return _moved(found, Margins(checked, queue.at_s))


def _left_out(log: Log) -> tuple[str, ...]:
    """A note that the GPUs of heterogeneous jobs count as free, if there are such jobs."""
    parts = counted(log.left_out, "part")
    return (f"{parts} of heterogeneous jobs, whose GPUs count as free",) if log.left_out else ()


def _counter(show: Callable[[int, int], None] | None, total: int) -> Callable[[], None]:
    """Something to call after each of so many futures."""
    done = count(1)
    return lambda: show(next(done), total) if show is not None else None


def _queues(
    folder: Path, inputs: Path, log: Log, last_s: float, count: int, keep_names: bool = False
) -> Iterator[QueueAt]:
    """The queue at moments spread over the log's last two thirds; the first is to learn from.

    Moments before the first job on GPUs are left out.
    """
    for nth in range(count):
        share = 1 / 3 + (2 / 3) * (nth + 0.5) / count
        at_s = float(round(log.first_s + share * (last_s - log.first_s)))
        try:
            queue = queue_at(folder, inputs, log, at_s, keep_names=keep_names)
        except (ConfigError, TraceError):  # the log itself can be read
            continue
        yield queue


def _checked(found: Forecast, log: Log) -> list[Earlier]:
    """The intervals of a forecast, with the starts that the log has."""
    return [
        Earlier(
            found.at_s, one.drawn_s, found.horizon_s, found.cycle_s,
            math.inf if one.recorded_s is None else one.recorded_s,
            log.cancelled_s.get(one.job_id, math.inf) - found.at_s,
        )
        for one in found.jobs
    ]  # fmt: skip


def _moved(found: Forecast, margins: Margins) -> Forecast:
    if not any(margins.shares):
        return found
    jobs = tuple(
        replace(one, moved_s=margins.moved(one.drawn_s, found.horizon_s, found.cycle_s))
        for one in found.jobs
    )
    return replace(found, jobs=jobs, moved=margins.shares)


def _forecast(
    simulated: Futures,
    watched: Sequence[str],
    futures: int,
    queue: QueueAt,
    log: Log,
    expected: Sequence[Expected],
    on_done: Callable[[], None],
) -> Forecast:
    """Simulate the futures of a queue, and forecast the starts of the watched jobs."""
    starts_s = simulated.starts_s(watched, futures, on_done)
    return Forecast(
        at_s=queue.at_s,
        horizon_s=simulated.horizon_s,
        cycle_s=simulated.cycle_s,
        futures=futures,
        jobs=tuple(
            StartForecast(
                job_id=id_,
                gpus=simulated.job(id_).gpus,
                waited_s=simulated.waited_s(id_),
                starts_s=tuple(sorted(starts_s[id_])),
                group=simulated.learned_from(id_),
                slurm_s=_after(_said(expected, id_, queue.at_s), queue.at_s),
                recorded_s=_after(log.start_after(id_, queue.at_s), queue.at_s),
            )
            for id_ in watched
        ),
        running=len(queue.running),
        waiting=len(queue.waiting),
        seen=len(queue.ended) + len(queue.running),
    )


def _said(expected: Sequence[Expected], id_: str, at_s: float) -> float | None:
    """The start that Slurm last expected before a moment; None if it expected none."""
    said = [x for x in expected if x.job_id == id_]
    before = [x for x in said if not x.said_at or (moment_s(x.said_at) or 0) <= at_s]
    return moment_s(before[-1].starts_at) if before else None


def _after(moment_s_: float | None, at_s: float) -> float | None:
    return None if moment_s_ is None else moment_s_ - at_s


def _why_not(queue: QueueAt, log: Log, job: str) -> str:
    """Why a job has no forecast at the moment, with a remedy if there is one."""
    state = queue.states.get(job)
    if state == "waits":
        return "it asks for no GPUs, or for parts of them"
    if state is not None:
        return f"it {'runs already' if state == 'runs' else 'has ended'} at that moment"
    if job in log.rows:
        return "it could not start yet, since it was not eligible; choose a later --at"
    if not queue.waiting:
        return "no job waits at that moment; choose an earlier --at, or ask with --gpus"
    return did_you_mean(job, queue.waiting)


def calibration(
    folder: Path,
    inputs: Path,
    *,
    moments: int,
    futures: int,
    horizon_s: float | None = None,
    seed: int = 0,
    show: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """How often the 80 % intervals of a log's own past held, at moments spread over it.

    Only what was known at each moment is used. Keys with `_moved` use margins from the earlier ones
    of these moments. Jobs that were cancelled before they started are left out. After the last
    submission the log lacks the jobs that would have competed, so no forecast is checked beyond it:
    a later start counts as a start at that time, in intervals, widths and errors.

    Raises:
        ConfigError: a text is missing or broken.
    """
    log, expected = read_log(folder, inputs), expected_starts(folder)
    on_done = _counter(show, moments * futures)
    earlier, drawn, moved = list[Earlier](), list[list[_Check]](), list[list[_Check]]()
    for queue in _queues(folder, inputs, log, log.submitted_s, moments):
        at_s = queue.at_s
        simulated = Futures(queue, None, horizon_s, seed)
        found = _forecast(simulated, queue.waiting, futures, queue, log, expected, on_done)
        checked = _checked(found, log)
        margins, known_s = Margins(earlier, at_s), min(found.horizon_s, log.submitted_s - at_s)
        earlier += checked
        both = zip(checked, (x.slurm_s for x in found.jobs), strict=True)
        if told := [(one, said_s) for one, said_s in both if math.isinf(one.gone_s)]:
            drawn.append([_check(one.interval_s, one, said_s, known_s) for one, said_s in told])
            moved.append(
                [
                    _check(
                        margins.moved(one.interval_s, one.horizon_s, one.cycle_s),
                        one,
                        said_s,
                        known_s,
                    )
                    for one, said_s in told
                ]
            )
    if not drawn:
        raise ConfigError(f"{folder}: no job waited at {moments} moments; give more with --check")
    checks = list(chain.from_iterable(drawn))
    said = [x for x in checks if x.error_of_slurm_s is not None]
    share, error = share_and_error([[x.inside for x in each] for each in drawn])
    return {
        "moments": len(drawn),
        "forecasts": len(checks),
        "inside_80": share,
        "inside_80_standard_error": error,
        "inside_80_and_a_cycle": _mean([x.near for x in checks]),
        "width_median_s": float(np.median([x.width_s for x in checks])),
        "width_in_waits": _width_in_waits(checks),
        "error_of_median_s": _mean([x.error_s for x in checks]),
        "forecasts_of_slurm": len(said),
        "error_of_slurm_s": _mean([x.error_of_slurm_s for x in said]),
        "error_of_median_where_slurm_says_s": _mean([x.error_s for x in said]),
        "inside_80_moved": share_and_error([[x.inside for x in each] for each in moved])[0],
        "width_in_waits_moved": _width_in_waits(list(chain.from_iterable(moved))),
        "error_of_median_moved_s": _mean([x.error_s for x in chain.from_iterable(moved)]),
    }


@dataclass(frozen=True)
class _Check:
    """How one interval compares with the recorded start."""

    inside: bool
    near: bool
    """Whether the start is inside, or at most a cycle beyond an end."""
    width_s: float
    error_s: float
    error_of_slurm_s: float | None
    start_s: float


def _check(interval_s: Interval, one: Earlier, slurm_s: float | None, known_s: float) -> _Check:
    """Compare an interval with the recorded start, both cut at the end of the known log."""
    low, median, high, start_s = (min(x, known_s) for x in (*interval_s, one.start_s))
    return _Check(
        inside=low <= start_s <= high,
        near=low - one.cycle_s <= start_s <= high + one.cycle_s,
        width_s=high - low,
        error_s=abs(median - start_s),
        error_of_slurm_s=None if slurm_s is None else abs(min(slurm_s, known_s) - start_s),
        start_s=start_s,
    )


def _width_in_waits(checks: Sequence[_Check]) -> float | None:
    """The mean width of intervals over the mean wait; smaller is sharper."""
    waits_s = sum(x.start_s for x in checks)
    return sum(x.width_s for x in checks) / waits_s if waits_s else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [x for x in values if x is not None]
    return float(np.mean(known)) if known else None

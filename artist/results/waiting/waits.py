"""Why jobs waited: one row per stretch of time in which a job had arrived and had no GPUs.

A wait lasts from the job's arrival, or from the loss of its GPUs, to its next start. The instant of
that start is not part of it. Everything is derived from the engine's rows after the run.

**Free GPUs.** At an instant at which GPUs change hands, those count as free that no job holds both
before and after it. So GPUs that go from one job to another are free at that instant: the policy
could have given them to the job that waits. GPUs out of service are never free.

**Causes.** The first that holds:

| cause | holds if |
| --- | --- |
| `policy` | the policy told a reason (`artist.contract.Wait`) |
| `left-free` | for some time enough GPUs stayed free for the job to run: the policy left them |
| `order` | enough GPUs were free, but only for an instant, and other jobs got them |
| `gpus` | that many GPUs were never free at once |

A job that loses its GPUs to others waits because of the `order`, since its own GPUs are free at
that instant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.results.metrics import seconds_column
from artist.results.statistics.sorted_values import rising
from artist.results.terms.columns import Table, typed
from artist.results.waiting.stays import Stays, WaitInputs, Whole
from artist.results.waiting.wait_neighbours import WaitNeighbours, Waits, neighbours
from artist.units import Tick, seconds_text

POLICY, LEFT_FREE, ORDER, GPUS = "policy", "left-free", "order", "gpus"
CAUSES = (POLICY, LEFT_FREE, ORDER, GPUS)

ARRIVED = "arrived"
"""How a wait began, if the job did not lose GPUs."""


class _Free(NamedTuple):
    """Free GPUs of each wait."""

    most: Whole
    """Most at any instant, counting GPUs that change hands."""
    left_for: Whole
    """For how many ticks at least as many stayed free as the job needs to run."""


def wait_table(inputs: WaitInputs) -> Table:
    """One row per wait, by begin, then in the order of arrival. Columns: `columns.py`."""
    waits, before = _waits(inputs)
    free = _free(inputs, waits)
    around = neighbours(inputs.stays, waits)
    told = _given_reasons(inputs, waits)
    names = np.array(inputs.jobs, dtype=object)
    least = inputs.least[waits.handle]
    cause = np.select([free.left_for > 0, free.most >= least], [LEFT_FREE, ORDER], GPUS).tolist()
    cause = [POLICY if words else word for word, words in zip(cause, told, strict=True)]
    ended = inputs.stays.ended
    columns: Table = {
        "job_id": names[waits.handle].tolist(),
        "start_s": seconds_column(waits.begin),
        "end_s": seconds_column(waits.end),
        "wait_s": seconds_column(waits.end - waits.begin),
        "gpus": inputs.wanted[waits.handle],
        "began": [ended[stay] if stay >= 0 else ARRIVED for stay in before.tolist()],
        "cause": cause,
        "reason": _reasons(cause, told, inputs, waits, free, around),
        "free_gpus_max": free.most,
        "left_free_s": seconds_column(free.left_for),
        "waited_for": _named(around.holders, inputs.jobs),
        "overtaken_by": _named(around.overtaking, inputs.jobs),
        "overtakers": around.overtaken,
    }
    return typed("waits", columns)


def _named(handles: Sequence[Sequence[int]], jobs: Sequence[str]) -> list[list[str]]:
    return [[jobs[handle] for handle in some] for some in handles]


def _waits(inputs: WaitInputs) -> tuple[Waits, Whole]:
    """The waits, and the index of the stay before each; -1 if the job had just arrived."""
    stays = inputs.stays
    first = np.diff(stays.handle, prepend=-1) != 0
    begin = np.where(first, inputs.arrival[stays.handle], np.concatenate([[0], stays.end[:-1]]))
    before = np.where(first, -1, np.arange(len(first)) - 1)
    order = np.lexsort((stays.handle, begin))
    order = order[(stays.start > begin)[order]]
    return Waits(stays.handle[order], begin[order], stays.start[order]), before[order]


# -- free GPUs -----------------------------------------------------------------------


def _free(inputs: WaitInputs, waits: Waits) -> _Free:
    stays, service = inputs.stays, inputs.withdrawn
    ticks = rising(stays.start, stays.end, waits.begin, service[:, 0])
    steady, changing = _over_time(inputs, ticks)
    low, high = np.searchsorted(ticks, waits.begin), np.searchsorted(ticks, waits.end)
    most = _largest_between(np.maximum(steady, changing), low, high)
    least = inputs.least[waits.handle]
    left_for = np.zeros(len(least), dtype=np.int64)
    for gpus in rising(least).tolist():
        enough = np.where(steady[:-1] >= gpus, np.diff(ticks), 0)
        until = np.concatenate([[0], np.cumsum(enough)])
        these = least == gpus
        left_for[these] = until[high[these]] - until[low[these]]
    return _Free(most, left_for)


def _over_time(inputs: WaitInputs, ticks: Whole) -> tuple[Whole, Whole]:
    """Free GPUs from each tick until the next one, and at the tick itself."""
    stays = inputs.stays
    some = stays.end > stays.start
    stays = Stays(stays.handle[some], stays.start[some], stays.end[some], stays.gpus[some], ())
    start, end = np.searchsorted(ticks, stays.start), np.searchsorted(ticks, stays.end)
    begun, ended = _sums(start, stays.gpus, ticks), _sums(end, stays.gpus, ticks)
    held = np.cumsum(begun - ended)
    # A job that moves keeps the smaller number of its GPUs through the instant.
    moves = (stays.handle[1:] == stays.handle[:-1]) & (stays.start[1:] == stays.end[:-1])
    kept = np.minimum(stays.gpus[1:], stays.gpus[:-1])[moves]
    through = held - begun + _sums(start[1:][moves], kept, ticks)
    # Outages of one tick follow each other: the last one counts from then on.
    known = np.concatenate([[0], inputs.withdrawn[:, 1]])
    at = np.searchsorted(inputs.withdrawn[:, 0], ticks, side="right")
    away = known[at]
    earlier = np.concatenate([[0], away[:-1]])
    return inputs.gpus - held - away, inputs.gpus - through - np.maximum(away, earlier)


def _sums(at: npt.NDArray[np.intp], gpus: Whole, ticks: Whole) -> Whole:
    sums = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(sums, at, gpus)
    return sums


def _largest_between(values: Whole, low: npt.NDArray[np.intp], high: npt.NDArray[np.intp]) -> Whole:
    """The largest of `values[low:high]` of each pair, no part being empty.

    Of the lengths 1, 2, 4, ... two overlapping parts cover any longer part.
    """
    largest = np.zeros(len(low), dtype=np.int64)
    exponent = np.frexp(high - low)[1] - 1
    table, length = values, 1
    for power in range(int(exponent.max(initial=-1)) + 1):
        these = exponent == power
        largest[these] = np.maximum(table[low[these]], table[high[these] - length])
        table = np.maximum(table[:-length], table[length:])
        length *= 2
    return largest


# -- words ---------------------------------------------------------------------------


def _given_reasons(inputs: WaitInputs, waits: Waits) -> list[str]:
    """What the policy told last during each wait; empty if nothing."""
    by_job: dict[int, list[tuple[Tick, str]]] = {}
    for tick, handle, reason in inputs.reasons:
        by_job.setdefault(handle, []).append((tick, reason))
    if not by_job:
        return [""] * len(waits.handle)
    told = []
    for handle, begin, end in zip(*(column.tolist() for column in waits), strict=True):
        rows = by_job.get(handle, [])
        last = bisect_left(rows, (end,)) - 1
        told.append(rows[last][1] if last >= 0 and rows[last][0] >= begin else "")
    return told


def _reasons(
    causes: Sequence[str],
    told: Sequence[str],
    inputs: WaitInputs,
    waits: Waits,
    free: _Free,
    around: WaitNeighbours,
) -> list[str]:
    return [
        _reason(cause, words, _Figures(*figures))
        for cause, words, *figures in zip(
            causes,
            told,
            inputs.wanted[waits.handle].tolist(),
            inputs.least[waits.handle].tolist(),
            free.most.tolist(),
            free.left_for.tolist(),
            (waits.end - waits.begin).tolist(),
            around.served,
            around.overtaken,
            strict=True,
        )
    ]


class _Figures(NamedTuple):
    """The figures of one wait that its sentence gives."""

    gpus: int
    least: int
    most_free: int
    left_for: Tick
    length: Tick
    served: int
    overtaken: int


def _reason(cause: str, told: str, wait: _Figures) -> str:
    least = f" (at least {wait.least})" if wait.least < wait.gpus else ""
    wanted, free = f"it wanted {wait.gpus}{least}", _most_free(wait.most_free)
    if cause == POLICY:
        return f"{told}; {wanted}, and {free}"
    if cause == GPUS:
        return f"{free}, and {wanted}"
    meanwhile = _meanwhile(wait.served, wait.overtaken)
    if cause == ORDER:
        some = "1 GPU was" if wait.most_free == 1 else f"{wait.most_free} GPUs were"
        return f"{some} free at one instant, but other jobs got them, and {wanted}; {meanwhile}"
    some = f"{seconds_text(wait.left_for)} of {seconds_text(wait.length)}"
    return (
        f"{wanted}, and for {some} as many stayed free, but the "
        f"policy's order or rule of placement left them unused; {meanwhile}"
    )


def _meanwhile(served: int, overtaken: int) -> str:
    if not served:
        return "no other job got GPUs meanwhile"
    others = "1 other job" if served == 1 else f"{served} other jobs"
    if served == overtaken == 1:
        return f"{others} got GPUs meanwhile, from further back in the trace"
    return f"{others} got GPUs meanwhile, {overtaken or 'none'} from further back in the trace"


def _most_free(gpus: int) -> str:
    if gpus < 2:
        return "at most 1 GPU was free" if gpus else "no GPU was free"
    return f"at most {gpus} GPUs were free"

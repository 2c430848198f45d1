"""What a wait is and why, straight from the definitions: one instant and one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from artist.contract import WAIT_CAUSES
from artist.engine.rows import EndReason, Rows
from artist.units import Tick, seconds
from artist.workload.job import Job

HAND_OVER = 1000
"""Ticks: shorter waits, and shorter times in which GPUs are free, do not count."""

Stay = tuple[Tick, Tick, int]
"""Begin, end and GPUs."""


class Stays(tuple[Sequence[Stay], ...]):
    """Of each job. Only the same object is equal, so what is known of it by instant can be kept."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def naive_waits(rows: Rows, gpus: int, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The rows of the table, without the sentence.

    Besides, `causes` are the seconds by cause. `last_chance` tells how long before its start as
    many GPUs as it needs last went to others, the most that were free after that while they were
    too few, and how long enough stayed free before its start.
    """
    stays = Stays(_stays(rows, handle) for handle in range(len(jobs)))
    arrival = {row.handle: row.arrival for row in rows.jobs}
    waits = []
    for handle, own in enumerate(stays):
        begin = arrival[handle]
        for start, end, _ in own:
            if start - begin >= HAND_OVER:
                waits.append((begin, handle, start))
            begin = end
    return [_row(rows, gpus, jobs, stays, *wait) for wait in sorted(waits)]


def _stays(rows: Rows, handle: int) -> list[Stay]:
    stays, begin = [], None
    for row in rows.placements:
        if row.handle == handle:
            begin = row.start if begin is None else begin
            if row.reason not in (EndReason.RE_RATED, EndReason.HELD):
                stays.append((begin, row.end, row.placement.gpus))
                begin = None
    return stays


def _row(
    rows: Rows,
    gpus: int,
    jobs: Sequence[Job],
    stays: Stays,
    begin: Tick,
    handle: int,
    end: Tick,
) -> dict[str, Any]:
    moments = {begin, *(tick for own in stays for stay in own for tick in stay[:2])}
    moments |= {row.tick for row in rows.withdrawn}
    inside = sorted(tick for tick in moments if begin <= tick < end)
    after = [gpus - _held(stays, tick) - _away(rows, tick) for tick in inside]
    changing = [gpus - _kept(stays, tick) - _away(rows, tick) for tick in inside]
    at_hand = [max(pair) for pair in zip(after, changing, strict=True)]
    most, least = max(at_hand), jobs[handle].gpus_min
    chances = [i for i, free in enumerate(changing) if free >= least > after[i]]
    ends = [*inside[1:], end]
    left = sum(
        ends[i] - tick
        for i, tick in enumerate(inside)
        if after[i] >= least and ends[i] - tick >= HAND_OVER
    )
    mostly_free = left and 2 * left >= end - begin
    cause = "left-free" if mostly_free else "order" if chances else "gpus"
    causes = naive_causes(rows, gpus, stays, least, (begin, handle, end))
    if set(causes) - {"left-free", "order", "gpus"}:
        order = sorted(causes, key=lambda x: (x not in WAIT_CAUSES, x != "left-free"))
        cause = max(order, key=lambda x: causes[x])
    held = {other: _gpu_time(own, begin, end) for other, own in enumerate(stays)}
    started = sorted(
        (min(first), other)
        for other, own in enumerate(stays)
        if other > handle and (first := [a for a, b, _ in own if begin <= a < end and a < b])
    )
    return {
        "job_id": jobs[handle].id,
        "start_s": seconds(begin),
        "end_s": seconds(end),
        "wait_s": seconds(end - begin),
        "gpus": jobs[handle].gpus,
        "cause": cause,
        "last_chance": [
            (
                seconds(end - inside[index]),
                max(
                    after[index],
                    *(at_hand[i] for i in range(index + 1, len(inside)) if after[i] < least),
                    0,
                ),
                seconds(end - _stayed_from(inside, after, least, end)),
            )
            for index in chances[-1:]
        ],
        "causes": {x: seconds(length) for x, length in causes.items()},
        "free_gpus_max": most,
        "left_free_s": seconds(left),
        "waited_for": [
            jobs[other].id for other in sorted(held, key=lambda other: -held[other]) if held[other]
        ][:5],
        "overtaken_by": [jobs[other].id for _, other in started][:5],
        "overtakers": len(started),
    }


def _stayed_from(inside: Sequence[Tick], after: Sequence[int], least: int, end: Tick) -> Tick:
    """From when on that many stayed free up to the end."""
    for tick, free in zip(reversed(inside), reversed(after), strict=True):
        if free < least:
            break
        end = tick
    return end


def naive_causes(
    rows: Rows,
    gpus: int,
    stays: Stays,
    least: int,
    wait: tuple[Tick, int, Tick],
) -> dict[str, Tick]:
    """Ticks of a wait by cause, one interval between two changes after the other."""
    begin, handle, end = wait
    told = [row for row in rows.wait_reasons if row.handle == handle and begin <= row.tick < end]
    moments = {begin, *(tick for own in stays for stay in own for tick in stay[:2])}
    moments |= {row.tick for row in rows.withdrawn} | {row.tick for row in told}
    moments |= {row.until for row in told if row.until is not None}
    inside = sorted(tick for tick in moments if begin <= tick < end)
    spent: dict[str, Tick] = {}
    rest, passed = 0, False
    for tick, until in zip(inside, [*inside[1:], end], strict=True):
        standing = [row for row in told if row.tick <= tick]
        last = standing[-1] if standing else None
        if last is not None and last.reason and (last.until is None or tick < last.until):
            spent[last.cause] = spent.get(last.cause, 0) + until - tick
            rest, passed = _closed(spent, rest, passed), False
            continue
        free = gpus - _held(stays, tick) - _away(rows, tick)
        changing = gpus - _kept(stays, tick) - _away(rows, tick)
        passed = passed or changing >= least > free
        if free >= least and until - tick >= HAND_OVER:
            spent["left-free"] = spent.get("left-free", 0) + until - tick
        else:
            rest += until - tick
    _closed(spent, rest, passed)
    return spent


def _closed(spent: dict[str, Tick], rest: Tick, passed: bool) -> Tick:
    """A stretch without a reason ends."""
    if rest:
        cause = "order" if passed else "gpus"
        spent[cause] = spent.get(cause, 0) + rest
    return 0


@lru_cache(maxsize=4096)
def _held(stays: Stays, tick: Tick) -> int:
    return sum(gpus for own in stays for begin, end, gpus in own if begin <= tick < end)


@lru_cache(maxsize=4096)
def _kept(stays: Stays, tick: Tick) -> int:
    """GPUs that jobs hold before and after an instant; of a job that moves, the smaller number."""
    kept = 0
    for own in stays:
        before = sum(gpus for begin, end, gpus in own if begin < tick <= end)
        after = sum(gpus for begin, end, gpus in own if begin <= tick < end)
        kept += min(before, after)
    return kept


def _away(rows: Rows, tick: Tick) -> int:
    known = [row.gpus for row in rows.withdrawn if row.tick <= tick]
    return known[-1] if known else 0


def _gpu_time(own: Sequence[Stay], begin: Tick, end: Tick) -> int:
    return sum(gpus * max(0, min(b, end) - max(a, begin)) for a, b, gpus in own)

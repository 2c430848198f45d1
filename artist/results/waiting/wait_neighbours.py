"""The jobs around each wait: whose GPUs it waited for, who got GPUs, who headed the queue.

All pairs of a wait and a stay that overlap are looked at, in groups that fit into memory. A busy
cluster has hundreds of pairs per wait, so most jobs are dropped before anything is sorted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from artist.results.waiting.stays import Stays, Whole
from artist.units import Tick

MOST_NAMED = 5
"""At most this many jobs of a kind are named for each wait."""

# Pairs at once: ten arrays of 1 MiB, which fit a cache.
_PAIRS = 1 << 17

# The jobs that run at an instant are cut into this many pieces, to find five large ones quickly.
_PIECES = 32


class Waits(NamedTuple):
    """Stretches `[begin, end)` of time in which jobs waited, in ticks; sorted by `begin`."""

    handle: Whole
    begin: Whole
    end: Whole


class WaitNeighbours(NamedTuple):
    """Handles of jobs by wait, and numbers of jobs."""

    holders: list[list[int]]
    """The jobs that held most GPU time during the wait; at most `MOST_NAMED`, ties by handle."""
    overtaking: list[list[int]]
    """The first jobs that arrived later and got GPUs during the wait; at most `MOST_NAMED`."""
    overtaken: list[int]
    """How many jobs arrived later and got GPUs during the wait."""
    served: list[int]
    """How many other jobs got GPUs during the wait."""


class _ByStart(NamedTuple):
    """Stays of some length in the order of their starts."""

    handle: Whole
    start: Whole
    end: Whole
    gpus: Whole
    before: Whole
    """When the job's stay before this one began; -1 if it is the first."""


class _WaitGroup(NamedTuple):
    """Pairs of some consecutive waits: stays that ran when a wait began, and those that started."""

    waits: Waits
    running: Whole
    running_counts: Whole
    started: Whole
    started_counts: Whole


def neighbours(stays: Stays, waits: Waits) -> WaitNeighbours:
    """The neighbours of each wait."""
    ordered = _by_start(stays)
    around = WaitNeighbours([], [], [], [])
    if not len(ordered.handle):
        return around
    gpu_time = _GpuTime(ordered)
    for group in _groups(ordered, waits):
        around.holders.extend(gpu_time.holders(group))
        overtaking, overtaken, served = _served(ordered, group)
        around.overtaking.extend(overtaking)
        around.overtaken.extend(overtaken)
        around.served.extend(served)
    return around


def _by_start(stays: Stays) -> _ByStart:
    same_job = stays.handle[1:] == stays.handle[:-1]
    before = np.full(len(stays.handle), -1, dtype=np.int64)
    before[1:][same_job] = stays.start[:-1][same_job]
    order = np.lexsort((stays.handle, stays.start))
    order = order[(stays.end > stays.start)[order]]
    columns = (stays.handle, stays.start, stays.end, stays.gpus, before)
    return _ByStart(*(column[order] for column in columns))


def _groups(stays: _ByStart, waits: Waits) -> Iterator[_WaitGroup]:
    """Waits and who ran meanwhile, in groups of a size that fits memory."""
    first = np.searchsorted(stays.start, waits.begin)
    after = np.searchsorted(stays.start, waits.end)
    snapshots = _running_at(stays, waits.begin)
    ended = np.searchsorted(np.sort(stays.end), waits.begin, side="right")
    # Stays that began before the wait and have not ended, and those that begin in it.
    pairs = np.cumsum(after - ended)
    low = 0
    while low < len(waits.begin):
        done = int(pairs[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(pairs, done + _PAIRS, side="right")))
        running = [next(snapshots) for _ in range(low, high)]
        counts = (after - first)[low:high]
        yield _WaitGroup(
            Waits(*(column[low:high] for column in waits)),
            np.concatenate(running),
            np.array([len(some) for some in running], dtype=np.int64),
            _ranges(first[low:high], counts),
            counts,
        )
        low = high


def _running_at(stays: _ByStart, moments: Whole) -> Iterator[Whole]:
    """Per moment, none before the last: the stays that began before it and end after it."""
    start, end = stays.start.tolist(), stays.end.tolist()
    by_end = np.argsort(stays.end, kind="stable").tolist()
    running: dict[int, None] = {}
    begun = over = 0
    for moment in moments.tolist():
        while begun < len(start) and start[begun] < moment:
            running[begun] = None
            begun += 1
        while over < len(end) and end[by_end[over]] <= moment:
            running.pop(by_end[over], None)
            over += 1
        yield np.fromiter(running, np.int64, len(running))


def _ranges(first: Whole, counts: Whole) -> Whole:
    """The ranges from each `first`, as long as `counts` says, one after the other."""
    offsets = np.cumsum(counts) - counts
    places = np.arange(int(counts.sum()), dtype=np.int64)
    places += np.repeat(first - offsets, counts)
    return places


def _served(stays: _ByStart, group: _WaitGroup) -> tuple[list[list[int]], list[int], list[int]]:
    """Which jobs overtake each wait, how many do, and how many jobs get GPUs in all."""
    count = len(group.started_counts)
    wait = np.repeat(np.arange(count), group.started_counts)
    job = stays.handle[group.started]
    # A job that gets GPUs twice is counted at its first start in the wait.
    once = stays.before[group.started] < group.waits.begin[wait]
    later = once & (job > group.waits.handle[wait])
    served = np.bincount(wait[once], minlength=count)
    overtaken = np.bincount(wait[later], minlength=count)
    named = _first_of_each(job[later], overtaken)
    return named, overtaken.tolist(), served.tolist()


def _first_of_each(values: Whole, counts: Whole) -> list[list[int]]:
    """The first `MOST_NAMED` of each of some consecutive parts."""
    kept = np.minimum(counts, MOST_NAMED)
    chosen = values[_ranges(np.cumsum(counts) - counts, kept)].tolist()
    ends = np.cumsum(kept).tolist()
    return [chosen[end - size : end] for end, size in zip(ends, kept.tolist(), strict=True)]


class _GpuTime:
    """How much GPU time jobs held in each wait, in GPUs x ticks (or x a power of two of ticks)."""

    def __init__(self, stays: _ByStart) -> None:
        self._stays = stays
        span = int(stays.end.max() - stays.start[0])
        # The GPU time of one job must fit 62 bits.
        self._shift = max(0, (int(stays.gpus.max()) * span).bit_length() - 62)
        self._jobs = int(stays.handle.max()) + 1
        self._total = np.zeros(self._jobs, dtype=np.int64)
        np.add.at(self._total, stays.handle, stays.gpus * (stays.end - stays.start >> self._shift))
        self._most_gpus = np.zeros(self._jobs, dtype=np.int64)
        np.maximum.at(self._most_gpus, stays.handle, stays.gpus)

    def holders(self, group: _WaitGroup) -> list[list[int]]:
        """Handles of the jobs with most GPU time in each wait of a group."""
        stays, waits = self._stays, group.waits
        places = np.arange(len(waits.begin))
        wait = np.concatenate(
            [np.repeat(places, group.running_counts), np.repeat(places, group.started_counts)]
        )
        stay = np.concatenate([group.running, group.started])
        time = np.minimum(stays.end[stay], waits.end[wait])
        time -= np.maximum(stays.start[stay], waits.begin[wait])
        held = stays.gpus[stay] * (time >> self._shift)
        # At least `MOST_NAMED` jobs hold `least` or more, so jobs that cannot are dropped.
        least = _low_bound(held[: len(group.running)], group.running_counts)
        job, length = stays.handle[stay], waits.end - waits.begin >> self._shift
        bound = np.minimum(self._total[job], self._most_gpus[job] * length[wait])
        kept = bound >= least[wait]
        return self._largest(wait[kept], job[kept], held[kept], least)

    def _largest(self, wait: Whole, job: Whole, held: Whole, least: Whole) -> list[list[int]]:
        """Sum by wait and job, and take the largest sums of each wait."""
        key = wait * self._jobs + job
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        sums = np.add.reduceat(held[order], first) if len(first) else held
        wait, job = np.divmod(key[first], self._jobs)
        # A sum may be 0: a stay of a nanosecond vanishes in the shift.
        kept = sums >= np.maximum(least[wait], 1)
        wait, job, sums = wait[kept], job[kept], sums[kept]
        ranked = np.lexsort((job, -sums, wait))
        return _first_of_each(job[ranked], np.bincount(wait, minlength=len(least)))


def _low_bound(held: Whole, counts: Whole) -> Whole:
    """For each part, a bound that at least `MOST_NAMED` of its values reach. Fast, rarely tight.

    A part is cut into pieces, and the bound is the `MOST_NAMED`-th largest of their maxima. A part
    too short to be cut has the bound 0.
    """
    bound = np.zeros(len(counts), dtype=np.int64)
    enough = counts >= _PIECES
    if not enough.any():
        return bound
    begins = (np.cumsum(counts) - counts)[enough, None]
    cuts = begins + counts[enough, None] * np.arange(_PIECES + 1) // _PIECES
    # `reduceat` takes pairs of a begin and an end; every second of its answers lies between pairs.
    pairs = np.stack([cuts[:, :-1], cuts[:, 1:]], axis=2).ravel()
    largest = np.maximum.reduceat(np.append(held, 0), pairs)[::2].reshape(-1, _PIECES)
    bound[enough] = np.partition(largest, -MOST_NAMED, axis=1)[:, -MOST_NAMED]
    return bound


class Head(NamedTuple):
    """The job that kept a wait's job waiting longest at the head, and for how much of the wait."""

    handle: int
    length: Tick


def longest_heads(waits: Waits) -> list[Head]:
    """For each wait, the other job that headed the queue longest; the job itself if no other did.

    It is used if no job may pass the first one in the order of arrival (`BasePolicy.head_blocks`).
    Ties go to the job that headed the queue first.
    """
    handle, start, end = _stretches(waits)
    whole = end - start
    before = _before(handle)
    resumed = np.flatnonzero(before >= 0)
    first = np.searchsorted(end, waits.begin, side="right")
    after = np.searchsorted(start, waits.end)
    heads = []
    for low, high, own, begin, until, *some in zip(
        *(column.tolist() for column in (first, after, *waits)),
        *(np.searchsorted(resumed, bounds).tolist() for bounds in (first, after)),
        strict=True,
    ):
        lengths = whole[low:high].copy()
        lengths[0] -= max(0, begin - int(start[low]))
        lengths[-1] -= max(0, int(end[high - 1]) - until)
        # From last to first, so that a job's stretches add up in its first one of this wait.
        for again in resumed[slice(*some)][::-1].tolist():
            if before[again] >= low:
                lengths[before[again] - low] += lengths[again - low]
        if (others := handle[low:high] != own).any():
            lengths[~others] = 0
        longest = int(lengths.argmax())
        heads.append(Head(int(handle[low + longest]), int(lengths[longest])))
    return heads


def _before(handles: Whole) -> Whole:
    """Per stretch the place of the job's stretch before it; -1 for its first."""
    order = np.argsort(handles, kind="stable")
    before = np.full(len(handles), -1, dtype=np.int64)
    same = np.diff(handles[order]) == 0
    before[order[1:][same]] = order[:-1][same]
    return before


def _stretches(waits: Waits) -> tuple[Whole, Whole, Whole]:
    """The jobs that headed the queue, in the order of time: handle, start, end."""
    rows: list[tuple[int, Tick, Tick]] = []
    queue: list[tuple[int, Tick]] = []
    now, upcoming = 0, list(zip(*(column.tolist() for column in waits), strict=True))[::-1]
    while upcoming or queue:
        if not queue:
            now = upcoming[-1][1]
        while upcoming and upcoming[-1][1] <= now:
            handle, _, until = upcoming.pop()
            heapq.heappush(queue, (handle, until))
        handle, until = queue[0]
        if until <= now:
            heapq.heappop(queue)
            continue
        # The head changes when it gets GPUs, or when an earlier job loses its own.
        begin, now = now, min(until, upcoming[-1][1]) if upcoming else until
        if rows and rows[-1][0] == handle and rows[-1][2] == begin:
            rows[-1] = (handle, rows[-1][1], now)
        else:
            rows.append((handle, begin, now))
    handles, starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return handles, starts, ends

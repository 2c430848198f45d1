"""Free GPUs while jobs waited.

At an instant, a GPU counts as free unless one job holds it both before and after. So GPUs that go
from one job to another are free at that instant: the policy could have given them to the job that
waits. GPUs out of service are never free. GPUs that come back are free, even if a job gets them at
once.

A job is *passed over* at an instant if enough GPUs are free for it at that instant and too few
right after: other jobs got them. No job is passed over while enough GPUs stay free.

For a job that asks for a share, GPUs with as much left count as free, too (`room_for_shares.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.results.statistics.sorted_values import rising
from artist.results.waiting.stays import WaitInputs, Whole
from artist.results.waiting.wait_neighbours import Waits
from artist.units import Tick

HAND_OVER: Tick = 1_000
"""Policies may take this many ticks (a microsecond) to pass GPUs on. Shorter waits, and shorter
times in which GPUs are free, do not count."""


class FreeGpusOfWaits(NamedTuple):
    """Free GPUs of each wait."""

    most: Whole
    """Most at any instant, counting GPUs that change hands."""
    stayed: Whole
    """Most that stayed free for a time."""
    left_for: Whole
    """For how many ticks at least as many stayed free as the job needs to run."""
    passed: npt.NDArray[np.bool_]
    """Whether the job was passed over."""
    last: Whole
    """The last tick at which it was; -1 if there is none."""
    since: Whole
    """Most free GPUs after that tick while too few were; of no meaning without one."""
    at_last: Whole
    """For how many ticks before its start as many stayed free, without a break."""
    fewer: Whole
    """Most GPUs that stayed free while too few did, where `left_for` is a part of the wait."""
    least_away: Whole
    """Fewest GPUs that were out of service."""
    most_away: Whole
    """Most GPUs that were out of service for a time."""

    def mostly_left(self, waits: Waits) -> npt.NDArray[np.bool_]:
        """Whether enough GPUs stayed free for half of each wait."""
        return (self.left_for > 0) & (2 * self.left_for >= waits.end - waits.begin)


def free_gpus_of(inputs: WaitInputs, waits: Waits) -> FreeGpusOfWaits:
    """The free GPUs of each wait."""
    stays, service = inputs.stays, inputs.withdrawn
    ticks = rising(stays.start, stays.end, waits.begin, waits.end, service[:, 0])
    away = _out_of_service(inputs, ticks)
    steady, changing = _over_time(inputs, ticks, away)
    found = _free_gpus(inputs, waits, ticks, away, steady, changing)
    shares = inputs.shares[waits.handle]
    for share in sorted(set(map(tuple, shares[shares[:, 0] > 0].tolist()))):
        these = (shares == share).all(axis=1)
        own = Waits(*(column[these] for column in waits))
        room, at_hand = inputs.shared.room(np.array(share), ticks)
        free = _free_gpus(inputs, own, ticks, away, steady + room, changing + at_hand)
        for column, values in zip(found, free, strict=True):
            column[these] = values
    return found


def _free_gpus(
    inputs: WaitInputs, waits: Waits, ticks: Whole, away: Whole, steady: Whole, changing: Whole
) -> FreeGpusOfWaits:
    """As `free_gpus_of`, from the free GPUs between ticks (`steady`) and at ticks (`changing`)."""
    most_at, lengths = np.maximum(steady, changing), np.diff(ticks)
    stays_so = lengths >= HAND_OVER
    low, high = np.searchsorted(ticks, waits.begin), np.searchsorted(ticks, waits.end)
    least = inputs.least[waits.handle]
    left_for, last, since, at_last, fewer = np.zeros((5, len(least)), dtype=np.int64)
    for gpus in rising(least).tolist():
        enough = np.where((steady[:-1] >= gpus) & stays_so, lengths, 0)
        until = np.concatenate([[0], np.cumsum(enough)])
        passed = (changing >= gpus) & (steady < gpus)
        latest = np.maximum.accumulate(np.where(passed, np.arange(len(ticks)), -1))
        these = least == gpus
        left_for[these] = until[high[these]] - until[low[these]]
        last[these] = latest[high[these] - 1]
        broken = np.maximum.accumulate(np.where(steady < gpus, np.arange(len(ticks)), -1))
        unbroken = np.maximum(broken[high[these] - 1] + 1, low[these])
        at_last[these] = waits.end[these] - ticks[unbroken]
        partly = these & (left_for > 0) & (left_for < waits.end - waits.begin)
        if partly.any():
            too_few = np.where(steady < gpus, steady, -1)
            fewer[partly] = _largest_between(too_few, low[partly], high[partly])
        known = these & (last >= low)
        if known.any():
            # At the instant itself, count the GPUs that the other jobs left.
            short = np.where(passed, steady, np.where(steady < gpus, most_at, 0))
            since[known] = _largest_between(short, last[known], high[known])
    stayed = _largest_between(np.where(stays_so, steady[:-1], 0), low, high)
    passed = last >= low
    last = np.where(passed, ticks[last], -1)
    most = _largest_between(most_at, low, high)
    least_away = -_largest_between(np.where(stays_so, -away[:-1], -inputs.gpus), low, high)
    most_away = _largest_between(np.where(stays_so, away[:-1], 0), low, high)
    return FreeGpusOfWaits(
        most, stayed, left_for, passed, last, since, at_last, fewer, least_away, most_away
    )


def _out_of_service(inputs: WaitInputs, ticks: Whole) -> Whole:
    """GPUs out of service from each tick on. Of several changes at one tick the last one counts."""
    known = np.concatenate([[0], inputs.withdrawn[:, 1]])
    away: Whole = known[np.searchsorted(inputs.withdrawn[:, 0], ticks, side="right")]
    return away


def _over_time(inputs: WaitInputs, ticks: Whole, away: Whole) -> tuple[Whole, Whole]:
    """Free GPUs from each tick until the next one, and at the tick itself."""
    stays = inputs.stays
    some = stays.end > stays.start
    # GPUs that jobs share are held from the first stay's start to the last one's end.
    ids, of_stay = np.unique(stays.holding[some], return_inverse=True)
    first = np.full(len(ids), np.iinfo(np.int64).max)
    last = np.zeros(len(ids), dtype=np.int64)
    np.minimum.at(first, of_stay, stays.start[some])
    np.maximum.at(last, of_stay, stays.end[some])
    gpus = stays.gpus[ids]
    start, end = np.searchsorted(ticks, first), np.searchsorted(ticks, last)
    begun, ended = _sums(start, gpus, ticks), _sums(end, gpus, ticks)
    held = np.cumsum(begun - ended)
    # A job that moves keeps the smaller number of its GPUs through the instant; jobs that move
    # together keep them once. If other jobs stay on these GPUs, they hold them.
    moves = (np.diff(stays.handle[some]) == 0) & (stays.start[some][1:] == stays.end[some][:-1])
    pairs = np.stack([of_stay[:-1], of_stay[1:]])[:, moves]
    pairs = pairs[:, last[pairs[0]] == first[pairs[1]]]
    for side in (0, 1):
        pairs = pairs[:, np.unique(pairs[side], return_index=True)[1]]
    old, new = pairs
    kept = np.minimum(gpus[old], gpus[new])
    through = held - begun + _sums(start[new], kept, ticks)
    return inputs.gpus - held - away, inputs.gpus - through - away


def _sums(at: npt.NDArray[np.intp], gpus: Whole, ticks: Whole) -> Whole:
    sums = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(sums, at, gpus)
    return sums


def _largest_between(values: Whole, low: npt.NDArray[np.intp], high: npt.NDArray[np.intp]) -> Whole:
    """The largest of `values[low:high]` for each pair of `low` and `high`; no part is empty.

    Two overlapping parts of a length 1, 2, 4, ... cover any part.
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

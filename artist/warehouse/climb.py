"""Hill climbing by days (MAST, section 3.4).

A day is one pass. It finds the best region of every table while all others stay where they are,
then moves tables in the order of their gains. Before each move the best region is recomputed. A
table larger than the rest of the day's quota of bytes stays, and the next one is considered.

The paper moves one table at a time, so two tables of one training job never move together: after
the first move the job has no region. At the end of a day, groups of tables move as well:

- The tables of a job that is not at home are brought together: each region is tried. The jobs with
  most GPU hours come first.
- A table of a region above the median ratio moves with other tables that its jobs read.

If a day gained little, hours at home get a price for some passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from artist.warehouse.instance import Bools, Floats, Instance, Ints
from artist.warehouse.moves import LEAST_GAIN, best_region, best_regions
from artist.warehouse.optimum import is_small, search
from artist.warehouse.state import Quota, State

Show = Callable[[int, int], None]
"""Called with the number of tables considered and the length of the day's queue."""
STUCK = 0.05
"""If a day gains less than this part of the objective, moves continue with prices."""
PRICES = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.0)
"""Prices of all high-priority GPU hours at home; the objective is around 1. Chosen by trial."""
PRICES_OF_GROUPS = (1.0, 0.0)
MOST_PRICED = 20_000
"""Most tables of a pass with a price; this bounds the time for large warehouses."""


def show_nothing(done: int, queued: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Move:
    """A table that gets another home."""

    day: int
    table: int
    source: int
    target: int
    size_bytes: int
    gain: float | None
    """Gain of the objective; None if the table moves together with others."""


@dataclass
class Climb:
    """The moves of all days, and the figures at the end of each."""

    moves: list[Move] = field(default_factory=list)
    day_bytes: list[int] = field(default_factory=list)
    day_cost: list[float] = field(default_factory=list)
    """The objective at the end of each day."""
    day_ratios: list[Floats] = field(default_factory=list)
    """Ratios of high-priority demand to supply by region, at the end of each day."""
    ended: str = "all days planned"

    def end_day(self, day: int, state: State, start: Ints, gains: dict[int, float]) -> None:
        """Record the tables that moved since the `start` of a day.

        Those that moved one by one come first, in the order of their moves, with their `gains`.
        """
        moved = np.flatnonzero(state.home != start).tolist()
        single = [table for table in gains if state.home[table] != start[table]]
        size = state.instance.size
        self.moves += [
            Move(day, t, int(start[t]), int(state.home[t]), int(size[t]), gains.get(t))
            for t in [*single, *sorted(set(moved).difference(single))]
        ]
        self.day_bytes.append(int(size[moved].sum()))
        self.day_cost.append(state.cost())
        self.day_ratios.append(state.ratios())


def climb(state: State, show: Show = show_nothing) -> Climb:
    """Move tables until a limit of the options is reached. Changes the state."""
    options, size = state.objective.options, state.instance.size
    most_bytes = int(options.quota * int(size.sum()))
    clock = _Clock(options.limit_s)
    done = Climb()
    enough, every = options.enough * state.cost(), np.arange(len(size))
    priced = True
    for day in range(1, options.days + 1):
        start, before = state.home.copy(), state.cost()
        quota = Quota(start, size, most_bytes)
        gains = _pass(state, quota, clock, every, show)
        if not clock.is_over():
            priced = _improve(state, quota, clock, before, priced=priced)
        if (state.home == start).all():
            done.ended = clock.reason or "no move gains"
            break
        done.end_day(day, state, start, gains)
        if clock.is_over():
            done.ended = clock.reason
            break
        if state.cost() < enough:
            done.ended = "enough of the objective is gone"
            break
        if before - state.cost() < options.min_gain * before:
            done.ended = "a day gained less than min_gain"
            break
    return done


def _improve(state: State, quota: Quota, clock: _Clock, before: float, *, priced: bool) -> bool:
    """Improve a day's homes: a search in small warehouses, moves of groups of tables in others.

    If single moves gained little and `priced`, tables also move while hours at home have a price.
    `before` is the objective when the day began. Returns whether prices may gain on later days: not
    if they gained nothing now, unless the quota limited them.
    """
    if quota.left_bytes < state.instance.size.min() and (state.home == quota.start).all():
        return priced
    if is_small(state):
        state.set_homes(search(state, quota.start, quota.most_bytes))
        return priced
    bring_together(state, quota)
    options, cost = state.objective.options, state.cost()
    if not priced or before - cost >= STUCK * before:
        return priced
    _with_prices(state, quota, clock)
    return options.quota < 1 or cost - state.cost() > LEAST_GAIN


def _with_prices(state: State, quota: Quota, clock: _Clock) -> None:
    """Move tables while hours at home have a price, which falls from pass to pass.

    Expression 6 holds throughout, so a move away from home needs hours to spare. Moves at a high
    price bring hours home. As the price falls, these hours are spent where they gain most. If the
    objective is not lower in the end, all tables return.
    """
    home, cost = state.home.copy(), state.cost()
    tables = _with_most_hours(state.instance, state.urgent)
    for price in PRICES:
        _pass(state, quota, clock, tables, price=price)
        if clock.is_over():
            break
        if price in PRICES_OF_GROUPS:
            move_groups(state, quota, price)
    bring_together(state, quota)
    if not state.cost() < cost - LEAST_GAIN:
        state.set_homes(home)
        quota.restore(home)


class _Clock:
    """The limit of wall time."""

    def __init__(self, limit_s: float | None) -> None:
        self._end = None if limit_s is None else time.monotonic() + limit_s
        self.reason = ""

    def is_over(self) -> bool:
        """Whether the time is up; it then sets `reason`."""
        if self._end is not None and time.monotonic() > self._end:
            self.reason = "time limit"
        return bool(self.reason)


def _with_most_hours(x: Instance, jobs: Bools) -> Ints:
    """The `MOST_PRICED` tables that these jobs use for most GPU hours, in the order of tables."""
    hours = np.where(jobs, x.gpu_h, 0.0)[x.reads.owners]
    by_table = np.bincount(x.reads.items, hours, len(x.size))
    chosen: Ints = np.sort(np.argsort(-by_table, kind="stable")[:MOST_PRICED])
    return chosen


def _pass(
    state: State,
    quota: Quota,
    clock: _Clock,
    tables: Ints,
    show: Show = show_nothing,
    *,
    price: float = 0.0,
) -> dict[int, float]:
    """Move some tables one by one. Returns the gain of each that moved."""
    _, gains = best_regions(state, tables, price)
    queue = tables[_queue(gains)]
    moved: dict[int, float] = {}
    for number, table in enumerate(queue.tolist()):
        show(number, len(queue))
        has_not_moved = state.home[table] == quota.start[table]
        if has_not_moved and quota.left_bytes < state.instance.size[table]:
            continue
        if clock.is_over():
            break
        region, gain = best_region(state, table, price)
        one = queue[number : number + 1]
        if gain > 0 and quota.allows(state.home, one, region):
            quota.take(one, state.home[one], region)
            state.move(table, region)
            moved[table] = gain
    state.refresh()
    return moved


def _queue(gains: Floats) -> Ints:
    """Tables with a gain, the largest first; ties in the order of tables."""
    order = np.argsort(-gains, kind="stable")
    queue: Ints = order[: int((gains > 0).sum())]
    return queue


MOST_JOBS = 200
MOST_TABLES = 8
"""Most tables of a group."""
MOST_GROUPS = 150


def bring_together(state: State, quota: Quota) -> None:
    """Bring the tables of jobs together while that gains."""
    x = state.instance
    used, cpu = state.used.copy(), state.cpu.copy()
    best = state.cost()
    for job in _scattered(state).tolist():
        tables = x.reads.of(job)
        for region in range(len(x.regions)):
            before = state.home[tables].copy()
            if (before == region).all() or not quota.allows(state.home, tables, region):
                continue
            _move_all(state, tables, region)
            cost = state.cost()
            if cost < best - LEAST_GAIN and not state.breaks(used, cpu):
                best = cost
                quota.take(tables, before, region)
            else:
                _move_all(state, tables, before)
    state.refresh()


def move_groups(state: State, quota: Quota, price: float) -> None:
    """Move groups to their best regions while that gains.

    `price` weighs the share of high-priority GPU hours at home against the objective.
    """
    x = state.instance
    used, cpu = state.used.copy(), state.cpu.copy()
    now = _value(state, price)
    for table in _loaded(state).tolist():
        group = _group(state, table)
        own, best, target = int(state.home[table]), now - LEAST_GAIN, None
        for region in range(len(x.regions)):
            if region == own:
                continue
            for count, member in enumerate(group.tolist(), 1):
                state.move(member, region)
                value = _value(state, price)
                if value < best and not state.breaks(used, cpu):
                    best, target = value, (region, count)
            _move_all(state, group, own)
        if target is not None:
            region, tables = target[0], group[: target[1]]
            if quota.allows(state.home, tables, region):
                quota.take(tables, state.home[tables], region)
                _move_all(state, tables, region)
                now = _value(state, price)
    state.refresh()


def _value(state: State, price: float) -> float:
    return state.cost() - price * state.at_home_gpu_h / state.urgent_gpu_h


def _move_all(state: State, tables: Ints, homes: Ints | int) -> None:
    """Move tables to their new homes, or all of them to one region."""
    regions = [homes] * len(tables) if isinstance(homes, int) else homes.tolist()
    for table, region in zip(tables.tolist(), regions, strict=True):
        state.move(table, region)


def _scattered(state: State) -> Ints:
    """Training jobs with several tables that are not at home; most GPU hours first."""
    x = state.instance
    lengths = x.reads.lengths
    home = np.zeros(len(x.kind), np.bool_)
    placed = np.flatnonzero((state.place >= 0) & (x.kind >= 0))
    home[placed] = x.supply[state.place[placed], x.kind[placed]] > 0
    jobs = np.flatnonzero((x.kind >= 0) & (lengths > 1) & (lengths <= MOST_TABLES) & ~home)
    chosen: Ints = jobs[np.argsort(-x.gpu_h[jobs], kind="stable")][:MOST_JOBS]
    return chosen


def _loaded(state: State) -> Ints:
    """The tables with most GPU hours in regions whose ratio of demand to supply is above median."""
    x = state.instance
    placed = (state.place >= 0) & (x.kind >= 0)
    hours = np.where(placed, x.gpu_h, 0.0)[x.reads.owners]
    by_table: Floats = np.bincount(x.reads.items, hours, len(x.size)).astype(float)
    ratio = state.demand.sum(axis=(1, 2)) / x.supply.sum(axis=1)
    by_table[(ratio <= np.median(ratio))[state.home]] = 0.0
    order = np.argsort(-by_table, kind="stable")[:MOST_GROUPS]
    chosen: Ints = order[by_table[order] > 0]
    return chosen


def _group(state: State, table: int) -> Ints:
    """A table, and others that jobs in its region read with it or with one another.

    The tables whose jobs have most GPU hours in that region come first.
    """
    x, region = state.instance, state.home[table]
    hours: dict[int, float] = {}
    group, new = [table], table
    while len(group) < MOST_TABLES:
        jobs = x.readers.of(new)
        jobs = jobs[(state.place[jobs] == region) & (x.kind[jobs] >= 0)]
        owners, others = x.reads.of_many(jobs)
        for gpu_h, other in zip(x.gpu_h[jobs[owners]].tolist(), others.tolist(), strict=True):
            if other not in group:
                hours[other] = hours.get(other, 0.0) + gpu_h
        if not hours:
            break
        new = max(hours, key=lambda other: (hours[other], -other))
        del hours[new]
        group.append(new)
    return np.array(group, np.int64)

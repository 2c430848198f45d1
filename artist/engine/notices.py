"""Notices: units that will leave service take no more jobs.

A leaf on notice has no free GPUs. What is free there goes out of service at once, and so does each
GPU that a job gives back. The outage then finds only the jobs that are left. A policy sees such
GPUs as held: it cannot get them, and may let the jobs there run on or leave.
"""

from __future__ import annotations

from collections.abc import Iterable

from artist.cluster.placement import Placement
from artist.contract import Notice
from artist.engine.holdings import Holdings
from artist.engine.outages import withdraw
from artist.engine.rows import NoticeRow, OutageRow, Rows
from artist.units import Tick


def give(holdings: Holdings, rows: Rows, notice: Notice) -> None:
    """Put leaves on notice. Of two notices of one leaf the longer one counts."""
    ahead = holdings.on_notice
    for leaf in notice.leaves:
        ahead[leaf] = max(notice.until, ahead.get(leaf, 0))
    leaves = frozenset(notice.leaves)
    there = (
        state.handle
        for state in holdings.running.values()
        if state.placement is not None and not leaves.isdisjoint(state.placement.leaves)
    )
    gpus = holdings.tree.levels[0].gpus
    size = sum(gpus[leaf] for leaf in notice.leaves)
    handles = tuple(sorted(there))
    rows.notices.append(NoticeRow(notice.at, notice.until, size, notice.outage, handles))
    keep_out(holdings, rows, notice.leaves, notice.at)


def keep_out(holdings: Holdings, rows: Rows, leaves: Iterable[int], now: Tick) -> None:
    """Take what has become free on leaves on notice out of service."""
    free = holdings.free.leaves
    gone = {leaf: free[leaf] for leaf in leaves if leaf in holdings.on_notice and free[leaf]}
    if not gone:
        return
    placement = Placement.of(gone)
    withdraw(holdings, placement)
    for leaf, count in gone.items():
        holdings.kept_out[leaf] = holdings.kept_out.get(leaf, 0) + count
    rows.outages.append(OutageRow(now, placement))
    rows.note_withdrawn(now, sum(holdings.withdrawn.values()))


def expire(holdings: Holdings, now: Tick) -> None:
    """Forget notices whose outage begins now, or has begun."""
    ahead = holdings.on_notice
    for leaf in [leaf for leaf, until in ahead.items() if until <= now]:
        del ahead[leaf]


def give_up(holdings: Holdings, rows: Rows, placement: Placement, now: Tick) -> None:
    """An outage takes these GPUs. Those that a notice kept out are its own from now on.

    They come back for no time, so that the outage can take all of them alike.
    """
    kept = holdings.kept_out
    own = {
        leaf: min(count, kept[leaf])
        for leaf, count in zip(placement.leaves, placement.counts, strict=True)
        if kept.get(leaf)
    }
    if not own:
        return
    back = Placement.of(own)
    for leaf, count in own.items():
        for counts in (kept, holdings.withdrawn):
            counts[leaf] -= count
            if not counts[leaf]:
                del counts[leaf]
    holdings.free.release(back)
    rows.outages.append(OutageRow(now, back, back=True))

"""Outages: GPUs leave service and come back, as an event source says.

The free GPUs of a leaf leave first. If they are too few, jobs that hold GPUs there lose all their
GPUs, the latest arrival first, until enough are free. Jobs beside them lose theirs too.

A **notice** announces an outage. A leaf on notice has no free GPUs: GPUs that are free leave
service at once, and so does each GPU that a job gives back. The outage then stops only the jobs
that are still there. A policy sees GPUs on notice as held, and cannot give them to jobs. It may let
the jobs there run on, or move them away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter

from artist.cluster.placement import Placement, placement_flaw
from artist.contract import EventSource, Notice, Outage, OutsideEvent, Restore, Withdraw
from artist.engine.events import OUTSIDE, EventQueue
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.engine.rows import FAILED, WITHDRAWN, EndReason, NoticeRow, OutageRow, Rows
from artist.errors import InvariantError
from artist.units import Tick


class Outages:
    """Puts the events of a source into the queue, one at a time.

    `pending` says whether an event of the source is in the queue.
    """

    __slots__ = ("_next", "_source", "pending")

    def __init__(self, source: EventSource | None) -> None:
        self._source = source
        self._next: OutsideEvent | None = None
        self.pending = False

    def schedule(self, now: Tick, queue: EventQueue) -> None:
        """Put the source's next event into the queue, if there is another.

        Raises:
            InvariantError: the source gave no event, or an event that is past or has a flaw.
        """
        self._next = None if self._source is None else self._source.next_event(now)
        self.pending = self._next is not None
        if self._next is None:
            return
        if wrong := _flaw(self._next, now):
            raise InvariantError(f"event source gave {self._next!r} at tick {now}: {wrong}")
        queue.push(self._next.at, OUTSIDE, -1)

    def take(self) -> OutsideEvent:
        """Take the event that happens now."""
        event, self._next = self._next, None
        self.pending = False
        assert event is not None  # it was in the queue
        return event


def _flaw(event: object, now: Tick) -> str:
    if not isinstance(event, Withdraw | Restore | Notice):
        return "expected Withdraw, Restore or Notice"
    if type(event.at) is not int or event.at < now:
        return "expected a whole tick that is not in the past"
    if isinstance(event, Notice):
        return "" if event.leaves and event.until > event.at else "expected leaves, and a later end"
    wrong = placement_flaw(event.placement)
    return f"its placement {wrong}" if wrong else ""


def reason(outage: Outage | None) -> EndReason:
    """Why the interval of a job ends that an outage stops."""
    return FAILED if outage is not None and outage.failed else WITHDRAWN


def victims(holdings: Holdings, placement: Placement, position: int | None) -> list[JobState]:
    """The jobs that lose their GPUs when these GPUs are withdrawn, the latest arrival first.

    `position` as in `Withdraw`.

    Raises:
        InvariantError: a leaf does not exist or has fewer GPUs in service.
    """
    missing: dict[int, int] = {}
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        if not 1 <= count <= _in_service(holdings, leaf):
            raise InvariantError(
                f"{count} GPUs of {holdings.tree.levels[0].name} {leaf} withdrawn, but "
                f"{_in_service(holdings, leaf)} are in service there"
            )
        missing[leaf] = count - holdings.free.leaves[leaf]
    if position is not None:
        return _holder(holdings, placement.leaves[0], position)
    if all(count <= 0 for count in missing.values()):
        return []
    hit = []
    # By handle, because the order of `running` depends on the policy's earlier decisions.
    found: set[int] = set()
    for state in sorted(_on(holdings, missing), key=attrgetter("handle"), reverse=True):
        assert state.placement is not None  # running jobs have GPUs
        held = dict(zip(state.placement.leaves, state.placement.counts, strict=True))
        if state.handle not in found and any(missing.get(leaf, 0) > 0 for leaf in held):
            hit += _on_its_gpus(holdings, state)
            found.update(state.beside)
            for leaf, count in held.items():
                if leaf in missing:
                    missing[leaf] -= count
    return sorted(hit, key=attrgetter("handle"), reverse=True)


def _holder(holdings: Holdings, leaf: int, position: int) -> list[JobState]:
    """The jobs that hold the GPU at a position among a leaf's GPUs in service; none if it is free.

    With random positions, a job with c of a leaf's g GPUs is hit by c/g of the failures there.
    """
    for state in sorted(_on(holdings, {leaf}), key=attrgetter("handle")):
        assert state.placement is not None  # running jobs have GPUs
        held = dict(zip(state.placement.leaves, state.placement.counts, strict=True))
        if not state.beside or state.handle < state.beside[0]:  # shared GPUs count once
            position -= held.get(leaf, 0)
        if position < 0:
            return _on_its_gpus(holdings, state)
    return []


def _on_its_gpus(holdings: Holdings, state: JobState) -> list[JobState]:
    """A job and the jobs that share its GPUs, the latest arrival first."""
    handles = sorted((state.handle, *state.beside), reverse=True)
    return [holdings.running[handle] for handle in handles]


def _on(holdings: Holdings, leaves: Collection[int]) -> list[JobState]:
    """The running jobs that hold GPUs of some leaves; fast also with thousands of jobs."""
    wanted = frozenset(leaves)
    return [
        state
        for state in holdings.running.values()
        if state.placement is not None and not wanted.isdisjoint(state.placement.leaves)
    ]


def withdraw(holdings: Holdings, placement: Placement) -> None:
    """Take free GPUs out of service. The jobs of `victims` must have released theirs."""
    holdings.free.claim(placement)
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        holdings.withdrawn[leaf] = holdings.withdrawn.get(leaf, 0) + count


def restore(holdings: Holdings, placement: Placement) -> None:
    """Bring withdrawn GPUs back. They are free from now on.

    Raises:
        InvariantError: fewer GPUs of a leaf are out of service; nothing has changed then.
    """
    withdrawn = holdings.withdrawn
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        away = withdrawn.get(leaf, 0) - holdings.kept_out.get(leaf, 0)
        if not 1 <= count <= away:
            raise InvariantError(
                f"{count} GPUs of {holdings.tree.levels[0].name} {leaf} restored, but "
                f"{away} are out of service there"
            )
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        withdrawn[leaf] -= count
        if not withdrawn[leaf]:
            del withdrawn[leaf]
    holdings.free.release(placement)


def _in_service(holdings: Holdings, leaf: int) -> int:
    if not 0 <= leaf < len(holdings.tree.levels[0]):
        return 0
    away = holdings.withdrawn.get(leaf, 0) - holdings.kept_out.get(leaf, 0)
    return holdings.tree.levels[0].gpus[leaf] - away


# -- notices -------------------------------------------------------------------------


def put_on_notice(holdings: Holdings, rows: Rows, notice: Notice) -> None:
    """Put leaves on notice. If a leaf has two notices, the later outage counts."""
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
    """Take the free GPUs of those of the leaves that are on notice out of service."""
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


def expire_notices(holdings: Holdings, now: Tick) -> None:
    """Forget notices whose outage begins now, or has begun."""
    ahead = holdings.on_notice
    for leaf in [leaf for leaf, until in ahead.items() if until <= now]:
        del ahead[leaf]


def end_notice(holdings: Holdings, rows: Rows, placement: Placement, now: Tick) -> None:
    """Bring back GPUs that a notice kept out, for an outage that takes them at this instant.

    So the outage takes all of its GPUs in the same way, whether a notice kept them out or not.
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

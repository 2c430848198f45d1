"""Preemption under `quota(HOST)`: a job never loses GPUs to a job of a later class.

Starts and moves of the host that would violate this are dropped (`in_order_of_class`). For jobs
within quota that still wait, `QuotaPreemption` takes GPUs from jobs of later classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, Hold, Migrate, Preempt, SetBatch, Start
from artist.contract.gates import counts_of, gpus_left, without
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.ledger import LedgerEntry, fewest
from artist.policies.shared.gpu_counts import GpuCounts, overlap
from artist.units import Tick

CLASSES = "for a job of an earlier class"


def free_after(view: ClusterView, decisions: Sequence[Decision]) -> GpuCounts:
    """The GPUs that are free once decisions are applied."""
    left = [view.running[x.handle] for x in decisions if isinstance(x, Preempt | Migrate)]
    free = GpuCounts(view.free, left)
    for decision in decisions:
        if isinstance(decision, Start | Migrate):
            free.claim(decision.placement)
    return free


def gpus_for(accepts: Sequence[str], placement: Placement, tree: ClusterTree) -> int:
    """How many GPUs of a placement are of the accepted kinds; all, if no kinds are named."""
    if not accepts:
        return placement.gpus
    counts = machine_counts(tree, placement).items()
    return sum(gpus for machine, gpus in counts if tree.kinds[machine] in accepts)


def in_order_of_class(
    ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
) -> tuple[list[Decision], set[int], set[int]]:
    """Drop the decisions that take GPUs from an earlier class for a later one.

    Returns the other decisions, the jobs whose starts are cancelled, and the jobs that are spared.
    """
    kept, cancelled, spared = list(decisions), set[int](), set[int]()
    while True:
        refused, losers = _inversions(ledger, view, kept)
        if not refused:
            return kept, cancelled, spared
        kept, put_off = without(kept, refused, view, CLASSES)
        cancelled.update(put_off)
        spared |= losers


def _inversions(
    ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
) -> tuple[set[int], set[int]]:
    """The jobs whose starts and moves take GPUs from an earlier class, and the jobs that lose them.

    The most urgent losers come first, and the takers of the last classes are refused first.
    """
    refused, losers = set[int](), set[int]()
    preempted = [x.handle for x in decisions if isinstance(x, Preempt)]
    if not preempted:
        return refused, losers
    takers = [x for x in decisions if isinstance(x, Start | Migrate)]
    takers.sort(key=lambda x: (ledger.rank(x.handle), x.handle), reverse=True)
    left = gpus_left(decisions, view)
    for handle in sorted(preempted, key=lambda x: (ledger.rank(x), x)):
        held = view.running[handle].placement
        assert held is not None  # running jobs have GPUs
        short = {leaf: count - left[leaf] for leaf, count in counts_of(held).items()}
        chosen = []
        for taker in takers:
            if ledger.rank(taker.handle) <= ledger.rank(handle) or max(short.values()) <= 0:
                break
            gives = counts_of(taker.placement)
            if taker.handle not in refused and any(short.get(x, 0) > 0 for x in gives):
                chosen.append(taker.handle)
                short = {leaf: lacks - gives.get(leaf, 0) for leaf, lacks in short.items()}
        if chosen and max(short.values()) <= 0:
            refused.update(chosen)
            losers.add(handle)
    return refused, losers


def of_later_classes(
    ledger: HostLedger,
    view: ClusterView,
    decisions: Sequence[Decision],
    waiting: LedgerEntry,
    instant: Tick,
) -> list[tuple[int, int]]:
    """(Handle, GPUs that a waiting job accepts) of the running jobs that it may preempt.

    They are in the order of preemption: the last class first, in it the job that has run longest.
    Jobs that a decision names, or that got their GPUs in this instant, are left out.
    """
    running, rank = ledger.running, waiting.rank
    decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
    order = [
        (-entry.rank, view.running[x].started, x)
        for x, entry in running.items()
        if entry.rank > rank
        and x not in decided
        and view.frees(view.running[x])
        and not instant <= view.running[x].started < view.now
    ]
    found = []
    for _, _, handle in sorted(order):
        held = view.running[handle].placement
        assert held is not None  # running jobs have GPUs
        gpus = gpus_for(waiting.accepts, held, view.cluster)
        if gpus:
            found.append((handle, gpus))
    return found


class QuotaPreemption:
    """Finds GPUs for waiting jobs within quota, after an answer of the host.

    Starts are cancelled before jobs are preempted, because that loses no work.
    """

    def __init__(
        self,
        ledger: HostLedger,
        view: ClusterView,
        decisions: list[Decision],
        instant: Tick,
        key: Callable[[int], tuple[int, float, int]],
    ) -> None:
        """`instant` is the time of the first of a series of questions a nanosecond apart. `key` is
        the order in which waiting jobs come forward.
        """
        self._ledger, self._view, self._instant, self._key = ledger, view, instant, key
        self.decisions = decisions
        """The decisions that stand."""
        self.preemptions: list[Decision] = []
        self.cancelled: set[int] = set()
        """Jobs whose starts are cancelled."""
        self.reserved_for: set[int] = set()
        """Jobs for which others give GPUs up."""
        starts = {x.handle: x.placement for x in decisions if isinstance(x, Start)}
        # The last job in the order first.
        self._starts = {x: starts[x] for x in sorted(starts, key=key, reverse=True)}
        # Jobs that are to get GPUs that are free after the decisions and preemptions.
        self._promised: list[LedgerEntry] = []
        # By class and accepted kinds: whom a waiting job may preempt. Emptied once one is served.
        self._victims: dict[tuple[int, tuple[str, ...]], list[tuple[int, int]]] = {}

    def serve(self, wasted_on: Collection[int], reserved_before: Collection[int]) -> None:
        """Look for GPUs for every waiting job within quota, except the jobs `wasted_on`.

        If others give up GPUs, the host decides which job gets which. So a job that accepts only
        some of these kinds, or others too, is served at the next question.
        """
        waiting = self._ledger.within
        wanting = [x for x in waiting if x not in wasted_on and x not in self._starts]
        if not wanting:
            return
        room = self._room(self.decisions)
        reserved: set[tuple[str, ...]] = set()  # by the kinds that a job accepts
        for handle in sorted(wanting, key=self._key):
            entry = waiting[handle]
            if any(x != entry.accepts and overlap(x, entry.accepts) for x in reserved):
                continue
            lacking = entry.gpus - room.left(entry.accepts)
            if lacking > 0:
                if not self._free(handle, lacking, reserved_before):
                    continue
                reserved.add(entry.accepts)
                room = self._room(self.decisions)
            room.promise(entry.accepts, entry.gpus)
            self._promised.append(entry)

    def _room(self, decisions: Sequence[Decision]) -> GpuCounts:
        """The GPUs that are free after decisions and preemptions and are not promised."""
        room = free_after(self._view, [*decisions, *self.preemptions])
        for entry in self._promised:
            room.promise(entry.accepts, entry.gpus)
        return room

    def _free(self, handle: int, lacking: int, reserved_before: Collection[int]) -> bool:
        """Cancel starts and preempt jobs until a job has enough GPUs; False if it never has."""
        ledger, view = self._ledger, self._view
        entry = ledger.waiting[handle]
        refused = self._behind(handle, lacking, reserved_before)
        standing = self.decisions
        if refused:
            standing, _ = without(standing, refused, view, CLASSES)
            lacking = entry.gpus - self._room(standing).left(entry.accepts)
        victims: Sequence[int] | None = ()
        if lacking > 0:
            victims = fewest(self._of_later_classes(standing, entry), lacking)
        if victims is None:
            return False
        self._victims.clear()
        self.reserved_for.add(handle)
        self.decisions = [
            x for x in standing if not (isinstance(x, SetBatch) and x.handle in victims)
        ]
        self.cancelled.update(refused)
        for other in refused:
            del self._starts[other]
        words = f"for a job of class {entry.rank}"
        self.preemptions += [Preempt(victim, words) for victim in victims]
        return True

    def _of_later_classes(
        self, standing: Sequence[Decision], entry: LedgerEntry
    ) -> list[tuple[int, int]]:
        """The running jobs that a job may preempt after these decisions (`of_later_classes`)."""
        key = entry.rank, entry.accepts
        found = self._victims.get(key) if standing is self.decisions else None
        if found is None:
            decisions = [*standing, *self.preemptions]
            found = of_later_classes(self._ledger, self._view, decisions, entry, self._instant)
            if standing is self.decisions:
                self._victims[key] = found
        return found

    def _behind(self, handle: int, lacking: int, reserved_before: Collection[int]) -> list[int]:
        """The jobs of later classes whose starts leave a job too few GPUs, the last ones first.

        If GPUs were freed for the job, starts of jobs of its own class behind it count too: they
        would take these GPUs. Starts of its mates do not: the host chooses among mates.
        """
        waiting, refused = self._ledger.waiting, list[int]()
        entry = waiting[handle]
        for other, placement in self._starts.items():
            if lacking <= 0:
                break
            behind = waiting[other].rank > entry.rank
            if handle in reserved_before and waiting[other].mates != entry.mates:
                behind = self._key(other) > self._key(handle)
            gpus = gpus_for(entry.accepts, placement, self._view.cluster) if behind else 0
            if gpus:
                refused.append(other)
                lacking -= gpus
        return refused

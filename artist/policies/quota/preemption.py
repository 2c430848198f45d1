"""Who loses GPUs to whom around a host: never an earlier class to a later one.

Starts and moves of the host that would do so fall (`in_order_of_class`). For jobs within quota that
still wait, `Preemption` takes GPUs from jobs of later classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from artist.contract import ClusterView, Decision, Hold, Migrate, Preempt, Start
from artist.contract.gates import counts_of, gpus_left, without
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.ledger import fewest
from artist.units import Tick

CLASSES = "for a job of an earlier class"


def free_after(view: ClusterView, decisions: Sequence[Decision]) -> int:
    """Free GPUs once decisions are applied."""
    free = view.free.total
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate):
            free += view.running[decision.handle].gpus
        if isinstance(decision, Start | Migrate):
            free -= decision.placement.gpus
    return free


def in_order_of_class(
    ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
) -> tuple[list[Decision], set[int], set[int]]:
    """The decisions without those that take GPUs from an earlier class for a later one.

    And the jobs that do not start, and those that would have lost their GPUs.
    """
    kept, fallen, lost_to = list(decisions), set[int](), set[int]()
    while True:
        refused, losers = _inversions(ledger, view, kept)
        if not refused:
            return kept, fallen, lost_to
        kept, put_off = without(kept, refused, view, CLASSES)
        fallen.update(put_off)
        lost_to |= losers


def _inversions(
    ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
) -> tuple[set[int], set[int]]:
    """Starts and moves without which a job of an earlier class keeps its GPUs; and such jobs.

    The last classes are refused first, for the most urgent job first.
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


def later(
    ledger: HostLedger,
    view: ClusterView,
    decisions: Sequence[Decision],
    rank: int,
    instant: Tick,
) -> list[tuple[int, int]]:
    """(Handle, GPUs) of running jobs of later classes, in the order in which they would lose their
    GPUs: the last class first, in it the job that has run longest.

    Not those that a decision names, or that got their GPUs in this instant.
    """
    running = ledger.running
    decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
    order = [
        (-entry.rank, view.running[x].started, x)
        for x, entry in running.items()
        if entry.rank > rank
        and x not in decided
        and view.frees(view.running[x])
        and not instant <= view.running[x].started < view.now
    ]
    return [(x, running[x].gpus) for _, _, x in sorted(order)]


class Preemption:
    """Finds GPUs for waiting jobs within quota, after an answer of the host.

    A cancelled start costs no work, so it comes before a preemption.
    """

    def __init__(
        self,
        ledger: HostLedger,
        view: ClusterView,
        decisions: list[Decision],
        instant: Tick,
        key: Callable[[int], tuple[int, float, int]],
    ) -> None:
        """`instant` is the first of the questions that follow each other within nanoseconds.
        `key` is the order in which waiting jobs come forward.
        """
        self._ledger, self._view, self._instant, self._key = ledger, view, instant, key
        self.decisions = decisions
        """The decisions that stand."""
        self.preemptions: list[Decision] = []
        self.cancelled: set[int] = set()
        """Jobs whose starts are cancelled."""
        self.reserved_for: set[int] = set()
        """Jobs for which others give GPUs up."""
        self._starts = [x.handle for x in decisions if isinstance(x, Start)]
        self._starts.sort(key=key, reverse=True)
        self._gained = 0
        self._wanted = 0

    def serve(self, wasted_on: Collection[int], reserved_before: Collection[int]) -> None:
        """Look for GPUs for every job within quota, but those for which it was in vain before."""
        waiting = self._ledger.within
        wanting = [x for x in waiting if x not in wasted_on and x not in self._starts]
        free = free_after(self._view, self.decisions) if wanting else 0
        for handle in sorted(wanting, key=self._key):
            gpus = waiting[handle].gpus
            if gpus > free + self._gained - self._wanted:
                if not self._free(handle, free, reserved_before):
                    continue
                free = free_after(self._view, self.decisions)
            self._wanted += gpus

    def _free(self, handle: int, free: int, reserved_before: Collection[int]) -> bool:
        """Cancel starts, and preempt jobs, until a job has enough GPUs; False if that is vain."""
        ledger, view = self._ledger, self._view
        entry = ledger.waiting[handle]
        need = entry.gpus + self._wanted - self._gained
        refused = self._behind(handle, need - free, reserved_before)
        standing = self.decisions
        if refused:
            standing, _ = without(standing, refused, view, CLASSES)
            free = free_after(view, standing)
        victims: Sequence[int] | None = ()
        if need > free:
            chosen = later(ledger, view, [*standing, *self.preemptions], entry.rank, self._instant)
            victims = fewest(chosen, need - free)
        if victims is None:
            return False
        self.reserved_for.add(handle)
        self.decisions = standing
        self.cancelled.update(refused)
        self._starts = [x for x in self._starts if x not in refused]
        for victim in victims:
            self.preemptions.append(Preempt(victim, f"for a job of class {entry.rank}"))
            self._gained += ledger.running[victim].gpus
        return True

    def _behind(self, handle: int, lacking: int, reserved_before: Collection[int]) -> list[int]:
        """Starts of jobs of later classes that leave a job too few GPUs, the last ones first.

        If others were preempted for the job, it comes before all jobs behind it, also those of its
        own class: else these would take the GPUs that were freed for it. Not before its mates, of
        which the host chooses.
        """
        waiting, refused = self._ledger.waiting, list[int]()
        for other in self._starts:
            if lacking <= 0:
                break
            behind = waiting[other].rank > waiting[handle].rank
            if handle in reserved_before and waiting[other].mates != waiting[handle].mates:
                behind = self._key(other) > self._key(handle)
            if behind:
                refused.append(other)
                lacking -= waiting[other].gpus
        return refused

"""Which jobs of a tenant use its quota: the host decides among jobs of one priority.

Waiting jobs are charged to their tenant's quota in the order of credit, at a pass and when quota
becomes free. Among *mates*, jobs of one tenant and one priority, the host may choose another order:
a job that it starts takes over charges of mates, which *give way*. The tenant's use does not
change, so other tenants are not affected. A job takes over:

- The charge of mates that the host preempts in the same answer, or of GPUs that it takes from them.
- The charge of waiting mates, beginning with the last one in the order of credit.
- Above quota, the spare GPUs that waiting mates were to get, or those of preempted mates. The
  waiting mates must accept the same kinds of GPUs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artist.contract import Decision, Migrate, Preempt
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.ledger import Mates
from artist.units import Tick


class Exchange:
    """The exchanges of one answer."""

    def __init__(
        self, ledger: HostLedger, decisions: Sequence[Decision], waiting: Sequence[int], now: Tick
    ) -> None:
        """`waiting` are the jobs that may run but still wait, the most urgent first."""
        self._ledger, self._now = ledger, now
        # By mates and whether within quota: waiting jobs here, GPUs that running jobs lose below.
        self._waiting: dict[tuple[Mates, bool], list[int]] = {}
        for handle in waiting:
            entry = ledger.waiting[handle]
            self._waiting.setdefault((entry.mates, entry.within), []).append(handle)
        self._leaving = _leaving(ledger, decisions)
        self._lent: dict[str | None, int] = {}
        self._borrowed: list[tuple[int, Mates, int]] = []
        # By carried job: the waiting mates that gave way to it, and since when they were in quota.
        self._given: dict[int, list[tuple[int, Tick]]] = {}
        self.carried: set[int] = set()
        """Jobs that are within quota in place of mates."""
        self.gave_way: set[int] = set()
        """Waiting jobs that may no longer run, because mates start in their place."""

    def carries(self, handle: int, reserved_for: Collection[int]) -> bool:
        """Whether a job starts within quota in place of mates; if so, these give way.

        While GPUs are reserved, a job may only take the place of preempted mates, or of waiting
        ones for which GPUs are reserved.
        """
        ledger, entry = self._ledger, self._ledger.waiting[handle]
        mates = entry.mates
        room = ledger.room(entry.tenant) + self._lent.get(entry.tenant, 0)
        need = entry.gpus - max(0, room)
        borrowed = max(0, min(need, self._leaving.get((mates, True), 0)))
        others = self._waiting.get((mates, True), [])
        if reserved_for and borrowed < need:
            others = [x for x in others if x in reserved_for and ledger.are_rivals(handle, [x])]
        given = _enough(ledger, others, need - borrowed)
        if given is None or (reserved_for and not given and not borrowed):
            return False
        if borrowed:
            self._leaving[mates, True] -= borrowed
            self._lent[entry.tenant] = self._lent.get(entry.tenant, 0) + borrowed
            self._borrowed.append((handle, mates, borrowed))
        self._give_way(mates, within=True, given=given)
        self._given[handle] = [(other, ledger.release(other)) for other in given]
        ledger.carry(handle, self._now)
        self.carried.add(handle)
        return True

    def spares(self, handle: int) -> bool:
        """Whether a job starts above quota in place of mates above quota; if so, these give way."""
        waiting = self._ledger.waiting
        mates, (need, accepts) = waiting[handle].mates, waiting[handle].demand
        borrowed = min(need, self._leaving.get((mates, False), 0))
        others = [x for x in self._waiting.get((mates, False), []) if waiting[x].accepts == accepts]
        given = _enough(self._ledger, others, need - borrowed)
        if given is None:
            return False
        if borrowed:
            self._leaving[mates, False] -= borrowed
        self._give_way(mates, within=False, given=given)
        return True

    def _give_way(self, mates: Mates, *, within: bool, given: Sequence[int]) -> None:
        self.gave_way.update(given)
        for handle in given:
            self._waiting[mates, within].remove(handle)

    def settle(self, decisions: Sequence[Decision], cancelled: Collection[int]) -> None:
        """Undo exchanges whose job does not start, or that used GPUs which a mate keeps."""
        undone = self.carried.intersection(cancelled)
        leaving = _leaving(self._ledger, decisions)
        for handle, mates, gpus in self._borrowed:
            left = leaving.get((mates, True), 0) - gpus
            if handle in self.carried and handle not in undone:
                if left < 0:
                    undone.add(handle)
                else:
                    leaving[mates, True] = left
        for handle in sorted(undone):
            self._ledger.release(handle)
            for mate, since in self._given.pop(handle):
                self._ledger.carry(mate, since)
        self.carried -= undone

    def commit(self) -> None:
        """Make the remaining exchanges final, and hand out the quota that they leave over."""
        for given in self._given.values():
            for mate, since in given:
                self._ledger.gave_way(mate, since, self._now)
        self._ledger.promote(self._now)


def _leaving(ledger: HostLedger, decisions: Sequence[Decision]) -> dict[tuple[Mates, bool], int]:
    """The GPUs that running jobs lose, by mates and whether within quota."""
    leaving: dict[tuple[Mates, bool], int] = {}
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate):
            entry = ledger.running[decision.handle]
            keeps = decision.placement.gpus if isinstance(decision, Migrate) else 0
            key = entry.mates, entry.within
            leaving[key] = leaving.get(key, 0) + max(0, entry.gpus - keeps)
    return leaving


def _enough(ledger: HostLedger, jobs: Sequence[int], need: int) -> list[int] | None:
    """Jobs from the last on, until they want this many GPUs together; None if all want fewer."""
    given = []
    for handle in reversed(jobs):
        if need <= 0:
            break
        given.append(handle)
        need -= ledger.waiting[handle].gpus
    return None if need > 0 else given

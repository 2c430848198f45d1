"""Why hidden jobs wait: what `quota(HOST)` says of jobs that its host does not see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artist.contract import ClusterView, Decision, Hold, JobView, Migrate, Preempt, Wait, WaitCause
from artist.policies.quota.admission import Admission
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.jobs_above import HIDDEN, Alike
from artist.policies.quota.ledger import LAST_CLASS

_BEHIND = "jobs before it waited for more GPUs, and the policy lets none pass"
_ABOVE = "it was above its tenant's quota, so it could take no GPUs from jobs of later classes"


class WaitReasons:
    """What was said of hidden jobs.

    A job waits because it is above quota, if within it, it would take GPUs that are free, or that
    jobs of later classes hold. Where the host lets no job pass the head of the queue, those for
    which enough GPUs are free wait behind others.
    """

    def __init__(self, ledger: HostLedger, admission: Admission, *, in_turn: bool) -> None:
        self._ledger, self._admission, self._in_turn = ledger, admission, in_turn
        self._told: dict[int, str] = {}

    def lapsed(self, entered: Iterable[JobView]) -> list[Decision]:
        """Take back what was said of jobs that the host sees now."""
        admission, waits = self._admission, list[Decision]()
        for job in entered:
            handle = job.handle
            if handle in admission.hidden or self._told.pop(handle, None) is None:
                continue
            if handle in admission.seen:  # else it has started
                waits.append(Wait(handle, ""))
        return waits

    def found(self, view: ClusterView, decisions: Sequence[Decision], free: int) -> list[Decision]:
        """What is to be said of hidden jobs while so many GPUs are free after the answer."""
        hidden = self._ledger.above.groups(HIDDEN)
        if not hidden:
            return []
        waiting = self._ledger.waiting
        later = _gpus_of_later(self._ledger, view, decisions)
        free -= sum(waiting[x].gpus for x in self._admission.declined if waiting[x].gpus <= free)
        said: list[tuple[int, str]] = []
        for mates, sizes in hidden.items():
            within_reach = free + later[mates[1]]
            for gpus, alike in sizes.items():
                if self._in_turn:
                    words = _BEHIND if gpus <= free else _ABOVE if gpus <= within_reach else ""
                    said += [(x, words) for x in self._changed(alike, words)]
                elif alike.fresh and gpus <= within_reach:
                    said += [(x, _ABOVE) for x in alike.fresh if x not in self._told]
                    alike.fresh.clear()
        waits: list[Decision] = []
        for handle, words in sorted(said):
            self._told[handle] = words
            cause: WaitCause = "quota" if words == _ABOVE else "policy"
            waits.append(Wait(handle, words, cause))
        return waits

    def _changed(self, alike: Alike, words: str) -> list[int]:
        """The jobs of which something else was said. What keeps one behind the head changes."""
        asked = alike.fresh if words == alike.words else [handle for _, handle in alike.jobs]
        changed = [x for x in asked if self._told.get(x, "") != words]
        alike.words = words
        alike.fresh.clear()
        return changed


def _gpus_of_later(
    ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
) -> list[int]:
    """By class: GPUs of the running jobs of later classes that may lose them."""
    decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
    held = [0] * (LAST_CLASS + 1)
    for handle, job in view.running.items():
        entry = ledger.running.get(handle)
        if entry is not None and handle not in decided and view.frees(job):
            held[entry.rank] += job.gpus
    return [sum(held[rank + 1 :]) for rank in range(LAST_CLASS + 1)]

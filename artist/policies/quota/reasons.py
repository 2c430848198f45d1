"""Why hidden jobs wait: the reasons that `quota(HOST)` gives for jobs its host does not see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artist.contract import (
    ClusterView,
    Decision,
    Hold,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wait,
    WaitCause,
)
from artist.policies.quota.admission import Admission, set_aside
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.jobs_above import HIDDEN, Alike
from artist.policies.quota.ledger import ABOVE, LAST_CLASS, NO_TENANT, NO_VICTIMS
from artist.policies.quota.preemption import gpus_for
from artist.policies.shared.gpu_counts import GpuCounts

_BEHIND = "jobs before it waited for more GPUs, and the policy lets none pass"
_STUCK = "a job before it was above their tenant's quota, and the policy lets none pass"


class WaitReasons:
    """Finds the reasons of hidden jobs, and remembers those that were told.

    - Quota is the reason if the job could take free GPUs, or those of later classes, if it were
      within quota.
    - If the host lets no job pass the head of its queue, a job for which enough GPUs are free waits
      behind others.
    - Under such a host, a job that the quota has room for waits behind a mate above quota.
    """

    def __init__(self, ledger: HostLedger, admission: Admission, *, in_turn: bool) -> None:
        self._ledger, self._admission, self._in_turn = ledger, admission, in_turn
        self._told: dict[int, str] = {}

    def lapsed(self, entered: Iterable[JobView]) -> list[Decision]:
        """Withdraw the reasons of jobs that the host sees now."""
        admission, waits = self._admission, list[Decision]()
        for job in entered:
            handle = job.handle
            if handle in admission.hidden or self._told.pop(handle, None) is None:
                continue
            if handle in admission.seen:  # else it has started
                waits.append(Wait(handle, ""))
        return waits

    def found(
        self, view: ClusterView, decisions: Sequence[Decision], free: GpuCounts
    ) -> list[Decision]:
        """The reasons of hidden jobs while this many GPUs are free after the answer."""
        hidden = self._ledger.above.groups(HIDDEN)
        if not hidden:
            return []
        waiting = self._ledger.waiting
        left = free.copy()
        for declined in sorted(self._admission.declined):
            set_aside(waiting[declined], left, free)
        later = _GpusOfLater(self._ledger, view, decisions)
        said: list[tuple[int, str]] = []
        for mates, demands in hidden.items():
            for (gpus, accepts), alike in demands.items():
                there = left.left(accepts)
                within_reach = there + later.of(mates[1], accepts)
                above = self._above(mates[0], gpus)
                if self._in_turn:
                    words = _BEHIND if gpus <= there else above if gpus <= within_reach else ""
                    said += [(x, words) for x in self._changed(alike, words)]
                elif alike.fresh and gpus <= within_reach:
                    said += [(x, above) for x in alike.fresh if x not in self._told]
                    alike.fresh.clear()
        waits: list[Decision] = []
        for handle, words in sorted(said):
            self._told[handle] = words
            cause: WaitCause = "policy" if words in (_BEHIND, _STUCK) else "quota"
            waits.append(Wait(handle, words, cause))
        return waits

    def _above(self, tenant: str | None, gpus: int) -> str:
        """Why a waiting job is not within quota. Where mates take turns, one may be the reason."""
        if self._in_turn and gpus <= self._ledger.room(tenant):
            return _STUCK
        return f"{NO_TENANT if tenant is None else ABOVE}, {NO_VICTIMS}"

    def _changed(self, alike: Alike, words: str) -> list[int]:
        """The jobs of a group whose reason has changed."""
        asked = alike.fresh if words == alike.words else [handle for _, handle in alike.jobs]
        changed = [x for x in asked if self._told.get(x, "") != words]
        alike.words = words
        alike.fresh.clear()
        return changed


class _GpusOfLater:
    """The GPUs that jobs of later classes hold after an answer and may lose."""

    def __init__(
        self, ledger: HostLedger, view: ClusterView, decisions: Sequence[Decision]
    ) -> None:
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        self._jobs = [
            (ledger.running[handle].rank, job.placement)
            for handle, job in view.running.items()
            if handle in ledger.running and handle not in decided and view.frees(job)
        ]
        self._jobs += [
            (ledger.running[x.handle].rank, x.placement) for x in decisions if isinstance(x, Start)
        ]
        self._tree = view.cluster
        self._later: dict[tuple[str, ...], list[int]] = {}

    def of(self, rank: int, accepts: tuple[str, ...]) -> int:
        """How many of them a job of this class could get, of the kinds that it accepts."""
        if accepts not in self._later:
            held = [0] * (LAST_CLASS + 1)
            for other, placement in self._jobs:
                assert placement is not None  # it runs
                held[other] += gpus_for(accepts, placement, self._tree)
            self._later[accepts] = [sum(held[x + 1 :]) for x in range(LAST_CLASS + 1)]
        return self._later[accepts][rank]

"""Which jobs may run at their own priority, and in which order waiting jobs come forward.

The global scheduler of MAST (GMS, section 4.2):

    credit = age_weight x min(age, age_cap)                                            (10)
           + fair_weight x (1 - tenant's mean use over the window / all tenants' mean)  (11)

A pass sorts the waiting jobs by credit. In this order each is charged to its tenant's quota, on
top of what the tenant's running jobs hold. The *class* of a job that fits is its own priority: the
job is *within quota*. Any other job has the lowest class, `LAST_CLASS`. Then jobs come forward by
class, then credit, then arrival. "Workloads from a tenant that has not exhausted its quota are
assigned the tenant's priority": so a running job that started above quota gets its own class once
the quota covers it (`Ledger.cover`), in `quota(HOST)` at once, in MAST at a pass.

**Our choices.** A job within quota that has no priority comes after all that have one, and before
jobs above quota; the paper gives both the lowest priority. So quotas matter even if no job has a
priority. A job without a tenant is above quota, if the scenario has tenants. A tenant's use is
divided by its weight; the paper has no weights. A quota by kind of GPUs charges a job to the first
kind that it accepts and that has room; while it is within quota it starts on that kind only. A job
that enters the queue between passes is ranked at once, against what is charged at that time, with
the use of tenants at the last pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from artist.policies.quota.options import QueueOptions
from artist.units import TICKS_PER_S, Tick, seconds, ticks
from artist.workload.job import LOWEST_PRIORITY, Job
from artist.workload.tenants import Tenant


class UsageWindow:
    """GPUs in use over time, as a step function that is kept for the length of the window."""

    __slots__ = ("_gpus", "_length", "_steps")

    def __init__(self, length: Tick) -> None:
        self._length = length
        self._gpus = 0
        # (tick, GPU-ticks used up to it, GPUs in use from it on), by tick.
        self._steps: deque[tuple[Tick, int, int]] = deque([(0, 0, 0)])

    def change(self, now: Tick, gpus: int) -> None:
        """Add to the GPUs in use from now on; a negative number takes away."""
        tick, used, before = self._steps[-1]
        self._gpus += gpus
        if tick == now:
            self._steps[-1] = (tick, used, self._gpus)
        else:
            self._steps.append((now, used + (now - tick) * before, self._gpus))
        self._forget(now)

    def gpu_ticks(self, now: Tick) -> int:
        """GPU-ticks used in the window that ends now; there was no use before the run."""
        self._forget(now)
        tick, used, gpus = self._steps[-1]
        start, used_before, gpus_before = self._steps[0]
        begin = max(now - self._length, start)
        return used + (now - tick) * gpus - (used_before + (begin - start) * gpus_before)

    def _forget(self, now: Tick) -> None:
        steps, begin = self._steps, now - self._length
        while len(steps) > 1 and steps[1][0] <= begin:
            steps.popleft()


NO_PRIORITY = LOWEST_PRIORITY + 1
"""The class of jobs within quota that have no priority."""

LAST_CLASS = NO_PRIORITY + 1
"""The class of jobs above their tenant's quota."""

ABOVE = "it was above its tenant's quota"
NO_TENANT = "it has no tenant and hence no quota"
NO_VICTIMS = "so it could take no GPUs from jobs of later classes"
"""Why a job waits in the last class."""

Mates = tuple[str | None, int]
"""Jobs of one tenant and one priority."""

_TICKS_PER_H = 3600 * TICKS_PER_S


class Waited(NamedTuple):
    """A stretch of time in which a job waited within its quota."""

    tick: Tick
    """When it ended."""
    handle: int
    priority: int
    wait: Tick
    started: bool
    """False: the quota went to other jobs of the tenant, so the job has the lowest class now."""


def class_of(job: Job) -> int:
    """The class of a job within quota."""
    return NO_PRIORITY if job.priority is None else job.priority


class LedgerEntry:
    """A waiting or running job in the ledger."""

    __slots__ = (
        "accepts",
        "asked",
        "credit",
        "entered",
        "gpus",
        "kind",
        "mates",
        "place",
        "priority",
        "rank",
        "tenant",
        "within",
        "within_since",
    )

    def __init__(self, job: Job, entered: Tick, gpus: int) -> None:
        self.tenant = job.tenant
        self.gpus = gpus  # the GPUs that it has, or the fewest with which it would start
        self.asked = max(gpus, job.gpus)
        self.accepts = job.gpu_kinds
        self.kind = ""  # the kind of GPUs to which it is charged, if its tenant's quota is by kind
        self.priority = class_of(job)
        # Its tenant and priority: jobs that share both may exchange their charges.
        self.mates: Mates = (self.tenant, self.priority)
        self.entered = entered
        self.rank = LAST_CLASS
        self.credit = 0.0
        self.within = False
        self.within_since: Tick = 0
        self.place = 0  # what the host of `quota(HOST)` knows of it (`jobs_above.py`)

    @property
    def demand(self) -> tuple[int, tuple[str, ...]]:
        """How many GPUs it wants, and the kinds that it accepts."""
        return self.gpus, self.accepts

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of GPUs on which it may start at its class; empty: all."""
        return (self.kind,) if self.kind and self.within else self.accepts


class Ledger:
    """What every tenant uses, and the class and credit of every waiting job."""

    def __init__(self, tenants: Mapping[str, Tenant], options: QueueOptions) -> None:
        self._quota = {name: tenant.quota for name, tenant in tenants.items()}
        self._by_kind = {
            name: tenant.by_kind for name, tenant in tenants.items() if tenant.by_kind is not None
        }
        self._charged_by_kind: dict[tuple[str | None, str], int] = {}
        self._weight = {name: tenant.weight for name, tenant in tenants.items()}
        self._options = options
        self._cap = ticks(options.age_cap_s)
        self._per_tick = options.age_weight / _TICKS_PER_H
        self._windows: dict[str, UsageWindow] = {}
        self._charged: dict[str | None, int] = {}
        self._length = ticks(options.window_s)
        self._pass = ticks(options.pass_s)
        self._fairness: dict[str | None, float] = {}
        self._fair_at: Tick | None = None
        self.waiting: dict[int, LedgerEntry] = {}
        self.running: dict[int, LedgerEntry] = {}
        self.waited: list[Waited] = []
        # Classes with which jobs got GPUs: (tick, handle, class).
        self.classes: list[tuple[Tick, int, int]] = []
        for name in tenants:
            self._window(name)

    def enter(
        self, handle: int, job: Job, now: Tick, *, gpus: int | None = None, ranked: bool = True
    ) -> LedgerEntry:
        """Add a job to the queue: ranked, or else with the last class until the next pass.

        It wants the GPUs that were submitted, or `gpus`.
        """
        entry = self.waiting[handle] = LedgerEntry(job, now, job.gpus if gpus is None else gpus)
        self._window(entry.tenant)
        if ranked:
            self._charge(entry, handle, now)
        if self._fair_at is None or now - self._fair_at >= self._pass:
            self._fair(now)
        entry.credit = self._fairness.get(entry.tenant, self._options.fair_weight)
        return entry

    @property
    def tells_kinds_apart(self) -> bool:
        """Whether some tenant has a quota by kind of GPUs."""
        return bool(self._by_kind)

    def start(self, handle: int, now: Tick, kind: str = "") -> LedgerEntry:
        """Note that a waiting job gets GPUs. `kind` matters if its tenant has a quota by kind."""
        entry = self.running[handle] = self.waiting.pop(handle)
        self.classes.append((now, handle, entry.rank))
        if entry.within:
            self._note(entry, handle, now, entry.within_since, started=True)
        else:
            entry.kind = kind if entry.tenant in self._by_kind else ""
            self._count(entry, entry.gpus)
        if entry.tenant is not None:
            self._windows[entry.tenant].change(now, entry.gpus)
        return entry

    def stop(self, handle: int, now: Tick) -> LedgerEntry:
        """Note that a running job finishes or loses its GPUs."""
        entry = self.running.pop(handle)
        self._count(entry, -entry.gpus)
        if entry.tenant is not None:
            self._windows[entry.tenant].change(now, -entry.gpus)
        return entry

    def resume(self, handle: int, entry: LedgerEntry, now: Tick) -> None:
        """Note that a job that was stopped at the last question kept its GPUs after all."""
        self.running[handle] = entry
        self._count(entry, entry.gpus)
        if entry.tenant is not None:
            self._windows[entry.tenant].change(now, entry.gpus)

    def cover(self, on_top: Iterable[LedgerEntry] = ()) -> list[int]:
        """Give running jobs above quota their own class if the quota covers them by now.

        They are added in the order of their starts to the tenant's running jobs within quota and
        the waiting jobs `on_top`. Returns the jobs that the quota covers. Any other job that lost
        its GPUs would be above quota again and could not take them back.
        """
        above = {x: entry for x, entry in self.running.items() if not entry.within}
        if not above:
            return []
        covered: dict[tuple[str | None, str], int] = {}
        for entry in (*self.running.values(), *on_top):
            if entry.within:
                key = entry.tenant, entry.kind
                covered[key] = covered.get(key, 0) + entry.gpus
        fit = []
        for handle, entry in above.items():
            key = entry.tenant, entry.kind
            gpus = covered.get(key, 0) + entry.gpus
            if gpus <= self._quota_of(entry):
                covered[key] = gpus
                entry.within, entry.rank = True, entry.priority
                fit.append(handle)
        return fit

    def _quota_of(self, entry: LedgerEntry) -> int:
        """The quota to which a running job is charged."""
        if entry.tenant is None:
            return 0
        if entry.kind:
            return self._by_kind[entry.tenant].get(entry.kind, 0)
        return self._quota[entry.tenant]

    def rank_all(self, now: Tick) -> list[tuple[float, int, LedgerEntry]]:
        """Rerank all waiting jobs: (minus credit, handle, entry) of each, most credit first."""
        fair = self._fair(now)
        per_tick, cap = self._per_tick, self._cap
        ranked = []
        for handle, entry in self.waiting.items():
            age = now - entry.entered
            credit = per_tick * (age if age < cap else cap) + fair[entry.tenant]
            entry.credit = credit
            ranked.append((-credit, handle, entry))
        ranked.sort()  # handles differ, so entries are never compared
        self._charged, self._charged_by_kind = {}, {}
        for entry in self.running.values():
            self._count(entry, entry.gpus)
        self._charge_all(ranked, now)
        return ranked

    def _charge_all(self, ranked: Iterable[tuple[float, int, LedgerEntry]], now: Tick) -> None:
        for _, handle, entry in ranked:
            self._charge(entry, handle, now)

    def _charge(self, entry: LedgerEntry, handle: int, now: Tick) -> None:
        """Put a job within quota if the tenant's quota has room for it, and take that room."""
        by_kind = self._by_kind.get(entry.tenant) if self._by_kind else None  # type: ignore[arg-type]
        if by_kind is not None:
            entry.kind = self._kind_with_room(entry, by_kind)
            fits = bool(entry.kind)
        else:
            fits = self._has_room(entry)
        if fits:
            self._count(entry, entry.gpus)
            if not entry.within:
                entry.within, entry.within_since = True, now
            entry.rank = entry.priority
        else:
            self._turn_down(entry, handle, now)

    def _turn_down(self, entry: LedgerEntry, handle: int, now: Tick) -> None:
        """Mark a job as above quota. The caller undoes its charge."""
        if entry.within:
            self._note(entry, handle, now, entry.within_since, started=False)
        entry.within, entry.rank = False, LAST_CLASS

    def _count(self, entry: LedgerEntry, gpus: int) -> None:
        """Charge GPUs to the tenant of a job, by kind if the job is charged to a kind."""
        if entry.kind:
            key = entry.tenant, entry.kind
            self._charged_by_kind[key] = self._charged_by_kind.get(key, 0) + gpus
        else:
            self._charged[entry.tenant] = self._charged.get(entry.tenant, 0) + gpus

    def _kind_with_room(self, entry: LedgerEntry, quota: Mapping[str, int]) -> str:
        """The first kind that the job accepts and whose quota has room for it; empty if none."""
        for kind in entry.accepts or quota:
            charged = self._charged_by_kind.get((entry.tenant, kind), 0)
            if charged + entry.gpus <= quota.get(kind, 0):
                return kind
        return ""

    def _has_room(self, entry: LedgerEntry) -> bool:
        """Whether its tenant's quota has room for the job; always, if there are no quotas."""
        if not self._quota:
            return True
        tenant = entry.tenant
        quota = 0 if tenant is None else self._quota[tenant]
        return self._charged.get(tenant, 0) + entry.gpus <= quota

    def _note(
        self, entry: LedgerEntry, handle: int, now: Tick, since: Tick, *, started: bool
    ) -> None:
        if self._quota:
            self.waited.append(Waited(now, handle, entry.priority, now - since, started))

    def _fair(self, now: Tick) -> dict[str | None, float]:
        """By tenant, the credit for having used less than others (eq. 11); 0 without a tenant."""
        used = {name: window.gpu_ticks(now) for name, window in self._windows.items()}
        total = sum(used.values())
        weights = 0.0
        for name in used:  # no `sum`: it rounds differently from Python 3.12 on
            weights += self._weight.get(name, 1.0)
        fair: dict[str | None, float] = {None: 0.0}
        for name, gpu_ticks in used.items():
            mean = total * self._weight.get(name, 1.0) / weights
            fair[name] = self._options.fair_weight * (1 - (gpu_ticks / mean if mean else 0.0))
        self._fairness, self._fair_at = fair, now
        return fair

    def _window(self, tenant: str | None) -> None:
        if tenant is not None and tenant not in self._windows:
            self._windows[tenant] = UsageWindow(self._length)


def queue_table(ledger: Ledger, options: QueueOptions) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The tables of a policy with a ledger.

    - `queue`: a row for every wait within quota that ended; none if there are no quotas.
    - `starts_by_class`: a row for every start, for the column `class` of placements.
    """
    late = ticks(options.slo_s)
    rows = [
        {
            "time_s": seconds(row.tick),
            "job": row.handle,
            "priority": row.priority,
            "wait_s": seconds(row.wait),
            "late": row.wait > late,
            "started": row.started,
        }
        for row in ledger.waited
    ]
    classes = [{"tick": at, "job": handle, "class": rank} for at, handle, rank in ledger.classes]
    return {name: rows for name, rows in (("queue", rows), ("starts_by_class", classes)) if rows}


def fewest(jobs: Iterable[tuple[int, int]], lacking: int) -> tuple[int, ...] | None:
    """The jobs to preempt, out of (handle, GPUs) in the order of preemption.

    Of the shortest prefix with enough GPUs, the largest jobs are taken until they suffice; equally
    large ones in the given order. None if all jobs together have too few GPUs.

    >>> fewest([(1, 4), (2, 5), (3, 12)], 10)
    (3,)
    """
    chosen: list[tuple[int, int]] = []
    missing = lacking
    for job in jobs:
        chosen.append(job)
        missing -= job[1]
        if missing <= 0:
            break
    else:
        return None
    victims = []
    for handle, gpus in sorted(chosen, key=lambda x: -x[1]):
        victims.append(handle)
        lacking -= gpus
        if lacking <= 0:
            break
    return tuple(victims)

"""Limits of QOS and associations: how much may run at once.

| limit | set for | counts |
| --- | --- | --- |
| `GrpTRES`, `GrpJobs` | QOS, account, user | what its jobs hold, and those of accounts below it |
| `GrpTRESRunMins` | the same | what they hold x minutes to their limits |
| `MaxTRESPU`, `MaxJobsPU` | QOS | what each user's jobs hold |
| `MaxTRESPA`, `MaxJobsPA` | QOS | what each account's jobs hold |
| `MaxJobs` | user; account, for each user without one | the user's jobs in the account |

They apply if AccountingStorageEnforce names `limits` or `safe`. A job that would exceed one waits
and lets the jobs behind it pass. Source: acct_policy.c of Slurm 22.05, and trials with it:

- A limit of a QOS replaces that of accounts and users on the same resource; `MaxJobsPU` and
  `MaxJobsPA` replace `MaxJobs`. The QOS of a partition comes before the job's own.
- A machine counts once, however many jobs of a group run on it.
- `gres/gpu:KIND` counts all GPUs of the kind, but only jobs that ask for the kind wait for it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property

from artist.errors import ConfigError, TraceError, shortened
from artist.io.reading import as_float
from artist.policies.slurm.machines import Machines
from artist.policies.slurm.request import Request
from artist.policies.slurm.running import Running, RunningJob
from artist.policies.slurm.settings import OF_A_KIND, is_counted
from artist.slurm.facts import ASSOC_LIMITS, QOS_LIMITS, UNLIMITED, SlurmFacts

_RUN_MINUTES = "run minutes of "
_QOS, _OF_USERS, _OF_ACCOUNTS = "QOS", "each user of QOS", "each account of QOS"

Group = tuple[str, ...]
"""Whose limits they are, then whose use counts: a user, an account, or an empty text for all."""
Amounts = Mapping[str, float]
"""How much of each resource."""


class Limits:
    """All limits of a cluster, and what the running jobs of each group hold."""

    def __init__(
        self,
        facts: SlurmFacts,
        machines: Machines,
        running: Running,
        billed: Callable[[Request], float],
        *,
        enforced: bool,
    ) -> None:
        self._machines, self._running, self._billed = machines, running, billed
        self._limits: dict[Group, Amounts] = {}
        self._most_jobs: dict[Group, float] = {}
        self._parents = {x.name: x.parent or "root" for x in facts.accounts}
        self._held = defaultdict[Group, _Held](_Held)
        self._counted: dict[int, tuple[Group, ...]] = {}
        self._asks: dict[tuple[int, str], dict[str, float]] = {}
        self._of: dict[Group, tuple[tuple[Group, ...], tuple[tuple[Group, Amounts], ...]]] = {}
        if not enforced:
            return
        for qos in facts.qos:
            limits = {name: qos.limits[name] for name in QOS_LIMITS if name in qos.limits}
            self._add((_QOS, qos.name), limits, "Grp")
            self._add((_OF_USERS, qos.name), limits, "Max", "PU")
            self._add((_OF_ACCOUNTS, qos.name), limits, "Max", "PA")
        for account in facts.accounts:
            own = dict[Group, Mapping[str, str]]({("account", account.name): account.limits})
            own |= {("user", account.name, x): y for x, y in account.user_limits.items()}
            for whose, texts in own.items():
                limits = {name: texts[name] for name in ASSOC_LIMITS if name in texts}
                self._add(whose, limits, "Grp")
                if most := limits.get("MaxJobs"):
                    self._most_jobs[whose] = _amount(whose, "MaxJobs", most)

    def _add(self, whose: Group, limits: Mapping[str, str], begin: str, end: str = "") -> None:
        """Add the limits whose names begin and end like this, such as `Max` and `PU`."""
        found: dict[str, float] = {}
        for name, prefix in ((f"{begin}TRES{end}", ""), (f"{begin}TRESRunMins", _RUN_MINUTES)):
            for part in filter(None, limits.get(name, "").split(",")):
                resource, _, text = part.partition("=")
                if is_counted(resource):
                    found[prefix + resource.lower()] = _amount(whose, name, text)
        if jobs := limits.get(f"{begin}Jobs{end}"):
            found["jobs"] = _amount(whose, f"{begin}Jobs{end}", jobs)
        if found:
            self._limits[whose] = found

    @cached_property
    def fall(self) -> bool:
        """Whether usage falls while jobs run (run minutes), so that jobs may start any time."""
        return self._limit(_RUN_MINUTES)

    @cached_property
    def count_machines(self) -> bool:
        """Whether it matters on which machines a job would start."""
        return self._limit("node")

    def _limit(self, resource: str) -> bool:
        return any(name.startswith(resource) for x in self._limits.values() for name in x)

    def check_alone(self, request: Request) -> None:
        """Refuse a job that exceeds a limit on its own, since it would wait for ever.

        Raises:
            TraceError: it exceeds a limit.
        """
        if not self._limits and not self._most_jobs:
            return
        asked = self._asked(request)
        minutes = {f"{_RUN_MINUTES}{x}": n * request.limit_s / 60 for x, n in asked.items()}
        held = {**asked, **minutes}
        for group, limits in self._of_request(request)[1]:
            for resource, limit in limits.items():
                if held.get(resource, 0.0) > limit:
                    raise TraceError(
                        f"job {shortened(request.job.id)} could never start: it takes "
                        f"{held[resource]:g} {resource}, and {_words(group)} may hold {limit:g}; "
                        "raise the limit or leave the job out"
                    )

    def permits(self, request: Request, now_s: int, chosen: int | None) -> bool:
        """Whether a job may start beside the running jobs.

        `chosen` are the machines that it would get; None if they are not free, or do not matter.
        """
        if not self._limits and not self._most_jobs:
            self._running.touched.clear()
            return True
        self._count()
        asked = self._asked(request)
        for group, limits in self._of_request(request)[1]:
            if not self._held[group].leave_room(limits, asked, request.limit_s, now_s, chosen):
                return False
        return True

    # -- who counts where --------------------------------------------------------------

    def _of_request(
        self, request: Request
    ) -> tuple[tuple[Group, ...], tuple[tuple[Group, Amounts], ...]]:
        """The groups that a job counts towards, and those that limit it, with their limits."""
        account, user = request.association
        own, of_partition = request.qos, request.partition.qos
        key = (account, user, "" if own is None else own.name, of_partition)
        found = self._of.get(key)
        if found is None:
            names = dict.fromkeys(filter(None, (key[3], key[2])))
            limiting, replaced = self._of_qos(names, account, user)
            groups: list[Group] = [
                (kind, name, whose)
                for name in names
                for kind, whose in ((_QOS, ""), (_OF_USERS, user), (_OF_ACCOUNTS, account))
            ]
            line = self._line(account)
            for whose in (("user", account, user), *(("account", x) for x in line)):
                groups.append((*whose, ""))
                limits = self._limits.get(whose, {})
                left = {x: y for x, y in limits.items() if (_QOS, x) not in replaced}
                limiting.append((groups[-1], left))
            if not {(_OF_USERS, "jobs"), (_OF_ACCOUNTS, "jobs")} & replaced:
                most = (("user", account, user), *(("account", x) for x in line))
                jobs = next((self._most_jobs[x] for x in most if x in self._most_jobs), math.inf)
                limiting.append((("user", account, user, ""), {"jobs": jobs}))
            found = self._of[key] = tuple(groups), tuple(x for x in limiting if x[1])
        return found

    def _of_qos(
        self, names: Mapping[str, None], account: str, user: str
    ) -> tuple[list[tuple[Group, Amounts]], set[tuple[str, str]]]:
        """The limits of QOS, the first first, and which limits they replace elsewhere."""
        limiting, replaced = list[tuple[Group, Amounts]](), set[tuple[str, str]]()
        for name in names:
            for kind, whose in ((_QOS, ""), (_OF_USERS, user), (_OF_ACCOUNTS, account)):
                limits = self._limits.get((kind, name), {})
                left = {x: y for x, y in limits.items() if (kind, x) not in replaced}
                limiting.append(((kind, name, whose), left))
                replaced |= {(kind, x) for x in left}
        return limiting, replaced

    def _line(self, account: str) -> list[str]:
        """An account and those above it."""
        line = [account]
        while line[-1] in self._parents and line[-1] != "root" and len(line) < 100:
            line.append(self._parents[line[-1]])  # accounts may be above each other
        return line

    # -- what they hold ----------------------------------------------------------------

    def _asked(self, request: Request) -> Amounts:
        """What a job asks for in its partition."""
        key = request.handle, request.partition.name
        amounts = self._asks.get(key)
        if amounts is None:
            kinds = request.job.gpu_kinds
            amounts = self._asks[key] = self._amounts(request)
            if len(kinds) == 1:
                amounts[OF_A_KIND + kinds[0].lower()] = request.job.gpus
        return amounts

    def _amounts(self, request: Request) -> dict[str, float]:
        return {
            "jobs": 1,
            "cpu": request.nodes * request.cpus,
            "gres/gpu": request.job.gpus,
            "node": request.nodes,
            "billing": int(self._billed(request)),
        }

    def _count(self) -> None:
        """Count the jobs that started since the last call, and no longer those that left."""
        for handle in self._running.touched:
            for group in self._counted.pop(handle, ()):
                self._held[group].remove(handle)
            job = self._running.of.get(handle)
            if job is not None:
                request = self._running.requests[handle]
                amounts = self._amounts(request)
                for index, gpus, _ in job.held:
                    kind = OF_A_KIND + self._machines.kind(index).lower()
                    amounts[kind] = amounts.get(kind, 0) + gpus
                self._counted[handle] = groups = self._of_request(request)[0]
                for group in groups:
                    self._held[group].add(job, amounts)
        self._running.touched.clear()


class _Held:
    """What the running jobs of a group hold."""

    def __init__(self) -> None:
        self._jobs: dict[int, tuple[RunningJob, Amounts]] = {}
        self._amounts = Counter[str]()

    def add(self, job: RunningJob, amounts: Amounts) -> None:
        """Count a job."""
        self._jobs[job.handle] = job, amounts
        self._amounts.update(amounts)

    def remove(self, handle: int) -> None:
        """Count a job no longer."""
        _, amounts = self._jobs.pop(handle)
        self._amounts.subtract(amounts)

    def leave_room(
        self, limits: Amounts, asked: Amounts, limit_s: int, now_s: int, chosen: int | None
    ) -> bool:
        """Whether the group stays within limits if a job starts that asks for these amounts."""
        for name, limit in limits.items():
            resource = name.removeprefix(_RUN_MINUTES)
            more = asked.get(resource, 0.0)
            if not more:
                continue
            if resource != name:
                held = self._left_minutes(resource, now_s)
                more *= limit_s / 60
            elif name == "node":
                if chosen is None:
                    continue
                there = self._machines()
                held, more = there.bit_count(), (chosen & ~there).bit_count()
            else:
                held = self._amounts[name]
            if held + more > limit:
                return False
        return True

    def _left_minutes(self, resource: str, now_s: int) -> float:
        return math.fsum(
            amounts.get(resource, 0.0) * max(0, job.end_s - now_s) / 60
            for job, amounts in self._jobs.values()
        )

    def _machines(self) -> int:
        machines = 0
        for job, _ in self._jobs.values():
            machines |= job.machines
        return machines


def _words(whose: Group) -> str:
    kind, name, *users = whose
    return f"user {users[0]} of account {name}" if kind == "user" else f"{kind} {name}"


def _amount(whose: Group, name: str, text: str) -> float:
    if text == UNLIMITED:
        return math.inf
    amount = as_float(text)
    if not 0 <= amount < 1e15:
        raise ConfigError(
            f"limits of {_words(whose)}: {name} is {shortened(text)}, expected numbers as in "
            "gres/gpu=16"
        )
    return amount

"""Limits of QOS and associations: how much may run at once.

| limit | set for | counts |
| --- | --- | --- |
| `GrpTRES`, `GrpJobs` | QOS, account, user | what its jobs hold, and those of accounts below it |
| `GrpTRESRunMins` | the same | what they hold x minutes to their limits |
| `MaxTRESPU`, `MaxJobsPU` | QOS | what each user's jobs hold |
| `MaxTRESPA`, `MaxJobsPA` | QOS | what each account's jobs hold |
| `MaxJobs` | user | its jobs |

They apply if AccountingStorageEnforce names `limits` or `safe`. A job that would exceed one waits
and lets the jobs behind it pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from artist.errors import ConfigError, TraceError, shortened
from artist.io.reading import as_float
from artist.policies.slurm.request import Request
from artist.policies.slurm.running import RunningJob
from artist.policies.slurm.settings import RESOURCES
from artist.slurm.facts import ASSOC_LIMITS, QOS_LIMITS, SlurmFacts

_RUN_MINUTES = "run minutes of "


class Limits:
    """All limits of a cluster."""

    def __init__(self, facts: SlurmFacts, *, enforced: bool) -> None:
        # By whom they limit ("qos", NAME ...): resource -> the most of it.
        self._limits: dict[tuple[str, ...], dict[str, float]] = {}
        self._parents = {x.name: x.parent or "root" for x in facts.accounts}
        if not enforced:
            return
        for qos in facts.qos:
            limits = _modelled(qos.limits, QOS_LIMITS)
            self._add(("qos", qos.name), limits, "Grp")
            self._add(("qos of a user", qos.name), limits, "Max", "PU")
            self._add(("qos of an account", qos.name), limits, "Max", "PA")
        for account in facts.accounts:
            self._add(("account", account.name), account.limits, "Grp")
            for user, own in account.user_limits.items():
                limits = _modelled(own, ASSOC_LIMITS)
                self._add(("user", account.name, user), limits, "Grp")
                self._add(("user", account.name, user), limits, "Max")

    def _add(
        self, whose: tuple[str, ...], limits: Mapping[str, str], begin: str, end: str = ""
    ) -> None:
        """Add the limits whose names begin and end like this, such as `Max` and `PU`."""
        found = self._limits.setdefault(whose, {})
        for name, prefix in ((f"{begin}TRES{end}", ""), (f"{begin}TRESRunMins", _RUN_MINUTES)):
            for part in filter(None, limits.get(name, "").split(",")):
                resource, _, text = part.partition("=")
                if resource.lower() in RESOURCES:
                    found[prefix + resource.lower()] = _amount(whose, name, text)
        if jobs := limits.get(f"{begin}Jobs{end}"):
            found["jobs"] = _amount(whose, f"{begin}Jobs{end}", jobs)
        if not found:
            del self._limits[whose]

    @property
    def fall(self) -> bool:
        """Whether usage falls while jobs run (run minutes), so that jobs may start any time."""
        return any(
            name.startswith(_RUN_MINUTES) for limits in self._limits.values() for name in limits
        )

    def check_alone(self, request: Request) -> None:
        """Refuse a job that exceeds a limit on its own, since it would wait forever.

        Raises:
            TraceError: it exceeds a limit.
        """
        if not self._limits:
            return
        held = _held(request, request.limit_s)
        for group in self._groups(request):
            for resource, limit in self._limits.get(group[:-1], {}).items():
                if held.get(resource, 0.0) > limit:
                    raise TraceError(
                        f"job {shortened(request.job.id)} could never start: it takes "
                        f"{held[resource]:g} {resource}, and {' '.join(group[:-1])} may hold "
                        f"{limit:g}; raise the limit or leave the job out"
                    )

    def permits(
        self,
        request: Request,
        running: Iterable[RunningJob],
        requests: Mapping[int, Request],
        now_s: int,
    ) -> bool:
        """Whether a job may start in addition to the running jobs."""
        if not self._limits:
            return True
        whose = [group for group in self._groups(request) if group[:-1] in self._limits]
        if not whose:
            return True
        used: dict[tuple[str, ...], dict[str, float]] = {
            group: _held(request, request.limit_s) for group in whose
        }
        for job in running:
            other = requests[job.handle]
            held = _held(other, max(0, job.end_s - now_s))
            for group in set(whose) & set(self._groups(other)):
                for resource, amount in held.items():
                    used[group][resource] += amount
        return all(
            used[group].get(resource, 0.0) <= limit
            for group in whose
            for resource, limit in self._limits[group[:-1]].items()
        )

    def _groups(self, request: Request) -> list[tuple[str, ...]]:
        """The groups that a job counts towards.

        A group is the owner of the limits, followed by whose use they count: for a limit per user
        or per account that name, else an empty text.
        """
        account, user = request.association
        groups: list[tuple[str, ...]] = [("user", account, user, "")]
        at: str | None = account
        while at is not None and len(groups) < 100:  # accounts may be above each other
            groups.append(("account", at, ""))
            at = self._parents.get(at) if at != "root" else None
        if request.qos is not None:
            name = request.qos.name
            groups += [
                ("qos", name, ""),
                ("qos of a user", name, user),
                ("qos of an account", name, account),
            ]
        return groups


def _modelled(limits: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The limits with these names. Others, such as MaxTRES of each job, mean something else."""
    return {name: limits[name] for name in names if name in limits}


def _held(request: Request, left_s: int) -> dict[str, float]:
    """The resources that a job holds, and the same times the minutes that it has left."""
    amounts = request.nodes * request.cpus, request.job.gpus, request.nodes
    held = dict(zip(RESOURCES, map(float, amounts), strict=True))
    minutes = {f"{_RUN_MINUTES}{name}": amount * left_s / 60 for name, amount in held.items()}
    return {**held, **minutes, "jobs": 1.0}


def _amount(whose: tuple[str, ...], name: str, text: str) -> float:
    amount = as_float(text)
    if not 0 <= amount < 1e15:
        raise ConfigError(
            f"limits of {' '.join(whose)}: {name} is {shortened(text)}, expected numbers as in "
            "gres/gpu=16"
        )
    return amount

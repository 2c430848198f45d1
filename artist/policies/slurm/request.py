"""What a job asks of Slurm: partition, account, QOS, machines, GPUs and CPUs, a time limit.

It is read from columns of a trace. `artist trace convert --from sacct` writes them all:

| column | |
| --- | --- |
| `hint_partition` | its name, or several, each of which is tried; the default one if not given |
| `hint_qos` | its name; none if not given |
| `hint_time_limit_s` | the time limit; that of the partition if not given |
| `hint_nodes` | machines, all with as many GPUs; one if not given, or those that have the GPUs |
| | 0: any number with any GPUs, if no single machine has enough free (`--gpus`) |
| `hint_cpus` | CPUs in all; one on each machine if not given |
| `hint_tasks_per_node` | `--ntasks-per-node` |
| `hint_job_number` | Slurm's number of the job, of an array the same for all tasks |
| `hint_tasks_at_once` | how many tasks of its array may run at once (`--array=0-99%4`) |
| `hint_nice`, `hint_dependency` | `--nice`, `--dependency` |
| `hint_requeue` | 1: `--requeue`; 0: `--no-requeue`, `salloc`, `srun`; else JobRequeue decides |

The account is the column `tenant`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from artist.contract import JobView
from artist.errors import TraceError, did_you_mean, shortened
from artist.io.reading import as_float
from artist.policies.slurm.machines import Machines, PartitionMachines
from artist.slurm.facts import Qos
from artist.units import MAX_TIME_S, TICKS_PER_S, counted
from artist.workload.job import Job

YEAR_S = 365 * 86400
"""How long Slurm expects a job without any limit to run."""

MOST_CPUS = 10**9
MOST_NUMBER = 2**32
"""Upper bound of a job's number. In a federation its upper bits are the cluster's."""


@dataclass(slots=True)
class Request:
    """A job as Slurm sees it. `priority` changes, everything else stays."""

    handle: int
    job: Job
    number: tuple[int, int]
    """Slurm's number, then the handle, which orders the tasks of an array."""
    partition: PartitionMachines
    qos: Qos | None
    association: tuple[str, str]
    """Account and user."""
    nodes: int
    gpus: int
    """On each machine."""
    spread: bool
    """Whether the GPUs may lie on several machines (`--gpus`); `nodes` and `gpus` are minimums."""
    most_nodes: int | None
    """If the GPUs may lie on several machines: on how many (MaxNodes); None: on any number."""
    cpus: int
    """On each machine."""
    most_cpus: int
    """How many CPUs of a machine the job can use; bounded by --ntasks-per-node."""
    limit_s: int
    nice: int
    tasks_at_once: int
    """How many tasks of its array may run at once; 0: all."""
    after: tuple[tuple[str, int], ...]
    """Dependencies: kind, and Slurm's number of the other job."""
    eligible_s: int
    requeues: bool | None = None
    """Whether it is requeued when preempted, instead of cancelled; None: as JobRequeue says."""
    priority: float = 0
    in_partitions: tuple[Request, ...] = field(default=(), repr=False, compare=False)
    """The same job in each of several partitions; empty if it asks for one."""

    @property
    def everywhere(self) -> tuple[Request, ...]:
        """The job in each of its partitions. Slurm's queue has it once for each."""
        return self.in_partitions or (self,)

    def wait_until(self, eligible_s: int) -> None:
        """Make the job eligible only from a time on, in all of its partitions."""
        for one in self.everywhere:
            one.eligible_s = eligible_s


class RequestReader:
    """Reads requests from jobs of a trace, for a cluster."""

    def __init__(
        self, machines: Machines, qos: Mapping[str, Qos], *, ignores: bool = False
    ) -> None:
        """With `ignores`, dependencies that are not modelled are ignored instead of refused."""
        self._machines, self._qos, self._ignores = machines, qos, ignores

    def request(self, view: JobView) -> Request:
        """What a job asks for, in the first partition that can hold it.

        Raises:
            TraceError: a column has a bad value, or no partition can hold the job.
        """
        names = str(view.job.hints.get("hint_partition") or self._machines.default).split(",")
        found, refused = list[Request](), list[TraceError]()
        for name in dict.fromkeys(names):
            try:
                found.append(self._request(view, name))
            except TraceError as cause:
                refused.append(cause)
        if not found:
            raise refused[0]
        if len(found) > 1:
            # Slurm starts no job in a partition whose MaxTime is below the job's limit, or whose
            # MaxNodes is below its machines.
            found = [x for x in found if x.limit_s == _own_limit_s(x)] or found
            found = [x for x in found if x.nodes <= _most_nodes(x)] or found
        if len(found) > 1:
            for one in found:
                one.in_partitions = tuple(found)
        return found[0]

    def _request(self, view: JobView, name: str) -> Request:
        """What a job asks for in the partition with this name."""
        job = view.job
        partition = self._partition(job, name)
        of = f"partition {partition.name}"
        if job.gpu_kinds:
            of += f" with {' or '.join(job.gpu_kinds)}"
        nodes = _count(job, "hint_nodes", 0)
        any_number = str(job.hints.get("hint_nodes", "")) == "0"
        any_number = any_number and partition.max_nodes != 1
        spread = not nodes and (any_number or job.gpus > partition.largest)
        nodes = nodes or -(-job.gpus // partition.largest)
        gpus = 1 if spread else -(-job.gpus // nodes)
        if not spread and (job.gpus % nodes or self._machines.suiting(partition, gpus) < nodes):
            raise TraceError(
                f"job {shortened(job.id)}: {job.gpus} GPUs on {nodes} machines, but Slurm "
                f"gives a job the same number on each, and {of} has "
                f"{counted(self._machines.suiting(partition, gpus), 'machine')} of "
                f"{counted(gpus, 'GPU')}; correct gpus or hint_nodes"
            )
        if partition.gpus < job.gpus:
            raise TraceError(
                f"job {shortened(job.id)}: {job.gpus} GPUs, but {of} has "
                f"{partition.gpus}; correct gpus or hint_partition"
            )
        most_nodes = partition.max_nodes
        if not spread or self._machines.most_gpus(partition) < job.gpus:
            most_nodes = None  # it ran, so somebody allowed it
        after, others = dependencies(job)
        if others and not self._ignores:
            raise _bad(
                job,
                "hint_dependency",
                "afterok:7 or afterany, afternotok, after; policy.not_modelled=ignore drops others",
            )
        tasks_at_once = _count(job, "hint_tasks_at_once", 0)
        if tasks_at_once and not job.hints.get("hint_job_number"):
            raise _bad(job, "hint_tasks_at_once", "hint_job_number of the array beside it")
        cpus = max(1, -(-_count(job, "hint_cpus", nodes) // nodes))
        tasks = _count(job, "hint_tasks_per_node", 0)
        number = _count(job, "hint_job_number", view.handle, MOST_NUMBER)
        return Request(
            handle=view.handle,
            job=job,
            number=(number, view.handle),
            partition=partition,
            qos=self._qos_of(job),
            association=(job.tenant or "", job.user),
            nodes=nodes,
            gpus=gpus,
            spread=spread,
            most_nodes=most_nodes,
            cpus=cpus,
            most_cpus=cpus if tasks else MOST_CPUS,
            limit_s=limit_s(job, partition.max_time_s),
            nice=_whole(job, "hint_nice"),
            tasks_at_once=tasks_at_once,
            after=after,
            eligible_s=view.entered // TICKS_PER_S,
            requeues=_yes_or_no(job, "hint_requeue"),
        )

    def _partition(self, job: Job, name: str) -> PartitionMachines:
        """The machines of a partition that have GPUs of the kinds that a job accepts."""
        partitions = self._machines.partitions
        if name not in partitions and not any(partitions):
            raise TraceError(
                f"job {shortened(job.id)}: hint_partition is {shortened(name)}, and the cluster "
                "has no partitions at all; print them with scontrol show partitions"
            )
        if name not in partitions:
            raise TraceError(
                f"job {shortened(job.id)}: hint_partition is {shortened(name)}, which the "
                f"cluster lacks ({did_you_mean(name, list(partitions))})"
            )
        part = self._machines.part_of(partitions[name], job.gpu_kinds)
        if part is None:
            raise TraceError(
                f"job {shortened(job.id)} accepts {' or '.join(job.gpu_kinds)}, and partition "
                f"{shortened(name)} has no such GPUs; correct gpu_kinds or hint_partition"
            )
        return part

    def _qos_of(self, job: Job) -> Qos | None:
        name = str(job.hints.get("hint_qos") or "")
        if not name or not self._qos:
            return None
        if name not in self._qos:
            raise TraceError(
                f"job {shortened(job.id)}: hint_qos is {shortened(name)}, which the cluster lacks "
                f"({did_you_mean(name, list(self._qos))})"
            )
        return self._qos[name]


def limit_s(job: Job, most_s: float | None) -> int:
    """The time limit in seconds, rounded up to minutes as in Slurm, at most the partition's.

    Raises:
        TraceError: the column holds something other than seconds.
    """
    limits = [YEAR_S if most_s is None else int(most_s)]
    if job.hints.get("hint_time_limit_s") not in (None, ""):
        own_s = as_float(str(job.hints["hint_time_limit_s"]))
        if not 0 < own_s <= MAX_TIME_S:
            raise _bad(job, "hint_time_limit_s", "seconds above 0")
        limits.append(-(-int(own_s) // 60) * 60 or 60)
    return min(limits)


def _most_nodes(request: Request) -> float:
    most = request.partition.max_nodes
    return math.inf if most is None else most


def _own_limit_s(request: Request) -> int:
    """The job's own time limit, before its partition cuts it; if it has none, the one it got."""
    own = request.job.hints.get("hint_time_limit_s")
    return request.limit_s if own in (None, "") else limit_s(request.job, None)


_DEPENDENCY = re.compile(r"(afterok|afterany|afternotok|after):(\d+)")


def dependencies(job: Job) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """The dependencies (kind, number) that must all hold, and those that are not modelled."""
    text = str(job.hints.get("hint_dependency") or "")
    if "?" in text:  # any one of them is enough, which is not modelled
        return (), (text,)
    found, others = list[tuple[str, int]](), list[str]()
    for part in filter(None, text.split(",")):
        kind, *numbers = part.split(":")
        for number in numbers or ("",):
            if _DEPENDENCY.fullmatch(f"{kind}:{number}"):
                found.append((kind, int(number)))
            else:
                others.append(part)
    return tuple(found), tuple(others)


def _count(job: Job, name: str, default: int, most: int = MOST_CPUS) -> int:
    value = job.hints.get(name)
    if value in (None, ""):
        return default
    number = as_float(str(value))
    if not 0 <= number <= most or number != int(number):
        raise _bad(job, name, "a whole number")
    return int(number)


def _whole(job: Job, name: str) -> int:
    value = job.hints.get(name)
    if value in (None, ""):
        return 0
    number = as_float(str(value))
    if not abs(number) <= 2**31 or number != int(number):
        raise _bad(job, name, "a whole number")
    return int(number)


def _yes_or_no(job: Job, name: str) -> bool | None:
    value = job.hints.get(name)
    if value in (None, ""):
        return None
    number = as_float(str(value))
    if number not in (0.0, 1.0):
        raise _bad(job, name, "1 or 0")
    return number == 1.0


def _bad(job: Job, name: str, expected: str) -> TraceError:
    return TraceError(
        f"job {shortened(job.id)}: {name} is {shortened(job.hints.get(name))}, expected {expected}"
    )

"""A job that a user may submit, checked against the cluster: Slurm would refuse it at once."""

from __future__ import annotations

import math
from dataclasses import replace

from artist.errors import ConfigError, did_you_mean, shortened
from artist.experiments.recorded.cluster_changes import units
from artist.experiments.recorded.futures import Asked
from artist.experiments.recorded.recording import Recording
from artist.results.terms.number_text import time_text
from artist.slurm.facts import Partition, SlurmFacts
from artist.units import counted


def checked_job(asked: Asked, recording: Recording) -> Asked:
    """The job, with its kind of GPUs as the cluster spells it.

    Raises:
        ConfigError: the cluster lacks its account, partition or kind, or no partition allows its
            limit or its machines.
    """
    if asked.account:
        _check_account(asked.account, recording)
    _check_partitions(asked, recording)
    if asked.limit_s is not None:
        _check_limit(asked, asked.limit_s, recording)
    _check_nodes(asked, recording)
    return _of_known_kind(asked, recording)


def _check_account(account: str, recording: Recording) -> None:
    """Refuse an account that neither the cluster nor the log knows."""
    known = {str(one["name"]) for one in recording.document["slurm"]["accounts"]}
    known |= {job.tenant for job in recording.trace.jobs if job.tenant is not None}
    if known and account not in known:
        raise ConfigError(f"--account {shortened(account)}: {did_you_mean(account, sorted(known))}")


def _check_partitions(asked: Asked, recording: Recording) -> None:
    """Refuse a partition that the cluster lacks, even if another one would do."""
    known = [one["name"] for one in recording.document["slurm"]["partitions"]]
    for name in filter(None, dict(asked.hints).get("hint_partition", "").split(",")):
        if known and name not in known:
            raise ConfigError(f"--partition {shortened(name)}: {did_you_mean(name, known)}")


def _of_known_kind(asked: Asked, recording: Recording) -> Asked:
    """The job with its kind of GPUs as the cluster spells it; an unknown kind is refused."""
    machines = units(recording.document, "machine")
    known = {str(x["kind"]).lower(): str(x["kind"]) for x in machines if "kind" in x}
    if not asked.gpu_kind:
        return asked
    if (kind := asked.gpu_kind.lower()) not in known:
        told = did_you_mean(kind, sorted(known.values())) if known else "no machine has a kind"
        raise ConfigError(f"--gpu-kind {shortened(asked.gpu_kind)}: {told}")
    return replace(asked, gpu_kind=known[kind])


def _check_limit(asked: Asked, limit_s: float, recording: Recording) -> None:
    """Refuse a limit above that of every partition of the job: Slurm would never start it."""
    longest = {x.name: x.max_time_s or math.inf for x in _partitions(asked, recording)}
    if longest and limit_s > max(longest.values()):
        at_most = time_text(max(longest.values()))
        raise ConfigError(
            f"--limit is {time_text(limit_s)}, but partition {' or '.join(longest)} lets jobs run "
            f"for {at_most} at most"
        )


def _check_nodes(asked: Asked, recording: Recording) -> None:
    """Refuse more machines than every partition of the job allows: Slurm would never start it."""
    largest = max(machine["gpus"] for machine in units(recording.document, "machine"))
    nodes = int(dict(asked.hints).get("hint_nodes", -(-asked.gpus // largest)))
    most = {x.name: x.max_nodes or math.inf for x in _partitions(asked, recording)}
    if most and nodes > max(most.values()):
        raise ConfigError(
            f"--gpus {asked.gpus} on {counted(nodes, 'machine')}, but partition "
            f"{' or '.join(most)} allows {max(most.values())} (MaxNodes); ask for fewer"
        )


def _partitions(asked: Asked, recording: Recording) -> list[Partition]:
    """The partitions of the job that have GPUs."""
    slurm = SlurmFacts(**recording.document["slurm"])
    names = (dict(asked.hints).get("hint_partition") or slurm.default_partition).split(",")
    return [x for name, x in slurm.gpu_partitions.items() if name in names]

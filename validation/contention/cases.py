"""Cases of jobs that share links, and what another simulator answered.

A case is a line of JSON: machines in racks, each with a NIC, each rack with an uplink to a core
that blocks nobody; and jobs. A job computes, then sends around a ring of its machines. An uplink
has one or several `links`; link k leads to switch k of the core, so what takes link k up takes
link k down. Rates are payload bits per second, and capacities are those of each direction.

Answers are CSV with the columns case, job and slowdown (mean iteration over that of the same job
alone), perhaps p99_slowdown, and any others.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from artist.errors import TraceError
from artist.io.documents import Document, NonNegative, Positive, validate
from artist.io.reading import decode, read_bytes
from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink

BITS = 8


class CaseJob(Document):
    """A job: `down_s` of computation, then `volume_bytes` from each machine to the next."""

    id: int
    machines: tuple[int, ...] = Field(min_length=2)
    down_s: NonNegative
    volume_bytes: Positive
    rate_cap_bps: Positive
    offset_s: NonNegative
    jitter: NonNegative = 0.0
    noise: tuple[NonNegative, ...] = ()
    links: tuple[int, ...] = ()
    """The link that each of its flows takes out of a rack, in the order of the ring."""


class Case(Document):
    """A cluster, and jobs on it. Iterations from `warmup` on count."""

    id: str
    family: str = "?"
    racks: tuple[int, ...]
    nic_bps: tuple[Positive, ...]
    uplink_bps: tuple[Positive, ...]
    links: int = Field(default=1, ge=1)
    """Links of each uplink. Each carries `uplink_bps`."""
    jobs: tuple[CaseJob, ...] = Field(min_length=1)
    warmup: int = Field(ge=0)
    min_iterations: int = Field(ge=1)
    tags: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _everything_exists(self) -> Case:
        if len(self.nic_bps) != len(self.racks):
            raise ValueError(f"{len(self.nic_bps)} NICs for {len(self.racks)} machines")
        if any(not 0 <= rack < len(self.uplink_bps) for rack in self.racks):
            raise ValueError(f"racks {self.racks}: expected 0 to {len(self.uplink_bps) - 1}")
        for job in self.jobs:
            if any(not 0 <= machine < len(self.racks) for machine in job.machines):
                raise ValueError(f"job {job.id}: machines {job.machines} of {len(self.racks)}")
            flows = len(job.machines) if self.links > 1 else 0
            if len(job.links) != flows:
                raise ValueError(f"job {job.id}: {len(job.links)} links, expected {flows}")
            if any(not 0 <= link < self.links for link in job.links):
                raise ValueError(f"job {job.id}: links {job.links} of {self.links}")
        if self.warmup >= self.min_iterations:
            raise ValueError("warmup: no iteration counts; make min_iterations larger")
        return self

    def contention(self, eta: float = 1.0) -> Contention:
        """The case as artist sees it. NICs serve their flows in turn, uplinks have one queue."""
        nics = [SharedLink(bps / BITS, fair_queued=True) for bps in self.nic_bps]
        every = [bps for bps in self.uplink_bps for _ in range(self.links)]
        uplinks = [SharedLink(bps / BITS, eta=eta) for bps in every]
        members = tuple(self._member(job) for job in self.jobs)
        return Contention((*nics, *nics, *uplinks, *uplinks), members)

    def _member(self, job: CaseJob) -> Member:
        ring = pairwise((*job.machines, job.machines[0]))
        links = job.links or (0,) * len(job.machines)
        ways = [self._way(*pair, link) for pair, link in zip(ring, links, strict=True)]
        flows = [Flow(way, job.rate_cap_bps / BITS) for way in ways]
        pattern = Pattern.simple(job.down_s, job.volume_bytes, *flows)
        return Member(pattern, job.offset_s, job.noise)

    def _way(self, source: int, target: int, link: int) -> tuple[int, ...]:
        """Out of a NIC, up, down and into a NIC; links are numbered in this order."""
        machines, uplinks = len(self.racks), len(self.uplink_bps) * self.links
        here, there = self.racks[source], self.racks[target]
        if here == there:
            return source, machines + target
        up, down = (2 * machines + rack * self.links + link for rack in (here, there))
        return source, up, down + uplinks, machines + target


@dataclass(frozen=True, slots=True)
class Truth:
    """Slowdowns of a job's mean and P99 iteration; the latter None if it is not known."""

    slowdown: float
    p99: float | None


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, in its order.

    Raises:
        TraceError: an unreadable file or a line that is no JSON; names file and line.
        ConfigError: a case that cannot be; names file and line.
    """
    cases = []
    for number, line in enumerate(decode(path, read_bytes(path)).splitlines(), start=1):
        if line.strip():
            try:
                data = json.loads(line)
            except ValueError as cause:
                raise TraceError(f"{path}:{number}: not a JSON object on one line") from cause
            if not isinstance(data, dict):
                raise TraceError(f"{path}:{number}: not a JSON object on one line")
            cases.append(validate(data, Case, f"{path}:{number}"))
    return cases


def read_truth(path: Path) -> Mapping[tuple[str, int], Truth]:
    """The answers in a file by case and job.

    Raises:
        TraceError: an unreadable file or a bad value; names file and line.
    """
    reader = csv.DictReader(io.StringIO(decode(path, read_bytes(path)), newline=""))
    lacking = [x for x in ("case", "job", "slowdown") if x not in (reader.fieldnames or ())]
    if lacking:
        raise TraceError(f"{path}:1: no column {', '.join(lacking)}")
    truth = {}
    for row in reader:
        try:
            p99 = row.get("p99_slowdown")
            answer = Truth(float(row["slowdown"]), float(p99) if p99 else None)
            truth[row["case"], int(row["job"])] = answer
        except (TypeError, ValueError) as cause:
            raise TraceError(
                f"{path}:{reader.line_num}: job {row['job']!r}, slowdown {row['slowdown']!r}, "
                "expected numbers"
            ) from cause
    return truth

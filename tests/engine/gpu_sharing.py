"""Jobs that ask for shares of GPUs, on machines that may state their memory or a MIG mode."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support import SELF_SUFFICIENT, job, make_policy, on
from support import run as run_script

from artist.api import simulate
from artist.cluster.mig import Mode
from artist.cluster.tree import ClusterTree, HostSizes, nested
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.errors import ArtistError
from artist.trace.native.writer import write_native
from artist.trace.read import read_trace
from artist.units import GPU_MILLI, seconds
from artist.workload.job import Job

READERS = [name for name in SELF_SUFFICIENT if getattr(make_policy(name), "reads_shares", False)]
ONE, OTHER = on({0: 1}), on({1: 1})


def part(name: str, milli: int, iterations: int = 10, **fields: Any) -> Job:
    """A job that asks for this many thousandths of a GPU."""
    return job(name, 1, iterations, gpu_milli=milli, **fields)


def machines(*each: float | Mode | None, count: int = 1) -> ClusterTree:
    """Machines of `count` GPUs, each with this much GiB of memory, this MIG mode or neither."""
    none = (None,) * len(each)
    mib = tuple(round(1024 * x) if isinstance(x, int | float) else None for x in each)
    modes = tuple(x if isinstance(x, str) else None for x in each)
    sizes = HostSizes(none, none, mib, modes if any(modes) else ())
    return nested(("machine", "rack", "network"), [[count] * len(each)], hosts=sizes)


def ran(tree: ClusterTree, jobs: Sequence[Job], policy: str = "fifo-backfill") -> Rows:
    chosen = make_policy(policy)
    lease_s = None if chosen.lease is None else seconds(chosen.lease)
    return run_script(tree, jobs, chosen, lease_s=lease_s)


def together(rows: Rows) -> set[frozenset[int]]:
    """The sets of jobs that shared a GPU."""
    return {frozenset((row.handle, *row.beside)) for row in rows.placements if row.beside}


def told(rows: Rows) -> list[tuple[float, int, str, str]]:
    """When a policy gave which job a reason to wait: its cause, and its words."""
    return [(seconds(x.tick), x.handle, x.cause, x.reason) for x in rows.wait_reasons if x.reason]


def assert_lawful(rows: Rows, jobs: Sequence[Job]) -> None:
    """No GPU is held more than once, and a job has held its share for as long as it took."""
    for row in rows.placements:
        if row.gpu_milli < GPU_MILLI:
            assert row.gpu_milli + sum(jobs[x].gpu_milli for x in row.beside) <= GPU_MILLI
    work = sum(
        Fraction(row.job.gpus * row.job.gpu_milli, GPU_MILLI) * (row.finish - row.start)
        for row in rows.jobs
        if not row.preemptions
    )
    own = sum(
        Fraction(row.held_milli, GPU_MILLI) * (row.end - row.start)
        for row in rows.placements
        if not next(x for x in rows.jobs if x.handle == row.handle).preemptions
    )
    assert work == own


def scenario_of(folder: Path, cluster: str, trace: str, **more: Any) -> Scenario:
    """A scenario of two files, which are written."""
    (folder / "c.yaml").write_text(cluster)
    (folder / "t.csv").write_text(trace)
    files = {"cluster": str(folder / "c.yaml"), "trace": str(folder / "t.csv")}
    return Scenario(**files, **{"backend": "none", "policy": "fifo-backfill", **more})


def assert_refused(scenario: Scenario, words: str) -> None:
    """A scenario is refused in one line with these words."""
    with pytest.raises(ArtistError, match=words) as refused:
        simulate(scenario, cache=False)
    assert "\n" not in str(refused.value)


def assert_reads_back(jobs: Sequence[Job], path: Path) -> None:
    """Jobs that are written to a trace are the jobs that it holds."""
    write_native(jobs, path)
    assert list(read_trace(path).jobs) == jobs

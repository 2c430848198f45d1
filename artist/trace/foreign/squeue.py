"""What Slurm's `squeue -a -r -o %all` prints: the jobs that run and wait now, with any columns.

Source: squeue(1) of Slurm 22.05. Cells stand between `|`, without quotes.

Rules:

- All jobs arrive at once: first running jobs, then waiting ones by priority.
- Run times are not known yet. A job takes its time limit; a running job takes `TIME_LEFT`, else its
  limit minus `TIME`. So the trace is the longest that the queue can take.
- Its GPUs are `TRES_PER_NODE` x `NODES`. squeue does not show GPUs that were requested per job
  (`--gpus`); sacct does. Slices of MIG are parts of GPUs.
- Jobs that are held, or wait for their begin time, are left out. `DEPENDENCY` becomes a hint, which
  the policy `slurm` reads.
- Of columns that `%all` prints twice, the first counts.
- Tenants, users, models and hints are as in `sacct.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artist.io.digests import pseudonym
from artist.slurm.texts import whole
from artist.trace.foreign.rows import CPU_ONLY, ForeignJob, JobOrReason, TraceRow, rows
from artist.trace.foreign.sacct import PART_OF_A_HETEROGENEOUS_JOB, SLICE, model_meant
from artist.trace.native.choices import Rules
from artist.trace.native.table import MAX_GPUS, Table
from artist.units import LENGTH, length_s

COLUMNS = ("JOBID", "STATE", "TIME", "TIME_LIMIT", "NODES", "TRES_PER_NODE")

NO_LIMIT = "no time limit"
ENDING = "neither runs nor waits"
HELD = "held, or before its begin time"

_HELD = re.compile("JobHeld(User|Admin)|BeginTime")
_NOTHING = ("", "(null)", "N/A")
_UNKNOWN = ("", "N/A", "NOT_SET", "UNLIMITED", "INVALID")


def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
    """The jobs of a queue, and why each other row is dropped."""
    running: list[tuple[str, ForeignJob]] = []
    waiting: list[tuple[float, ForeignJob]] = []
    for row in rows(table):
        state = row.text("STATE")
        job = _job(row, rules, runs=state == "RUNNING") if state in _STATES else ENDING
        if isinstance(job, str):
            yield job
        elif state == "RUNNING":
            running.append((row.text("START_TIME"), job))
        else:
            priority = row.number("PRIORITY", 0, 2**32, _PRIORITY) if row.has("PRIORITY") else 0.0
            waiting.append((-priority, job))
    # Sorting is stable: ties stay in the order in which squeue printed them.
    yield from (job for _, job in sorted(running, key=lambda one: one[0]))
    yield from (job for _, job in sorted(waiting, key=lambda one: one[0]))


_STATES = ("RUNNING", "PENDING")
_PRIORITY = "a priority from 0 to 2**32"


def _job(row: TraceRow, rules: Rules, *, runs: bool) -> JobOrReason:
    """The job in a row, or why the row is dropped."""
    id_ = row.text("JOBID")
    if "[" in id_:
        raise row.error("JOBID", "one task of an array a row: print the queue with squeue -r")
    if "+" in id_:
        return PART_OF_A_HETEROGENEOUS_JOB
    by_kind, nodes = _gpus_per_node(row), whole(row.text("NODES"))
    if not nodes or not 1 <= int(nodes) <= MAX_GPUS:
        raise row.error("NODES", f"a whole number from 1 to {MAX_GPUS}")
    gpus = sum(count for _, count in by_kind) * int(nodes)
    if not gpus:
        return CPU_ONLY
    if not runs and _HELD.search(row.text("REASON")):
        return HELD
    limit_s = _length_s(row, "TIME_LIMIT")
    left_s = _left_s(row, limit_s) if runs else limit_s
    if left_s is None:
        return NO_LIMIT
    user, kind = row.text("USER"), "+".join(sorted({kind for kind, _ in by_kind if kind}))
    return ForeignJob(
        row=row.index,
        id=id_,
        submit_s=0.0,
        gpus=gpus,
        run_s=float(left_s),
        model=model_meant(row.text("NAME"), row.text("ACCOUNT"), gpus, rules.models),
        user=user if rules.keep_names or not user else pseudonym(user),
        shared=SLICE.search(kind) is not None,
        tenant=row.text("ACCOUNT") or None,
        hints={
            "hint_time_limit_s": str(left_s),
            "hint_partition": row.text("PARTITION"),
            "hint_qos": row.text("QOS"),
            "hint_gpu_kind": kind,
            "hint_nodes": nodes,
            "hint_dependency": _dependency(row.text("DEPENDENCY")),
            "hint_job_number": id_.partition("_")[0],
        },
    )


def _gpus_per_node(row: TraceRow) -> list[tuple[str, int]]:
    """Kinds and numbers of GPUs, as in `gres:gpu:a100:4` or `gres/gpu=4`; no number means 1."""
    found = []
    for part in row.text("TRES_PER_NODE").split(","):
        what, *rest = re.split("[:/=]", part.removeprefix("gres:").removeprefix("gres/"))
        if what != "gpu":
            continue
        count = rest.pop() if rest and rest[-1].isdecimal() else "1"
        if len(rest) > 1 or int(count[:8]) > MAX_GPUS:
            raise row.error("TRES_PER_NODE", f"gres:gpu:KIND:NUMBER, at most {MAX_GPUS} GPUs")
        found.append(("".join(rest), int(count)))
    return found


def _dependency(text: str) -> str:
    """A dependency as submitted: `afterok:12(unfulfilled)` is `afterok:12`."""
    return "" if text in _NOTHING else re.sub(r"\([a-z]*\)", "", text)


def _left_s(row: TraceRow, limit_s: int | None) -> int | None:
    left_s = _length_s(row, "TIME_LEFT")
    if left_s is None and limit_s is not None and (run_s := _length_s(row, "TIME")) is not None:
        left_s = max(0, limit_s - run_s)
    return left_s


def _length_s(row: TraceRow, name: str) -> int | None:
    """The seconds of a duration; None if there is none."""
    text = row.text(name)
    if text.upper() in _UNKNOWN:
        return None
    if (seconds := length_s(text)) is None:
        raise row.error(name, LENGTH)
    return seconds

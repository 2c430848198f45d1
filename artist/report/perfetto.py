"""A run as a trace for ui.perfetto.dev (the Chrome trace event format).

Perfetto shows processes with threads, and slices of one thread must not overlap. So each machine
is a process, with as many threads as jobs share the machine at one time. A row of
`placements.parquet` is one slice on each of its machines. The counters come from
`timeline.parquet`. Times are simulated microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from artist.report.reader import RecordedRun
from artist.report.timeline_lanes import machines, parse_placement

_CLUSTER = 1
_FIRST_MACHINE = 2
_US = 1e6


def perfetto_trace(run: RecordedRun) -> bytes:
    """The trace as JSON, with one event per line."""
    events = [*_names(run), *_slices(run), *_counters(run)]
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    other = {"policy": run.scenario["policy"], "trace": run.scenario.get("trace")}
    head = json.dumps({"displayTimeUnit": "ms", "otherData": other}, separators=(",", ":"))
    return f'{head[:-1]},"traceEvents":[\n{lines}\n]}}\n'.encode()


def _names(run: RecordedRun) -> Iterator[dict[str, Any]]:
    cluster = machines(run)
    yield _meta("process_name", _CLUSTER, name="cluster")
    yield _meta("process_sort_index", _CLUSTER, sort_index=0)
    starts = np.array(cluster.racks)
    for machine in range(cluster.count):
        rack = int(np.searchsorted(starts, machine, side="right")) - 1
        pid = _FIRST_MACHINE + machine
        yield _meta("process_name", pid, name=f"machine {machine} (rack {rack})")
        yield _meta("process_sort_index", pid, sort_index=machine + 1)


def _meta(event: str, pid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": event, "pid": pid, "tid": 0, "args": args}


def _slices(run: RecordedRun) -> Iterator[dict[str, Any]]:
    """Slices in the order of time. Each gets the first thread of its machine that is idle then."""
    rows = run.placements
    models = dict(zip(run.jobs.text["job_id"], run.jobs.text["model"], strict=True))
    busy: dict[int, list[float]] = {}
    where = f"{run.name}/placements.parquet"
    for index in np.lexsort((rows["end_s"], rows["start_s"])).tolist():
        start, end = float(rows["start_s"][index]), float(rows["end_s"][index])
        job, level = rows.text["job_id"][index], rows.text["level"][index]
        args = {
            "job": job, "model": models.get(job, "?"), "gpus": int(rows["gpus"][index]),
            "level": level, "placement": rows.text["placement"][index],
            "iteration_s": float(rows["iteration_s"][index]), "row": index,
        }  # fmt: skip
        for machine, gpus in parse_placement(rows.text["placement"][index], where).items():
            threads = busy.setdefault(machine, [])
            thread = next((i for i, until in enumerate(threads) if until <= start), len(threads))
            threads[thread : thread + 1] = [end]  # replaces the thread, or appends a new one
            yield {
                "ph": "X", "name": f"job {job}", "cat": level,
                "pid": _FIRST_MACHINE + machine, "tid": thread + 1,
                "ts": _us(start), "dur": _us(end) - _us(start),
                "args": {**args, "gpus_on_machine": gpus},
            }  # fmt: skip


def _counters(run: RecordedRun) -> Iterator[dict[str, Any]]:
    rows = run.timeline
    for index, time in enumerate(rows["time_s"].tolist()):
        for name, column in (("GPUs held", "gpus_held"), ("jobs waiting", "jobs_waiting")):
            value = rows[column][index].item()
            yield {
                "ph": "C", "name": name, "pid": _CLUSTER, "tid": 0,
                "ts": _us(time), "args": {"value": value},
            }  # fmt: skip


def _us(time_s: float) -> int:
    """Whole microseconds, so that a slice ends exactly where the next slice begins."""
    return round(time_s * _US)

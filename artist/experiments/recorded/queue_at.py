"""The queue of a recorded Slurm at a moment: what had ended, what ran, what waited.

The log of sacct is written again as it was known then: rows lose starts and ends that came later.
Its line numbers change by that, so the whole log is read and checked first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artist.errors import ConfigError, shortened
from artist.experiments.recorded.recording import Recording, log_of, moment_of, read_recording
from artist.io.writing import write_whole
from artist.slurm.submit_line import with_option
from artist.slurm.texts import Record, log_rows
from artist.trace.foreign.sacct import READ
from artist.trace.native.time_units import moment_s, zoned_s

_NEEDED = ("JobID", "Submit", "Start", "End", "State")
_KEPT = (*READ, "NodeList")
"""The columns to keep in memory: a log may be long, and has about a hundred."""
_ENDED, _RUNS, _WAITS = "ended", "runs", "waits"


@dataclass(frozen=True)
class Log:
    """The rows of sacct by job, and the first and last moment in any of them."""

    names: Sequence[str]
    rows: Mapping[str, Sequence[Record]]
    first_s: float
    last_s: float
    submitted_s: float
    """When the last job was submitted."""
    cancelled_s: Mapping[str, float]
    """By job, when it ended without a start."""
    left_out: int
    """Parts of heterogeneous jobs."""

    def start_after(self, id_: str, moment_s_: float) -> float | None:
        """The job's first recorded start after a moment; None if there is none."""
        starts = (moment_of(row, "Start") for row in self.rows.get(id_, ()))
        return min((x for x in starts if x is not None and x > moment_s_), default=None)


@dataclass(frozen=True)
class QueueAt:
    """The recording as it was at a moment, and what each of its jobs did then."""

    at_s: float
    """Unix time."""
    recording: Recording
    states: Mapping[str, str]
    rows: Mapping[str, Record]
    requeued_s: Mapping[str, float]
    """When a job that waits lost its last run, if it had one; Unix time."""

    def ids(self, state: str) -> list[str]:
        """The jobs in a state, in the order of arrival."""
        return [job.id for job in self.recording.trace.jobs if self.states[job.id] == state]

    @property
    def ended(self) -> list[str]:
        """Jobs that had ended."""
        return self.ids(_ENDED)

    @property
    def running(self) -> list[str]:
        """Jobs that ran."""
        return self.ids(_RUNS)

    @property
    def waiting(self) -> list[str]:
        """Jobs that waited and could have started."""
        return self.ids(_WAITS)


def read_log(folder: Path, inputs: Path) -> Log:
    """The log of sacct.

    Raises:
        ConfigError: it is missing or broken; names file and line.
    """
    path = log_of(folder, inputs)
    rows: dict[str, list[Record]] = {}
    moments, left_out = [], 0
    names: Sequence[str] = ()
    for record in log_rows(path, _NEEDED, _KEPT):
        names = names or tuple(dict.fromkeys((*record.values, "SubmitLine")))
        id_ = record.text("JobID")
        if any(mark in id_.partition("[")[0] for mark in ".+"):
            left_out += "." not in id_
            continue
        for task in tasks(id_, record.place):
            rows.setdefault(task, []).append(record if task == id_ else _task(record, task))
        moments += [x for key in _NEEDED[1:4] if (x := _moment(record, key)) is not None]
    if not moments:
        raise ConfigError(f"{path}: no job; print more days with sacct -S now-7days")
    submitted_s = max(_moment(x[0], "Submit") or min(moments) for x in rows.values())
    cancelled_s = {
        id_: end_s
        for id_, (*_, last) in rows.items()
        if _moment(last, "Start") is None and (end_s := _moment(last, "End")) is not None
    }
    return Log(names, rows, min(moments), max(moments), submitted_s, cancelled_s, left_out)


def _task(record: Record, id_: str) -> Record:
    """The row of one task of a waiting array. `%N` in the id becomes an option of its command."""
    _, limit, most = record.text("JobID").rstrip("]").partition("%")
    line = record.text("SubmitLine")
    told = {"SubmitLine": with_option(line, f"--array=0%{most}")} if limit else {}
    return Record(record.place, {**record.values, **told, "JobID": id_})


_WAITING_TASKS = re.compile(r"(\d+)_\[([\d,:-]+)(?:%\d+)?\]", re.ASCII)


def tasks(id_: str, place: str) -> list[str]:
    """The ids in a JobID: waiting tasks of an array share one row, other jobs have their own.

    >>> tasks("7_[0-4:2,9%3]", "here")
    ['7_0', '7_2', '7_4', '7_9']

    Raises:
        ConfigError: the list of tasks is broken, or too long.
    """
    if "[" not in id_:
        return [id_]
    match = _WAITING_TASKS.fullmatch(id_)
    numbers = [] if match is None else _numbers(match[2].split(","))
    if match is None or not numbers:
        raise ConfigError(
            f"{place}: JobID is {shortened(id_)}, expected tasks such as 7_[0-9]; print it again, "
            "with SLURM_BITSTR_LEN=0"
        )
    return [f"{match[1]}_{number}" for number in numbers]


def _numbers(ranges: Sequence[str]) -> list[int]:
    """The numbers in ranges such as 0-4:2; none if a range is malformed or there are too many."""
    found: list[int] = []
    for text in ranges:
        match = _RANGE.fullmatch(text)
        if match is None:
            return []
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step < 1 or not 0 <= (high - low) // step < MOST_TASKS - len(found):
            return []
        found += range(low, high + 1, step)
    return found


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
MOST_TASKS = 100_000
"""The most tasks of a waiting array: a hundred times Slurm's default of MaxArraySize."""


def _moment(record: Record, key: str) -> float | None:
    text = record.text(key)
    moment = moment_of(record, key)
    if moment is None and text.casefold() not in ("", "unknown", "none", "invalid"):
        raise record.error(key, "a time such as 2026-11-23T16:09:35")
    return moment


def moment_in(text: str | None, log: Log) -> float:
    """The Unix time of a moment; the last one of the log if none is given.

    Raises:
        ConfigError: no time, or one before or after the log.
    """
    if text is None:
        return log.last_s
    moment = float(text) if text.isdecimal() else moment_s(text)
    moment = zoned_s(text) if moment is None else moment
    if moment is None or not log.first_s <= moment <= log.last_s:
        raise ConfigError(
            f"--at {shortened(text)}: expected a time such as 2026-11-23T16:09:35 that the "
            "log covers"
        )
    return moment


def queue_at(folder: Path, inputs: Path, log: Log, at_s: float, *, keep_names: bool) -> QueueAt:
    """The recording as it was known at a moment.

    Raises:
        ConfigError: a text is missing or broken, or nothing had been submitted.
    """
    states: dict[str, str] = {}
    rows: dict[str, Record] = {}
    requeued_s: dict[str, float] = {}
    lines = ["|".join(log.names)]
    for id_, records in log.rows.items():
        row = _in_force(records, at_s)
        if row is None:
            continue
        states[id_], record, start_s, end_s = row
        first = records[0]
        rows[id_] = record
        if states[id_] == _WAITS and record is not first:
            before_s = _moment(records[records.index(record) - 1], "End")
            requeued_s[id_] = at_s if before_s is None else before_s
        length_s = max(1, round(end_s - start_s))
        minutes, rest_s = divmod(length_s, 60)
        changed = {
            **record.values,
            "Submit": first.values["Submit"],
            "Start": str(round(start_s)),
            "End": str(round(end_s)),
            "State": "COMPLETED",
            "ElapsedRaw": str(length_s),
            "Elapsed": f"{minutes // 60:02d}:{minutes % 60:02d}:{rest_s:02d}",
        }
        if "Eligible" in first.values:
            changed["Eligible"] = first.values["Eligible"]
        lines.append("|".join(changed.get(name, "") for name in log.names))
    if not states:
        raise ConfigError(f"{folder}: no job had been submitted by then; choose a later --at")
    file = inputs / "sacct-at.txt"
    inputs.mkdir(parents=True, exist_ok=True)
    write_whole(file, "\n".join(lines) + "\n")
    recording = read_recording(folder, inputs, keep_names=keep_names, log=file)
    return QueueAt(at_s, recording, states, rows, requeued_s)


def _in_force(records: Sequence[Record], at_s: float) -> tuple[str, Record, float, float] | None:
    """A job's state at a moment, its row, start and end; None if it was not in the queue yet or
    cannot be simulated.
    """
    eligible = [_moment(records[0], key) for key in ("Submit", "Eligible")]
    known = [x for x in eligible if x is not None]
    if not known or max(known) > at_s:
        return None
    if "Eligible" in records[0].values and eligible[1] is None:
        return None  # it depends on another job, or is held
    begun = [x for x in records if (start := _moment(x, "Start")) is not None and start <= at_s]
    if begun:
        last = begun[-1]
        start_s, end_s = _moment(last, "Start"), _moment(last, "End")
        assert start_s is not None
        if end_s is None or end_s > at_s:
            return _RUNS, last, start_s, max(at_s, start_s + 1)
        if last is records[-1]:
            return _ENDED, last, start_s, max(end_s, start_s + 1)
    waits = records[len(begun)]
    end_s = _moment(waits, "End")
    if end_s is not None and end_s <= at_s:
        return None  # cancelled before it started
    return _WAITS, waits, at_s, at_s + 1

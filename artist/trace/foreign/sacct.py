"""The output of Slurm's `sacct -a -P`, with any columns in any order (`--format=ALL`).

Source: sacct(1) of Slurm 22.05, and output recorded from it. Cells are separated by `|`, without
quotes.

Rules:

- A job that ran counts whatever its final state, because it held its GPUs. Its run time is
  `ElapsedRaw`, else `Elapsed`, else `End` minus `Start`.
- It arrives when it could first have started, `Eligible` (begin times, dependencies, holds), else
  at `Submit`. Tasks of an array with `%N` arrive with the first of them, since Slurm calls a task
  eligible when others have ended.
- Rows of steps (`7.batch`) belong to a job that has a row of its own.
- If a job was preempted and queued again (several rows with one `JobID`, with `-D`), only its last
  run counts, since policies decide themselves when to preempt. Its arrival is that of the first
  run. A run that ended in another way held its GPUs too: what follows is another job, `7:2` after
  `7`.
- Its GPUs are `gres/gpu` of `AllocTRES`, else of `ReqTRES`, or the sum over kinds
  (`gres/gpu:a100`). Slices of MIG are parts of GPUs. `cpu` and `mem` there are those of the job.
- Account becomes tenant. Time limit, partition, QOS, reservation, kind of GPU and what else the
  policy `slurm` reads become hints.
- Users get pseudonyms (`artist/io/digests.py`), unless `Rules.keep_names`.
- `JobName` counts as the name of a model if it means one (`model_names.py`), else `account:NAME` or
  `gpus:N` if `Rules.models` say one for it.
- Times without a zone are local to `Rules.time_zone`; without that, every day has 24 hours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from artist.errors import TraceError
from artist.io.digests import pseudonym
from artist.slurm.submit_line import one_word_each, options_of
from artist.slurm.texts import whole
from artist.trace.foreign.rows import (
    CPU_ONLY,
    STILL_RUNNING,
    ForeignJob,
    JobOrReason,
    TraceRow,
    never_ran,
    rows,
)
from artist.trace.native.choices import Rules
from artist.trace.native.table import MAX_GPUS, Table
from artist.trace.native.time_units import moment_s, zone, zoned_s
from artist.units import CORE_MILLI, LENGTH, length_s

COLUMNS = ("JobID", "Submit", "Start", "State")

STEP = "step of a job"
EARLIER_RUN = "earlier run of a requeued job"
SHARDS = "shards of GPUs"
WAITING_TASKS = "tasks of an array that never started"
PART_OF_A_HETEROGENEOUS_JOB = "part of a heterogeneous job"

_RUN_TIMES = ("ElapsedRaw", "Elapsed", "End")
_TRES = ("AllocTRES", "ReqTRES")
READ = (
    *COLUMNS, *_RUN_TIMES, *_TRES, "Eligible", "User", "Account", "JobName", "Partition", "QOS",
    "Reservation", "Timelimit", "TimelimitRaw", "ReqNodes", "NNodes", "ReqCPUS", "SubmitLine",
    "Comment",
)  # fmt: skip
"""All columns that are read; a log may lack others."""
# States of runs after which Slurm may queue a job again; `scontrol requeue` may after any.
_REQUEUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "FAILED", "CANCELLED", "TIMEOUT", "BOOT_FAIL")
_UNKNOWN = ("", "unknown", "none", "invalid")
_NO_LIMIT = (*_UNKNOWN, "unlimited", "partition_limit")
SLICE = re.compile(r"(^|[_:])\d+g\.\d+gb", re.ASCII)
_TIME = "a time such as 2026-11-23T16:09:35, with or without a zone, or seconds since 1970"


def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
    """The jobs of a log, and why each other row is dropped."""
    for one_of in (_RUN_TIMES, _TRES):
        if not any(name in table.columns for name in one_of):
            raise TraceError(
                f"{table.path}: the log has none of the columns {', '.join(one_of)}; print one, or "
                "use sacct -a -P --format=ALL"
            )
    reader = _Reader(rules)
    runs: dict[str, tuple[TraceRow, TraceRow]] = {}
    latest: dict[str, str] = {}
    for row in rows(table):
        id_ = row.text("JobID")
        if "[" in id_:  # a list that Slurm cut short has dots
            yield WAITING_TASKS
        elif "." in id_:
            yield STEP
        elif "+" in id_:
            yield PART_OF_A_HETEROGENEOUS_JOB
        elif id_ not in runs:
            runs[id_] = row, row
        else:
            job = latest.get(id_, id_)
            first, last = runs[job]
            if not reader.runs_again(last, row):
                raise last.error(
                    "State", "a state after which a job is queued again: its id recurs"
                )
            if reader.has_started(last) and not goes_on(last.text("State")):
                latest[id_] = following(job)
                runs[latest[id_]] = row, row
                continue
            yield EARLIER_RUN
            runs[job] = first, row if reader.has_started(row) else last
    reader.note(runs.values())
    for id_, (first, last) in runs.items():
        yield reader.job(id_, first, last)


def goes_on(state: str) -> bool:
    """Whether a run ended by preemption: the job then continues in its next run."""
    return state.partition(" ")[0].upper() == "PREEMPTED"


def following(id_: str) -> str:
    """The id of a job after this one that has the same number in Slurm.

    >>> following("7"), following("7:2")
    ('7:2', '7:3')
    """
    number, _, nth = id_.partition(":")
    return f"{number}:{int(nth or 1) + 1}"


class _Reader:
    """The jobs of one log."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._zone = None if rules.time_zone is None else zone(rules.time_zone)
        self._arrays: dict[str, float] = {}
        self._singletons: dict[int, str] = {}

    def note(self, runs: Iterable[tuple[TraceRow, TraceRow]]) -> None:
        """Note when tasks of arrays with `%N` that ran were first eligible, and singletons."""
        alike: dict[tuple[str, str], list[tuple[TraceRow, TraceRow]]] = {}
        for first, last in runs:
            alike.setdefault((last.text("User"), last.text("JobName")), []).append((first, last))
            ran_in_turn = _tasks_at_once(first) and self.has_started(last)
            if ran_in_turn and (first_s := self._arrival_s(first)) is not None:
                number = _number(first)
                self._arrays[number] = min(first_s, self._arrays.get(number, math.inf))
        for group in alike.values():
            if any("singleton" in first.text("SubmitLine") for first, _ in group):
                self._note_singletons(group)

    def _note_singletons(self, alike: Iterable[tuple[TraceRow, TraceRow]]) -> None:
        """Note what `singleton` waits for: earlier ones that had not ended by then."""
        left = list[tuple[float, str]]()
        moments = [(self._moment(first, "Submit") or 0.0, first, last) for first, last in alike]
        for submit_s, first, last in sorted(moments, key=lambda x: x[0]):
            left = [x for x in left if x[0] >= submit_s]
            waits = dict.fromkeys(f":{x}" for _, x in left if x != _number(first))
            self._singletons[first.index] = "".join(("afterany", *waits)) if waits else ""
            left.append((self._moment(last, "End") or math.inf, _number(last)))

    def _arrival_s(self, row: TraceRow) -> float | None:
        submit_s, eligible_s = self._moment(row, "Submit"), self._moment(row, "Eligible")
        return submit_s if submit_s is None or eligible_s is None else max(submit_s, eligible_s)

    def job(self, id_: str, first: TraceRow, last: TraceRow) -> JobOrReason:
        """The job with these rows for its first and last run, or why it is dropped."""
        gpus, kind = _gpus(last)
        if not gpus:
            return SHARDS if _SHARD.search(last.text(_held_in(last))) else CPU_ONLY
        start_s = self._moment(last, "Start")
        run_s = None if start_s is None else self._run_s(last, start_s)
        if start_s is None or (not run_s and _state(last) == "CANCELLED"):
            return never_ran(failed=_state(last) in ("FAILED", "NODE_FAIL", "BOOT_FAIL"))
        if run_s is None:
            return STILL_RUNNING
        submit_s = self._arrival_s(first)
        if submit_s is None:
            raise first.error("Submit", _TIME)
        name, user = last.text("JobName"), last.text("User")
        return ForeignJob(
            row=first.index,
            id=id_,
            submit_s=submit_s if ":" in id_ else self._arrays.get(_number(first), submit_s),
            gpus=gpus,
            run_s=run_s,
            model=model_meant(name, last.text("Account"), gpus, self._rules.models),
            user=user if self._rules.keep_names or not user else pseudonym(user),
            shared=SLICE.search(kind) is not None,
            tenant=last.text("Account") or None,
            cpu_milli=_amount(last, "cpu", {"": CORE_MILLI}),
            memory_mib=_amount(last, "mem", _MIB),
            hints={
                "hint_time_limit_s": _limit(last),
                "hint_partition": last.text("Partition"),
                "hint_qos": last.text("QOS"),
                "hint_reservation": last.text("Reservation"),
                "hint_gpu_kind": kind,
                **_asked(first, last),
                "hint_dependency": self._dependency(first),
            },
        )

    def _dependency(self, row: TraceRow) -> str:
        """What a job waits for."""
        text = _options(row).get("dependency", "")
        if "singleton" not in text or "?" in text:
            return text
        parts = (self._singletons[row.index] if x == "singleton" else x for x in text.split(","))
        return ",".join(filter(None, parts))

    def has_started(self, row: TraceRow) -> bool:
        """Whether a row is of a run."""
        return self._moment(row, "Start") is not None

    def runs_again(self, last: TraceRow, row: TraceRow) -> bool:
        """Whether a row is of a later run of the same job, not of another job with its id."""
        if _state(last) in _REQUEUED:
            return True
        whose, now = ([x.text(name) for name in ("User", "JobName")] for x in (last, row))
        if whose != now or not any(whose):
            return False
        ended_s, queued_s = self._moment(last, "End"), self._moment(row, "Submit")
        return ended_s is not None and queued_s is not None and ended_s <= queued_s

    def _run_s(self, row: TraceRow, start_s: float) -> float | None:
        """How long a job ran; None if it still runs, unless it ends with the log then."""
        end_s = self._moment(row, "End") if "End" in row.table.columns else None
        still = ("End" in row.table.columns and end_s is None) or _state(row) in _RUNNING
        counts = self._rules.still_running and (row.has("ElapsedRaw") or row.has("Elapsed"))
        if still and not counts:
            return None
        if row.has("ElapsedRaw"):
            return row.seconds("ElapsedRaw")
        if row.has("Elapsed"):
            return float(_seconds(row, "Elapsed"))
        if end_s is None or end_s < start_s:
            raise row.error("End", "a time after Start")
        return end_s - start_s

    def _moment(self, row: TraceRow, name: str) -> float | None:
        """Seconds since 1970; None where Slurm does not know the time."""
        text = row.text(name)
        if text.casefold() in _UNKNOWN:
            return None
        if text.isdecimal() and len(text) < 12:
            return float(text)
        moment = moment_s(text)
        if moment is not None and self._zone is not None:
            return datetime.fromisoformat(text).replace(tzinfo=self._zone).timestamp()
        moment = zoned_s(text) if moment is None else moment
        if moment is None:
            raise row.error(name, _TIME)
        return moment


def _asked(row: TraceRow, last: TraceRow) -> dict[str, object]:
    """Hints for the policy `slurm`: machines, CPUs, and options that only the sbatch line has."""
    line, asked = _line(row), _options(row)
    return {
        "hint_nodes": _nodes(last, asked),
        "hint_cpus": whole(row.text("ReqCPUS")),
        "hint_tasks_per_node": _if(_COUNT, asked.get("ntasks-per-node", "")),
        "hint_nice": _if(_WHOLE, asked["nice"] or _NICE) if "nice" in asked else "",
        "hint_tasks_at_once": _tasks_at_once(row),
        "hint_requeue": _requeue(line, asked),
        "hint_job_number": _number(row),
    }


def _tasks_at_once(row: TraceRow) -> str:
    """How many tasks of its array may run at once; empty if all may, or it is no task."""
    at_once = (
        _AT_ONCE.fullmatch(_options(row).get("array", "")) if "_" in row.text("JobID") else None
    )
    return at_once[1] if at_once else ""


def _line(row: TraceRow) -> str:
    return one_word_each(row.text("SubmitLine"), row.text("JobName"), row.text("Comment"))


def _options(row: TraceRow) -> dict[str, str]:
    return options_of(_line(row))


def _number(row: TraceRow) -> str:
    """Slurm's number of a job, which all tasks of an array share."""
    return row.text("JobID").partition("_")[0]


def _nodes(row: TraceRow, asked: Mapping[str, str]) -> str:
    """How many machines a job asks for; 0 if any number will do (`--gpus` without `--nodes`).

    ReqNodes is the least. A job that got more has GPUs per machine, or `--gpus` in its script.
    """
    least, held = (whole(row.text(name)) for name in ("ReqNodes", "NNodes"))
    if "gpus-per-node" in asked or "gpu" in asked.get("gres", ""):
        return held or least
    if asked.keys() & {"gpus", "G"} and not asked.keys() & {"nodes", "N"}:
        return "0"
    return "0" if least and held and int(held) > int(least) else least or held


def _if(expected: re.Pattern[str], text: str) -> str:
    return text if expected.fullmatch(text) else ""


def _requeue(line: str, asked: Mapping[str, str]) -> str:
    """Whether a job may be requeued: 1, 0, or empty if JobRequeue decides.

    The last of several options counts. Slurm can requeue only jobs that sbatch submitted.
    """
    if _INTERACTIVE.match(line):
        return "0"
    return next((_REQUEUE[name] for name in reversed([*asked]) if name in _REQUEUE), "")


_INTERACTIVE = re.compile(r"(?:\S*/)?(?:salloc|srun)\s")
_REQUEUE = {"requeue": "1", "no-requeue": "0"}
_SHARD = re.compile(r"(?:^|,)gres/shard(?::[^=,]*)?=0*[1-9]", re.ASCII)
_NICE = "100"  # the value of --nice without a number
_AT_ONCE = re.compile(r"[\d,:-]+%(\d+)", re.ASCII)
_COUNT, _WHOLE = re.compile(r"\d+", re.ASCII), re.compile(r"-?\d+", re.ASCII)

_RUNNING = ("RUNNING", "SUSPENDED", "RESIZING", "COMPLETING", "STOPPED", "REQUEUE_HOLD")


def model_meant(name: str, account: str, gpus: int, models: Mapping[str, str]) -> str:
    """The text of a job that names a model: its name, `account:NAME` or `gpus:N`; usually none."""
    # Imported here because it loads the catalogue, which other runs do not need.
    from artist.trace.foreign.model_names import meant, recognised

    if meant(name, models) or recognised(name):
        return name
    others = (f"account:{account}", f"gpus:{gpus}") if models else ()
    return next((other for other in others if meant(other, models)), "")


def _state(row: TraceRow) -> str:
    """The state without its cause: `CANCELLED by 1001` is `CANCELLED`."""
    return row.text("State").partition(" ")[0].upper()


def _held_in(row: TraceRow) -> str:
    """The column with what a job held or, if it held nothing, with what it asked for."""
    return next((name for name in _TRES if row.has(name)), _TRES[0])


def _gpus(row: TraceRow) -> tuple[int, str]:
    """The GPUs that a job held or, if it held none, asked for; and their kind if known."""
    name = _held_in(row)
    total, by_kind = None, dict[str, int]()
    for part in row.text(name).split(","):
        what, _, count = part.partition("=")
        if what == "gres/gpu" or what.startswith("gres/gpu:"):
            if not count.isdecimal() or len(count) > 9 or int(count) > MAX_GPUS:
                raise row.error(name, f"gres/gpu as a whole number up to {MAX_GPUS}")
            if what == "gres/gpu":
                total = int(count)
            else:
                by_kind[what.removeprefix("gres/gpu:")] = int(count)
    return sum(by_kind.values()) if total is None else total, "+".join(sorted(by_kind))


def _amount(row: TraceRow, what: str, units: Mapping[str, float]) -> int:
    """How much of a resource a job held, in whole parts; 0 if that is not stated."""
    name = _held_in(row)
    found = re.search(rf"(?:^|,){what}=([^,]*)", row.text(name))
    if found is None:
        return 0
    amount = _AMOUNT.fullmatch(found[1])
    if amount is None or amount[2] not in units:
        raise row.error(
            name, f"{what} as a number, with a unit if it is memory, such as mem=62.50G"
        )
    return math.ceil(float(amount[1]) * units[amount[2]])


_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)([A-Z]?)", re.ASCII)
_MIB = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
"""MiB of each unit of memory; a number without a unit is in MiB (slurm.conf(5), RealMemory)."""


def _limit(row: TraceRow) -> str:
    """The time limit in seconds, in words; empty if there is none."""
    if row.has("TimelimitRaw") and row.text("TimelimitRaw").casefold() not in _NO_LIMIT:
        return str(60 * row.count("TimelimitRaw"))
    if row.text("Timelimit").casefold() in _NO_LIMIT:
        return ""
    return str(_seconds(row, "Timelimit"))


def _seconds(row: TraceRow, name: str) -> int:
    """The seconds of a duration such as `1-02:03:04`."""
    seconds = length_s(row.text(name))
    if seconds is None:
        raise row.error(name, LENGTH)
    return seconds

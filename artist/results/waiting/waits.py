"""Why jobs waited: one row per stretch of time in which a job had arrived and had no GPUs.

A wait lasts from the job's arrival, or from the loss of its GPUs, to its next start. The instant of
that start is not part of it. Everything is derived from the engine's rows after the run. Less than
a microsecond is not a wait: within it a policy passes GPUs from one job to another.

**Seconds per cause.** A reason counts from the tick at which the policy gave it
(`artist.contract.Wait`) until it lapses, the policy gives another, or the wait ends. The rest of
the wait consists of stretches without a reason. In each, the time in which enough GPUs stayed free
for the job is `left-free`: the policy left them. The remainder is `order` if at some instant of the
stretch enough GPUs were free and other jobs got them (`FreeGpusOfWaits.passed`), else `gpus`.

A job that loses its GPUs to others waits because of the `order`, since its own GPUs are free at
that instant.

**The cause of a wait** is the one with most seconds. Ties go to the first reason that the policy
gave, then to `left-free`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from artist.contract import WAIT_CAUSES
from artist.engine.rows import WaitRow
from artist.results.tables import seconds_column
from artist.results.terms.columns import Table, typed
from artist.results.terms.number_text import NO_DAYS, time_text, time_unit
from artist.results.waiting.free_while_waiting import HAND_OVER, FreeGpusOfWaits, free_gpus_of
from artist.results.waiting.stays import WaitInputs, Whole
from artist.results.waiting.wait_neighbours import WaitNeighbours, Waits, longest_heads, neighbours
from artist.units import GPU_MILLI, Tick, counted, seconds

LEFT_FREE, ORDER, GPUS = "left-free", "order", "gpus"
KINDS = "gpu_kind"
CAUSES = (*WAIT_CAUSES, LEFT_FREE, ORDER, GPUS)

A_MOMENT: Tick = 1_000_000
"""A millisecond. Shorter times print as `less than 1 ms`, since jobs take hours."""

ARRIVED = "arrived"
"""How a wait began, if the job did not lose GPUs."""


class _Told(NamedTuple):
    """The reasons that a policy gave for one wait: ticks of each cause, and the last words."""

    ticks: Mapping[str, Tick]
    words: Mapping[str, str]
    untold: Sequence[tuple[Tick, Tick]]
    """The stretches of the wait without a reason."""


def wait_table(inputs: WaitInputs) -> Table:
    """One row per wait, by begin, then in the order of arrival. Columns: `terms/tables.tsv`."""
    waits, before = _waits(inputs)
    free = free_gpus_of(inputs, waits)
    around = neighbours(inputs.stays, waits)
    told = _told(inputs, waits)
    names = np.array(inputs.jobs, dtype=object)
    cause = np.select([free.mostly_left(waits), free.passed], [LEFT_FREE, ORDER], GPUS).tolist()
    spent = _spent(inputs, waits, told)
    left_untold, short = free.left_for.copy(), waits.end - waits.begin - free.left_for
    for index, causes in spent.items():
        cause[index] = causes.most_common(1)[0][0]
        left_untold[index], short[index] = causes[LEFT_FREE], causes[GPUS]
    ended = inputs.stays.ended
    columns: Table = {
        "job_id": names[waits.handle].tolist(),
        "start_s": seconds_column(waits.begin),
        "end_s": seconds_column(waits.end),
        "wait_s": seconds_column(waits.end - waits.begin),
        "gpus": inputs.wanted[waits.handle],
        "began": [ended[stay] if stay >= 0 else ARRIVED for stay in before.tolist()],
        "cause": cause,
        "reason": _reasons(cause, told, inputs, waits, free, left_untold, short, around),
        "free_gpus_max": free.most,
        "left_free_s": seconds_column(free.left_for),
        "waited_for": _named(around.holders, inputs.jobs),
        "overtaken_by": _named(around.overtaking, inputs.jobs),
        "overtakers": around.overtaken,
    }
    return typed("waits", columns)


def cause_table(inputs: WaitInputs) -> Table:
    """Seconds per cause, the longest first, of waits whose causes `waits` does not tell: those with
    a reason of the policy, and those that are mostly `left-free` with a rest of `gpus`.
    """
    waits, _ = _waits(inputs)
    told, free = _told(inputs, waits), free_gpus_of(inputs, waits)
    spent = _spent(inputs, waits, told)
    rest = waits.end - waits.begin - free.left_for
    unknown = free.mostly_left(waits) & ~free.passed & (rest > 0)
    for index in set(np.flatnonzero(unknown).tolist()) - spent.keys():
        spent[index] = Counter({LEFT_FREE: int(free.left_for[index]), GPUS: int(rest[index])})
    rows = [
        (index, cause, length, told[index].words.get(cause, "") if index in told else "")
        for index, causes in sorted(spent.items())
        for cause, length in causes.most_common()
        if length
    ]
    at = np.array([row[0] for row in rows], dtype=np.int64)
    columns: Table = {
        "job_id": [inputs.jobs[handle] for handle in waits.handle[at].tolist()],
        "start_s": seconds_column(waits.begin[at]),
        "cause": [row[1] for row in rows],
        "cause_s": seconds_column(np.array([row[2] for row in rows], dtype=np.int64)),
        "reason": [row[3] for row in rows],
    }
    return typed("wait_causes", columns)


def seconds_by_cause(inputs: WaitInputs) -> dict[str, float]:
    """Seconds of all waits by cause, the longest first; jobs count alike."""
    waits, _ = _waits(inputs)
    told = _told(inputs, waits)
    total: Counter[str] = Counter()
    for causes in _spent(inputs, waits, told).values():
        total.update(causes)
    untold = np.ones(len(waits.handle), dtype=np.bool_)
    untold[list(told)] = False
    waits = Waits(*(column[untold] for column in waits))
    free = free_gpus_of(inputs, waits)
    rest = waits.end - waits.begin - free.left_for
    total[LEFT_FREE] += int(free.left_for.sum())
    total[ORDER] += int(rest[free.passed].sum())
    total[GPUS] += int(rest[~free.passed].sum())
    return {cause: seconds(ticks) for cause, ticks in total.most_common() if ticks}


def _spent(inputs: WaitInputs, waits: Waits, told: Mapping[int, _Told]) -> dict[int, Counter[str]]:
    """Index of a wait -> ticks per cause, for waits with a reason of the policy."""
    pieces = [(index, *piece) for index, reasons in told.items() for piece in reasons.untold]
    owner, begin, end = np.array(pieces, dtype=np.int64).reshape(-1, 3).T
    untold = Waits(waits.handle[owner], begin, end)
    free = free_gpus_of(inputs, untold)
    rest = np.where(free.passed, ORDER, GPUS).tolist()
    spent = {index: Counter(reasons.ticks) for index, reasons in told.items()}
    figures = (column.tolist() for column in (owner, end - begin, free.left_for))
    for index, length, left_for, cause in zip(*figures, rest, strict=True):
        spent[index][LEFT_FREE] += left_for
        spent[index][cause] += length - left_for
    return spent


def _named(handles: Sequence[Sequence[int]], jobs: Sequence[str]) -> list[list[str]]:
    return [[jobs[handle] for handle in some] for some in handles]


def _waits(inputs: WaitInputs) -> tuple[Waits, Whole]:
    """The waits, and the index of the stay before each; -1 if the job had just arrived."""
    stays = inputs.stays
    first = np.diff(stays.handle, prepend=-1) != 0
    begin = np.where(first, inputs.arrival[stays.handle], np.concatenate([[0], stays.end[:-1]]))
    before = np.where(first, -1, np.arange(len(first)) - 1)
    order = np.lexsort((stays.handle, begin))
    order = order[(stays.start - begin >= HAND_OVER)[order]]
    return Waits(stays.handle[order], begin[order], stays.start[order]), before[order]


# -- words ---------------------------------------------------------------------------


def _told(inputs: WaitInputs, waits: Waits) -> dict[int, _Told]:
    """Index of a wait -> the reasons that the policy gave, for waits that have any."""
    by_job: dict[int, list[WaitRow]] = {}
    for row in inputs.reasons:
        by_job.setdefault(row.handle, []).append(row)
    told: dict[int, _Told] = {}
    if not by_job:
        return told
    for index, wait in enumerate(zip(*(column.tolist() for column in waits), strict=True)):
        handle, begin, end = wait
        rows = by_job.get(handle, [])
        first = bisect_left(rows, begin, key=_tick)
        rows = rows[first : bisect_left(rows, end, lo=first, key=_tick)]
        reasons = _stretches(rows, begin, end)
        if reasons.ticks:
            told[index] = reasons
    return told


_tick = attrgetter("tick")


def _stretches(rows: Sequence[WaitRow], begin: Tick, end: Tick) -> _Told:
    """The stretches of one wait with a reason, by cause, and those without."""
    ticks: dict[str, Tick] = {}
    words: dict[str, str] = {}
    untold: list[tuple[Tick, Tick]] = []
    told_until = begin
    ends = [*(row.tick for row in rows), end][1:]
    for row, until in zip(rows, ends, strict=True):
        if row.until is not None:
            until = min(until, row.until)
        if not row.reason or until <= row.tick:
            continue
        if told_until < row.tick:
            untold.append((told_until, row.tick))
        ticks[row.cause] = ticks.get(row.cause, 0) + until - row.tick
        words[row.cause] = row.reason
        told_until = until
    if told_until < end:
        untold.append((told_until, end))
    return _Told(ticks, words, untold)


def _reasons(
    causes: Sequence[str],
    told: Mapping[int, _Told],
    inputs: WaitInputs,
    waits: Waits,
    free: FreeGpusOfWaits,
    left_untold: Whole,
    short: Whole,
    around: WaitNeighbours,
) -> list[str]:
    """The sentence of each wait.

    While the policy told no reason, GPUs were left free for `left_untold` ticks. Too few were free
    for `short` ticks of the rest, unless other jobs got them.
    """
    return [
        _reason(cause, told.get(index), _Figures(*figures))
        for index, (cause, *figures) in enumerate(
            zip(
                causes,
                inputs.wanted[waits.handle].tolist(),
                inputs.least[waits.handle].tolist(),
                inputs.shares[waits.handle, 0].tolist(),
                free.most.tolist(),
                free.stayed.tolist(),
                free.since.tolist(),
                free.fewer.tolist(),
                (waits.end - free.last).tolist(),
                free.at_last.tolist(),
                left_untold.tolist(),
                short.tolist(),
                (waits.end - waits.begin).tolist(),
                around.served,
                around.overtaken,
                _behind(inputs, waits),
                _away_texts(inputs.gpus, free),
                strict=True,
            )
        )
    ]


class _Figures(NamedTuple):
    """The figures of the sentence about a wait, and the head of the queue."""

    gpus: int
    least: int
    share: int
    """Thousandths of a GPU; 0: whole GPUs."""
    most_free: int
    most_stayed: int
    most_since: int
    fewer: int
    since: Tick
    """How long before its start as many GPUs as it needs were free for the last time."""
    at_last: Tick
    left_for: Tick
    short: Tick
    length: Tick
    served: int
    overtaken: int
    behind: str
    away: str


def _away_texts(gpus: int, free: FreeGpusOfWaits) -> list[str]:
    """How many of a cluster's GPUs each wait was without; nothing where all were in service."""
    return [
        f"; {'' if least == most else 'up to '}{most} of {counted(gpus, 'GPU')} "
        f"{'was' if most == 1 else 'were'} out of service"
        if most
        else ""
        for least, most in zip(free.least_away.tolist(), free.most_away.tolist(), strict=True)
    ]


def _behind(inputs: WaitInputs, waits: Waits) -> list[str]:
    """Behind which job each waited, if no job may pass the head of the queue; else nothing."""
    if not inputs.head_blocks:
        return [""] * len(waits.handle)
    texts = []
    lengths = (waits.end - waits.begin).tolist()
    for own, length, head in zip(waits.handle.tolist(), lengths, longest_heads(waits), strict=True):
        part = "all the while" if head.length == length else f"for {_time(head.length, length)}"
        if head.handle == own:
            texts.append(f"it headed the queue itself {part}; ")
            continue
        gpus = counted(int(inputs.wanted[head.handle]), "GPU")
        texts.append(
            f"it stood behind {inputs.jobs[head.handle]} ({gpus}), which headed the queue {part}, "
            "and no job passes the head; "
        )
    return texts


def _reason(cause: str, told: _Told | None, wait: _Figures) -> str:
    """The sentence about a wait; its times add up to the wait."""
    least = f" (at least {wait.least})" if wait.least < wait.gpus else ""
    part = f"{wait.share / GPU_MILLI:g} of a GPU"
    wanted = f"it wanted {part if wait.share else wait.gpus}{least}"
    free, many = _most_free(wait.most_free, wait.share), "much" if wait.share else "many"
    if told is not None and cause in told.ticks:
        # Not `most_free`: a reader would ask why the job did not get GPUs that changed hands.
        free = _most_free(wait.most_stayed, wait.share)
        in_all = " in all" if wait.most_stayed >= wait.least else ""  # enough, but badly placed
        away = wait.away if cause == KINDS else ""  # all of a kind may be out of service
        return f"{_told_text(told, wait.length)}; {wanted}, and {free}{in_all}{away}"
    besides = "" if told is None else f"; besides, {_told_text(told, wait.length)}"
    if cause == GPUS:
        if wait.most_free >= wait.least:  # in a part of the wait, or while the policy gave a reason
            free = f"{_for(wait.short, wait.length)} fewer were free"
            if wait.left_for >= HAND_OVER:
                free += f"; for {_time(wait.left_for, wait.length)} that {many} stayed free"
            return f"{wait.behind}{wanted}, and {free}{wait.away}{besides}"
        return f"{wait.behind}{free}, and {wanted}{wait.away}{besides}"
    if wait.left_for:
        stayed = f"{_for(wait.left_for, wait.length)} that {many} stayed free"
        unused = ", but the policy's order or rule of placement left them unused"
        had = f"{wanted}, and {stayed}{'' if wait.behind else unused}{_too_few(told, wait)}"
    elif wait.at_last >= HAND_OVER:  # meanwhile the policy gave a reason
        stayed = f"stayed free for the last {_time(wait.at_last, wait.length)} before it started"
        had = f"{wanted}; that {many} went to other jobs at times, and {stayed}"
    elif wait.since < A_MOMENT:
        had = (
            f"{wanted}; that {_was(wait)} last free at once when it started, but other jobs came "
            "first"
        )
    else:
        before = _time(wait.since, wait.length)
        had = (
            f"{wanted}; that {_was(wait)} last free at once {before} before it started, but went "
            f"to other jobs; from then on {_most_free(wait.most_since, wait.share)}"
        )
    return f"{wait.behind}{had}; {_meanwhile(wait.served, wait.overtaken)}{besides}"


def _too_few(told: _Told | None, wait: _Figures) -> str:
    """For how long fewer GPUs stayed free than the job needs, apart from the policy's reasons."""
    told_for = 0 if told is None else sum(told.ticks.values())
    rest = wait.length - wait.left_for - told_for
    if rest < HAND_OVER:
        return ""
    fewer = f"at most {wait.fewer}" if wait.fewer > 0 else "no GPU"
    return f"; for {_time(rest, wait.length)} {fewer} did"


def _told_text(told: _Told, length: Tick) -> str:
    """The policy's words, with the part of the wait for which they hold, if not all of it."""
    whole = _time(length, length)
    return ", and ".join(
        told.words[cause] + f" ({_for(ticks, length)})" * (_time(ticks, length) != whole)
        for cause, ticks in told.ticks.items()
    )


def _meanwhile(served: int, overtaken: int) -> str:
    if not served:
        return "no other job got GPUs meanwhile"
    meanwhile = f"{counted(served, 'other job')} got GPUs meanwhile"
    if 0 < overtaken < served:
        return f"{meanwhile}, {overtaken:,} of which come after it in the trace"
    side = "after" if overtaken else "before"
    return f"{meanwhile}, {'which comes' if served == 1 else 'all'} {side} it in the trace"


def _most_free(gpus: int, share: int) -> str:
    one, several = ("had room", "had room") if share else ("was free", "were free")
    if gpus < 2:
        return f"at most 1 GPU {one}" if gpus else f"no GPU {one}"
    return f"at most {gpus} GPUs {several}"


def _was(wait: _Figures) -> str:
    return "much was" if wait.share else "many were"


def _for(part: Tick, length: Tick) -> str:
    of, whole = _time(part, length), _time(length, length)
    return "all the while" if of == whole else f"for {of} of {whole}"


def _time(ticks: Tick, length: Tick) -> str:
    """A part of a wait of that length, in the unit that suits the whole wait."""
    if 0 < ticks < A_MOMENT <= length:
        return "less than 1 ms"
    return time_text(seconds(ticks), time_unit(seconds(length), days=NO_DAYS))

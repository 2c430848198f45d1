"""Why the jobs of a run waited, over all its waits."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from artist.report.reader import FileColumns, RecordedRun
from artist.results.terms.number_text import percent
from artist.results.waiting.job_story import Row, cause_words, split_by_cause
from artist.results.waiting.waits import ARRIVED, ORDER
from artist.units import counted

_LEAST = 0.005
"""A smaller share would be 0 %."""


class WaitCauses(NamedTuple):
    """What the jobs of a run waited for."""

    by_cause: Counter[str]
    """Code of a cause -> seconds."""
    after_start_s: float
    """How much of the cause `order` came after the job had had GPUs."""


def waited(run: RecordedRun) -> WaitCauses:
    """Seconds of all waits by cause; none if the run did not record waits."""
    by_cause: Counter[str] = Counter()
    after_start_s = 0.0
    for wait in _waits(run):
        by_cause.update(wait["causes"])
        if wait["began"] != ARRIVED:
            after_start_s += wait["causes"].get(ORDER, 0.0)
    return WaitCauses(by_cause, after_start_s)


def _waits(run: RecordedRun) -> list[Row]:
    """The waits with their `causes`."""
    if run.waits is None:
        return []
    waits = _rows(run.waits, ("job_id", "began", "cause"), ("start_s", "wait_s", "left_free_s"))
    told = run.wait_causes
    split_by_cause(waits, _rows(told, ("job_id", "cause"), ("start_s", "cause_s")) if told else [])
    return waits


def _rows(table: FileColumns, texts: tuple[str, ...], numbers: tuple[str, ...]) -> list[Row]:
    columns = {key: table.text[key] for key in texts}
    columns |= {key: table[key].tolist() for key in numbers}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def causes_in_words(run: RecordedRun) -> list[str]:
    """Causes and their shares, such as `free GPUs went to other jobs, 97 %`: longest first."""
    by_cause, after_start_s = waited(run)
    total_s = sum(max(0.0, length_s) for length_s in by_cause.values())  # damaged runs
    texts = []
    for cause, length_s in by_cause.most_common():
        if length_s <= 0 or length_s < _LEAST * total_s:
            continue
        text = f"{cause_words(cause)}, {100 * length_s / total_s:.0f} %"
        if cause == ORDER and after_start_s >= _LEAST * length_s > 0:
            share = 100 * after_start_s / length_s
            text += f" ({share:.0f} % of that while waiting to resume)"
        texts.append(text)
    return texts


def half_of_the_waiting(run: RecordedRun) -> str:
    """How few jobs did half of the waiting; empty if over a quarter of those that waited."""
    waits_s = np.sort(run.jobs["queue_delay_s"])[::-1]
    waiting = int(np.count_nonzero(waits_s > 0))
    few = int(np.searchsorted(np.cumsum(waits_s), waits_s.sum() / 2)) + 1
    if 4 * few > waiting:
        return ""
    accounts = "account" if few > 1 else "accounts"
    return (
        f"{counted(few, 'job')} ({percent(few / run.jobs.count)} %) {accounts} for half of the "
        "waiting"
    )

"""Which jobs lost time to which others on links that they share.

In an interval at one speed, a job loses its running time x (1 - isolated iteration / iteration). It
loses that time **to** another job while both are on a link whose demand exceeds what it carries. If
several other jobs are there, the same time counts for each, so these losses do not add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from artist.report.curves import Indices
from artist.report.reader import FileColumns, Numbers, RecordedRun

Spans = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Loser:
    """A job that lost time to contention."""

    row: int
    """In `jobs.parquet`."""
    job_id: str
    lost_s: float
    slowdown: float
    """Running time over that in isolation, less 1."""
    to: Sequence[tuple[str, float]]
    """The jobs to which it lost time, with the seconds, the most first; empty if not known."""


def losers(run: RecordedRun, most: int) -> list[Loser]:
    """The jobs that lost most, the largest loss first; equal losses by arrival."""
    lost = run.jobs["contention_lost_s"]
    rows = [row for row in np.argsort(-lost, kind="stable")[:most].tolist() if lost[row] > 0]
    names = [run.jobs.text["job_id"][row] for row in rows]
    to_others = lost_to_others(run, names)
    slowdown = run.jobs["contention_slowdown"]
    return [
        Loser(row, name, float(lost[row]), float(slowdown[row]), to_others.get(name, ()))
        for row, name in zip(rows, names, strict=True)
    ]


def lost_to_others(run: RecordedRun, jobs: Iterable[str]) -> Mapping[str, list[tuple[str, float]]]:
    """The seconds that some jobs lost to each other job, the most first; ties by name."""
    wanted = set(jobs)
    if run.links is None:
        return {}
    together = _together(run.links, wanted)
    losing = {
        job: _losing_of(run.placements, rows)
        for job, rows in _rows_by_job(run.placements, wanted).items()
    }
    return {
        job: sorted(
            (
                (other, seconds)
                for other, spans in others.items()
                if (seconds := losing[job].within(_joined(spans))) > 0
            ),
            key=lambda pair: (-pair[1], pair[0]),
        )
        for job, others in together.items()
        if job in losing
    }


def lost_on_links(run: RecordedRun, links: FileColumns) -> Numbers:
    """For each row of `links.parquet`, the loss of all its jobs together, in seconds per second.

    They lose nothing on a link that carries their demand. A job's loss counts in full on each
    overloaded link.
    """
    moments: dict[str, list[int]] = {}
    for row in np.flatnonzero(_overloaded(links)).tolist():
        for job in links.lists["job_ids"][row]:
            moments.setdefault(job, []).append(row)
    lost = np.zeros(links.count)
    for job, of_job in _rows_by_job(run.placements, set(moments)).items():
        rows = np.array(moments[job])
        # A job's speed is constant within a row of links: a change of speed ends the row.
        begins = run.placements["start_s"][of_job]
        last = np.searchsorted(begins, links["start_s"][rows], side="right") - 1
        lost[rows] += _lost_share(run.placements, of_job)[np.maximum(last, 0)]
    return lost


def _overloaded(links: FileColumns) -> npt.NDArray[np.bool_]:
    """For each row, whether several jobs together want more than the link carries."""
    crowded: npt.NDArray[np.bool_] = (links["jobs"] > 1) & (links["demand"] > 1)
    return crowded


def _together(links: FileColumns, jobs: set[str]) -> Mapping[str, Mapping[str, Spans]]:
    """When jobs share an overloaded link with which others; by job, then by other."""
    times: dict[str, dict[str, Spans]] = {}
    starts, ends = links["start_s"].tolist(), links["end_s"].tolist()
    for row in np.flatnonzero(_overloaded(links)).tolist():
        there = links.lists["job_ids"][row]
        for job in jobs.intersection(there):
            for other in there:
                if other != job:
                    spans = times.setdefault(job, {}).setdefault(other, [])
                    spans.append((starts[row], ends[row]))
    return times


def _joined(spans: Spans) -> Spans:
    """The same time without overlaps, in order."""
    whole: Spans = []
    for start, end in sorted(spans):
        if whole and start <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return whole


@dataclass(frozen=True, slots=True)
class _Losing:
    """What a job has lost up to a time, as a piecewise linear function."""

    time_s: Numbers
    lost_s: Numbers

    def within(self, spans: Spans) -> float:
        starts, ends = np.array(spans).T
        lost = np.interp(ends, self.time_s, self.lost_s)
        return float(np.sum(lost - np.interp(starts, self.time_s, self.lost_s)))


def _losing_of(placements: FileColumns, rows: Indices) -> _Losing:
    end = placements["end_s"][rows]
    # A job is stalled at the beginning of an interval.
    start = np.minimum(placements["start_s"][rows] + placements["stalled_s"][rows], end)
    lost = (end - start) * _lost_share(placements, rows)
    time_s = np.ravel([start, end], order="F")
    return _Losing(time_s, np.cumsum(np.ravel([np.zeros(len(rows)), lost], order="F")))


def _rows_by_job(placements: FileColumns, jobs: set[str]) -> Mapping[str, Indices]:
    """The intervals of some jobs, in the order of time."""
    rows: dict[str, list[int]] = {}
    for row in np.argsort(placements["start_s"], kind="stable").tolist():
        if (job := placements.text["job_id"][row]) in jobs:
            rows.setdefault(job, []).append(row)
    return {job: np.array(of_job) for job, of_job in rows.items()}


def _lost_share(placements: FileColumns, rows: Indices) -> Numbers:
    """The share of its running time that a job loses, in some intervals."""
    share: Numbers = 1 - placements["alone_iteration_s"][rows] / placements["iteration_s"][rows]
    return share

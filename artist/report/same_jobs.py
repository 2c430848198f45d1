"""The same job under two policies: who won, who lost, and by how much.

Jobs of the replicates that a policy shares with the baseline are compared with themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artist.report.curves import cumulative
from artist.report.figure import Figure, described
from artist.report.grouping import Setting, Study
from artist.report.reader import Numbers, RecordedRun
from artist.report.templating import section
from artist.results.terms.number_text import column_unit, in_unit, percent, plain

if TYPE_CHECKING:
    from markupsafe import Markup

ALIKE = 0.01
"""Completion times that differ by less are alike."""
_POINTS = 100
_ROWS = 5
"""Jobs that won most, and that lost most, of each policy."""


class SameJobs(NamedTuple):
    """The jobs that two runs have in common, in the order of the first run."""

    run: RecordedRun
    """The first run."""
    rows: list[int]
    """The row of each job in its `jobs.parquet`."""
    ours_s: Numbers
    """The job's completion time in the first run."""
    theirs_s: Numbers
    """The same in the other."""


def same_jobs(ours: RecordedRun, theirs: RecordedRun) -> SameJobs:
    """Match the jobs that both runs finished by their names."""
    done = theirs.finished
    times = dict(zip(done.text["job_id"], done["jct_s"].tolist(), strict=True))
    names, finished = ours.jobs.text["job_id"], {*ours.finished.text["job_id"]}
    rows = [row for row, name in enumerate(names) if name in times and name in finished]
    theirs_s = np.array([times[names[row]] for row in rows], np.float64)
    return SameJobs(ours, rows, ours.jobs["jct_s"][rows], theirs_s)


def of_same_jobs(study: Study, setting: Setting) -> Iterator[Figure]:
    """The distribution of each job's completion time relative to the baseline's."""
    baseline = study.baseline(setting)
    series = []
    for policy, pairs in _compared(setting, baseline):
        ratios = np.concatenate([pair.ours_s / pair.theirs_s for pair in pairs])
        series.append(cumulative(policy, study.tone(policy), ratios, _POINTS))
    if series:
        yield described("same-job", study, setting, series, baseline=baseline)


def _compared(setting: Setting, baseline: str) -> Iterator[tuple[str, list[SameJobs]]]:
    """Each other policy with the jobs of every replicate that it shares with the baseline."""
    for policy, runs in setting.runs.items():
        if policy == baseline:
            continue
        shared = setting.shared_by((baseline, policy))
        pairs = [same_jobs(runs[key], setting.runs[baseline][key]) for key in shared]
        if pairs and all(pair.rows for pair in pairs):
            yield policy, pairs


def same_jobs_section(study: Study) -> Markup:
    """For each setting and policy, how many jobs won and lost, and which won or lost most."""
    return section(
        "same_jobs.html",
        settings=[(setting, *_of_setting(study, setting)) for setting in study.settings],
    )


def _of_setting(study: Study, setting: Setting) -> tuple[str, list[dict[str, Any]]]:
    baseline = study.baseline(setting)
    return baseline, [
        {"policy": policy, "counts": _counts(pairs), "rows": _rows(pairs[0])}
        for policy, pairs in _compared(setting, baseline)
    ]


def _counts(pairs: list[SameJobs]) -> dict[str, int]:
    """How many jobs finish sooner than under the baseline, how many later, of how many."""
    ratios = np.concatenate([pair.ours_s / pair.theirs_s for pair in pairs])
    return {
        "sooner": int(np.count_nonzero(ratios < 1 - ALIKE)),
        "later": int(np.count_nonzero(ratios > 1 + ALIKE)),
        "jobs": len(ratios),
    }


def _rows(pair: SameJobs) -> list[list[str]]:
    """The jobs that won most time, the most first, then those that lost, the most last."""
    more_s = pair.ours_s - pair.theirs_s
    order = np.argsort(more_s, kind="stable").tolist()
    won = [at for at in order[:_ROWS] if more_s[at] < 0]
    lost = [at for at in order[-_ROWS:] if more_s[at] > 0]
    jobs, shown = pair.run.jobs, [*won, *lost]
    unit = column_unit((*pair.ours_s[shown], *pair.theirs_s[shown], *more_s[shown]))
    rows = []
    for at in shown:
        row, ours_s, theirs_s = pair.rows[at], float(pair.ours_s[at]), float(pair.theirs_s[at])
        by_s = ours_s - theirs_s
        share = f"{'-' if by_s < 0 else '+'}{percent(abs(by_s) / theirs_s)} %"
        rows.append([
            jobs.text["job_id"][row], jobs.text["model"][row], plain(float(jobs["gpus"][row])),
            *(in_unit(value, unit) for value in (theirs_s, ours_s)),
            f"{'-' if by_s < 0 else '+'}{in_unit(abs(by_s), unit)}", share,
        ])  # fmt: skip
    return rows

"""Figures of jobs that take turns on links (CASSINI): circles before and after, iteration times.

Only runs that aligned jobs have `circles.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from artist.report.curves import Indices, job_tones, weighted
from artist.report.figure import Figure, Series, described, rounded
from artist.report.grouping import Setting, Study, slugs
from artist.report.reader import FileColumns, Numbers, RecordedRun
from artist.results.statistics.sorted_values import weighted_percentile

BINS = 180
"""Bins of a turn, of 2 degrees each."""
MOST_CIRCLES = 4
_MS, _GBIT = 1e3, 1e9 / 8


@dataclass(frozen=True, slots=True)
class Aligned:
    """A link whose jobs were aligned, from some time on."""

    link: str
    rows: Indices
    """Of `circles.parquet`, by job."""
    contended_s: float
    """(1 - score at random phases) x duration: the time that alignment can save."""


def on_circles(study: Study, setting: Setting) -> Iterator[Figure]:
    """Circles of the most contended links per policy, and the iteration times of all policies."""
    runs = setting.firsts
    if all(run.circles is None for run in runs.values()):
        return
    for policy, run in runs.items():
        if run.circles is not None:
            shown = most_contended(run, run.circles)[:MOST_CIRCLES]
            for one, slug in zip(shown, slugs([one.link for one in shown]), strict=True):
                yield _circle(study, setting, policy, one, f"circle-{slug}")
    yield _iterations(study, setting)


def most_contended(run: RecordedRun, circles: FileColumns) -> list[Aligned]:
    """The links whose jobs were aligned, the most contended first.

    Each link stands once, with the alignment that was worth most.

    An alignment lasts until the link's next one, or until its last job ends.
    """
    finish_s = dict(zip(run.jobs.text["job_id"], run.jobs["finish_s"].tolist(), strict=True))
    moments: dict[str, dict[float, list[int]]] = {}
    for row, (link, time_s) in enumerate(
        zip(circles.text["link"], circles["time_s"].tolist(), strict=True)
    ):
        moments.setdefault(link, {}).setdefault(time_s, []).append(row)
    worst = []
    for link, by_time in moments.items():
        ends_s = [*list(by_time)[1:], np.inf]
        of_link = []
        for (time_s, rows), next_s in zip(by_time.items(), ends_s, strict=True):
            last_s = max(finish_s.get(circles.text["job_id"][row], time_s) for row in rows)
            lasts_s = max(min(next_s, last_s) - time_s, 0.0)
            lost = 1.0 - float(circles["score_at_random"][rows[0]])
            of_link.append(Aligned(link, np.array(rows), lost * lasts_s))
        worst.append(max(of_link, key=lambda one: one.contended_s))
    return sorted(worst, key=lambda one: -one.contended_s)


def _circle(study: Study, setting: Setting, policy: str, one: Aligned, measure: str) -> Figure:
    """A ring per job, in step and shifted."""
    run = setting.firsts[policy]
    circles, first = run.circles, int(one.rows[0])
    assert circles is not None  # there are rows
    capacity = float(circles["capacity_bytes_per_s"][first]) / _GBIT
    turn_ms = _MS * float(circles["turn_s"][first])
    edges = rounded(np.linspace(0.0, turn_ms, BINS + 1))
    tones = job_tones(run.jobs)
    series, totals = [], np.zeros((2, BINS))
    for row in one.rows.tolist():
        before, after = (demand(circles, row, shifted) / _GBIT for shifted in (False, True))
        totals += (before, after)
        job = circles.text["job_id"][row]
        times = np.array([circles[x][row] for x in ("iteration_s", "up_s", "shift_s")])
        parts = [rounded(after), rounded(_MS * times)]
        series.append(
            Series(f"job {job}", tones.get(job, "j0"), rounded(before), edges, parts=parts)
        )
    scores = [1.0 - float(np.maximum(x - capacity, 0.0).mean()) / capacity for x in totals]
    return described(
        "circle", study, setting, series, measure=measure, policy=policy, top=capacity,
        link=one.link,
        in_step=f"{scores[0]:.2f}",
        shifted=f"{scores[1]:.2f}",
        at_s=f"{float(circles['time_s'][first]):,.0f}",
        turn_ms=f"{turn_ms:,.4g}",
        capacity=f"{capacity:.4g}",
        at_random=f"{float(circles['score_at_random'][first]):.2f}",
    )  # fmt: skip


def demand(circles: FileColumns, row: int, shifted: bool) -> Numbers:
    """The bytes per second that a job wants to send in each bin of a turn: Down first, then Up."""
    turn_s, period_s = circles["turn_s"][row], circles["on_circle_s"][row]
    middle_s = (np.arange(BINS) + 0.5) * turn_s / BINS
    shift_s = circles["shift_s"][row] if shifted else 0.0
    phase = (middle_s - shift_s) % period_s / period_s
    up = phase >= 1.0 - circles["up_s"][row] / circles["iteration_s"][row]
    sent: Numbers = up * circles["bytes_per_s"][row]
    return sent


def _iterations(study: Study, setting: Setting) -> Figure:
    """The cumulative distribution of iteration times."""
    times = {policy: _times(list(runs.values())) for policy, runs in setting.runs.items()}
    series = [
        weighted(policy, study.tone(policy), took_s, counts, np.inf)
        for policy, (took_s, counts) in times.items()
    ]
    return described("iteration-times", study, setting, series, gains=" ".join(_gains(times)))


def _times(runs: Sequence[RecordedRun]) -> tuple[Numbers, Numbers]:
    """Iteration times in seconds, and how many iterations took each."""
    took_s, counts = (
        np.concatenate([run.placements[column] for run in runs])
        for column in ("iteration_s", "iterations")
    )
    ended = counts > 0
    return took_s[ended], counts[ended]


def _gains(times: Mapping[str, tuple[Numbers, Numbers]]) -> Iterator[str]:
    """What CASSINI gains over each policy that it wraps."""
    for policy, of_both in times.items():
        host = _host(policy)
        if host in times:
            (mean, p99), (our_mean, our_p99) = map(_mean_and_p99, (times[host], of_both))
            gains = f"{mean / our_mean:.2f} x in the mean, {p99 / our_p99:.2f} x in the P99"
            yield f"{policy} over {host}: {gains}."


def _host(policy: str) -> str:
    if policy.startswith("cassini(") and policy.endswith(")"):
        return policy[len("cassini(") : -1]
    return policy.removesuffix("-cassini") if policy.endswith("-cassini") else ""


def _mean_and_p99(of: tuple[Numbers, Numbers]) -> tuple[float, float]:
    took_s, counts = of
    return float(np.average(took_s, weights=counts)), weighted_percentile(took_s, counts, 99)

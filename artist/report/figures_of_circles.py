"""Figures of jobs that take turns on links (CASSINI): circles before and after, iteration times.

Only runs that aligned jobs have `circles.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study, slugs
from artist.report.job_tones import job_tones
from artist.report.pooled_jobs import pooled_note, weighted
from artist.report.reader import Numbers, Rows, Run
from artist.report.thinning import Indices

BINS = 180
"""Of a turn: 2 degrees each."""
MOST_CIRCLES = 4
_MS, _GBIT = 1e3, 1e9 / 8

_PAPER = (
    "The paper's gains over Themis on its testbed: 1.2 to 1.6 x in the mean, 1.6 to 2.2 x in the "
    "99th percentile (CASSINI, Figs. 11 to 16)."
)
_MEAN, _P99 = "mean", "P99"


@dataclass(frozen=True, slots=True)
class Aligned:
    """A link whose jobs were aligned, from some time on."""

    link: str
    rows: Indices
    """Of `circles.parquet`, by job."""
    contended_s: float
    """(1 - score at random phases) x how long: what alignment is there to save."""


def on_circles(study: Study, setting: Setting) -> Iterator[Figure]:
    """Circles of the most contended links per policy, and the iteration times of all policies."""
    runs = {policy: setting.first(policy) for policy in setting.runs}
    if all(run.circles is None for run in runs.values()):
        return
    several = any(len(replicates) > 1 for replicates in setting.runs.values())
    for policy, run in runs.items():
        if run.circles is not None:
            shown = most_contended(run, run.circles)[:MOST_CIRCLES]
            for one, slug in zip(shown, slugs([one.link for one in shown]), strict=True):
                name = named(f"circle-{slug}", setting.slug, study.policy_slug(policy))
                place = setting.index, study.policies.index(policy)
                yield _circle(name, place, policy, run, run.circles, one, several)
    yield _iterations(study, setting)


def most_contended(run: Run, circles: Rows) -> list[Aligned]:
    """The links whose jobs were aligned, each once, when that was worth most; the worst first.

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


def _circle(
    name: str,
    place: tuple[int, int],
    policy: str,
    run: Run,
    circles: Rows,
    one: Aligned,
    several: bool,
) -> Figure:
    """A ring per job, in step and shifted."""
    first = int(one.rows[0])
    capacity = float(circles["capacity_bytes_per_s"][first]) / _GBIT
    turn_ms = _MS * float(circles["turn_s"][first])
    edges = np.linspace(0.0, turn_ms, BINS + 1)
    tones = job_tones(run.jobs)
    series, totals = [], np.zeros((2, BINS))
    for row in one.rows.tolist():
        before, after = (demand(circles, row, shifted) / _GBIT for shifted in (False, True))
        totals += (before, after)
        job = circles.text["job_id"][row]
        times = (circles[x][row] for x in ("iteration_s", "up_s", "shift_s"))
        series.append(
            Series(
                f"job {job}", tones.get(job, "j0"), rounded(before), rounded(edges),
                parts=[rounded(after), rounded(_MS * np.array([*times]))],
            )
        )  # fmt: skip
    scores = [1.0 - float(np.maximum(x - capacity, 0.0).mean()) / capacity for x in totals]
    at_random = float(circles["score_at_random"][first])
    at_s = float(circles["time_s"][first])
    note = (
        f"From {at_s:,.0f} s on. A turn is {turn_ms:,.4g} ms, clockwise from the top; the link "
        f"carries {capacity:.4g} Gbit/s. The score of random phases is {at_random:.2f}."
    )
    return Figure(
        name=name,
        kind=Kind.CIRCLES,
        title=f"Jobs that take turns on {one.link} · {policy}",
        section="links",
        x=Axis("Time", "ms"),
        y=Axis("Wanted together", "Gbit/s", top=capacity),
        series=series,
        parts=tuple(
            f"{words}: score {score:.2f}"
            for words, score in zip(("in step", "shifted"), scores, strict=True)
        ),
        setting=place[0],
        policy=place[1],
        source="circles.parquet: on_circle_s, up_s over iteration_s, bytes_per_s, shift_s",
        note=f"{note} The first replicate." if several else note,
    )


def demand(circles: Rows, row: int, shifted: bool) -> Numbers:
    """What a job wants to send in each bin of the turn, bytes per second: Down first, then Up."""
    turn_s, period_s = circles["turn_s"][row], circles["on_circle_s"][row]
    middle_s = (np.arange(BINS) + 0.5) * turn_s / BINS
    shift_s = circles["shift_s"][row] if shifted else 0.0
    phase = (middle_s - shift_s) % period_s / period_s
    up = phase >= 1.0 - circles["up_s"][row] / circles["iteration_s"][row]
    sent: Numbers = up * circles["bytes_per_s"][row]
    return sent


def _iterations(study: Study, setting: Setting) -> Figure:
    """Which share of the iterations takes up to how long."""
    times = {policy: _times(list(runs.values())) for policy, runs in setting.runs.items()}
    notes = (*_gains(times), _PAPER, pooled_note(setting))
    return Figure(
        name=named("iteration-times", setting.slug),
        kind=Kind.LINES,
        title="Iteration times, cumulative",
        section="links",
        x=Axis("Iteration time", "s", log=True),
        y=Axis("Share of iterations", "%", top=100.0),
        series=[
            weighted(policy, study.tone(policy), took_s, counts, np.inf)
            for policy, (took_s, counts) in times.items()
        ],
        setting=setting.index,
        source="placements.parquet: iteration_s, weighted by iterations",
        note=" ".join(note for note in notes if note),
        step=True,
        wide=True,
    )


def _times(runs: Sequence[Run]) -> tuple[Numbers, Numbers]:
    """Iteration times in seconds, and how many iterations took so long."""
    took_s, counts = (
        np.concatenate([run.placements[column] for run in runs])
        for column in ("iteration_s", "iterations")
    )
    ended = counts > 0
    return took_s[ended], counts[ended]


def _gains(times: Mapping[str, tuple[Numbers, Numbers]]) -> Iterator[str]:
    """What CASSINI gains over each policy that it is around."""
    for policy, of_both in times.items():
        host = _host(policy)
        if host in times:
            before, after = _mean_and_p99(*times[host]), _mean_and_p99(*of_both)
            gains = [f"{x / y:.2f} x in the {name}" for name, x, y in zip(
                (_MEAN, _P99), before, after, strict=True)]  # fmt: skip
            yield f"{policy} over {host}: {', '.join(gains)}."


def _host(policy: str) -> str:
    if policy.startswith("cassini(") and policy.endswith(")"):
        return policy[len("cassini(") : -1]
    return policy.removesuffix("-cassini") if policy.endswith("-cassini") else ""


def _mean_and_p99(took_s: Numbers, counts: Numbers) -> tuple[float, float]:
    order = np.argsort(took_s, kind="stable")
    below = np.cumsum(counts[order])
    place = min(int(np.searchsorted(below, 0.99 * below[-1])), len(order) - 1)
    return float(np.average(took_s, weights=counts)), float(took_s[order][place])

"""Figures of jobs that compete on links: how busy links were, how much longer iterations took.

Runs without contention have none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from artist.report.curves import Indices, weighted
from artist.report.figure import Figure, Series, described, rounded
from artist.report.grouping import Setting, Study
from artist.report.losses import lost_on_links
from artist.report.quantities import Quantity
from artist.report.reader import FileColumns, Numbers, RecordedRun
from artist.results.statistics.sorted_values import weighted_percentile

BINS = 160
_MOST_LINKS = 32
_FEWEST_LINKS = 6
_LINKS_ON_PAGE = 512
"""Rows of all maps of a page together, about, so that a page about many runs stays small."""


class _Cells(NamedTuple):
    """What happens on one uplink, in each bin of time."""

    name: str
    level: str
    utilisation: Numbers
    """Percent, of the busier direction."""
    jobs: Numbers
    """The most jobs at one time."""
    lost: Numbers
    """Percent of their running time that jobs lose while they want more than the link carries."""
    lost_s: float
    """The time that jobs lose in all, in seconds, in the direction in which they lose more."""


def on_links(study: Study, setting: Setting) -> Iterator[Figure]:
    """A map of links for each policy that kept them, and how much longer iterations took."""
    runs = setting.firsts
    for policy, run in runs.items():
        if run.links is not None and run.links.count:
            yield _map(study, setting, policy, run, run.links)
    if any(run.contended for run in runs.values()):
        yield _longer(study, setting)


def _map(
    study: Study, setting: Setting, policy: str, run: RecordedRun, links: FileColumns
) -> Figure:
    """How busy the links were whose jobs lost most."""
    edges = np.linspace(0.0, max(float(links["end_s"].max()), 1e-9), BINS + 1)
    maps = sum(len(one.runs) for one in study.settings)
    most = max(_FEWEST_LINKS, min(_MOST_LINKS, _LINKS_ON_PAGE // maps))
    every = _where_jobs_meet(_uplinks(run, links, edges))
    shown = _worst(every, most)
    chosen = f"{len(shown)} of {len(every)} uplinks: those whose jobs lost most, then the busiest."
    x = rounded(edges / study.units[Quantity.TIME].seconds)
    series = [
        Series(cells.name, "o5", cells.utilisation.round().tolist(), x,
               parts=[cells.jobs.tolist(), cells.lost.round().tolist()])
        for cells in shown
    ]  # fmt: skip
    return described(
        "links-over-time", study, setting, series, policy=policy, bins=str(BINS),
        chosen=chosen if len(shown) < len(every) else "",
    )  # fmt: skip


def _uplinks(run: RecordedRun, links: FileColumns, edges: Numbers) -> list[_Cells]:
    """All uplinks, outermost levels first, each with both of its directions."""
    rows: dict[str, dict[str, list[int]]] = {}
    for row in np.argsort(links["start_s"], kind="stable").tolist():
        uplink, _, direction = links.text["link"][row].rpartition(" ")
        rows.setdefault(uplink, {}).setdefault(direction, []).append(row)
    # As the file has them: inner levels first, by unit.
    order = list(dict.fromkeys(link.rpartition(" ")[0] for link in links.text["link"]))
    levels = list(dict.fromkeys(_level(uplink) for uplink in order))
    lost = lost_on_links(run, links)
    length_s = links["end_s"] - links["start_s"]
    cells = []
    for uplink in order:
        each = [np.array(of_direction) for of_direction in rows[uplink].values()]
        cells.append(_Cells(
            uplink,
            _level(uplink),
            100.0 * np.max([_mean(links, of, links["utilisation"], edges) for of in each], axis=0),
            np.max([_most(links, of, edges) for of in each], axis=0),
            100.0 * np.max([_lost_there(links, of, lost, edges) for of in each], axis=0),
            max(float(np.sum(lost[of] * length_s[of])) for of in each),
        ))  # fmt: skip
    return sorted(cells, key=lambda one: -levels.index(one.level))


def _lost_there(links: FileColumns, rows: Indices, lost: Numbers, edges: Numbers) -> Numbers:
    """Which part of their running time the jobs of a link lose, in each bin."""
    running = _mean(links, rows, links["jobs"], edges)
    share = _mean(links, rows, lost, edges)
    return np.divide(share, running, out=np.zeros_like(share), where=running > 0)


def _level(uplink: str) -> str:
    return uplink.rpartition(" ")[0]


def _mean(links: FileColumns, rows: Indices, values: Numbers, edges: Numbers) -> Numbers:
    """The mean over time in each bin; 0 while no job sends."""
    start, end = links["start_s"][rows], links["end_s"][rows]
    area = np.cumsum(np.ravel([np.zeros(len(rows)), values[rows] * (end - start)], order="F"))
    at = np.interp(edges, np.ravel([start, end], order="F"), area)
    means: Numbers = np.diff(at) / np.diff(edges)
    return means


def _most(links: FileColumns, rows: Indices, edges: Numbers) -> Numbers:
    """The most jobs at one time in each bin."""
    most = np.zeros(len(edges) - 1)
    first = np.searchsorted(edges, links["start_s"][rows], side="right") - 1
    last = np.searchsorted(edges, links["end_s"][rows], side="left")
    for begin, stop, jobs in zip(first, last, links["jobs"][rows], strict=True):
        np.maximum(most[begin:stop], jobs, out=most[begin:stop])
    return most


def _where_jobs_meet(uplinks: Sequence[_Cells]) -> Sequence[_Cells]:
    """The uplinks of levels on which jobs ever share an uplink; all uplinks if they never do."""
    levels = {one.level for one in uplinks if one.jobs.max() > 1}
    return [one for one in uplinks if one.level in levels or not levels]


def _worst(uplinks: Sequence[_Cells], most: int) -> Sequence[_Cells]:
    """The uplinks whose jobs lost most, then the busiest, in the given order."""

    def loss(index: int) -> tuple[float, float]:
        return -uplinks[index].lost_s, -float(uplinks[index].utilisation.sum())

    chosen = sorted(sorted(range(len(uplinks)), key=loss)[:most])
    return [uplinks[index] for index in chosen]


def _longer(study: Study, setting: Setting) -> Figure:
    """How much longer iterations took than in isolation, weighted by running time.

    It ends at the largest 99th percentile, because a few iterations may take many times as long.
    """
    above = {policy: _above_alone(list(runs.values())) for policy, runs in setting.runs.items()}
    end = max(weighted_percentile(values, weights, 99) for values, weights in above.values())
    largest = max(float(values.max()) for values, _ in above.values())
    beyond = f"Up to the largest 99th percentile; the largest is {largest:,.0f} %."
    series = [
        weighted(policy, study.tone(policy), values, weights, end)
        for policy, (values, weights) in above.items()
    ]
    return described(
        "iterations-beside-others", study, setting, series, beyond=beyond if largest > end else ""
    )


def _above_alone(runs: Sequence[RecordedRun]) -> tuple[Numbers, Numbers]:
    """For each interval at one speed: percent above isolated, and running time in seconds."""
    rows: Mapping[str, Numbers] = {
        column: np.concatenate([run.placements[column] for run in runs])
        for column in ("iteration_s", "alone_iteration_s", "start_s", "end_s", "stalled_s")
    }
    above = 100.0 * (rows["iteration_s"] / rows["alone_iteration_s"] - 1.0)
    return above, np.maximum(rows["end_s"] - rows["start_s"] - rows["stalled_s"], 0.0)

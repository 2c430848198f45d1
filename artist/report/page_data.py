"""The data that a page carries for its script, and what is left out if there is no room.

Figures of a setting, cluster timelines, job tables and waits are packed one by one; the script
inflates what the reader looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from artist.report.figure import Figure, figure_data, script_json
from artist.report.figures_of_jobs import level_names
from artist.report.grouping import Setting, Study
from artist.report.packing import pack_jobs, pack_timeline, pack_waits, pack_work, packed
from artist.report.reader import RecordedRun

_OVERHEAD = 16
"""Bytes of a key, quotes, colon and comma."""


class PlacedRun(NamedTuple):
    """Where a run is in the study."""

    number: int
    setting: int
    policy: int
    first: bool
    """Whether it is the replicate that the figures along time show."""
    replicate: str
    run: RecordedRun


def places(study: Study) -> Iterator[PlacedRun]:
    """All runs by setting, policy and replicate."""
    number = 0
    for setting in study.settings:
        for policy, replicates in setting.runs.items():
            for (seed, permutation), run in replicates.items():
                words = f"seed {seed}, permutation {permutation}"
                first = run is setting.firsts[policy]
                which = study.policies.index(policy)
                yield PlacedRun(number, setting.index, which, first, words, run)
                number += 1


def page_data(study: Study, shown: Sequence[Figure], budget: int) -> Mapping[str, Any]:
    """Everything that the script needs; packed parts as long as they fit into `budget` bytes."""
    levels = dict.fromkeys(level for s in study.settings for level in level_names(s))
    of_settings: dict[str, list[Mapping[str, Any]]] = {}
    for figure in shown:
        if figure.setting is not None:
            of_settings.setdefault(str(figure.setting), []).append(figure_data(figure))
    several = any(setting.replicated for setting in study.settings)
    data: dict[str, Any] = {
        "policies": list(study.policies),
        "settings": [
            {
                "label": s.label,
                "policies": [study.policies.index(p) for p in s.runs],
                "fastest": [study.policies.index(p) for p in _fastest_first(s)],
            }
            for s in study.settings
        ],
        "levels": list(levels),
        "units": {key.name.lower(): unit._asdict() for key, unit in study.units.items()},
        "figures": [figure_data(figure) for figure in shown if figure.setting is None],
        "ofSetting": {key: packed(figures) for key, figures in of_settings.items()},
        "runs": [
            {
                "name": place.run.name, "setting": place.setting, "policy": place.policy,
                "replicate": place.replicate if several else "",
                "waits": place.run.waits is not None,
            }
            for place in places(study)
        ],
    }  # fmt: skip
    return {**data, **_parcels(list(places(study)), budget - len(script_json(data)))}


def _fastest_first(setting: Setting) -> list[str]:
    """Policies by the average JCT of the replicate that timelines show."""
    firsts = setting.firsts
    return sorted(firsts, key=lambda policy: firsts[policy].metric("jct_mean_s"))


def _parcels(runs: Sequence[PlacedRun], budget: int) -> Mapping[str, Any]:
    """Job tables of first replicates, then their timelines, then the other job tables, then waits.

    What does not fit is left out, with all that comes after it. Runs share the room for waits.
    """
    work: list[str] = []
    jobs: dict[str, tuple[int, str]] = {}
    packs: dict[str, str] = {}
    room = budget

    def fits(*parts: str) -> bool:
        nonlocal room
        need = sum(len(part) + _OVERHEAD for part in parts)
        room -= need if need <= room else room + 1  # what comes later is left out, too
        return room >= 0

    def add_jobs(place: PlacedRun) -> None:
        shared, own = pack_work(place.run), pack_jobs(place.run)
        if fits(own, *([] if shared in work else [shared])):
            if shared not in work:
                work.append(shared)
            jobs[str(place.number)] = (work.index(shared), own)

    firsts = [place for place in runs if place.first]
    for place in firsts:
        add_jobs(place)
    for place in firsts:
        timeline = pack_timeline(place.run)
        if fits(timeline):
            packs[f"{place.setting}-{place.policy}"] = timeline
    for place in runs:
        if not place.first:
            add_jobs(place)
    detailed = [place for place in firsts if f"{place.setting}-{place.policy}" in packs]
    return {"packs": packs, "work": work, "jobs": jobs, "waits": _waits(detailed, room)}


def _waits(runs: Sequence[PlacedRun], room: int) -> Mapping[str, str]:
    """The waits of runs. Those that need less than an equal share leave the rest to the others."""
    texts = {place.number: pack_waits(place.run) for place in runs}
    for done, place in enumerate(sorted(runs, key=lambda place: len(texts[place.number]))):
        share = max(0, room) // (len(runs) - done) - _OVERHEAD
        if len(texts[place.number]) > share:
            texts[place.number] = pack_waits(place.run, share)
        room -= len(texts[place.number]) + _OVERHEAD
    return {str(number): text for number, text in texts.items() if text}

"""The HTML page about some runs: one file that loads nothing else.

The same runs give the same bytes. The templates hold the markup and the sentences, the modules
`figures_...` make the figures, and `assets/` holds the script and the style sheet. Figures of a
setting, cluster timelines, job tables and waits are packed one by one; the script inflates what the
reader looks at.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from artist import __version__
from artist.report.explanation import explanation
from artist.report.figure import Figure, FigureKind, figure_data, script_json
from artist.report.figures_across_settings import of_worlds, overview
from artist.report.figures_by_group import by_group, of_tenants
from artist.report.figures_of_circles import on_circles
from artist.report.figures_of_jobs import distributions, level_names
from artist.report.figures_of_links import on_links
from artist.report.figures_over_time import of_one_run, over_time
from artist.report.grouping import Setting, Study
from artist.report.packing import pack_jobs, pack_timeline, pack_waits, pack_work, packed
from artist.report.page_facts import (
    commands,
    comparisons,
    configuration,
    headlines,
    lede,
    provenance,
    title,
    versions,
    warnings,
)  # fmt: skip
from artist.report.reader import RecordedRun
from artist.report.same_jobs import of_same_jobs, same_jobs_section
from artist.report.sections import data_section, failures_section, links_section
from artist.report.templating import document, section
from artist.report.verdict import verdict_section

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE_BYTES = 2_900_000
"""The largest page. Beyond it job tables, stays and waits are left out, from the last run on."""

_SCRIPTS = (
    "base.js", "axes.js", "charts.js", "panels.js", "bars.js", "ranges.js", "timeline.js",
    "gestures.js", "jobs.js", "job_details.js", "page.js",
)  # fmt: skip
_LINKS, _CIRCLES = "links", "circles"
"""Scripts and styles of pages where jobs compete on links, and take turns there."""


def figures(study: Study) -> list[Figure]:
    """Every figure of a report except the cluster timelines."""
    drawn = [*of_worlds(study), *overview(study)]
    for setting in study.settings:
        drawn += distributions(study, setting)
        drawn += by_group(study, setting)
        drawn += of_same_jobs(study, setting)
        drawn += over_time(study, setting)
        for policy in setting.runs:
            drawn += of_one_run(study, setting, policy)
        drawn += on_links(study, setting)
        drawn += on_circles(study, setting)
        drawn += of_tenants(study, setting)
    return drawn


def page(study: Study, heading: str | None = None) -> bytes:
    """The whole page as bytes. `heading` replaces the title that the runs would give."""
    shown = figures(study)
    name = heading or title(study)
    more = []
    if any(run.contended for run in study.runs):
        more.append(_LINKS)
    if any(figure.kind is FigureKind.CIRCLES for figure in shown):
        more.append(_CIRCLES)
    body = _body(study, name, shown)
    used = len(_document(name, body, "", more))
    return _document(name, body, script_json(page_data(study, shown, PAGE_BYTES - used)), more)


def _body(study: Study, name: str, shown: Sequence[Figure]) -> Markup:
    """All text of the page; figures have empty slots, which the script fills."""
    contended = any(run.contended for run in study.runs)
    failing = any(run.outages is not None for run in study.runs)
    with_data = any(run.data_use is not None for run in study.runs)
    return section(
        "body.html",
        study=study,
        version=__version__,
        title=name,
        lede=lede(study),
        warnings=list(warnings(study)),
        verdict=verdict_section(study),
        explained=explanation(study),
        headlines=headlines(study),
        drawn={figure.section for figure in shown if figure.setting is not None},
        same_jobs=same_jobs_section(study),
        links=links_section(study) if contended else "",
        failures=failures_section(study) if failing else "",
        data_texts=data_section(study) if with_data else "",
        comparisons=list(comparisons(study)),
        configuration=list(configuration(study)),
        provenance=list(provenance(study)),
        commands=commands(study),
        versions=versions(study),
    )


def _asset(name: str) -> str:
    return files("artist.report").joinpath("assets", name).read_text(encoding="utf-8")


def _script(more: Sequence[str]) -> str:
    """The page's script. `more` comes before its last part, which puts the page together."""
    names = (*_SCRIPTS[:-1], *(f"{name}.js" for name in more), _SCRIPTS[-1])
    return "(() => {\n" + "\n".join(_asset(name) for name in names) + "\n})();"


def _style(more: Sequence[str]) -> str:
    """The style sheet, with the dark colours twice: for the system's and the reader's choice.

    A printed page is always light.
    """
    dark = _asset("dark.css")
    rules = (
        "@media screen and (prefers-color-scheme: dark) { "
        f":root:not([data-theme=light]) {{\n{dark}}} }}\n"
        f"@media screen {{ :root[data-theme=dark] {{\n{dark}}} }}"
    )
    page_css = _asset("page.css").replace("/*dark*/", rules)
    return page_css + "".join(_asset(f"{name}.css") for name in more)


def _document(name: str, body: Markup, data: str, more: Sequence[str]) -> bytes:
    script = _script(more)
    # The page allows only its own script, and loads nothing, whatever names a trace contains.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = document(
        "page.html", version=__version__, title=name, digest=digest, style=_style(more), body=body,
        data=data, script=script,
    )  # fmt: skip
    # JSON may hold one half of a surrogate pair, which UTF-8 cannot encode.
    return text.encode(errors="replace")


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
        room -= need if need <= room else room + 1  # negative: all later parts are left out, too
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

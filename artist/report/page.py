"""The HTML page about some runs: one file that loads nothing else.

The same runs give the same bytes. `page_sections.py` makes the text of the page, the modules
`figures_...` make its figures, and `assets/` holds the script and the style sheet.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from artist import __version__
from artist.report.data_section import data_section
from artist.report.failures_section import failures_section
from artist.report.figure import Figure, Kind
from artist.report.figure_json import script_json
from artist.report.figures_across_settings import overview
from artist.report.figures_of_circles import on_circles
from artist.report.figures_of_jobs import distributions
from artist.report.figures_of_links import on_links
from artist.report.figures_of_tenants import of_tenants
from artist.report.figures_over_time import of_one_run, over_time
from artist.report.grouping import Study
from artist.report.links_section import links_section
from artist.report.markup import Html, join, tag
from artist.report.page_data import page_data
from artist.report.page_sections import contents, details, header, numbers, opening
from artist.report.page_text import title
from artist.report.verdict_text import verdict_section

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
    drawn = list(overview(study))
    for setting in study.settings:
        drawn += distributions(study, setting)
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
    verdict = verdict_section(study)
    contended = any(run.contended for run in study.runs)
    links = links_section(study) if contended else Html("")
    failing = any(run.outages is not None for run in study.runs)
    failures = failures_section(study) if failing else Html("")
    with_data = any(run.data_use is not None for run in study.runs)
    data_texts = data_section(study) if with_data else Html("")
    parts = [opening(study), details(study, shown, links, failures, data_texts), numbers(study)]
    body = tag("div", header(study, name), verdict, contents(join(parts)), *parts, class_="page")
    circles = any(figure.kind is Kind.CIRCLES for figure in shown)
    more = [asset for asset, there in ((_LINKS, contended), (_CIRCLES, circles)) if there]
    used = len(_bytes(_document(name, body, "", more)))
    data = page_data(study, shown, PAGE_BYTES - used)
    return _bytes(_document(name, body, script_json(data), more))


def _bytes(text: str) -> bytes:
    # JSON may hold one half of a surrogate pair, which UTF-8 cannot encode.
    return text.encode(errors="replace")


def _asset(name: str) -> str:
    return files("artist.report").joinpath("assets", name).read_text(encoding="utf-8")


def _script(more: Sequence[str]) -> str:
    """`more` comes before the script that puts the page together."""
    names = (*_SCRIPTS[:-1], *(f"{name}.js" for name in more), _SCRIPTS[-1])
    return "(() => {\n" + "\n".join(_asset(name) for name in names) + "\n})();"


def _style(more: Sequence[str]) -> str:
    """The style sheet, with the dark colours twice: for the system's and the reader's choice."""
    dark = _asset("dark.css")
    rules = (
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{\n{dark}}} }}\n"
        f":root[data-theme=dark] {{\n{dark}}}"
    )
    page_css = _asset("page.css").replace("/*dark*/", rules)
    return page_css + "".join(_asset(f"{name}.css") for name in more)


def _document(name: str, body: Html, data: str, more: Sequence[str]) -> str:
    script = _script(more)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # With this policy only our script runs and nothing is loaded, whatever names a trace contains.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = join([
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html(f'<meta name="generator" content="artist {__version__}">'),
        tag("title", name), Html(f"<style>{_style(more)}</style>"),
    ])  # fmt: skip
    data_element = Html(f'<script type="application/json" id="data">{data}</script>')
    scripts = join([data_element, Html(f"<script>{script}</script>")])
    top = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
    return f"{top}<body>{body}{scripts}</body></html>\n"

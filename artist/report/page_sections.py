"""The sections of the page from top to bottom.

Figures have empty slots here; the page's script draws them when the page is opened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from artist import __version__
from artist.report.figure import Figure
from artist.report.grouping import Study
from artist.report.jobs_section import jobs_section
from artist.report.markup import Html, join, tag
from artist.report.page_text import headlines, lede, warnings
from artist.report.tables import comparison_tables, configuration, provenance

# Id, heading, and the question that the section answers.
_SECTIONS = (
    ("completion", "Completion", "When jobs were done."),
    ("waiting", "Waiting", "How long jobs were without GPUs."),
    ("communication", "Communication", "What the network cost: exposed communication time."),
    ("cluster", "The cluster over time", "How much of it was held, and how much work was left."),
    ("placement", "Placements", "How far apart the GPUs of a job were."),
)

_ACTIONS = (
    (Html("&minus;"), "zoom 0.5", "Zoom out"),
    ("+", "zoom 2", "Zoom in"),
    ("\u2190", "pan -0.3", "Earlier"),
    ("\u2192", "pan 0.3", "Later"),
    ("Whole run", "reset", "Whole run"),
)

_TIMELINE = (
    "Machines downwards, time to the right; a rectangle is a job on GPUs of a machine. Drag to "
    "move, pinch or Ctrl + wheel to zoom; keys: arrows, + and -, 0. A run does not record which of "
    "a machine's GPUs a job held; the timeline assigns lanes in the order of time."
)

_LEFT_OUT = (
    "This run's timeline is left out to keep the page below 3 MB. Report on fewer runs, or use "
    "artist export --format perfetto."
)


def header(study: Study, name: str) -> Html:
    """The title, what was simulated, and warnings."""
    noscript = "Figures and the job table need JavaScript; the verdict and the comparison do not."
    return tag(
        "header",
        tag("p", "artist · simulation report", class_="eyebrow"),
        tag("h1", name),
        tag("p", lede(study), class_="lede"),
        tag("button", "Dark", id="theme", type="button"),
        tag("noscript", tag("p", noscript, class_="warning")),
        *(tag("p", text, class_="warning") for text in warnings(study)),
    )


def contents(body: Html) -> Html:
    """A table of contents: a link to each section of a body."""
    entries = re.findall(r'<h2 id="([a-z-]+)">([^<]*)</h2>', body)
    links = [tag("li", tag("a", Html(name), href=f"#{anchor}")) for anchor, name in entries]
    return tag("nav", tag("ol", *links), class_="contents", aria_label="Contents")


def opening(study: Study) -> Html:
    """The headline numbers of a single run, or bars that compare several runs."""
    if len(study.runs) == 1:
        tiles = [
            tag("div", tag("dt", name), tag("dd", value, tag("small", source)))
            for name, value, source in headlines(study, study.runs[0])
        ]
        return tag("dl", *tiles, class_="tiles")
    per = "policy and setting" if len(study.settings) > 1 else "policy"
    slots = [_slot(section, "all") for section, _, _ in _SECTIONS]
    return join([
        tag("h2", "Overview", id="overview"), tag("p", f"One number per {per}."), *slots,
    ])  # fmt: skip


def _slot(section: str, scope: str) -> Html:
    return tag("div", class_="cards", data_section=section, data_scope=scope)


def details(study: Study, shown: Sequence[Figure], *more: Html) -> Html:
    """The figures of one setting at a time, and of one of its runs.

    `more` are sections that only some pages have: about links, about failures.
    """
    present = {figure.section for figure in shown if figure.setting is not None}
    options = [tag("option", s.label, value=str(s.index)) for s in study.settings]
    extra = {} if len(options) > 1 else {"hidden": "hidden"}
    picker = tag(
        "div",
        tag("label", "Setting", tag("select", *options, id="setting")),
        class_="pickers sticky", **extra,
    )  # fmt: skip
    parts = [
        join([tag("h2", heading, id=section), tag("p", text), _slot(section, "setting")])
        for section, heading, text in _SECTIONS
        if section in present
    ]
    return join([picker, *parts, _one_run(), *more, jobs_section()])


def _one_run() -> Html:
    policy = tag("label", "Policy", tag("select", id="policy"))
    colours = [
        tag("label", Html(f'<input type="radio" name="colour" value="{value}"{checked}>'), value)
        for value, checked in (("job", " checked"), ("level", ""), ("model", ""))
    ]
    buttons = [
        tag("button", text, type="button", data_act=act, aria_label=label)
        for text, act, label in _ACTIONS
    ]
    return join([
        tag("h2", "One run, close up", id="run"),
        tag("p", "Which job held which machine at what time, and what the policy learned."),
        tag("div", policy, class_="pickers"),
        tag(
            "div",
            tag("h3", "Cluster timeline"),
            tag("p", _TIMELINE, class_="note", id="timeline-help"),
            tag("div", tag("fieldset", tag("legend", "Colour by"), *colours), *buttons,
                class_="pickers"),
            tag("div", id="timeline"),
            tag("p", _LEFT_OUT, class_="note", id="timeline-message", hidden="hidden"),
            tag("ul", class_="legend", id="timeline-legend"),
            tag(
                "div",
                tag("details", tag("summary", "Table"), id="timeline-table"),
                tag("p", "placements.parquet: placement, start_s, end_s", class_="source"),
                class_="foot",
            ),
            class_="panel",
        ),
        _slot("run", "setting"),
    ])  # fmt: skip


def numbers(study: Study) -> Html:
    """The tables and the footer. They need no script."""
    footer = (
        f"Made by artist {__version__}. Every number comes from the file and columns named beside "
        "it, or is computed from them. artist explain NAME gives the formulas."
    )
    return join([
        tag("h2", "Comparison" if len(study.policies) > 1 else "All numbers", id="comparison"),
        *comparison_tables(study),
        tag("h2", "Configuration", id="configuration"),
        tag("p", "The scenarios. Where runs differ, all values are listed."),
        configuration(study),
        tag("h2", "Provenance", id="provenance"),
        provenance(study),
        tag("footer", footer),
    ])  # fmt: skip

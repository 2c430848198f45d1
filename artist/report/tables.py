"""The tables of the page: comparison, configuration, provenance.

`comparison.py` computes the numbers of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from artist.report.comparison_table import Cell, compare_setting, family, scaled
from artist.report.grouping import Setting, Study
from artist.report.markup import Html, join, table, tag
from artist.report.metric_units import term_unit
from artist.report.reader import Run
from artist.results.statistics.compare_values import family_words
from artist.results.terms.glossary import Term
from artist.results.terms.number_text import plain

_FOLDED = 6
"""Tables with more rows than this are closed at first."""


def comparison_tables(study: Study) -> Iterator[Html]:
    """One table per setting. The page's script shows the table of the chosen setting."""
    for setting in study.settings:
        baseline = next(p for p in study.policies if p in setting.runs)
        main, others = compare_setting(setting, baseline)
        yield tag(
            "div",
            tag("p", _how_compared(setting, baseline, family(main, others)), class_="note"),
            _comparison(study, setting, main),
            tag(
                "details",
                tag("summary", f"{len(others)} more"),
                _comparison(study, setting, others),
            ),
            data_setting=str(setting.index),
        )


def _comparison(
    study: Study, setting: Setting, rows: Sequence[tuple[Term, Mapping[str, Cell]]]
) -> Html:
    lines = []
    for term, cells in rows:
        unit = term_unit(study, term)
        cells_here = [_cell(scaled(cells[policy], unit)) for policy in setting.runs]
        lines.append([_term(term, unit.name), *cells_here])
    return table(["summary.json", *setting.runs], lines)


def _term(term: Term, unit: str) -> Html:
    """A metric's name and meaning, with the unit that the table shows it in."""
    shown = "" if unit == "1" else f" ({unit})"
    return join([tag("code", term.name), tag("small", f"{term.meaning}{shown}")])


def _how_compared(setting: Setting, baseline: str, judged: int) -> str:
    if len(setting.runs) == 1:
        return setting.label
    counts = {len(setting.shared_by((baseline, one))) for one in setting.runs if one != baseline}
    if not max(counts):
        return f"{setting.label}. No other policy ran on a replicate of {baseline}."
    if max(counts) < 2:
        return f"{setting.label}. Differences to {baseline}; one replicate has no interval."
    count = " to ".join(map(str, sorted({min(counts), max(counts)})))
    return (
        f"{setting.label}. Mean over replicates and [range]. Differences to {baseline} are "
        f"geometric means over {count} paired replicates (seed x permutation), with Student's 95 % "
        "intervals; permutations of one seed are one replicate where seeds differ. "
        + family_words(
            judged, f"each policy against {baseline}, on all metrics of both tables of this setting"
        )
        + " Less and more, in bold, hold for all of these at once; no difference: surely within "
        "2 %, of each comparison alone; undecided: more replicates would decide, and the cell says "
        "about how many; too few replicates: fewer than five, or "
        "copies of one. No range: all replicates are equal."
    )


def _cell(cell: Cell) -> Html:
    parts = [tag("small", text) for text in (cell.spread,) if text]
    if cell.against:
        parts.append(tag("small", cell.against, class_="sure" if cell.sure else "unsure"))
    return join([Html(plain(cell.mean)), *parts])


def configuration(study: Study) -> Html:
    """A row for every key of the scenarios. Where runs differ, it lists all values."""
    keys = dict.fromkeys(key for run in study.runs for key in run.scenario)
    rows = []
    for key in keys:
        values = {_value(run.scenario.get(key)) for run in study.runs}
        rows.append([tag("code", key), "; ".join(sorted(values, key=_by_size))])
    return table([], rows, "facts")


def provenance(study: Study) -> Html:
    """For every run directory: its setting and replicate, its inputs, its command, the versions."""
    head = [
        "run directory",
        "policy",
        "setting",
        "seed",
        "permutation",
        "artist",
        "trace",
        "fabric",
    ]
    rows = [
        [run.name, policy, setting.label, str(seed), str(permutation),
         str(run.summary.get("artist_version", "-")), *_digests(run)]
        for setting in study.settings
        for policy, runs in setting.runs.items()
        for (seed, permutation), run in runs.items()
    ]  # fmt: skip
    commands = [[run.name, tag("code", _command(run))] for run in study.runs]
    versions = list(dict.fromkeys(_versions(run) for run in study.runs))
    return join([
        _folded("Runs and digests of their inputs", table(head, rows), len(rows)),
        _folded("Commands", table([], commands, "facts"), len(rows)),
        _folded("Versions", join(tag("p", text) for text in versions), len(versions)),
    ])  # fmt: skip


def _digests(run: Run) -> list[Html]:
    """The first digits of each digest. The page shows the whole digest under the pointer."""
    inputs = run.manifest.get("inputs")
    digests = inputs if isinstance(inputs, dict) else {}
    texts = [str(digests.get(key, "-")).removeprefix("sha256:") for key in ("trace", "fabric")]
    return [tag("code", text[:12], title=text) for text in texts]


def _folded(title: str, content: Html, rows: int) -> Html:
    heading = tag("summary", title)
    extra = {"open": "open"} if rows <= _FOLDED else {}
    return tag("details", heading, content, **extra)


def _command(run: Run) -> str:
    command = run.manifest.get("command")
    words = [str(word) for word in command] if isinstance(command, list) and command else ["-"]
    return " ".join([PurePath(words[0]).name, *words[1:]])


def _by_size(text: str) -> tuple[float, str]:
    return (float(text) if text.isdigit() else 0.0, text)


def _versions(run: Run) -> str:
    versions = run.manifest.get("versions")
    named = versions.items() if isinstance(versions, dict) else ()
    return " \u00b7 ".join(f"{name} {version}" for name, version in named) or "-"


def _value(value: Any) -> str:
    if value is None or value == {}:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, default=str)

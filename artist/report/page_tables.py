"""What the page's tables show: the comparison, the configuration and the provenance of runs.

`comparison_table.py` computes the numbers of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from artist.report.comparison_table import Cell, Table, compare_setting, family, scaled
from artist.report.grouping import Setting, Study
from artist.report.quantities import metric_unit
from artist.report.reader import Run
from artist.results.statistics.compare_values import family_words
from artist.results.terms.glossary import Term


def comparisons(study: Study) -> Iterator[dict[str, Any]]:
    """The comparison of each setting. The page's script shows that of the chosen setting."""
    for setting in study.settings:
        baseline = study.baseline(setting)
        main, others = compare_setting(setting, baseline)
        paired = {len(setting.shared_by((baseline, p))) for p in setting.runs if p != baseline}
        compared = f"each policy against {baseline}, on all metrics of both tables of this setting"
        yield {
            "setting": setting,
            "baseline": baseline,
            "pairs": sorted({min(paired), max(paired)}) if paired else [],
            "family": family_words(family(main, others), compared),
            "main": list(_rows(study, setting, main)),
            "others": list(_rows(study, setting, others)),
        }


def _rows(study: Study, setting: Setting, table: Table) -> Iterator[tuple[Term, str, list[Cell]]]:
    """A metric, the unit that the page shows it in, and its cell of each policy."""
    for term, cells in table:
        unit = metric_unit(study, term.name, term.unit)
        yield term, unit.name, [scaled(cells[policy], unit) for policy in setting.runs]


def configuration(study: Study) -> Iterator[tuple[str, list[str]]]:
    """Every key of the scenarios with its values in all runs."""
    for key in dict.fromkeys(key for run in study.runs for key in run.scenario):
        yield key, sorted({_value(run.scenario.get(key)) for run in study.runs}, key=_by_size)


def provenance(study: Study) -> Iterator[tuple[list[str], list[str]]]:
    """For every run directory its setting and replicate, and the digests of its inputs."""
    for setting in study.settings:
        for policy, runs in setting.runs.items():
            for (seed, permutation), run in runs.items():
                version = str(run.summary.get("artist_version", "-"))
                row = [run.name, policy, setting.label, str(seed), str(permutation), version]
                yield row, _digests(run)


def commands(study: Study) -> list[tuple[str, str]]:
    """The command that made each run."""
    return [(run.name, _command(run.manifest.get("command"))) for run in study.runs]


def versions(study: Study) -> Sequence[str]:
    """The versions of Python and of libraries that made the runs, each combination once."""
    return list(dict.fromkeys(_versions(run.manifest.get("versions")) for run in study.runs))


def _digests(run: Run) -> list[str]:
    inputs = run.manifest.get("inputs")
    digests = inputs if isinstance(inputs, dict) else {}
    return [str(digests.get(key, "-")).removeprefix("sha256:") for key in ("trace", "fabric")]


def _command(command: Any) -> str:
    words = [str(word) for word in command] if isinstance(command, list) and command else ["-"]
    return " ".join([PurePath(words[0]).name, *words[1:]])


def _versions(versions: Any) -> str:
    named = versions.items() if isinstance(versions, dict) else ()
    return " \u00b7 ".join(f"{name} {version}" for name, version in named) or "-"


def _by_size(text: str) -> tuple[float, str]:
    return (float(text) if text.isdigit() else 0.0, text)


def _value(value: Any) -> str:
    if value is None or value == {}:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, default=str)

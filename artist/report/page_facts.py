"""What the page says of all runs: its head, and the tables of metrics, settings and provenance.

The templates have the words. `comparison_table.py` computes the numbers of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from artist.config import SIZES
from artist.policies.table import POLICIES
from artist.report.comparison_table import MetricCell, Table, compare_setting, family, scaled
from artist.report.grouping import Setting, Study, fabric_changes
from artist.report.quantities import in_words, metric_unit
from artist.report.reader import RecordedRun
from artist.report.verdict_sentences import family_words
from artist.results.caveats import cancelled_sentence
from artist.results.terms.chief_metrics import NAMES
from artist.results.terms.glossary import Term
from artist.results.terms.number_text import plain
from artist.units import counted

_MOST_POLICIES = 4
"""The head of the page describes the policies if at most this many ran, all of the registry."""

_OTHER_JOBS = "Other jobs: some runs cancelled jobs, so nothing is judged."


def title(study: Study) -> str:
    """The title of the page, e.g. `2 policies on tiny-poisson`."""
    policies, settings = len(study.policies), len(study.settings)
    subject = study.policies[0] if policies == 1 else f"{policies} policies"
    if settings > 1:
        return f"{subject} in {settings} settings"
    run = study.runs[0]
    name = f"{subject} on {run.summary.get('trace', 'its trace')}"
    cluster = run.scenario.get("cluster")
    if not cluster and run.scenario.get("tree") is not None:
        cluster = run.summary.get("cluster")
    return f"{name}, cluster {cluster}" if cluster else name


def lede(study: Study) -> dict[str, Any]:
    """Jobs, cluster, fabric, latency backend, and what policies do, for the first sentences.

    Settings in which the runs differ are left out, since the page names them with each setting. In
    a policy's text every second part is code, between backticks in the registry.
    """
    scenario = study.runs[0].scenario
    differing = {key for setting in study.settings for key in setting.differs}
    common = {key: value for key, value in scenario.items() if key not in differing}
    jobs = {int(run.metric("jobs_total")) for run in study.runs}
    shapes = (_shape(run) for run in study.runs)
    told = [(one.id, one.summary.split("`")) for one in POLICIES if one.id in study.policies]
    all_told = len(told) == len(study.policies) <= _MOST_POLICIES
    return {
        "jobs": sorted({min(jobs), max(jobs)}),
        "gpus": sorted({int(run.metric("gpus")) for run in study.runs}),
        "shapes": list(dict.fromkeys(shape for shape in shapes if shape)),
        "fabric": common.get("fabric"),
        "changes": fabric_changes(common.get("fabric_options")),
        "backend": common.get("backend"),
        "policies": told if all_told else [],
    }


def _shape(run: RecordedRun) -> str:
    """The cluster's shape in words; empty if the run does not record it."""
    sizes = [size for key in SIZES if isinstance(size := run.scenario.get(key), int)]
    if run.scenario.get("tree") is not None or len(sizes) < len(SIZES):
        return str(run.scenario.get("cluster") or run.summary.get("cluster", ""))
    nouns = ("rack", "machine", "GPU")
    racks, machines, gpus = (counted(*one) for one in zip(sizes, nouns, strict=True))
    return f"{racks} of {machines} with {gpus} each"


def headlines(study: Study) -> list[tuple[str, str, str]]:
    """The chief metrics of a single run: (name, value in words, `KEY = VALUE` of the summary)."""
    if len(study.runs) > 1:
        return []
    values = {key: study.runs[0].metric(key) for key in NAMES}
    return [
        (NAMES[key], in_words(study, key, value), f"{key} = {plain(value)}")
        for key, value in values.items()
    ]


def warnings(study: Study) -> Iterator[str]:
    """Reasons why the runs may not be comparable, as sentences."""
    versions = sorted({str(run.summary.get("artist_version", "unknown")) for run in study.runs})
    if len(versions) > 1:
        yield f"The runs were made by different versions of artist: {', '.join(versions)}."
    if cancelled := cancelled_sentence(run.summary for run in study.runs):
        yield cancelled
    for setting in study.settings:
        inputs: dict[object, set[str]] = {}
        for runs in setting.runs.values():
            for (seed, _), run in runs.items():
                inputs.setdefault(seed, set()).add(str(_shared_inputs(run)))
        if any(len(digests) > 1 for digests in inputs.values()):
            yield (
                f"In {setting.label}, runs of the same scenario and seed read different inputs "
                "(manifest.json: inputs)."
            )


def _shared_inputs(run: RecordedRun) -> object:
    """Digests of the inputs that all policies share: without the files of the policies."""
    inputs = run.manifest.get("inputs")
    if not isinstance(inputs, dict):
        return inputs
    return {key: value for key, value in inputs.items() if not key.startswith("policy")}


def comparisons(study: Study) -> Iterator[dict[str, Any]]:
    """The comparison for each setting. The page's script shows the one of the chosen setting."""
    for setting in study.settings:
        baseline = study.baseline(setting)
        main, others = compare_setting(setting, baseline)
        paired = {len(setting.shared_by((baseline, p))) for p in setting.runs if p != baseline}
        compared = f"each policy against {baseline}, on all metrics of both tables of this setting"
        yield {
            "setting": setting,
            "baseline": baseline,
            "pairs": sorted({min(paired), max(paired)}) if paired else [],
            "family": _OTHER_JOBS
            if setting.cancelled
            else family_words(family(main, others), compared),
            "main": list(_rows(study, setting, main)),
            "others": list(_rows(study, setting, others)),
        }


def _rows(
    study: Study, setting: Setting, table: Table
) -> Iterator[tuple[Term, str, list[MetricCell]]]:
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


def _digests(run: RecordedRun) -> list[str]:
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

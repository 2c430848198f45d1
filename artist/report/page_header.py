"""The head of the page: title, facts of the first sentences, headline numbers, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artist.config import SIZES
from artist.report.grouping import Study, fabric_changes
from artist.report.quantities import in_words
from artist.report.reader import Run
from artist.results.terms.chief_metrics import NAMES
from artist.results.terms.number_text import plain


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
    """Jobs, cluster, fabric and latency backend for the first sentences.

    They leave out what differs between the settings; the page names it with each setting.
    """
    scenario = study.runs[0].scenario
    differing = {key for setting in study.settings for key in setting.differs}
    common = {key: value for key, value in scenario.items() if key not in differing}
    jobs = {int(run.metric("jobs_total")) for run in study.runs}
    shapes = (_shape(run) for run in study.runs)
    return {
        "jobs": sorted({min(jobs), max(jobs)}),
        "gpus": sorted({int(run.metric("gpus")) for run in study.runs}),
        "shapes": list(dict.fromkeys(shape for shape in shapes if shape)),
        "fabric": common.get("fabric"),
        "changes": fabric_changes(common.get("fabric_options")),
        "backend": common.get("backend"),
    }


def _shape(run: Run) -> str:
    """The cluster's shape in words; empty if the run does not record it."""
    sizes = [run.scenario.get(key) for key in SIZES]
    if run.scenario.get("tree") is not None or not all(isinstance(size, int) for size in sizes):
        return str(run.scenario.get("cluster") or run.summary.get("cluster", ""))
    racks, machines, each = sizes
    return f"{racks} x {machines} machines with {each} GPUs each"


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


def _shared_inputs(run: Run) -> object:
    """Digests of what runs of all policies read: without the files of one policy."""
    inputs = run.manifest.get("inputs")
    if not isinstance(inputs, dict):
        return inputs
    return {key: value for key, value in inputs.items() if not key.startswith("policy")}

"""The texts of the page that depend on the runs: title, first sentences, headline numbers."""

from __future__ import annotations

from collections.abc import Container

from artist.config import SIZES
from artist.report.grouping import Study, fabric_changes
from artist.report.metric_units import in_words
from artist.report.reader import Run
from artist.results.terms.chief_metrics import NAMES
from artist.results.terms.number_text import plain


def title(study: Study) -> str:
    """The title of the page, e.g. `2 policies on tiny-poisson`."""
    policies, settings = len(study.policies), len(study.settings)
    subject = study.policies[0] if policies == 1 else f"{policies} policies"
    if settings == 1:
        run = study.runs[0]
        name = f"{subject} on {run.summary.get('trace', 'its trace')}"
        other = run.scenario.get("tree") is not None and run.summary.get("cluster")
        other = run.scenario.get("cluster") or other
        return f"{name}, cluster {other}" if other else name
    return f"{subject} in {settings} settings"


def lede(study: Study) -> str:
    """The first sentences: jobs, cluster, fabric and latency backend.

    They leave out what differs between the settings; the page names it with each setting.
    """
    run = study.runs[0]
    scenario = run.scenario
    differing = {key for setting in study.settings for key in setting.differs}
    parts = [f"{len(study.runs)} runs." if len(study.runs) > 1 else ""]
    jobs = {int(one.metric("jobs_total")) for one in study.runs}
    work = f"{min(jobs)} jobs" if len(jobs) == 1 else f"{min(jobs)} to {max(jobs)} jobs"
    parts.append(f"{work} on {_cluster(study)}.")
    if "fabric" in scenario and "fabric" not in differing:
        parts.append(f"Fabric {scenario['fabric']}{_changed(study, differing)}.")
    if "backend" in scenario and "backend" not in differing:
        parts.append(f"Communication times from the {scenario['backend']} backend.")
    return " ".join(part for part in parts if part)


def _changed(study: Study, differing: Container[str]) -> str:
    """What all runs change of the fabric; empty if nothing, or if the settings differ in it."""
    changes = fabric_changes(study.runs[0].scenario.get("fabric_options"))
    return f", changed: {changes}" if changes and "fabric_options" not in differing else ""


def _cluster(study: Study) -> str:
    gpus = sorted({int(run.metric("gpus")) for run in study.runs})
    if len(gpus) > 1:
        return f"clusters of {', '.join(map(str, gpus[:-1]))} and {gpus[-1]} GPUs"
    shapes = dict.fromkeys(shape for run in study.runs if (shape := _shape(run)))
    return f"{gpus[0]} GPUs" + (f" ({'; '.join(shapes)})" if shapes else "")


def _shape(run: Run) -> str:
    """The cluster's shape in words; empty if the run does not tell it."""
    sizes = [run.scenario.get(key) for key in SIZES]
    if run.scenario.get("tree") is not None or not all(isinstance(size, int) for size in sizes):
        return str(run.scenario.get("cluster") or run.summary.get("cluster", ""))
    racks, machines, each = sizes
    return f"{racks} x {machines} machines with {each} GPUs each"


def _shared_inputs(run: Run) -> object:
    """Digests of what runs of all policies read: without the files of one policy."""
    inputs = run.manifest.get("inputs")
    if not isinstance(inputs, dict):
        return inputs
    return {key: value for key, value in inputs.items() if not key.startswith("policy")}


def headlines(study: Study, run: Run) -> list[tuple[str, str, str]]:
    """The most important metrics of a run: (name, value in words, `KEY = VALUE` of the summary)."""
    lines = []
    for key, name in NAMES.items():
        value = run.metric(key)
        lines.append((name, in_words(study, key, value), f"{key} = {plain(value)}"))
    return lines


def warnings(study: Study) -> list[str]:
    """Reasons why the runs may not be comparable, as sentences."""
    sentences = []
    versions = sorted({str(run.summary.get("artist_version", "unknown")) for run in study.runs})
    if len(versions) > 1:
        sentences.append(
            f"The runs were made by different versions of artist: {', '.join(versions)}."
        )
    for setting in study.settings:
        inputs: dict[object, set[str]] = {}
        for runs in setting.runs.values():
            for (seed, _), run in runs.items():
                inputs.setdefault(seed, set()).add(str(_shared_inputs(run)))
        if any(len(digests) > 1 for digests in inputs.values()):
            sentences.append(
                f"In {setting.label}, runs of the same scenario and seed read different inputs "
                "(manifest.json: inputs)."
            )
    return sentences

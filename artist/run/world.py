"""The world in which results hold, in words: a fabric and its evidence, a calibration, and more.

About a fabric, users must know whether its figures were measured, are those of vendors, or imitate
a paper.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from artist.cluster.fabric import Fabric
from artist.cluster.fabric_options import changes_text
from artist.cluster.tree import ONE_KIND
from artist.config import Scenario
from artist.results.terms.columns import Table
from artist.results.terms.number_text import time_text
from artist.run.hardware import (
    build_calibration,
    build_cluster,
    build_fabric,
    cluster_of,
    kinds_of_compute_times,
)
from artist.run.traces import build_trace, elastic

if TYPE_CHECKING:
    from artist.estimates.calibration import Calibration

_NO_NETWORK = "no network: communication takes no time"


def world(scenario: Scenario) -> str:
    """The world of a scenario in half a sentence: `fabric t4, measured: ...; calibration: no`.

    Raises:
        ConfigError: the scenario names a fabric or calibration that does not exist.
    """
    if scenario.backend == "none":
        return _without_network(scenario)
    fabric, cluster = build_fabric(scenario), cluster_of(scenario)
    kinds = () if cluster is None else cluster.kinds
    return world_of(scenario, fabric, build_calibration(scenario, fabric), kinds)


def world_of(
    scenario: Scenario, fabric: Fabric, calibration: Calibration | None, kinds: Collection[str]
) -> str:
    """As `world`, with fabric and calibration already read; `kinds` are those of the machines."""
    if scenario.backend == "none":
        return _without_network(scenario)
    changed = " (changed)" if changes_text(scenario.fabric_options) else ""
    fitted = "no" if calibration is None else calibration.origin_words
    words = f"fabric {fabric.name}{changed}, {fabric.origin_words}; calibration: {fitted}"
    if scenario.trained_as is not None:
        words += f"; trained as {scenario.trained_as}"
    if scenario.communication == "absolute":
        senders = "models" if calibration is None else "other models"
        words += f"; {senders} send their own bytes, whatever compute_s is"
    assumed = "" if calibration is not None else _assumed_gpu(scenario, fabric, kinds)
    return f"{words}; {assumed}" if assumed else words


def _without_network(scenario: Scenario) -> str:
    """The words without a network. Goodput parameters still have a time to synchronise."""
    synchronise = "" if scenario.goodput is None else ", except in steps by goodput"
    return f"{_NO_NETWORK}{synchronise}"


def what_slows(scenario: Scenario, varied: Collection[str] = ()) -> list[str]:
    """Contention, failures and costs of starts in words, except settings that vary."""
    settings = {}
    if scenario.contention != "none":
        settings["contention"] = f"contention {scenario.contention}"
    if scenario.failures != "none":
        settings["failures"] = f"failures {scenario.failures}"
    if scenario.restart_s:
        settings["restart_s"] = f"restart {time_text(scenario.restart_s)}"
    if (first_s := scenario.first_start_s) is not None:
        cost = "as restart" if isinstance(first_s, str) else time_text(first_s)
        settings["first_start_s"] = f"first start {cost}"
    return [words for name, words in settings.items() if name not in varied]


def measured_part(scenario: Scenario, varied: Collection[str] = ()) -> list[str]:
    """Which jobs the figures are about, if only a part of the run is measured and does not vary."""
    start_s, end_s = scenario.measure_from_s, scenario.measure_until_s
    if (start_s, end_s) == (None, None) or {"measure_from_s", "measure_until_s"} & {*varied}:
        return []
    return [f"{window_words(start_s or 0.0, end_s)}: the jobs that arrive then"]


def window_words(start_s: float, end_s: float | None) -> str:
    """The window of a run that is measured, perhaps up to its end: `measured from 1 h to 2 h`."""
    end = "on" if end_s is None else f"to {time_text(end_s)}"
    return f"measured from {time_text(start_s)} {end}"


def _assumed_gpu(scenario: Scenario, fabric: Fabric, kinds: Collection[str]) -> str:
    """On which GPU models compute, if that is not the cluster's GPU; else empty.

    A cluster file's kinds win over the fabric's, and a table of speeds scales the times of its
    reference kind. Recorded answers and goodput parameters have their own compute times.
    """
    from artist.workload.gpus import ASSUMED_GPU, assumed_in_words

    chosen = scenario.trained_as is not None and "gpu=" in scenario.trained_as.replace(" ", "")
    if chosen or scenario.backend.partition(":")[0] == "recorded":
        return ""
    if scenario.speeds is not None:
        kinds = kinds_of_compute_times(scenario)
    described = fabric.machine.kind if fabric.machine is not None else None
    words = assumed_in_words({*kinds} - {ONE_KIND} or {described or ASSUMED_GPU})
    return "" if words and scenario.goodput is not None and _all_elastic(scenario) else words


def _all_elastic(scenario: Scenario) -> bool:
    """Whether all jobs take their compute times from goodput parameters."""
    tree = build_cluster(scenario, build_fabric(scenario))
    trace = elastic(scenario, tree, build_trace(scenario, tree))
    return all(job.goodput is not None for job in trace.jobs)


def busiest_model(jobs: Table) -> str:
    """Which model makes at least half of the communication, in GPU-seconds; empty if none does.

    Also empty if a job is elastic: the table does not say on how many GPUs the job communicated.
    """
    import numpy as np

    if (np.asarray(jobs["gpus_min"]) < np.asarray(jobs["gpus_max"])).any():
        return ""
    gpu_s = np.asarray(jobs["comm_s"]) * np.asarray(jobs["gpus"])
    total_gpu_s = float(gpu_s.sum())
    if not total_gpu_s > 0:
        return ""
    names, model = np.unique(np.asarray(jobs["model"], dtype=str), return_inverse=True)
    by_model = np.bincount(model, weights=gpu_s)
    most = int(np.argmax(by_model))
    if by_model[most] < total_gpu_s / 2:
        return ""
    share = 100 * by_model[most] / total_gpu_s
    return f"{names[most]} jobs account for {share:.0f} % of the communication"

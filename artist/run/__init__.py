"""The composition root: a scenario in, a result out, in three steps.

    Scenario -> prepare -> Prepared -> drive -> rows -> collect -> Result

Only this package turns names into implementations. `simulate` does all three steps. An external
driver calls `prepare`, drives `Prepared.simulator` itself, and then calls `collect`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from artist.config import Scenario
from artist.engine.simulator import Simulator
from artist.policies.own_file import in_a_sentence
from artist.results.result import Result
from artist.run.collect import collect, link_digests
from artist.run.hardware import (
    asked_fabric,
    build_calibration,
    build_cluster,
    build_fabric,
    build_latency,
    cluster_of,
    machine_gpus,
    open_backend,
)
from artist.run.policies import build_policy, open_policy
from artist.run.prepare import Prepared, build_data, build_failures, prepare
from artist.run.traces import ABOUT_COMPUTE_TIMES, build_trace, permuted
from artist.trace.native.trace import Trace

if TYPE_CHECKING:
    from artist.estimates.latency_service import EstimateStore

__all__ = [
    "ABOUT_COMPUTE_TIMES",
    "OnQuestion",
    "OnTrace",
    "Prepared",
    "asked_fabric",
    "build_calibration",
    "build_cluster",
    "build_data",
    "build_fabric",
    "build_failures",
    "build_latency",
    "build_policy",
    "build_trace",
    "cluster_of",
    "collect",
    "drive",
    "link_digests",
    "machine_gpus",
    "open_backend",
    "open_policy",
    "permuted",
    "prepare",
    "simulate",
]  # fmt: skip

OnQuestion = Callable[[Simulator], None]
OnTrace = Callable[[Trace, Scenario], None]


def simulate(
    scenario: Scenario,
    *,
    check: bool = False,
    store: EstimateStore | None = None,
    on_question: OnQuestion | None = None,
    on_trace: OnTrace | None = None,
    links: bool = False,
) -> Result:
    """Run a scenario: prepare, drive, collect. `on_trace` gets trace and scenario before the run.

    With `links` the result has a table of what links carried.

    Raises:
        ArtistError: whatever is wrong with the scenario, before anything is written.
    """
    prepared = prepare(scenario, check=check, store=store)
    if links:
        prepared.network.curves("--links")  # refuses now, not after hours of simulation
    if on_trace is not None:
        on_trace(prepared.trace, scenario)
    wall_s = drive(prepared, on_question)
    return collect(prepared, wall_s, links=links)


def drive(prepared: Prepared, on_question: OnQuestion | None = None) -> float:
    """Let the policy answer every question until all jobs have finished.

    Returns the seconds of wall-clock time.

    Raises:
        PolicyError: an invalid decision, jobs are left waiting, or a policy's file raised an error.
    """
    started = time.perf_counter()
    try:
        prepared.simulator.run(prepared.policy, on_question)
    except BaseException as cause:  # a policy may raise anything, SystemExit too
        if error := in_a_sentence(cause, prepared.scenario.policy):
            raise error from cause
        raise
    return time.perf_counter() - started

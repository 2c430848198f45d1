"""Remarks on a scenario: what a reader of its results should know, and what makes it slow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from artist.cluster.fabric import Fabric
from artist.cluster.links import most_oversubscribed
from artist.config import ABOUT_THE_TRACE, Scenario
from artist.errors import ArtistError
from artist.policies.option_places import entry_and_host
from artist.policies.table import CASSINI
from artist.results.terms.number_text import listed
from artist.run import (
    asked_fabric,
    build_calibration,
    build_cluster,
    build_fabric,
    build_policy,
    build_trace,
    open_backend,
)
from artist.run.traces import read_trace_of
from artist.units import counted, ratio_text

if TYPE_CHECKING:
    from artist.estimates.calibration import Calibration
    from artist.experiments.comparison.comparison_result import Comparison

ABOUT = ("fabric", "backend", "gpus_per_machine", "tree", "cluster")
"""The settings that remarks are about. If a comparison varies one, no remark fits all runs."""


def remarks(scenario: Scenario) -> list[str]:
    """What a reader of the results should know about a scenario; usually empty.

    Raises:
        ConfigError: the scenario names a fabric or an image that is not there.
    """
    remarks = (
        _own_model(scenario),
        _other_machines(scenario),
        _asked_otherwise(scenario),
        _least_uplinks(scenario),
    )
    return [text for text in remarks if text]


def unread_quotas(scenario: Scenario) -> str:
    """A sentence if tenants have quotas that the policy ignores."""
    if not scenario.tenants or _keeps_quotas(scenario):
        return ""
    return f"{scenario.policy} keeps no quotas of tenants; quota({scenario.policy}) does."


def _keeps_quotas(scenario: Scenario) -> bool:
    return bool(getattr(build_policy(scenario), "has_quotas", False))


def without_tenant(scenarios: Iterable[Scenario]) -> str:
    """A sentence if scenarios of one trace have quotas and some or all jobs have no tenant."""
    named = [one for one in scenarios if one.tenants]
    if not named:
        return ""
    scenario = named[0]
    jobs = build_trace(scenario, build_cluster(scenario, build_fabric(scenario))).jobs
    count = sum(job.tenant is None for job in jobs)
    if not count:
        return ""
    if count == len(jobs):
        return (
            "No job belongs to a tenant with a quota; --columns tenant=COLUMN names the column of "
            "the trace."
        )
    belong = "belongs" if count == 1 else "belong"
    above = ", which counts as above quota" if any(map(_keeps_quotas, named)) else ""
    return (
        f"{count:,} of {counted(len(jobs), 'job')} {belong} to no tenant{above}; fill in the "
        "tenant in the trace."
    )


def sharing(scenarios: Iterable[Scenario]) -> str:
    """A sentence on the speed of jobs that share GPUs, or that `interference` has no effect."""
    every = [*scenarios]
    share = (x for x in every if getattr(build_policy(x), "jobs_per_gpu", 1) > 1)
    if (one := next(share, None)) is None:
        return _idle_interference(every)
    if one.interference != "time-slicing":
        return f"Jobs that share a GPU have the speeds of {one.interference} (interference)."
    return (
        "Jobs that share a GPU take turns, so sharing gains no throughput; --set "
        "interference=h100 or h200 takes pairs that were measured on one."
    )


def _idle_interference(scenarios: Sequence[Scenario]) -> str:
    """A sentence if `interference` is set but no jobs of the runs share GPUs."""
    given = next((x for x in scenarios if x.interference != "time-slicing"), None)
    if given is None:
        return ""
    jobs = build_trace(given, build_cluster(given, build_fabric(given))).jobs
    if any(job.is_share or job.mig for job in jobs):
        return ""
    policies = dict.fromkeys(x.policy for x in scenarios)
    return (
        f"interference={given.interference} changes nothing: under {listed([*policies])} no jobs "
        "share a GPU, as they do under lucid."
    )


def without_turns(scenarios: Iterable[Scenario]) -> str:
    """A sentence if CASSINI runs under a model of contention that does not know when jobs send."""
    idle = dict.fromkeys(
        x.policy for x in scenarios if x.contention == "mean" and _takes_turns(x.policy)
    )
    if not idle:
        return ""
    return (
        f"{listed(list(idle))} hold{'s' if len(idle) == 1 else ''} no job under contention mean, "
        "which does not know when jobs send; --contention phase does."
    )


def without_leases(scenarios: Iterable[Scenario]) -> str:
    """A sentence if `lease_s` is given to policies without leases."""
    idle = dict.fromkeys(
        one.policy
        for one in scenarios
        if "lease_s" in one.policy_options and build_policy(one).lease is None
    )
    if not idle:
        return ""
    has = "has" if len(idle) == 1 else "have"
    return f"policy.lease_s changes nothing under {listed([*idle])}, which {has} no leases."


def _takes_turns(policy: str) -> bool:
    entry, host = entry_and_host(policy)
    return entry.paper == CASSINI or (bool(host) and _takes_turns(host))


def same_with_turns(comparison: Comparison, scenario: Scenario) -> list[str]:
    """Why CASSINI around a policy gave the same results as the policy alone, if it did."""
    if comparison.setting != "policy":
        return []
    same = [
        f"{one} equals {host} to the last digit"
        for one in comparison.variants
        for entry, host in [entry_and_host(one)]
        if entry.paper == CASSINI and comparison.values[one] == comparison.values.get(host)
    ]
    if not same:
        return []
    if scenario.contention in ("none", "table"):
        why = f"contention {scenario.contention} has no links on which jobs could take turns"
    elif comparison.contention_idle:
        why = "jobs lost nothing to each other on links that they could take turns on"
    elif scenario.contention == "mean":
        why = "other places for the same jobs gained nothing, and contention mean knows no turns"
    else:
        why = (
            "other places for the same jobs gained nothing, and jobs take turns only on a link "
            "where that gains policy.least_gain"
        )
    return [f"{'; '.join(same)}: {why}."]


def _asked_otherwise(scenario: Scenario) -> str:
    """A sentence if the calibration was fitted with another configuration of ASTRA-sim."""
    fabric = build_fabric(scenario)
    calibration = build_calibration(scenario, fabric)
    if calibration is None:
        return ""
    asked = asked_fabric(scenario, fabric)
    if not calibration.asked_otherwise(asked.system):
        return ""
    from artist.calibrate.asked_otherwise import asked_otherwise

    return asked_otherwise(calibration, asked, open_backend("analytical"))


def fitted_before(calibration: Calibration | None, fabric: Fabric | None, changes: str) -> str:
    """A sentence if a calibration was fitted to other links than those of the run; else empty.

    `fabric` is that of the run, None for bare dimensions; `changes` are its changes in words.
    Empty, too, if the calibration does not name its fabric.
    """
    if calibration is None or fabric is None or not calibration.fabric:
        return ""
    if calibration.fabric != fabric.name:
        return (
            f"Calibration {calibration.name} was fitted on fabric {calibration.fabric}, not on "
            f"{fabric.name}; it is used as it is (--calibration none leaves it out)."
        )
    if not changes:
        return ""
    return (
        f"Calibration {calibration.name} was fitted on the fabric as it is in its file, not on "
        f"the changed one ({changes}); it is used as it is."
    )


def _least_uplinks(scenario: Scenario) -> str:
    """A sentence if an uplink is wider than its oversubscription says: it carries a whole flow."""
    if scenario.contention == "none":
        return ""
    fabric = build_fabric(scenario)
    tree = build_cluster(scenario, fabric)
    told = [
        f"{level.name} oversubscription {ratio_text(asked)} is {ratio_text(found)} here"
        for index, level in enumerate(fabric.levels)
        if level.uplink is not None and (asked := level.uplink.oversubscription) is not None
        for found in [most_oversubscribed(tree, fabric, index)]
        if found < 0.995 * asked
    ]
    return f"An uplink carries at least one flow, so {'; '.join(told)}." if told else ""


def _own_model(scenario: Scenario) -> str:
    """A sentence if the container of a backend holds artist itself."""
    for backend in (scenario.backend, scenario.fallback or ""):
        kind, _, image = backend.partition(":")
        if kind != "astra-docker":
            continue
        from artist.astra.programs.images import DEFAULT_IMAGE, OWN_MODEL, load_image

        if load_image(image or DEFAULT_IMAGE).is_artist:
            return f"Backend {backend} is {OWN_MODEL}: the answers are those of analytical."
    return ""


def _other_machines(scenario: Scenario) -> str:
    """A sentence if the cluster's largest machines differ in size from those of the fabric."""
    fabric = build_fabric(scenario)
    if fabric.machine is None:
        return ""
    tree = build_cluster(scenario, fabric)
    sizes = sorted(set(tree.levels[tree.machine].gpus))
    if sizes[-1] == fabric.machine.gpus:
        return ""
    return (
        f"Fabric {fabric.name} describes machines of {counted(fabric.machine.gpus, 'GPU')}, but "
        f"this cluster has machines of {listed([str(size) for size in sizes])}; their "
        "links are taken as they are "
        "(gpus_per_machine changes the cluster)."
    )


LONG_S = 10.0
"""Expected time from which a warning is worth while; shorter runs end before it is read."""


class _Slow(NamedTuple):
    sentence: str
    per_job_s: float


def slow_settings(scenarios: Iterable[Scenario], times: float = 1) -> list[str]:
    """A sentence for each setting that makes runs very slow; each scenario runs `times` times.

    Measured on 5,000 drawn jobs at load 0.9 on 512 GPUs of `leaf-spine`, against `fifo` without
    contention (0.4 s): `lookahead(fifo)` takes 109 times as long, `phase` with `placement=any` more
    than 235 times. `phase`, `fluid` and `mean` alone take 20 to 70 times as long; on the 500 jobs
    of the default trace on four racks, 2.5 times.
    """
    jobs: dict[str, int] = {}
    took_s: dict[str, float] = {}
    for scenario in scenarios:
        for slow in _of_one(scenario):
            key = repr([getattr(scenario, name) for name in ("trace", "jobs", *ABOUT_THE_TRACE)])
            if key not in jobs:
                jobs[key] = _jobs(scenario)
            seconds = times * slow.per_job_s * jobs[key]
            took_s[slow.sentence] = took_s.get(slow.sentence, 0.0) + seconds
    return [sentence for sentence, seconds in took_s.items() if seconds > LONG_S]


def _jobs(scenario: Scenario) -> int:
    """How many jobs a scenario has; 0 if its trace cannot be read, which the run will report."""
    try:
        count = len(read_trace_of(scenario).jobs)
    except ArtistError:
        return 0
    return count if scenario.jobs is None else min(count, scenario.jobs)


def _of_one(scenario: Scenario) -> Iterator[_Slow]:
    """The settings that make one run slow, with the seconds that each adds per job."""
    if scenario.backend.startswith("astra-"):
        yield _Slow(
            f"slow: backend {scenario.backend.partition(':')[0]} runs ASTRA-sim for every new model"
            " and placement, up to 85 s each on 1,024 GPUs; analytical gives the same answers in "
            "2 ms",
            85.0,
        )
    if "lookahead(" in scenario.policy:
        yield _Slow(
            "slow: lookahead tries every decision in a copy of the run, which takes about 100 "
            "times as long as the policy inside",
            0.009,
        )
    if scenario.contention in ("phase", "fluid") and _scatters(scenario):
        yield _Slow(
            f"slow: contention {scenario.contention} with scattered jobs takes hundreds of times "
            "as long as none; mean takes a tenth of that",
            0.019,
        )
    elif scenario.contention != "none":
        yield _Slow(
            f"slow: contention {scenario.contention} takes 20 to 70 times as long as none on "
            "thousands of jobs, 3 times on hundreds",
            0.005,
        )


def _scatters(scenario: Scenario) -> bool:
    """Whether jobs take any free GPUs, so that nearly all jobs share links."""
    options = scenario.policy_options
    host = options.get("host") or {}
    any_gpus = "any" in (options.get("placement"), host.get("placement"))
    return any_gpus or "random-placement" in scenario.policy

"""Does any policy depend on when a trace begins, on the unit of time, or on rounding?

- **Shift.** All arrivals come later by a constant: every row comes later by that constant, and
  nothing else changes. In every permutation, so with every phase of the clocks.
- **Scale.** All times are four times as long, those of the options too: every row has the same
  GPUs at four times the time. Permutation 0, since phases are drawn in whole ticks.
- **Re-association.** Equal jobs are cut into iterations in different ways (3 x 0.2 s, 6 x 0.1 s).
  Leases, arrivals and periods are such that no iteration is ever cut. So the jobs stay equal at
  every question, and every row keeps its GPUs and times.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SELF_SUFFICIENT, cluster

from artist.cluster.placement import Placement
from artist.cluster.visiting_order import VisitingOrder
from artist.contract import Policy
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.policies.table import POLICIES
from artist.rng import Draws
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import ticks
from artist.workload.job import Job

AUTO_TIMERS = {"dally", "dally-within-level"}
ROUNDED = 100
"""Their timers are means and deviations, rounded to ticks. Four times a rounded timer may differ by
two ticks from the timer of times four times as long, and later waits contain earlier timers."""

GITTINS = {"index": "gittins", "past_service_gpu_s": [3.0, 9.6, 21.6], "thresholds_gpu_s": [4.8]}
VARIANTS: dict[str, Sequence[Mapping[str, Any]]] = {
    "tiresias": [
        {"thresholds_gpu_s": [4.8, 12.0]},
        {"thresholds_gpu_s": [4.8], "promote_knob": 1.0},
        GITTINS,
    ],
    "themis": [{"fairness_knob": 0.0}, {"fairness_knob": 0.7, "leftover": "worst-first"}, {}],
    "gandiva": [{"fragmented_share": 0.5}, {"migrate": False}],
}
CASES = [(name, options) for name in SELF_SUFFICIENT for options in VARIANTS.get(name, [{}])]
IDS = [f"{name}-{index}" for index, (name, _) in enumerate(CASES)]

SECONDS_OF_THEIR_OWN = {"slurm"}
"""Slurm looks at its queue once a second, whatever its settings."""

# Times of the options that are made short, so that they matter in short traces; seconds.
SHORT = {"lease_s": 2.4, "quantum_s": 2.4, "period_s": 2.4, "machine_timer_s": 3.6}
SHORT |= {"rack_timer_s": 7.2, "history_s": 24.0}

SIX_TENTHS = [(6, 0.1), (3, 0.2), (2, 0.3), (1, 0.6)]
"""Ways to cut 0.6 s into iterations."""


class Trace(NamedTuple):
    """Jobs on a cluster, all of whose times are multiples of 1.2 s, but for the iterations."""

    machines: list[list[int]]
    jobs: list[Job]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Up to ten jobs on up to two racks. Equal jobs and simultaneous arrivals are frequent."""
    rack = st.lists(st.integers(1, 3), min_size=1, max_size=2)
    machines = draw(st.lists(rack, min_size=1, max_size=2))
    total = sum(map(sum, machines))
    jobs = []
    for index in range(draw(st.integers(2, 10))):
        jobs.append(
            Job(
                id=str(index),
                arrival_s=1.2 * draw(st.integers(0, 6)),
                gpus=draw(st.integers(1, min(total, 3))),
                model=draw(st.sampled_from(["vgg11", "resnet50"])),
                iterations=draw(st.sampled_from([2, 6, 6, 12])),
                compute_s=0.6,
                restart_s=draw(st.sampled_from([0.0, 1.2])),
            )
        )
    return Trace(machines, sorted(jobs, key=lambda job: job.arrival_s))


def policy_of(name: str, options: Mapping[str, Any], draws: Draws, scale: int = 1) -> Policy:
    """A policy with short times, all of them `scale` times as long."""
    known = POLICIES[name].load().Options.model_fields
    chosen = {key: value for key, value in SHORT.items() if key in known} | dict(options)
    defaults = {key: known[key].default for key in known if key.endswith("_s")}
    times = defaults | {key: value for key, value in chosen.items() if key.endswith("_s")}
    chosen |= {key: scaled(value, scale) for key, value in times.items()}
    return open_policy(name, chosen, draws)


def scaled(time: Any, scale: int) -> Any:
    """An option's time, or each of its times, as often."""
    if isinstance(time, Sequence):
        return [scaled(each, scale) for each in time]
    return None if time is None else scale * time


def run(trace: Trace, policy: Policy, slowdown: float, permutation: int = 0) -> Rows:
    """A run whose jobs are slower by `slowdown` per level outside the machine."""
    tree = cluster(*trace.machines)
    return Simulator(
        tree,
        trace.jobs,
        LevelRates(tree, slowdown=slowdown),
        lease=policy.lease,
        visiting_order=VisitingOrder(tree, permutation),
        check=True,
    ).run(policy)


def stays(rows: Rows, scale: int = 1, shift: int = 0) -> list[tuple[int, Placement, int, int, str]]:
    """What happened to the jobs: handle, GPUs, start, end and how it ended."""
    return [
        (row.handle, row.placement, scale * row.start + shift, scale * row.end + shift, row.reason)
        for row in rows.placements
    ]


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@settings(max_examples=12)
@given(
    trace=traces(),
    seed=st.integers(0, 3),
    permutation=st.integers(0, 3),
    shift_s=st.sampled_from([0.7, 1200.0, 123_456.1]),
)
def test_a_trace_that_begins_later_is_the_same_trace(
    name: str, options: Mapping[str, Any], trace: Trace, seed: int, permutation: int, shift_s: float
) -> None:
    draws = Draws(seed, permutation)
    plain = run(trace, policy_of(name, options, draws), 0.5, permutation)
    jobs = [replace(job, arrival_s=job.arrival_s + shift_s) for job in trace.jobs]
    later = run(trace._replace(jobs=jobs), policy_of(name, options, draws), 0.5, permutation)
    assert stays(later) == stays(plain, shift=ticks(shift_s))


@pytest.mark.parametrize(
    ("name", "options"), [case for case in CASES if case[0] not in SECONDS_OF_THEIR_OWN]
)
@settings(max_examples=12)
@given(trace=traces(), seed=st.integers(0, 3))
def test_longer_seconds_are_the_same_trace(
    name: str, options: Mapping[str, Any], trace: Trace, seed: int
) -> None:
    plain = run(trace, policy_of(name, options, Draws(seed)), 1.0)
    jobs = [
        replace(
            job,
            arrival_s=4 * job.arrival_s,
            compute_s=4 * job.compute_s,
            restart_s=4 * job.restart_s,
        )
        for job in trace.jobs
    ]
    longer = run(trace._replace(jobs=jobs), policy_of(name, options, Draws(seed), scale=4), 1.0)
    ours, theirs = stays(longer), stays(plain, scale=4)
    if name in AUTO_TIMERS:
        assert [(stay[:2], stay[4]) for stay in ours] == [(stay[:2], stay[4]) for stay in theirs]
        ends = zip(ours, theirs, strict=True)
        assert all(abs(one[n] - two[n]) <= ROUNDED for one, two in ends for n in (2, 3))
    else:
        assert ours == theirs


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@settings(max_examples=12)
@given(trace=traces(), cuts=st.lists(st.sampled_from(SIX_TENTHS), min_size=10, max_size=10))
def test_how_a_job_is_cut_into_iterations_decides_nothing(
    name: str, options: Mapping[str, Any], trace: Trace, cuts: list[tuple[int, float]]
) -> None:
    plain = run(trace, policy_of(name, options, Draws()), 0.0)
    jobs = [
        replace(job, iterations=job.iterations * count, compute_s=compute_s)
        for job, (count, compute_s) in zip(trace.jobs, cuts, strict=False)
    ]
    cut = run(trace._replace(jobs=jobs), policy_of(name, options, Draws()), 0.0)
    assert stays(cut) == stays(plain)

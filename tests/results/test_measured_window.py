"""Are the figures of a window those of the jobs that arrive in it, and of the GPU time in it?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artist
from artist.config import Scenario
from artist.errors import ConfigError

BUSY = {"racks": 1, "trace": "synth:80:64:1.2", "fabric": "dally2025", "policy": "tiresias"}
SHARED = {"policy": "gandiva", "policy_options": {"packing": True}, "interference": "h200"}
OWN = ("jobs_measured", "measured_from_s", "measured_until_s", "wall_s")
"""What only the summary of a window has, and what differs from run to run."""


def simulated(**settings: Any) -> artist.Result:
    return artist.simulate(Scenario(**{**BUSY, **settings}), cache=False)


@pytest.fixture(scope="module")
def whole() -> artist.Result:
    return simulated()


def test_a_window_of_three_jobs_by_hand(tmp_path: Path) -> None:
    """One GPU, three jobs of 100 s at 0, 50 and 210 s: they run at 0, 100 and 210 s.

    From 40 to 220 s two jobs arrive, which wait for 50 and 0 s; the GPU is idle from 200 to 210 s.
    """
    trace = tmp_path / "three.csv"
    trace.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\n"
        "a,0,1,any,100,1\nb,50,1,any,100,1\nc,210,1,any,100,1\n"
    )
    size = {"machines_per_rack": 1, "gpus_per_machine": 1}
    tiny: dict[str, Any] = {**size, "trace": str(trace), "backend": "none", "policy": "fifo"}
    got = simulated(**tiny, measure_from_s=40, measure_until_s=220).summary
    assert (got["jobs_measured"], got["jobs_finished"], got["jobs_total"]) == (2, 3, 3)
    assert (got["measured_from_s"], got["measured_until_s"]) == (40, 220)
    assert (got["jct_mean_s"], got["queue_delay_mean_s"]) == (125, 25)
    assert got["gpu_allocated_share"] == pytest.approx(170 / 180)
    assert got["makespan_s"] == 310
    # A job belongs to the window in which it arrives, to the nanosecond: the end is not in it.
    assert simulated(**tiny, measure_until_s=210).summary["jobs_measured"] == 2
    assert simulated(**tiny, measure_from_s=210).summary["jobs_measured"] == 1


@pytest.mark.parametrize("window", [{"measure_from_s": 0}, {"measure_until_s": 1e8}])
@pytest.mark.parametrize("shared", [{}, SHARED])
def test_a_window_of_the_whole_run_changes_no_figure(
    window: dict[str, float], shared: dict[str, Any]
) -> None:
    """The time before the first arrival and after the end of the run does not count either."""
    run = simulated(**shared)
    within = simulated(**shared, **window).summary
    assert within["jobs_measured"] == 80
    assert within["measured_from_s"] == float(np.min(run.tables["jobs"]["arrival_s"])) > 0
    assert ("gpu_shared_share" in within) == bool(shared)
    for name, value in run.summary.items():
        if name not in OWN:
            assert within[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_gpu_time_that_jobs_share_counts_in_the_window_only() -> None:
    """The GPU time of jobs that arrived before the window counts, too."""
    run = simulated(**SHARED)
    start_s, end_s = (float(np.quantile(run.tables["jobs"]["arrival_s"], x)) for x in (0.5, 0.8))
    within = simulated(**SHARED, measure_from_s=start_s, measure_until_s=end_s).summary
    rows = run.placements
    held_s = rows.end_s.clip(start_s, end_s) - rows.start_s.clip(start_s, end_s)
    shared_gpu_s = (rows.gpus * held_s)[rows.beside.map(len) > 0].sum() / 2  # a row of each
    available_gpu_s = within["gpus"] * (end_s - start_s)
    assert within["gpu_shared_share"] == pytest.approx(shared_gpu_s / available_gpu_s) != 0


def test_windows_next_to_each_other_add_up(whole: artist.Result) -> None:
    arrivals_s = np.asarray(whole.tables["jobs"]["arrival_s"])
    middle_s, end_s = float(np.median(arrivals_s)), float(np.max(whole.tables["jobs"]["finish_s"]))
    first, second = simulated(measure_until_s=middle_s), simulated(measure_from_s=middle_s)
    assert first.jobs.equals(whole.jobs) and second.jobs.equals(whole.jobs)  # only figures differ
    one, other = first.summary, second.summary
    assert one["jobs_measured"] + other["jobs_measured"] == 80
    assert other["measured_until_s"] == end_s
    for total in ("preemptions", "migrations", "placements_machine"):
        assert one[total] + other[total] == whole.summary[total]
    jct_s = [got["jobs_measured"] * got["jct_mean_s"] for got in (one, other)]
    assert sum(jct_s) == pytest.approx(80 * whole.summary["jct_mean_s"])
    priced = {"prices": 2.0}
    costs = [
        simulated(**priced, **window).summary["gpu_cost"]
        for window in ({}, {"measure_until_s": middle_s}, {"measure_from_s": middle_s})
    ]
    assert costs[0] == pytest.approx(costs[1] + costs[2])
    assert min(costs[1:]) > 0
    from_s = one["measured_from_s"]
    for share in ("allocated", "computing", "communicating", "stalled", "lost"):
        name = f"gpu_{share}_share"
        used = one[name] * (middle_s - from_s) + other[name] * (end_s - middle_s)
        assert used == pytest.approx(whole.summary[name] * whole.summary["makespan_s"], abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"measure_from_s": -1}, "'measure_from_s' is -1, expected at least 0"),
        ({"measure_until_s": 0}, "'measure_until_s' is 0, expected at least 1e-09"),
        (
            {"measure_from_s": 9, "measure_until_s": 9},
            "measure_until_s=9 is not after measure_from_s=9; raise it",
        ),
        ({"measure_from_s": 1e8}, r"measure_from_s=1e\+08: no job arrives then, but from \d+"),
    ],
)
def test_a_window_without_time_or_jobs_is_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        simulated(**settings)


def test_a_scenario_without_a_window_does_not_mention_one(whole: artist.Result) -> None:
    assert not any(name.startswith("measure") for name in Scenario().model_dump())
    assert set(OWN[:3]).isdisjoint(whole.summary)

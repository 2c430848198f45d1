"""Are shared GPUs counted once in the results, and said to be shared?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artist
from artist.errors import ConfigError
from artist.report.figures_of_jobs import gpu_hours_by_level
from artist.report.reader import RecordedRun, read_run
from artist.report.timeline_lanes import machines, parse_placement, strips_of
from artist.results.run_directory import write_run
from artist.run.communication_split import _held_gpu_s

PACKS = '''
from artist.contract import BasePolicy, Start
from artist.policies.shared.placers import placer


class Packs(BasePolicy):
    """First come, first served; where nothing is free, beside a job of the same size."""

    jobs_per_gpu = 2

    def decide(self, view):
        free, answer, packed = view.free.copy(), [], set()
        for handle, job in view.waiting.items():
            placement = placer("pack").place(free, job.job.gpus, {})
            if placement is not None:
                free.claim(placement)
                answer.append(Start(handle, placement))
                continue
            for host, other in view.running.items():
                if other.gpus == job.job.gpus and not other.beside and host not in packed:
                    packed.add(host)
                    answer.append(Start(handle, other.placement, beside=host))
                    break
        return answer
'''


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "packs.py").write_text(PACKS)
    return f"{tmp_path / 'packs.py'}:Packs"


def run(policy: str, **settings: Any) -> artist.Result:
    scenario = artist.Scenario(
        policy=policy, trace="sensetime-batch-500", jobs=60, racks=1, **settings
    )
    return artist.simulate(scenario, check=True, cache=False)


def test_gpu_time_of_jobs_adds_up_to_that_of_the_cluster(policy: str) -> None:
    result = run(policy)
    rows, summary = result.tables["placements"], result.summary
    sharers = np.array([1 + len(beside) for beside in rows["beside"]])
    assert set(sharers.tolist()) == {1, 2}
    gpu_s = np.asarray(rows["gpus"]) * (np.asarray(rows["end_s"]) - np.asarray(rows["start_s"]))
    held_gpu_s = summary["gpu_allocated_share"] * summary["gpus"] * summary["makespan_s"]
    assert (gpu_s / sharers).sum() == pytest.approx(held_gpu_s)
    parts = ("computing", "communicating", "stalled", "lost")
    assert sum(summary[f"gpu_{part}_share"] for part in parts) == pytest.approx(
        summary["gpu_allocated_share"]
    )
    together = (gpu_s * (sharers - 1) / 2).sum()  # each pair has two rows
    available_gpu_s = summary["gpus"] * summary["makespan_s"]
    assert summary["gpu_shared_share"] == pytest.approx(together / available_gpu_s)
    timeline = result.tables["timeline"]
    assert max(timeline["gpus_held"]) <= summary["gpus"]
    assert min(timeline["gpus_fragmented"]) >= 0
    assert min(result.tables["waits"]["free_gpus_max"]) >= 0
    assert summary["makespan_s"] >= summary["makespan_bound_s"]
    slowed = np.asarray(rows["iteration_s"]) / np.asarray(rows["alone_iteration_s"])
    assert slowed == pytest.approx(sharers)


@pytest.fixture
def recorded(policy: str, tmp_path: Path) -> RecordedRun:
    write_run(run(policy), tmp_path / "run", ["artist", "sim"])
    return read_run(tmp_path / "run")


def test_the_report_counts_gpu_hours_of_shared_gpus_once(recorded: RecordedRun) -> None:
    metric = recorded.metric
    held_gpu_s = metric("gpu_allocated_share") * metric("gpus") * metric("makespan_s")
    assert 3600 * sum(gpu_hours_by_level(recorded).values()) == pytest.approx(held_gpu_s)


def test_jobs_that_share_gpus_are_drawn_beside_each_other(recorded: RecordedRun) -> None:
    rows, size = recorded.placements, machines(recorded)
    start_s, end_s, boxes = rows["start_s"], rows["end_s"], []
    for index, strips in enumerate(strips_of(recorded)):
        held: dict[int, float] = {}
        for machine, first, count in strips:
            assert 0 <= first < first + count <= size.gpus
            held[machine] = held.get(machine, 0) + count * rows.sharers[index]
            boxes.append((machine, first, first + count, start_s[index], end_s[index]))
        assert held == pytest.approx(parse_placement(rows.text["placement"][index], "here"))
    machine, low, high, begin, end = np.array(boxes).T
    for i in range(len(boxes)):
        overlap = (machine == machine[i]) & (low < high[i] - 1e-9) & (high > low[i] + 1e-9)
        assert (overlap & (begin < end[i]) & (end > begin[i])).sum() <= 1  # but itself


def test_a_table_of_pairs_is_an_input_of_the_run(policy: str, tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("model_a,model_b,speed_a,speed_b\nvgg16,vgg16,0.9,0.9\n")
    result = run(policy, interference=str(table))
    assert "interference" in result.inputs
    assert result.summary["jct_mean_s"] <= run(policy).summary["jct_mean_s"]


def test_a_run_without_sharing_says_nothing_of_it() -> None:
    result = run("fifo")
    assert "beside" not in result.tables["placements"]
    assert "gpu_shared_share" not in result.summary
    assert "interference" not in result.scenario.model_dump()


def test_an_unknown_table_is_an_error_that_names_the_known_ones(policy: str) -> None:
    with pytest.raises(ConfigError, match="expected one of time-slicing, h100, h200, or a CSV"):
        run(policy, interference="a100")


def test_wrappers_refuse_a_policy_that_shares_gpus(policy: str) -> None:
    with pytest.raises(ConfigError, match="lets jobs share GPUs"):
        run(f"random-placement({policy})")


def test_what_communication_weighs_by_counts_shared_gpus_once() -> None:
    columns = ("job_id", "signature", "gpus", "start_s", "end_s", "stalled_s", "beside")
    rows = [("a", "2", 2, 0.0, 10.0, 1.0, ["b"]), ("b", "2", 2, 0.0, 10.0, 1.0, ["a"])]
    tables = {
        "jobs": {"job_id": ["a", "b"], "model": ["vgg16", "vgg16"]},
        "placements": dict(zip(columns, zip(*rows, strict=True), strict=True)),
    }
    assert _held_gpu_s(tables) == {("vgg16", "2"): 18.0}

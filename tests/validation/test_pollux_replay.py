"""Does the replay of Pollux' baselines read its measurements, and keep its clock?

The published runs themselves need the authors' files: `make pollux`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from artist.workload.goodput import Batch
from validation.pollux.__main__ import main
from validation.pollux.applications import Application, applications
from validation.pollux.replay import replay

PLACEMENTS = {("1", 12): 0.504, ("1", 24): 0.9, ("2", 12): 0.6, ("2", 24): 1.0, ("11", 12): 0.8}
BEYOND = {(3, 3, 12): 0.9, (3, 4, 24): 1.2}
"""Step times by placement, or machines and GPUs, and samples on a GPU; a fifth is synchronising."""

EPOCHS = {
    12: [(100.0, 100, 2.0, 8.0), (200.0, 200, 2.0, 8.0)],
    24: [(101.0, 60, 2.0, 24.0), (204.0, 110, 0.0, 24.0)],
}
"""By batch: progress, iterations, the gradient's square and its variance."""


def table(path: Path, names: str, rows: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.fixture
def simulator(tmp_path: Path) -> Path:
    """A folder as theirs, with one application of two epochs."""
    pytest.importorskip("scipy")
    bert = tmp_path / "traces" / "bert"
    times = [(*key, step_s, step_s / 5) for key, step_s in PLACEMENTS.items()]
    table(bert / "placements.csv", "placement,local_bsz,step_time,sync_time", times)
    times = [(*key, step_s, step_s / 5) for key, step_s in BEYOND.items()]
    table(bert / "scalability.csv", "num_nodes,num_replicas,local_bsz,step_time,sync_time", times)
    for batch, epochs in EPOCHS.items():
        rows = [(progress, done, 0.5, *rest) for progress, done, *rest in epochs]
        path = bert / f"validation-{batch}.csv"
        table(path, "progress,iteration,metric,grad_sqr,grad_var", rows)
    return tmp_path


def workload(simulator: Path, *rows: tuple[str, int, int, int]) -> Path:
    """Jobs: name, seconds of arrival, GPUs, batch."""
    path = simulator / "workloads" / "workload-1.csv"
    rows_there = [(name, at, "bert", gpus, batch) for name, at, gpus, batch in rows]
    table(path, "name,time,application,num_replicas,batch_size", rows_there)
    return path


def test_measurements_are_read_and_interpolated(simulator: Path) -> None:
    bert = Application(simulator / "traces" / "bert")
    assert (bert.batch, bert.batch_max, bert.per_gpu_min, bert.per_gpu_max) == (12, 24, 12, 24)
    assert bert.ends == [0, 100, 200]  # the least of both batches
    assert (list(bert.iterations(24)), list(bert.iterations(18))) == ([60, 110], [80, 155])
    assert bert.step_s((1,), Batch(18, 0)) == pytest.approx(0.702)
    assert bert.step_s((2,), Batch(12, 1)) == pytest.approx(0.6 + 0.48)
    assert bert.times((1, 1, 1), 12) == pytest.approx((0.9, 0.18))
    # (var + sqr) / (var / scale + sqr), with the variance between those of 12 and 24 samples.
    assert bert.gain(24, 0) == pytest.approx(26 / (24 / 2 + 2))
    assert bert.gain(18, 0) == pytest.approx(18 / (16 / 1.5 + 2))
    assert (bert.gain(24, 1), bert.noise(24, 1)) == (2, math.inf)  # gradients are all noise
    assert bert.divided(24, 1, accumulates=True) == Batch(12, 1)
    assert bert.divided(24, 1, accumulates=False) == Batch(24, 0)
    assert bert.divided(12, 2, accumulates=True) == Batch(6, 0)


def test_epochs_end_at_whole_seconds_and_a_first_start_costs_a_restart(simulator: Path) -> None:
    """From 60 + 30 s on, two epochs of 50.4 s: 20.4 s after 120 and 10.4 s after 180 are cut."""
    known = applications(simulator / "traces")
    path = workload(simulator, ("a", 30, 1, 12))
    assert replay(path, "tiresias", known) == pytest.approx({"a": 190 - 30}, abs=1e-3)


def test_a_job_that_is_moved_loses_no_work(simulator: Path) -> None:
    """A step is worth 26 / 14. On two GPUs it takes .6 s from 90 to 120, on one .9072 s from 150.

    There 7.14 of the first epoch are left: 3 s. Then a step is worth 2, and from 180 on 40.5 are
    left of the second epoch: 18 s.
    """
    known = applications(simulator / "traces")
    others = [(f"b{number}", 61, 1, 12) for number in range(63)]
    path = workload(simulator, ("a", 1, 2, 24), *others)
    assert replay(path, "optimus", known)["a"] == pytest.approx(198 - 1, abs=1e-3)


def test_jobs_equal_to_the_published_ones_are_counted(simulator: Path, capsys) -> None:
    workload(simulator, ("a", 30, 1, 12), ("b", 30, 1, 12), ("c", 31, 2, 12))
    for policy in ("tiresias", "optimus"):
        results = simulator / "results-jobload" / f"{policy}-1.0" / "summary.json"
        results.parent.mkdir(parents=True)
        jcts = {"a": 160, "b": 161, "c": 300}
        results.write_text(json.dumps({"jcts": {"workload-1": jcts}}))
    asked = ["--loads", "1.0", "--policies", "tiresias", "optimus"]
    assert main(["--simulator", str(simulator), *asked]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][3:6] == ["jobs", "within_round", "equal"]
    assert [line[:6] for line in lines[1:]] == [
        [policy, "1.0", "workload-1", "3", "2", "1"] for policy in ("tiresias", "optimus")
    ]
    assert main(["--simulator", str(simulator / "nowhere")]) == 3
    assert "error: " in capsys.readouterr().err


def test_pollux_runs_with_the_batches_that_it_chooses(simulator: Path) -> None:
    """One GPU and 12 samples from 90 to 120, 59.5 of an epoch. Two with 12 each from 150 on.

    There a step of .6 s is worth 26 / 14, so 40.5 are left for 13 s, and then 2, for 30 s.
    """
    known = applications(simulator / "traces")
    path = workload(simulator, ("a", 30, 1, 12))
    assert known["bert"].fitted.beta_c == pytest.approx(0.4 * 0.9 / 12, rel=0.2)
    assert replay(path, "pollux", known) == pytest.approx({"a": 193 - 30}, abs=1e-3)


def test_an_application_that_is_not_elastic_stays_on_one_gpu(
    simulator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it change its batch. From 90 to 120, 59.5 of an epoch of 100 steps of .504 s.

    40.5 are left for 20.4 s, rounded to 20, and 100 for 50.4 s, of which 40 are in that round and
    10.4 after it.
    """
    known = applications(simulator / "traces")
    monkeypatch.setattr("validation.pollux.replay._NOT_ELASTIC", "bert")
    monkeypatch.setattr("validation.pollux.replay._FIXED", {"bert": 12})
    path = workload(simulator, ("a", 30, 1, 12))
    assert replay(path, "pollux", known) == pytest.approx({"a": 190 - 30}, abs=1e-3)

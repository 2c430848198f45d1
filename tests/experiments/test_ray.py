"""Does a sweep on a Ray cluster give what it gives here? Two workers on this machine.

`make ray-test` runs these tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_sweep import TINY, contents

from artist.estimates.cache import open_store
from artist.experiments.experiment import Experiment
from artist.experiments.ray_cluster import run_on_ray
from artist.experiments.ray_worker import on_ray
from artist.experiments.sweep import SweepResult, sweep

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True)
def _workers_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def test_two_ray_workers_give_the_bytes_of_one_process(tmp_path: Path) -> None:
    steps: list[int] = []

    def on_done(result: SweepResult) -> None:
        steps.append(result.done)

    sweep(TINY, tmp_path / "one", [], workers=1)
    result = sweep(TINY, tmp_path / "ray", [], workers=2, engine=on_ray, on_done=on_done)
    assert (result.done, result.failures) == (12, [])
    assert steps[-12:] == list(range(1, 13))
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")


def test_files_that_scenarios_name_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
    rows = "".join(f"j{i},{i},{1 + i % 4},resnet50,{90 + i},0.5\n" for i in range(8))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.csv").write_text(header + rows)
    (tmp_path / "bad.csv").write_text(header + "j0,0,zero,resnet50,90,0.5\n")
    monkeypatch.chdir(tmp_path)
    experiment = Experiment(
        name="files",
        version=1,
        base={"backend": "none", "racks": 1},
        grid={"trace": ["sub/mine.csv", str(tmp_path / "sub" / "mine.csv"), "bad.csv"]},
    )
    ours = sweep(experiment, tmp_path / "one", [], workers=1)
    theirs = sweep(experiment, tmp_path / "ray", [], workers=2, engine=on_ray)
    assert theirs.done == 2
    assert theirs.failures == ours.failures
    assert theirs.failures[0].exit_code == 3
    assert theirs.failures[0].error.startswith("bad.csv:2")
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")


def deadly(task: int) -> int:
    if task == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * task


def test_a_worker_that_dies_costs_its_own_task_only(tmp_path: Path) -> None:
    def minus(task: int, why: str) -> int:
        assert "Ray worker died" in why
        return -task

    outcomes = dict(run_on_ray(deadly, [0, 1, 2, 3], 2, folder=tmp_path, on_death=minus))
    assert outcomes == {0: 0, 1: -1, 2: 4, 3: 9}


def test_workers_share_the_cache_of_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(tmp_path / "cache"))
    base = {"trace": "tiny-batch", "racks": 1}
    experiment = Experiment(name="c", version=1, base=base, grid={"policy": ["fifo", "las"]})
    sweep(experiment, tmp_path / "ray", [], workers=2, engine=on_ray)
    with open_store() as store:
        assert store is not None
        assert store.info()["entries"] > 0


def test_killed_and_resumed_it_equals_an_undisturbed_sweep(tmp_path: Path) -> None:
    experiment = tmp_path / "e.yaml"
    experiment.write_text(
        "name: killed\nversion: 1\nbase: {trace: sensetime-batch-500, backend: none}\n"
        "grid: {policy: [fifo, las, srtf, sjf], racks: [2, 4, 8, 16]}\n"
    )

    def command(out: Path, *more: str) -> list[str]:
        artist = [sys.executable, "-m", "artist", "sweep", str(experiment), "--workers", "2"]
        return [*artist, "--out", str(out), *more]

    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run(command(undisturbed), check=True, capture_output=True)
    on_ray_too = command(killed, "--engine", "ray", "--resume")
    for finished in (2, 6):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(on_ray_too, start_new_session=True, **quiet) as process:
            while len(list(killed.glob("runs/[!.]*/manifest.json"))) < finished:
                assert process.poll() is None
                time.sleep(0.02)
            process.kill()
    done = {path: path.stat().st_mtime_ns for path in killed.glob("runs/[!.]*/manifest.json")}
    assert 6 <= len(done) < 16
    subprocess.run(on_ray_too, check=True, capture_output=True)
    assert done == {path: path.stat().st_mtime_ns for path in done}
    assert contents(killed) == contents(undisturbed)


def address_of_the_cluster(task: int) -> str:
    import ray

    return f"{ray.get_runtime_context().gcs_address}" if task == 0 else ""


def test_a_stranger_is_not_let_into_the_ray_of_a_sweep(tmp_path: Path) -> None:
    running = run_on_ray(address_of_the_cluster, [0, 1], 1, folder=tmp_path)
    _, address = next(running)
    code = f"import ray; ray.init(address={address!r}, logging_level='ERROR')"
    stranger = {key: value for key, value in os.environ.items() if "RAY_AUTH" not in key}
    friend = os.environ
    done = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        for env in (stranger, friend)
    ]
    running.close()
    assert [process.returncode for process in done] == [1, 0]
    assert "Failed to connect" in done[0].stderr


def test_an_interrupted_sweep_ends_with_a_sentence(tmp_path: Path) -> None:
    experiment = tmp_path / "e.yaml"
    experiment.write_text(
        "name: long\nversion: 1\nbase: {trace: sensetime-batch-500, backend: none}\n"
        "grid: {policy: [fifo, las, srtf, sjf], racks: [2, 4, 8, 16]}\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-m", "artist", "sweep", str(experiment), "--out", str(out)]
    options = ["--engine", "ray", "--workers", "2"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        while not list(out.glob("runs/[!.]*/manifest.json")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert errors.splitlines()[-1].startswith("artist: interrupted with")
    assert "Traceback" not in errors

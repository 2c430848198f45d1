"""Do sweeps survive interruption, and give the same rows however they are run?"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from artist.errors import ConfigError, TraceError
from artist.experiments.experiment import Experiment, load_experiment, runs
from artist.experiments.sweep import sweep

TINY = Experiment(
    name="tiny",
    version=1,
    base={"trace": "tiny-batch", "backend": "none"},
    grid={"policy": ["fifo", "las", "srtf"], "racks": [1, 2], "policy.placement": ["any", "pack"]},
)


def contents(out: Path) -> dict[str, bytes | str]:
    """All files of a sweep, without the parts that may differ between two runs of it."""
    files: dict[str, bytes | str] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.name in ("manifest.json", "summary.json"):
            data = json.loads(path.read_text())
            for volatile in ("volatile", "command", "wall_s"):
                data.pop(volatile, None)
            files[name] = json.dumps(data)
        elif path.is_file() and path.name != ".lock":
            files[name] = path.read_bytes()
    return files


def test_the_grid_is_all_combinations_the_last_setting_fastest() -> None:
    cells = runs(TINY)
    assert len(cells) == 12
    assert [cell.scenario.racks for cell in cells[:4]] == [1, 1, 2, 2]
    assert cells[1].scenario.policy_options == {"placement": "pack"}
    assert len({cell.id for cell in cells}) == 12


def test_one_worker_and_two_give_the_same_bytes(tmp_path: Path) -> None:
    for workers in (1, 2):
        result = sweep(TINY, tmp_path / str(workers), [], workers=workers)
        assert (result.done, result.failures) == (12, [])
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize("text", [None, '{"wall_s"', "[]", "{}"])
def test_a_damaged_summary_is_named_before_any_run(tmp_path: Path, text: str | None) -> None:
    sweep(TINY, tmp_path, [], workers=1)
    (tmp_path / "results.csv").unlink()
    first, second, *_ = sorted((tmp_path / "runs").iterdir())
    shutil.rmtree(second)
    (first / "summary.json").unlink()
    if text is not None:
        (first / "summary.json").write_text(text)
    words = rf"{first.name}/summary.json: is missing or damaged; remove the folder .*{first.name} "
    with pytest.raises(TraceError, match=words):
        sweep(TINY, tmp_path, [], workers=1, resume=True)
    assert not second.exists()
    shutil.rmtree(first)
    assert sweep(TINY, tmp_path, [], workers=1, resume=True).done == 2


@pytest.mark.parametrize("name", ["jobs.parquet", "summary.json"])
def test_a_finished_run_that_was_changed_is_named_before_any_run(tmp_path: Path, name: str) -> None:
    sweep(TINY, tmp_path, [], workers=1)
    assert sweep(TINY, tmp_path, [], workers=1, resume=True).skipped == 12
    file = sorted((tmp_path / "runs").iterdir())[3] / name
    if name == "summary.json":
        file.write_text(json.dumps({**json.loads(file.read_text()), "makespan_s": 1.0}))
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    words = rf"{file.parent.name}/{name}: has changed since the run wrote it; remove the folder "
    with pytest.raises(TraceError, match=words):
        sweep(TINY, tmp_path, [], workers=1, resume=True)


@pytest.mark.parametrize("options", [5, None, "lease_s", [1]])
def test_options_that_are_not_a_mapping_are_named(options: object) -> None:
    experiment = Experiment(
        name="e", version=1, base={"policy_options": options}, grid={"policy.lease_s": [600]}
    )
    with pytest.raises(
        ConfigError, match=r"^experiment 'e': policy_options is .*, expected options as KEY: VALUE"
    ):
        runs(experiment)


def test_a_failing_run_is_reported_and_stops_nobody(tmp_path: Path) -> None:
    experiment = TINY.model_copy(update={"grid": {"gpus_per_machine": [8, 1], "racks": [1]}})
    experiment = experiment.model_copy(update={"base": {**TINY.base, "machines_per_rack": 2}})
    result = sweep(experiment, tmp_path / "out", [], workers=1)
    assert result.done == 1
    assert [failure.exit_code for failure in result.failures] == [3]
    assert "demands" in result.failures[0].error
    assert (tmp_path / "out" / "results.csv").read_text().count("\n") == 2


def test_a_folder_belongs_to_one_version_of_one_experiment(tmp_path: Path) -> None:
    sweep(TINY, tmp_path / "out", [], workers=1)
    with pytest.raises(ConfigError, match="--resume"):
        sweep(TINY, tmp_path / "out", [], workers=1)
    with pytest.raises(ConfigError, match="another experiment"):
        newer = TINY.model_copy(update={"version": 2})
        sweep(newer, tmp_path / "out", [], workers=1, resume=True)
    assert sweep(TINY, tmp_path / "out", [], workers=1, resume=True).skipped == 12


def test_finished_runs_are_left_untouched_by_a_resume(tmp_path: Path) -> None:
    sweep(TINY, tmp_path / "out", [], workers=1)
    victim, *others = sorted((tmp_path / "out" / "runs").iterdir())
    before = {path: (path / "manifest.json").stat().st_mtime_ns for path in others}
    for file in victim.iterdir():
        file.unlink()
    victim.rmdir()
    assert sweep(TINY, tmp_path / "out", [], workers=1, resume=True).done == 1
    assert before == {path: (path / "manifest.json").stat().st_mtime_ns for path in others}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "name: x\nversion: 1\ngrid:\n  jobs: [1]\n  polcy: [fifo]\n",
            r"e.yaml:5: grid: unknown setting 'polcy' \(did you mean 'policy'\?\)",
        ),
        ("name: x\nversion: 1\nbase:\n  polcy: fifo\n", "e.yaml:4: base: .* did you mean 'policy'"),
        (
            "name: x\nversion: 1\ngrid:\n  racks:\n    - 1\n    - 0\n",
            "e.yaml:6: grid: 'racks' is 0, expected at least 1$",
        ),
        (
            "name: x\nversion: 1\nbase: {policy_options: 5}\n",
            "e.yaml:3: base: 'policy_options' is 5, expected a mapping",
        ),
        ("name: x\nversion: 1\ngrid: {racks: []}\n", "'grid.racks' is empty, expected at least 1"),
        ("name: x\nversion: 0\n", "version"),
        ("version: 1\n", "e.yaml:1: setting 'name' is missing; add name: my-sweep$"),
        (
            "name: x\nversion: 1\ngrid:\n  fabric.network.bandwith: [9Gbit/s]\n",
            "e.yaml:4: grid: unknown setting 'fabric.network.bandwith': did you mean 'bandwidth'",
        ),
        ("name: ../x\nversion: 1\n", "e.yaml:1: 'name' is '../x', expected letters, digits, '.'"),
        ("name: x\nversion: 1\nbase: {racks: 0}\n", "racks"),
        (
            "name: x\nversion: 1\ngrid: {racks: [1, 1]}\n",
            "e.yaml:3: grid: racks=1 and racks=1",
        ),
        (
            "name: x\nversion: 1\ngrid: {policy: dally}\n",
            r"e.yaml:3: 'grid.policy' is 'dally', expected a list: write \[dally\]$",
        ),
        (
            "name: x\nversion: 1\ngrid: {policy: 'cassini(fifo, a)'}\n",
            r"expected a list: write \['cassini\(fifo, a\)'\]$",
        ),
        ("name: x\nversion: 1\nbases: {}\n", "did you mean 'base'"),
        ("name: x\nversion: 1\nbase: {tree: [[8]]}\ngrid: {racks: [1, 2]}\n", "racks=1"),
        # Mistakes that would fail in every run: unknown names, options that do not fit.
        (
            "name: x\nversion: 1\ngrid:\n  policy:\n    - fifo\n    - dlly\n",
            r"e.yaml:6: unknown policy 'dlly': did you mean 'dally'\? .*; no run was started",
        ),
        (
            "name: x\nversion: 1\nbase: {policy: las}\ngrid:\n  policy.foo: [1]\n",
            "e.yaml:5: policy las: unknown setting 'foo'",
        ),
        (
            "name: x\nversion: 1\ngrid:\n  policy: [las]\n  policy.lease_s:\n  - 9\n  - -1\n",
            "e.yaml:7: policy las: 'lease_s' is -1",
        ),
        ("name: x\nversion: 1\nbase: {fabric: hgx}\n", "e.yaml:3: unknown fabric 'hgx'"),
        ("name: x\nversion: 1\nbase: {trace: tiny}\n", "e.yaml:3: unknown trace 'tiny'"),
        ("name: x\nversion: 1\nbase: {failures: meta}\n", "e.yaml:3: unknown failure model"),
        ("name: x\nversion: 1\nbase: {contention: men}\n", "e.yaml:3: unknown model of cont"),
        ("name: x\nversion: 1\nbase: {backend: astra}\n", "e.yaml:3: unknown backend"),
        ("name: x\nversion: 1\nbase: {calibration: my}\n", "e.yaml:3: unknown calibration"),
        ("name: x\nversion: 1\nbase: {prices: {a: 1}}\n", "e.yaml:3: prices: the cluster has no"),
        ("name: x\nversion: 1\nbase: {speeds: my}\n", "e.yaml:3: unknown table of speeds"),
        ("name: x\nversion: 1\nbase: {interference: my}\n", "e.yaml:3: interference 'my'"),
        (
            "name: x\nversion: 1\ngrid: {policy.lease: [5, 6]}\nbase: {policy: las}\n",
            "unknown setting 'lease': did you mean 'lease_s'",
        ),
    ],
)
def test_bad_experiments_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        runs(load_experiment(path))


def test_a_folder_without_a_finished_run_blocks_nothing(tmp_path: Path) -> None:
    wrong = TINY.model_copy(update={"base": {**TINY.base, "policy_options": {"lese_s": 60}}})
    assert sweep(wrong, tmp_path, [], workers=1).done == 0
    assert sweep(TINY, tmp_path, [], workers=1).done == 12


def test_rows_carry_the_shape_of_the_cluster(tmp_path: Path) -> None:
    trees = [[[8, 8], [8]], [[8], [8]]]
    experiment = TINY.model_copy(update={"grid": {"tree": trees}})
    sweep(experiment, tmp_path / "out", [], workers=1)
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["cluster"] for row in rows] == ["[2x8, 1x8]", "2x1x8"]
    assert not any("racks" in row for row in rows)


def test_two_sweeps_cannot_share_a_folder(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    sweep(TINY, tmp_path / "out", [], workers=1)
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another sweep"):
            sweep(TINY, tmp_path / "out", [], workers=1, resume=True)


@pytest.mark.slow
def test_killed_three_times_and_resumed_it_equals_an_undisturbed_sweep(tmp_path: Path) -> None:
    experiment = tmp_path / "e.yaml"
    experiment.write_text(
        "name: killed\nversion: 1\nbase: {trace: sensetime-batch-500, backend: none}\n"
        "grid: {policy: [fifo, las, srtf, sjf], racks: [2, 4, 8, 16]}\n"
    )

    def command(out: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "artist", "sweep", str(experiment), "--out", out, *more]

    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run(command(str(undisturbed)), check=True, capture_output=True)
    moments = random.Random(7)
    for _ in range(3):
        process = subprocess.Popen(
            command(str(killed), "--resume"),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(0.8, 2.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command(str(killed), "--resume"), check=True, capture_output=True)
    assert contents(killed) == contents(undisturbed)


def grown(**grid: list[object]) -> Experiment:
    """TINY with a grid that has more."""
    return TINY.model_copy(update={"grid": {**TINY.grid, **grid}})


@pytest.mark.parametrize(
    "larger",
    [
        grown(racks=[1, 2, 3]),
        grown(permutation=[0, 1]),  # a setting more: the former runs get other ids
        grown(policy=["sjf", "srtf", "las", "fifo"]),
    ],
    ids=["a value", "a setting", "another order"],
)
def test_an_extended_grid_runs_only_what_is_new(tmp_path: Path, larger: Experiment) -> None:
    out = tmp_path / "out"
    sweep(TINY, out, [], workers=1)
    inodes = {manifest.stat().st_ino for manifest in out.glob("runs/[!.]*/manifest.json")}
    result = sweep(larger, out, [], workers=1, resume=True)
    assert (result.skipped, result.outside) == (12, 0)
    assert result.done == len(runs(larger)) - 12
    assert inodes <= {manifest.stat().st_ino for manifest in out.glob("runs/[!.]*/manifest.json")}
    sweep(larger, tmp_path / "fresh", [], workers=1)
    assert contents(out) == contents(tmp_path / "fresh")


def test_runs_that_left_the_grid_stay_and_have_no_row(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(TINY, out, [], workers=1)
    smaller = grown(racks=[2])
    result = sweep(smaller, out, [], workers=1, resume=True)
    assert (result.done, result.skipped, result.outside) == (0, 6, 6)
    assert len(list((out / "runs").iterdir())) == 12
    sweep(smaller, tmp_path / "fresh", [], workers=1)
    assert (out / "results.csv").read_bytes() == (tmp_path / "fresh/results.csv").read_bytes()
    # Back in the grid, they count again.
    assert sweep(TINY, out, [], workers=1, resume=True).skipped == 12


def test_another_base_keeps_no_run(tmp_path: Path) -> None:
    sweep(TINY, tmp_path, [], workers=1)
    other = TINY.model_copy(update={"base": {**TINY.base, "restart_s": 60.0}})
    result = sweep(other, tmp_path, [], workers=1, resume=True)
    assert (result.done, result.skipped, result.outside) == (12, 0, 12)


def test_a_run_with_another_scenario_is_not_taken_for_one_of_the_grid(tmp_path: Path) -> None:
    # Digests in ids are short: a folder whose digest is that of another scenario is compared.
    sweep(TINY, tmp_path, [], workers=1)
    first = runs(TINY)[0]
    digest = first.id.rpartition("_")[2]
    (tmp_path / "runs" / first.id).rename(tmp_path / "aside")
    other = sorted((tmp_path / "runs").iterdir())[0]
    other.rename(tmp_path / "runs" / f"stranger_{digest}")
    result = sweep(TINY, tmp_path, [], workers=1, resume=True)
    assert (result.done, result.outside) == (2, 1)


def test_another_grid_needs_resume(tmp_path: Path) -> None:
    sweep(TINY, tmp_path, [], workers=1)
    with pytest.raises(ConfigError, match=r"with another grid or base; add --resume"):
        sweep(grown(racks=[1]), tmp_path, [], workers=1)


def test_a_damaged_mark_is_no_experiment_to_extend(tmp_path: Path) -> None:
    sweep(TINY, tmp_path, [], workers=1)
    (tmp_path / "experiment.json").write_text("{")
    with pytest.raises(ConfigError, match="another experiment"):
        sweep(grown(racks=[1]), tmp_path, [], workers=1, resume=True)


def test_the_rows_of_a_result_are_those_of_its_file(tmp_path: Path) -> None:
    result = sweep(TINY, tmp_path, [], workers=1)
    with (tmp_path / "results.csv").open() as stream:
        written = list(csv.DictReader(stream))
    assert [str(row["makespan_s"]) for row in result.rows] == [r["makespan_s"] for r in written]

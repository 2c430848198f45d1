"""Does `artist measure` work on two CPU processes? Needs torch, which is an extra."""

import csv
import importlib.util
import json
import os
import subprocess
from pathlib import Path

import forked
import pytest

from artist.calibrate.measurements import read_measurements
from artist.calibrate.nccl_log import read_log
from artist.measure.all_reduces import AllReduceTimes, log_text
from artist.workload.models import workload

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed (pip install 'artist-sim[torch]')",
)


def _artist(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(folder), "ARTIST_CACHE_DIR": str(folder / "cache")}
    return forked.run(*arguments, cwd=folder, env=env)


def test_the_log_is_one_of_nccl_tests(tmp_path: Path) -> None:
    points = [AllReduceTimes(1024 * 2**i, (20.0 + 2**i, 21.0 + 2**i)) for i in range(12)]
    path = tmp_path / "all_reduce.log"
    path.write_text(log_text(points, ["here", "here", "there", "there"], "gloo", "a CPU"))
    log = read_log(path)
    assert (log.operation, log.hosts) == ("all_reduce", (2, 2))
    assert log.points()[0] == (1024.0, 21.0)


@needs_torch
def test_two_processes_measure_what_calibrate_reads(tmp_path: Path) -> None:
    options = ("--model", "graphsage@batch=16", "--out", "m", "--steps", "3", "--largest-mib", "8")
    done = _artist(tmp_path, "measure", *options, "--device", "cpu", "--format", "json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["backend"], facts["layers"]) == ("gloo", 4)
    assert facts["compute_ms"] > 0

    figures = read_measurements(tmp_path / "m/measured.csv")
    row = figures.rows[0]
    assert (row.model, row.placement) == ("graphsage@batch=16", "2")
    assert "2 x " in figures.hardware
    with (tmp_path / "m/layers.csv").open() as file:
        layers = list(csv.DictReader(file))
    assert [int(x["gradient_bytes"]) for x in layers] == [
        x.weight_grad.comm_bytes for x in workload("graphsage").layers
    ]
    assert read_log(tmp_path / "m/all_reduce.log").ranks == 2

    base = ("--base", "h100-quantum2-spectrum4", "--nccl-tests", "m/all_reduce.log")
    done = _artist(tmp_path, "calibrate", "fabric", "here", "--level", "machine", *base)
    assert done.returncode == 0, done.stderr
    options = ("--model", "graphsage@batch=16", "--measured", "m/measured.csv", "--fabric", "here")
    done = _artist(tmp_path, "calibrate", *options)
    assert done.returncode == 0, done.stderr


@needs_torch
def test_one_process_measures_computing_alone(tmp_path: Path) -> None:
    options = ("--model", "graphsage@batch=16", "--out", "m", "--steps", "3", "--processes", "1")
    done = _artist(tmp_path, "measure", *options, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    row = (tmp_path / "m/measured.csv").read_text().splitlines()[-1].split(",")
    assert (row[1], row[3]) == ("1", "0")
    assert not (tmp_path / "m/all_reduce.log").exists()


@needs_torch
def test_models_share_a_device(tmp_path: Path) -> None:
    models = ("--model", "graphsage@batch=16", "--beside", "recoder@batch=32")
    options = (*models, "--out", "m", "--device", "cpu", "--format", "json")
    done = _artist(tmp_path, "measure", *options)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert (first["model"], first["beside"]) == (second["beside"], second["model"])
    assert min(first["speed"], second["speed"]) > 0
    lines = (tmp_path / "m/beside.csv").read_text().splitlines()
    assert lines[3] == "model_a,model_b,speed_a,speed_b"
    assert lines[4] == f"{models[1]},{models[3]},{first['speed']:.3f},{second['speed']:.3f}"


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "resnet51"), "unknown model 'resnet51'"),
        (("--model", "llama2-7b"), "is not data-parallel"),
        (("--model", "graphsage", "--beside", "llama2-7b"), "is not data-parallel"),
        (("--model", "graphsage", "--beside", "lstm", "--steps", "3"), "leave out --processes"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = _artist(tmp_path, "measure", *arguments, "--out", "m", "--device", "cpu")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_remedy_is_named(tmp_path: Path) -> None:
    done = _artist(tmp_path, "measure", "--model", "vgg11", "--out", "m")
    assert done.returncode == 2
    assert "pip install 'artist-sim[torch]'" in done.stderr

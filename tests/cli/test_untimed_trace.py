"""What do commands say, on stderr and in manifests, of a trace without compute times?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

ROWS = "job_id,arrival_s,gpus,model,iterations\na,0,4,resnet50,1000\nb,60,8,vgg16,500\n"
SIM = ("sim", "--trace", "t.csv", "--racks", "1", "--policy", "fifo")


@pytest.fixture(autouse=True)
def _trace(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)


def test_sim_says_first_whose_compute_times_it_takes(artist: Run, tmp_path: Path) -> None:
    words = "compute_s (the catalogue's on a T4, fabric t4): 2 jobs"
    ran = artist(*SIM, "--fabric", "t4", "--check", "--out", "run", code=0)
    assert ran.stderr.startswith(f"trace t: filled in {words}\n")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["trace"]["filled"] == [words]
    assert not artist(*SIM, "--fabric", "t4", "--quiet", code=0).stderr


def test_an_unknown_model_ends_with_one_sentence(artist: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{ROWS}c,70,4,resnot50,9\n")
    for backend in ("analytical", "none"):
        ran = artist(*SIM, "--backend", backend, "--out", "run", code=3)
        assert "t.csv:4: job 'c' states no compute_s" in ran.stderr
        assert "did you mean 'resnet50'" in ran.stderr and ran.stderr.count("\n") == 1
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["validate", "stats"])
def test_trace_commands_use_the_times_of_one_gpu_and_say_so(artist: Run, command: str) -> None:
    facts = json.loads(artist("trace", command, "t.csv", "--format", "json", code=0).stdout)
    assert facts["filled"] == [
        "compute_s (the catalogue's on an A100; a run takes those of its GPUs): 2 jobs"
    ]


def test_fabrics_are_compared_each_with_its_own_gpus(artist: Run) -> None:
    ran = artist(
        "compare", "--trace", "t.csv", "--racks", "1", "--gpus-per-machine", "4", "--policies",
        "fifo,las", "--vary", "fabric=t4,a100", "--metrics", "makespan_s", code=0,
    )  # fmt: skip
    assert "fifo, fabric=a100; and las, fabric=a100 have the lowest makespan, " in ran.stdout
    for gpu, fabric in (("a T4", "t4"), ("an A100", "a100")):
        told = f"trace t: filled in compute_s (the catalogue's on {gpu}, fabric {fabric}): 2 jobs\n"
        assert ran.stderr.count(told) == 1


def test_columns_proposes_no_column_for_what_may_be_left_out(artist: Run, tmp_path: Path) -> None:
    text = ROWS.replace("job_id", "id").replace("model", "network").replace("gpus", "n_gpus")
    (tmp_path / "t.csv").write_text(text)
    artist("trace", "columns", "t.csv", "--accept", code=0)
    assert "compute_s" not in (tmp_path / "t.csv.columns.yaml").read_text()
    artist(*SIM, code=0)

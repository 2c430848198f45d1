"""Do runs say that communication scales with the steps that a trace states?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

ROWS = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,2,vgg16,9,.05\nb,0,3,vgg16,9,.0408\n"
RIGHT = ROWS.replace("vgg16", "vgg16@gpu=h100")
CLUSTER = ("--racks", "3", "--machines-per-rack", "2", "--gpus-per-machine", "1")
TOLD = (
    "warning: t.csv:3: job 'b' (the worst of 2) has steps of 0.0408 s, and vgg16 takes 0.129 s on "
    "an A100, so without a calibration of the model its communication counts as 3.16 times shorter "
    "too; name the GPU and batch of these steps in the model (gpu=, batch=), correct compute_s, or "
    "keep the model's bytes with --set communication=absolute\n"
)
GOODPUT = """
{name: mine, summary: mine, source: a test, models: {vgg16: {
  batch: 64, batch_max: 512, per_gpu_min: 8, per_gpu_max: 128, alpha_c: .02, beta_c: .001,
  alpha_r: .01, alpha_n: .03, gamma: 2, noise: {0: 200}}}}
"""


@pytest.fixture(autouse=True)
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("sim", "--policy", "fifo"),
        ("compare", "--policies", "fifo,las", "--permutations", "2"),
        ("compare", "--policies", "fifo", "--vary", "backend=none,analytical"),
        ("sweep", "grid.yaml", "--out", "out"),
    ],
)
def test_every_command_mentions_scaled_communication_once(
    artist: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "grid.yaml").write_text(
        "name: s\nversion: 1\nbase: {trace: t.csv, fabric: a100, racks: 3, machines_per_rack: 2, "
        "gpus_per_machine: 1}\ngrid: {policy: [fifo, las], permutation: [0, 1]}\n"
    )
    given = () if command[0] == "sweep" else ("--trace", "t.csv", "--fabric", "a100", *CLUSTER)
    ran = artist(*command, *given, code=0)
    assert ran.stderr.count(TOLD) == ran.stderr.count("warning: ") == 1


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (RIGHT, ("--fabric", "a100")),
        (ROWS, ("--fabric", "a100", "--backend", "none")),
        (ROWS, ("--fabric", "a100", "--quiet")),
        (ROWS, ("--fabric", "a100", "--set", "communication=absolute")),
        (ROWS, ("--fabric", "h100-quantum2-spectrum4")),
        (ROWS.replace("vgg16", "vgg11"), ()),  # the calibration scales it
        (ROWS, ("--fabric", "a100", "--set", "goodput=g.yaml")),
    ],
)
def test_nothing_is_mentioned_where_the_steps_are_intended(
    artist: Run, trace: Path, rows: str, options: tuple[str, ...]
) -> None:
    trace.write_text(rows)
    trace.with_name("g.yaml").write_text(GOODPUT)
    ran = artist("sim", "--trace", "t.csv", "--policy", "fifo", *CLUSTER, *options, code=0)
    assert "warning" not in ran.stderr


@pytest.mark.parametrize("name", ["tiny-batch", "sensetime-batch-500"])
def test_shipped_traces_run_as_they_are(artist: Run, name: str) -> None:
    ran = artist("sim", "--trace", name, "--fabric", "a100", "--policy", "fifo", code=0)
    assert "warning" not in ran.stderr


def test_the_first_line_says_that_jobs_send_the_bytes_of_their_models(artist: Run) -> None:
    setup = ("--trace", "t.csv", "--fabric", "a100", "--policy", "fifo", *CLUSTER)
    words = "; models send their own bytes, whatever compute_s is"
    first, *_ = artist("sim", *setup, "--set", "communication=absolute", code=0).stdout.split("\n")
    assert words in first
    assert words not in artist("sim", *setup, code=0).stdout

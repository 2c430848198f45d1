"""Do runs and `latency` say that GPUs are too small to train a model?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Run

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"


@pytest.mark.parametrize(
    ("rows", "fabric", "told"),
    [
        ("a,0,8,llama3-8b,9,\nb,0,1,llama3-8b,9,\nc,0,1,llama3-8b,9,\n", "hgx-h100", "3: job 'b'"),
        ("a,0,8,llama3-8b,9,\n", "hgx-h100", ""),
        ("b,0,1,llama3-8b@gpu=h200,9,\n", "hgx-h100", ""),
        ("b,0,1,gpt2-xl,9,\n", "t4", "2: job 'b'"),
    ],
)
def test_runs_name_the_first_job_that_no_gpu_holds(
    artist: Run, tmp_path: Path, rows: str, fabric: str, told: str
) -> None:
    (tmp_path / "t.csv").write_text(HEADER + rows)
    setup = ("--trace", "t.csv", "--fabric", fabric, "--policy", "fifo", "--racks", "1")
    ran = artist("sim", *setup, code=0)
    assert ("optimizer states" in ran.stderr) == bool(told)
    assert f"warning: t.csv:{told}" in ran.stderr or not told
    assert "optimizer states" not in artist("sim", *setup, "--backend", "none", code=0).stderr


def test_latency_says_that_a_model_does_not_fit(artist: Run) -> None:
    words = (
        "optimizer states and activations of llama3-8b on 1 GPU take at least 141 GB of each (12"
    )
    setup = ("latency", "--model", "llama3-8b", "--fabric", "hgx-h100")
    assert words in artist(*setup, "--placement", "1", code=0).stdout
    assert words in artist(*setup, "--gpus", "1..4", code=0).stdout
    assert words not in artist(*setup, "--placement", "2", code=0).stdout


@pytest.mark.parametrize("model", ["mixtral-8x7b", "mixtral-8x7b@recompute=full"])
def test_latency_says_how_experts_are_spread_that_have_no_gpu_each(artist: Run, model: str) -> None:
    words = "On 4 GPUs, the 8 experts of a layer are spread over 4 GPUs, 2 on each."
    setup = ("latency", "--model", model, "--fabric", "hgx-h100")
    assert words in artist(*setup, "--placement", "4", code=0).stdout
    assert words in artist(*setup, "--gpus", "4,8", code=0).stdout
    assert "experts of a layer" not in artist(*setup, "--placement", "8,8", code=0).stdout


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ("pipeline=8", "8 stages share 1 microbatch, so each works 12.5 % of the time if"),
        ("stages=4", "4 stages share 1 microbatch, so each works 25 % of the time if"),
        ("pipeline=4,batch=2,microbatches=2", "2 microbatches, so each works 40 % of the time"),
        ("pipeline=4,batch=4,microbatches=4", ""),
    ],
)
def test_a_pipeline_with_fewer_microbatches_than_stages_is_named(
    artist: Run, tmp_path: Path, axes: str, told: str
) -> None:
    """m of m + p - 1 microbatches' time: 1 of 8, and 2 of 5."""
    (tmp_path / "t.csv").write_text(f'{HEADER}a,0,8,"gpt2-xl@{axes}",9,\n')
    setup = ("--fabric", "hgx-h100")
    ran = artist("sim", "--trace", "t.csv", "--policy", "fifo", "--racks", "1", *setup, code=0)
    answers = [
        artist("latency", "--model", f"gpt2-xl@{axes}", *setup, *one, code=0).stdout
        for one in (("--placement", "8"), ("--gpus", "8"))
    ]
    for text in (ran.stderr, *answers):
        assert ("so each works" in text) == bool(told)
        assert told in text
    assert ("warning: t.csv:2: job 'a': gpt2-xl@" in ran.stderr) == bool(told)

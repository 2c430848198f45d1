"""Does `artist latency --gpus` say what more GPUs are worth?"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from artist.cli.gpu_scaling import gpu_counts
from artist.errors import ConfigError

GOODPUT = """\
name: ours
summary: a model
source: made up
models:
  resnet18:
    {batch: 64, batch_max: 1024, per_gpu_min: 64, per_gpu_max: 128, alpha_c: 0.1, beta_c: 0.01,
     alpha_r: 1.0e-8, alpha_n: 0.5, noise: {0: 0, 0.5: 1.0e+12}}
"""
ASKED = ("latency", "--model", "resnet18", "--fabric", "dally2025")


def test_each_row_is_the_answer_on_the_closest_gpus(artist) -> None:
    rows = json.loads(artist(*ASKED, "--gpus", "1..128", "--format", "json").stdout)["points"]
    assert [row["gpus"] for row in rows] == [1, 2, 4, 8, 16, 32, 64, 128]
    packed = {8: "4+4", 16: "4+4,4+4", 128: "/".join([",".join(["4+4"] * 8)] * 2)}
    for row in rows:
        assert row["speedup"] == pytest.approx(row["gpus"] * row["compute_s"] / row["iteration_s"])
        if row["gpus"] in packed:
            assert row["placement"] == packed[row["gpus"]]
            alone = artist(*ASKED, "--placement", row["placement"], "--format", "json")
            assert json.loads(alone.stdout)["iteration_ms"] == pytest.approx(
                1000 * row["iteration_s"]
            )


def test_goodput_takes_the_best_batch_and_ends_where_it_feeds_no_more_gpus(
    artist, tmp_path: Path
) -> None:
    (tmp_path / "ours.yaml").write_text(GOODPUT)
    asked = (*ASKED, "--gpus", "1,2,16,17", "--goodput", "ours.yaml", "--format", "csv")
    first, two, sixteen, seventeen = csv.DictReader(io.StringIO(artist(*asked).stdout))
    # No noise: a larger batch is worth nothing. Two GPUs halve nothing, since each takes 64.
    assert float(first["goodput_per_s"]) == pytest.approx(64 / 0.74)
    assert float(two["efficiency"]) == pytest.approx(0.5)
    assert (sixteen["batch"], seventeen["batch"]) == ("1024", "")
    late = [*csv.DictReader(io.StringIO(artist(*asked, "--progress", "0.5").stdout))]
    # All noise: every sample counts, in the largest batches: 8 passes of 128.
    assert float(late[0]["goodput_per_s"]) == pytest.approx(128 / 1.38)
    # All numbers come from the goodput file; none of the fabric stands beside them.
    assert not {"iteration_s", "comm_s"} & {*first}
    speedups = [float(row["speedup"]) for row in (first, sixteen)]
    assert speedups == pytest.approx([1, float(sixteen["goodput_per_s"]) / (64 / 0.74)])
    table = artist(*asked[:-2]).stdout
    assert "iteration, ms" not in table
    assert "All numbers are those of ours.yaml, as elastic jobs have them" in table
    assert "as close together as an empty cluster allows (placement pack)" in table
    assert "after 0 % of the iterations; on one GPU, one above the submitted batch" in table
    assert "A row is empty if not even batch_max gives each GPU its per_gpu_min." in table
    fed = artist(*ASKED, "--gpus", "1,2,16", "--goodput", "ours.yaml").stdout
    assert "A row is empty" not in fed


def test_speedup_of_goodput_is_over_one_gpu_though_it_has_no_row(artist, tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(GOODPUT)
    asked = (*ASKED, "--gpus", "2,16", "--goodput", "ours.yaml")
    told = csv.DictReader(io.StringIO(artist(*asked, "--format", "csv").stdout))
    for row in told:
        assert float(row["speedup"]) == pytest.approx(float(row["goodput_per_s"]) / (64 / 0.74))


def test_speedup_of_goodput_is_left_out_where_one_gpu_finds_no_batch(
    artist, tmp_path: Path
) -> None:
    """Of 1,500 to 4,500 samples, passes of exactly 1,000 are found on two GPUs and not on one."""
    samples = "batch: 1500, batch_max: 4500, per_gpu_min: 1000, per_gpu_max: 1000"
    text = GOODPUT.replace("batch: 64, batch_max: 1024, per_gpu_min: 64, per_gpu_max: 128", samples)
    (tmp_path / "ours.yaml").write_text(text)
    asked = (*ASKED, "--gpus", "1,2", "--goodput", "ours.yaml")
    told = artist(*asked, "--format", "json").stdout
    one, two = json.loads(told, parse_constant=pytest.fail)["points"]
    assert (one["batch"], two["batch"], two["speedup"]) == (None, 2000, None)
    table = artist(*asked).stdout
    assert "nan" not in table
    assert "No speedups: no batch on one GPU is within per_gpu_min and per_gpu_max." in table


def test_goodput_on_a_kind_is_that_of_its_row(artist, tmp_path: Path) -> None:
    kinds = "noise: {0: 0}, kinds: {t4: {beta_c: 0.02}, a100: {}}"
    (tmp_path / "ours.yaml").write_text(GOODPUT.replace("noise: {0: 0, 0.5: 1.0e+12}", kinds))
    asked = (*ASKED, "--gpus", "1", "--goodput", "ours.yaml", "--format", "csv")
    for kind, step_s in (("a100", 0.74), ("t4", 1.38)):
        (row,) = csv.DictReader(io.StringIO(artist(*asked, "--gpu-kind", kind).stdout))
        assert float(row["step_s"]) == pytest.approx(step_s)
    refused = artist(*asked, "--gpu-kind", "h100", code=2)
    assert "--gpu-kind 'h100': no such kind of 'resnet18' in ours.yaml" in refused.stderr
    assert "it has 't4', 'a100'" in refused.stderr


def test_scaling_is_drawn_and_twice_the_same(artist, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "ours.yaml").write_text(GOODPUT)
    drawn = []
    for again in ((), ("--overwrite",)):
        artist(
            *ASKED, "--gpus", "1..4", "--goodput", "ours.yaml", "--plot", "p.svg", *again, code=0
        )
        drawn.append((tmp_path / "p.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_counts_are_powers_of_two_and_both_ends() -> None:
    assert gpu_counts("3..20") == [3, 4, 8, 16, 20]
    assert gpu_counts("12,1,6") == [1, 6, 12]


@pytest.mark.parametrize("text", ["", "x", "0..4", "8..1", "1...4", "-1", "1..99999999", "1,,2"])
def test_bad_counts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--gpus"):
        gpu_counts(text)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--gpus", "1..4", "--placement", "4"), "chooses placements itself"),
        (("--gpus", "1..4", "--beside", "vgg16:4"), "--beside"),
        (("--goodput", "ours.yaml"), "needs --gpus"),
        (("--gpus", "1..4", "--goodput", "ours.yaml", "--progress", "1"), "to below 1"),
        (("--gpus", "1..4", "--goodput", "none.yaml"), "none.yaml"),
        (("--gpus", "1..4", "--goodput", "others.yaml"), "no parameters of 'resnet18'"),
        (("--plot", "p.svg", "--placement", "4"), "or --gpus FROM..TO"),
    ],
)
def test_options_that_do_not_go_together(
    artist, tmp_path: Path, more: tuple[str, ...], words: str
) -> None:
    (tmp_path / "ours.yaml").write_text(GOODPUT)
    (tmp_path / "others.yaml").write_text(GOODPUT.replace("resnet18", "vgg16"))
    ran = artist(*ASKED, *more, code=2)
    assert words in ran.stderr


def test_a_pipeline_is_not_faster_for_its_own_idle_time(artist) -> None:
    """Of one microbatch, three of four stages are idle: four GPUs are no faster than one."""
    asked = ("latency", "--model", "gpt3-xl@pipeline=4,batch=16,microbatches=1", "--gpus", "4,8")
    rows = json.loads(artist(*asked, "--format", "json").stdout)["points"]
    assert rows[0]["speedup"] == 1
    assert rows[1]["speedup"] == 2 * rows[0]["iteration_s"] / rows[1]["iteration_s"]
    assert "speedup over 4 GPUs" in artist(*asked).stdout


def test_every_row_says_where_the_iteration_goes(artist) -> None:
    asked = ("latency", "--model", "gpt3-xl@tensor=2,pipeline=2,batch=4,microbatches=4")
    scaled = (*asked, "--gpus", "4,8")
    rows = json.loads(artist(*scaled, "--format", "json").stdout)["points"]
    flat = [*csv.DictReader(io.StringIO(artist(*scaled, "--format", "csv").stdout))]
    for row, cells in zip(rows, flat, strict=True):
        split = row["split_ns"]
        assert sum(split.values()) == pytest.approx(1e9 * row["iteration_s"])
        assert {key: float(cells[f"split_ns.{key}"]) for key in split} == split
    alone = artist(*asked, "--placement", "8", "--format", "json").stdout
    assert json.loads(alone)["split_ns"] == rows[1]["split_ns"]
    table = artist(*scaled).stdout.partition("# where the iterations go, ms\n")[2].splitlines()
    assert "pipeline bubble\ttensor groups" in table[0]
    assert [line.split("\t")[0] for line in table[1:3]] == ["4", "8"]


def test_counts_that_the_axes_do_not_divide_are_left_out_and_reported(artist) -> None:
    asked = ("latency", "--model", "llama2-7b@tensor=3,pipeline=2", "--format", "json", "--gpus")
    alone, some = artist(*asked, "12,24", code=0), artist(*asked, "8,12,16,24", code=0)
    assert (some.stdout, alone.stderr) == (alone.stdout, "")
    reason = "tensor=3, pipeline=2 do not divide 8 GPUs; give the job 6 or 12 GPUs"
    assert some.stderr.startswith(f"--gpus: left out 8 and 16: {reason}")
    none = artist(*asked, "8..64")
    assert (none.returncode, reason in none.stderr, none.stdout) == (2, True, "")


def test_a_model_that_runs_divide_differently_is_reported_with_the_option(artist) -> None:
    for where in (("--placement", "8,8"), ("--gpus", "8,16")):
        told = artist("latency", "--model", "llama2-70b", *where, code=0).stdout
        said = re.search(
            r"In runs, jobs of llama2-70b on 16 GPUs have smaller axes .* --model (.*)", told
        )
        assert said and "tensor=4" in said[1]
        same = ("latency", "--model", said[1], "--gpus", "16")
        assert "In runs" not in artist(*same, code=0).stdout
        assert ("On other numbers of GPUs, runs take other axes." in told) == (where[0] == "--gpus")
    assert "In runs" not in artist(*ASKED, "--placement", "8").stdout
    refused = artist("latency", "--model", "gpt3-175b", "--placement", "8,8,8,8,8,8,8,8")
    assert refused.stderr.endswith("; runs give it --model gpt3-175b@pipeline=8\n")

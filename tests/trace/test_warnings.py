"""Is there a warning if a trace can be read but looks wrong, and otherwise none?"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from foreign_samples import put

from artist.config import Scenario
from artist.estimates.calibration import CalibratedModels, load_calibration
from artist.estimates.latency_service import alone_step_s
from artist.run import simulate
from artist.trace.named import builtin, builtin_traces
from artist.trace.native.writer import write_csv
from artist.trace.read import read_trace
from artist.trace.stats import scaled_communication, step_s, validate, warnings

NATIVE = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
SIMPLE = "job_id,submit_time,num_gpus,duration,model\n"


def warned(tmp_path: Path, text: str) -> list[str]:
    path = put(tmp_path, "t.csv", text)
    return [text.removeprefix(str(tmp_path)) for text in warnings(read_trace(path))]


def test_the_step_of_a_model_by_the_catalogue() -> None:
    """ResNet-50: about 4.1e9 multiply-adds forward, backward twice that, 32 images, at 14e12/s."""
    assert step_s("resnet50") == pytest.approx(3 * 2 * 4.1e9 * 32 / 14e12, rel=0.5)
    assert step_s("no-model") == 0


@pytest.mark.parametrize("times", [0.0011, 99.0])
def test_a_step_near_the_catalogues_gives_no_warning(tmp_path: Path, times: float) -> None:
    assert warned(tmp_path, f"{NATIVE}a,0,8,resnet50,100,{times * step_s('resnet50')!r}\n") == []


@pytest.mark.parametrize(("step", "times"), [(50.0, "1,475 times"), (0.00003, "1/1,130 of")])
def test_a_step_far_from_the_catalogues_gives_a_warning(
    tmp_path: Path, step: float, times: str
) -> None:
    rows = f"a,0,8,resnet50,100,{step}\nb,0,8,vgg11,100,0.1\nc,1,8,resnet50,100,{step}\n"
    assert warned(tmp_path, NATIVE + rows) == [
        f"/t.csv:2: job 'a' (and 1 more) has steps of {step:.3g} s, {times} the 0.0339 s of the "
        "catalogue's resnet50; check the unit of compute_s and the model"
    ]


def test_validate_warns_of_steps_far_from_the_catalogues(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", f"{NATIVE}a,0,8,resnet50,100,50\n")
    (text,) = cast(list[str], validate(read_trace(path))["warnings"])
    assert "steps of 50 s" in text


def test_validate_says_that_communication_scales_with_the_steps_of_a_converted_trace(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ss.csv"
    write_csv(builtin("sensetime-batch-500").jobs, path)
    (text,) = cast(list[str], validate(read_trace(path))["warnings"])
    assert text.removeprefix(str(tmp_path)) == (
        "/ss.csv:81: job '79' (the worst of 230) has steps of 0.000135 s, and vgg11 takes 0.063 s "
        "on an A100, so without a calibration of the model its communication counts as 468 times "
        "shorter too; name the GPU and batch of these steps in the model (gpu=, batch=), correct "
        "compute_s, or keep the model's bytes with --set communication=absolute"
    )
    assert validate(builtin("sensetime-batch-500"))["warnings"] == []


def told_of_scale(tmp_path: Path, row: str, models: CalibratedModels) -> str:
    path = put(tmp_path, "t.csv", f"{NATIVE}{row}\n")
    return scaled_communication(read_trace(path), models)


@pytest.mark.parametrize(
    ("model", "times", "words"),
    [
        ("vgg16", 1.99, ""),
        ("vgg16", 2.01, "2.01 times longer too; name the GPU and batch of these steps in the"),
        ("vgg16", 0.51, ""),
        ("vgg16@batch=64", 0.25, "4 times shorter too; name the GPU and batch of these steps"),
        ("vgg16@gpu=t4", 0.25, "on a T4, so without a calibration of the model its communication"),
    ],
)
def test_communication_that_is_scaled_by_two_gives_a_warning(
    tmp_path: Path, model: str, times: float, words: str
) -> None:
    gpu = CalibratedModels(None)
    row = f'a,0,2,"{model}",9,{times * alone_step_s(gpu.workload(model))!r}'
    found = told_of_scale(tmp_path, row, gpu)
    assert words in found
    assert bool(found) == bool(words)
    assert told_of_scale(tmp_path, row.replace(",2,", ",1,"), gpu) == ""  # it communicates nothing


def test_the_gpu_of_the_run_and_its_calibration_decide(tmp_path: Path) -> None:
    h100 = CalibratedModels(None, "h100")
    row = f"a,0,2,vgg16,9,{alone_step_s(h100.workload('vgg16'))!r}"
    assert told_of_scale(tmp_path, row, h100) == ""
    assert "3.15 times shorter" in told_of_scale(tmp_path, row, CalibratedModels(None))
    dally = CalibratedModels(load_calibration("dally2025-table1"))
    assert dally.scales("vgg11")
    assert told_of_scale(tmp_path, "a,0,2,vgg11,9,0.001", CalibratedModels(None))
    assert told_of_scale(tmp_path, "a,0,2,vgg11,9,0.001", dally) == ""


def test_shorter_steps_communicate_shorter(tmp_path: Path) -> None:
    """The sentence is true: by the contract, exposed communication scales with compute_s."""
    known = step_s("vgg16")
    comm_s = [
        simulate(
            Scenario(
                trace=str(put(tmp_path, "t.csv", f"{NATIVE}a,0,3,vgg16,9,{known / times!r}\n")),
                fabric="cassini-testbed", racks=3, machines_per_rack=2, gpus_per_machine=1,
                policy="fifo", policy_options={"placement": "any"},
            )
        ).tables["jobs"]["comm_s"][0]
        for times in (1, 4)
    ]  # fmt: skip
    assert comm_s[0] == pytest.approx(4 * comm_s[1])
    assert comm_s[0] > 0


def test_an_invented_step_is_judged_more_mildly(tmp_path: Path) -> None:
    """1 s is 174 steps of alexnet, and 111,000 of dlrm."""
    rows = "a,0,8,3600,alexnet\nb,0,8,3600,dlrm\n"
    (text,) = warned(tmp_path, SIMPLE + rows)
    assert text.startswith("/t.csv:3: job 'b' has steps of 1 s, 111,111 times the 9e-06 s of the")
    assert text.endswith("communication will be overstated by as much; check the model")


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        ("1e9", ["1e+09 s, longer than a year"]),
        ("1e-7", ["1e-07 s, shorter than a millisecond"]),
        ("31536000", []),
        ("0.001", []),
    ],
)
def test_odd_lengths_give_warnings(tmp_path: Path, duration: str, words: list[str]) -> None:
    assert warned(tmp_path, f"{SIMPLE}a,0,8,{duration},\n") == [
        f"/t.csv:2: job 'a' computes for {length}; check the units" for length in words
    ]


@pytest.mark.parametrize("name", [entry.id for entry in builtin_traces])
def test_shipped_traces_give_no_warning(name: str) -> None:
    assert warnings(builtin(name)) == []

"""Which calibration does a run use, and do all commands agree on what it says?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import artist
from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import Fabric, load_fabric
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.estimates.calibration import (
    CalibratedEstimate,
    Calibration,
    ModelCalibration,
    choose_calibration,
    load_calibration,
    with_constant_share,
)
from artist.estimates.latency_service import LatencyService
from artist.estimates.query import Estimate
from artist.io.documents import load_yaml
from artist.io.shipped import resource
from artist.results.result import Result
from artist.run import simulate
from artist.workload.models import workload

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
ONE_JOB = "0,0,16,resnet50,1000,0.5\n"
CLUSTER = {"racks": 2, "machines_per_rack": 1, "policy": "fifo", "fabric": "dally2025"}
DALLY2025 = resource("astra_configs", "fabrics", "dally2025.yaml").read_text()


def _run(folder: Path, rows: str = ONE_JOB, **settings: object) -> Result:
    trace = folder / "trace.csv"
    trace.write_text(HEADER + rows)
    return simulate(artist.Scenario(trace=str(trace), **{**CLUSTER, **settings}))


def _ratio(result: Result) -> float:
    """The comm ratio of the first job's only interval."""
    return float(result.tables["placements"]["iteration_s"][0]) / 0.5 - 1


# -- which one -------------------------------------------------------------------------


def test_a_run_takes_the_calibration_that_its_fabric_names(tmp_path: Path) -> None:
    by_default = _run(tmp_path)
    named = _run(tmp_path, calibration="dally2025-table1")
    assert by_default.summary["calibration"] == "dally2025-table1"
    assert by_default.inputs == named.inputs
    assert by_default.inputs["calibration"].startswith("sha256:")
    assert _ratio(by_default) == _ratio(named)


def test_none_is_none(tmp_path: Path) -> None:
    result = _run(tmp_path, calibration="none")
    assert result.summary["calibration"] == "none"
    assert set(result.inputs) == {"trace", "fabric"}
    assert _ratio(result) < 0.01 < _ratio(_run(tmp_path))


def test_a_fabric_that_names_no_calibration_has_none(tmp_path: Path) -> None:
    result = _run(tmp_path, fabric="h100-quantum2-spectrum4")
    assert result.summary["calibration"] == "none"
    assert "calibration" not in result.inputs


def test_a_calibration_of_another_fabric_is_taken_if_it_is_named(tmp_path: Path) -> None:
    result = _run(tmp_path, fabric="h100-quantum2-spectrum4", calibration="dally2025-table1")
    assert result.summary["calibration"] == "dally2025-table1"


def test_nothing_is_calibrated_where_nothing_is_simulated(tmp_path: Path) -> None:
    assert _run(tmp_path, backend="none").summary["calibration"] == "none"


def test_recorded_answers_stay_as_they_were_recorded(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us\n"
        "resnet50,FullyConnected Ring Switch,N N PP,4 2 2,600 600 400,0 500 50000,100,150\n"
    )
    result = _run(tmp_path, backend=f"recorded:{table}")
    assert _ratio(result) == 0.5
    assert result.summary["calibration"] == "none"


def test_models_that_the_calibration_lacks_are_named_and_run_uncalibrated(tmp_path: Path) -> None:
    rows = "0,0,16,gpt2,10,0.5\n1,0,16,GPT2,10,0.5\n2,0,8,resnet50@batch=64,10,0.5\n"
    result = _run(tmp_path, rows)
    assert result.summary["models_not_calibrated"] == "gpt2"
    assert _ratio(result) == _ratio(_run(tmp_path, rows, calibration="none"))


def test_the_command_says_it_on_stdout_and_scripts_get_no_noise(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "0,0,16,gpt2,10,0.15\n")

    def sim(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "artist", "sim", "--trace", "t.csv", "--racks", "2"]
        command += ["--fabric", "dally2025", *options]
        return subprocess.run(
            [*command, "--out", "run", "--overwrite"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip

    table, scripted = sim(), sim("--format", "json", "--quiet")
    assert "Calibration dally2025-table1 lacks gpt2" in table.stdout
    told = "while the fit makes the others communicate "
    low, high = re.search(
        rf"{told}(\S+) to (\S+) times as much", table.stdout.replace("\n", " ")
    ).groups()
    assert 1 < float(low) < float(high.replace(",", ""))
    assert "% went into communication that computing does not hide" in table.stdout
    assert "gpt2" not in table.stderr
    assert scripted.stderr == ""
    assert json.loads(scripted.stdout)["models_not_calibrated"] == "gpt2"


# -- what it says ----------------------------------------------------------------------


def test_sim_and_latency_agree(tmp_path: Path) -> None:
    for setting in ("auto", "none"):
        ratio = _ratio(_run(tmp_path, calibration=setting))
        asked = artist.latency(
            "ResNet50", "8/8", fabric="dally2025", calibration=setting
        ).comm_ratio
        assert asked == pytest.approx(ratio, rel=1e-9)  # a ratio of times, and not the times
        command = ["latency", "--model", "ResNet50", "--placement", "8/8", "--format", "json"]
        command += ["--fabric", "dally2025"]
        ran = subprocess.run(
            [sys.executable, "-m", "artist", *command, "--calibration", setting],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert json.loads(ran.stdout)["comm_ratio"] == asked


def test_the_constant_is_added_to_the_answer_and_changes_nothing_else() -> None:
    row = load_calibration("dally2025-table1")
    assert row is not None
    constant = row.models["resnet50"].constant_share
    estimate = artist.latency("resnet50", "4/4", fabric="dally2025", calibration="auto")
    assert estimate.comm_ratio == constant + estimate.exposed_comm_ns / estimate.compute_ns
    assert estimate.finish_ns == estimate.compute_ns + estimate.exposed_comm_ns
    assert 0.25 < estimate.exposed_comm_ns / estimate.compute_ns < 0.27 < estimate.comm_ratio


def test_one_gpu_does_not_communicate() -> None:
    assert artist.latency("resnet50", "1", fabric="dally2025", calibration="auto").comm_ratio == 0
    service = _service(0.5)
    assert service.estimate("resnet50", 1).comm_ratio == 0
    assert service.estimate("resnet50", 2).comm_ratio > 0.5


def _service(constant: float, store: object = None) -> LatencyService:
    fabric, backend = load_fabric("dally2025"), AnalyticalBackend()
    return LatencyService(fabric, backend, workload, store, lambda model: constant)  # type: ignore[arg-type]


def test_the_store_keeps_what_the_backend_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(tmp_path))
    with open_store() as store:
        first, second = _service(0.5, store), _service(0.25, store)
        one, other = first.estimate("resnet50", (4, 4)), second.estimate("resnet50", (4, 4))
        assert (first.store_hits, second.store_hits) == (0, 1)
    assert one.comm_ratio - other.comm_ratio == pytest.approx(0.25)
    assert one.exposed_comm_ns == other.exposed_comm_ns


def test_a_constant_of_nothing_leaves_the_estimate_as_it_is() -> None:
    plain = Estimate(300, 200, "hand", (7,), None)
    assert with_constant_share(plain, 0.0) is plain
    completed = with_constant_share(plain, 0.25)
    assert isinstance(completed, CalibratedEstimate)
    assert (completed.comm_ratio, completed.source) == (0.75, "hand")
    assert completed.bytes_per_dimension == (7,)
    assert replace(completed, finish_ns=200).comm_ratio == 0.25


# -- documents -------------------------------------------------------------------------


def _fabric(folder: Path, line: str) -> Fabric:
    path = folder / "mine.yaml"
    path.write_text(DALLY2025.replace("calibration: dally2025-table1", line))
    return load_yaml(path, Fabric)


def test_a_fabric_that_names_an_unknown_calibration_is_refused(tmp_path: Path) -> None:
    fabric = _fabric(tmp_path, "calibration: dally2025-table2")
    with pytest.raises(ConfigError, match=r"fabric 'dally2025' names .* did you mean") as caught:
        choose_calibration("auto", fabric)
    assert "--calibration none" in str(caught.value)
    assert choose_calibration("none", fabric) is None


@pytest.mark.parametrize("line", ["calibration: ../secret", "calibration: ''", "calibration: 3"])
def test_a_fabric_names_a_calibration_by_a_plain_name(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"mine.yaml:\d+: 'calibration'"):
        _fabric(tmp_path, line)


def test_a_constant_below_zero_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: m\nsource: s\nmodels:\n  vgg11: {compute_scale: 1, constant_share: -0.1}\n"
    )
    with pytest.raises(ConfigError, match=r"mine.yaml:4: .*constant_share"):
        load_calibration(str(path))


def test_the_row_of_a_model_serves_its_settings() -> None:
    row = ModelCalibration(compute_scale=2.0, constant_share=0.5)
    calibration = Calibration(name="c", source="s", models={"resnet50": row})
    assert calibration.constant_share("resnet50@batch=64") == 0.5
    assert calibration.constant_share("resnet18") == 0
    assert calibration.lacks(["resnet50@batch=64", "vgg11", "gpt2", "gpt2"]) == ("gpt2", "vgg11")


def test_a_row_serves_no_other_gpu_than_the_one_whose_times_it_scales() -> None:
    shipped = load_calibration("h100-eager")
    assert shipped is not None
    assert shipped.row("resnet50@gpu=a100,precision=bf16") is shipped.row("resnet50@precision=bf16")
    assert shipped.row("resnet50@gpu=a100") is shipped.row("resnet50")
    assert shipped.row("resnet50@gpu=h100") is None


def test_a_calibration_goes_with_the_models_of_the_catalogue(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "artist", "latency", "--workload", "w.txt", "--placement", "8"]
    ran = subprocess.run(
        [*command, "--calibration", "dally2025-table1"], cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "--workload FILE has its own compute times" in ran.stderr


def test_the_links_alone_make_a_fabrics_digest(tmp_path: Path) -> None:
    with_one = load_fabric("dally2025")
    assert _fabric(tmp_path, "").digest == with_one.digest
    assert with_one.model_copy(update={"name": "other"}).digest != with_one.digest

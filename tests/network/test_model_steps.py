"""Do jobs send the bytes of their models, however long the trace says that they compute?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.latency_service import alone_step_s
from artist.results.result import Result
from artist.run import simulate
from artist.workload.models import workload

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
ITERATIONS = 100
GOODPUT = """
{name: mine, summary: mine, source: a test, models: {"MODEL": {
  batch: 64, batch_max: 512, per_gpu_min: 8, per_gpu_max: 128, alpha_c: .02, beta_c: .001,
  alpha_r: .01, alpha_n: .03, gamma: 2, noise: {0: 200}}}}
"""
SPREAD = {"racks": 4, "machines_per_rack": 2, "gpus_per_machine": 1, "fabric": "cassini-testbed"}


def rows(model: str, *times: float, gpus: tuple[int, ...] = ()) -> str:
    """Jobs on this many GPUs, or on two, that compute this many times as long as their model."""
    step_s = alone_step_s(workload(model))
    counts = gpus or (2,) * len(times)
    return HEADER + "".join(
        f'{place},0,{count},"{model}",{ITERATIONS},{step_s * one!r}\n'
        for place, (one, count) in enumerate(zip(times, counts, strict=True))
    )


def ran(folder: Path, text: str, *, links: bool = False, **settings: Any) -> Result:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    given = {"trace": str(path), "policy": "fifo", **SPREAD, "communication": "absolute"}
    return simulate(Scenario.model_validate(given | settings), check=True, links=links)


def comm_s(result: Result) -> list[float]:
    return [float(x) for x in result.tables["jobs"]["comm_s"]]


def test_a_job_that_hardly_computes_waits_for_all_bytes_of_its_model(tmp_path: Path) -> None:
    """Two GPUs send all of the gradients' bytes each way: 2(n - 1)/n of them."""
    sent = sum(layer.weight_grad.comm_bytes for layer in workload("vgg16").layers)
    gib_per_s = load_fabric("cassini-testbed").levels[1].bandwidth_gib_per_s
    (found,) = comm_s(ran(tmp_path, rows("vgg16", 1e-3)))
    assert found == pytest.approx(ITERATIONS * sent / gib_per_s / 2**30, rel=0.01)


@pytest.mark.parametrize("model", ["vgg16", "resnet50"])
def test_bytes_stay_and_computing_hides_what_it_can(tmp_path: Path, model: str) -> None:
    result = ran(tmp_path, rows(model, 0.25, 0.5, 1, 8), links=True, contention="mean")
    sent = [float(x) for x in result.tables["links"]["bytes"]]
    assert sent == pytest.approx([sent[0]] * len(sent), rel=1e-3)
    exposed = comm_s(result)
    assert exposed == sorted(exposed, reverse=True)
    assert exposed[0] > 3 * exposed[2] > 0


def test_a_job_that_computes_as_long_as_its_model_has_one_answer(tmp_path: Path) -> None:
    text = rows("vgg16", 1)
    proportional = ran(tmp_path, text, communication="proportional")
    assert comm_s(ran(tmp_path, text)) == comm_s(proportional)


@pytest.mark.parametrize("contention", ["mean", "fluid", "phase"])
def test_twice_the_compute_time_is_twice_the_batch_to_a_neighbour(
    tmp_path: Path, contention: str
) -> None:
    """Where a batch computes as long as its samples together, on links that jobs share too."""
    small, large = (f"alexnet@timing=arithmetic,batch={batch}" for batch in (32, 64))

    def waits(model: str, gpus: tuple[int, ...], times: float, **settings: str) -> list[float]:
        """What jobs wait for communication that meet on three machines of two GPUs."""
        text = rows(model, *[times] * len(gpus), gpus=gpus)
        cluster = {"racks": 3, "machines_per_rack": 1, "gpus_per_machine": 2}
        return comm_s(ran(tmp_path, text, contention=contention, **cluster, **settings))

    longer = waits(small, (3, 3), 2)
    twice = waits(large, (3, 3), 1, communication="proportional")
    assert longer == pytest.approx(twice, rel=1e-3)
    assert longer[0] > 1.1 * waits(small, (3,), 2)[0]


def test_what_a_calibration_fitted_is_a_ratio(tmp_path: Path) -> None:
    settings = {"calibration": "dally2025-table1", "fabric": "dally2025"}
    proportional = ran(tmp_path, rows("vgg11", 4), communication="proportional", **settings)
    assert comm_s(ran(tmp_path, rows("vgg11", 4), **settings)) == comm_s(proportional)
    assert comm_s(proportional)[0] > 0


def test_steps_that_were_derived_from_models_compare_to_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trace t has run times, and its steps were derived"):
        ran(tmp_path, "job_id,submit_time,num_gpus,duration,model\na,0,2,600,vgg16\n")


def test_elastic_jobs_send_the_bytes_of_their_models_too(tmp_path: Path) -> None:
    """The goodput file says how long they compute; gradients do not depend on the batch."""
    sent = []
    for model in ("vgg16@batch=16", "vgg16@batch=128"):
        (tmp_path / "g.yaml").write_text(GOODPUT.replace("MODEL", model), encoding="utf-8")
        text = f"{HEADER}a,0,2,{model},{ITERATIONS},1\n"
        settings: dict[str, Any] = {"goodput": str(tmp_path / "g.yaml"), "contention": "mean"}
        result = ran(tmp_path, text, links=True, **settings)
        sent.append(float(result.tables["links"]["bytes"][0]))
    assert sent[0] == pytest.approx(sent[1], rel=1e-2)  # scales of batches have three digits


def test_recorded_answers_hold_for_their_own_compute_times(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="or leave communication out"):
        ran(tmp_path, rows("vgg16", 4), backend="recorded:answers.csv")

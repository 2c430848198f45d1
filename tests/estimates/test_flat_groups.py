"""Are groups priced as in ASTRA-sim, by recorded runs and laws, and is the estimate labelled?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_staged_backend import BACKEND, ROUNDING, USUAL, dims, network, recorded, rows

from artist.cluster.fabric import load_fabric, with_system
from artist.errors import BackendError, DivisionError
from artist.estimates.cache import DiskStore
from artist.estimates.latency_service import Asker, LatencyService
from artist.estimates.query import Estimate, LatencyQuery, SystemSettings
from artist.network.demand.curves import Curves
from artist.workload.layers import quantised
from artist.workload.models import workload

FLAT = with_system(load_fabric("h100-quantum2-spectrum4"), {"groups": "flat"})


def groups_recorded(*kinds: str) -> Iterator[tuple[dict[str, Any], LatencyQuery]]:
    """Catalogue jobs whose groups the recorded run listed."""
    for row in rows("J"):
        spec, kind, *_ = row["tags"]
        if row["mapping"] != "groups" or kind not in kinds or "uniform" in row["tags"]:
            continue
        if kind != "list":
            axes = spec.replace("stages", "pipeline")
            spec = f"{axes},schedule={kind},order={USUAL},gradients=eager"
        if row["groups"]:  # others have groups of all GPUs only
            made = quantised(workload(spec)) if kind == "list" else workload(spec)
            yield row, LatencyQuery(made, *network(row), flat_groups=True)


@recorded
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_pipelines_of_listed_groups_take_as_long_as_in_astra_sim(step: int) -> None:
    cases = list(groups_recorded("1f1b", "gpipe"))[::step]
    assert len(cases) >= 20 // step
    for row, query in cases:
        error = BACKEND.estimate(query).finish_ns / max(row["answer"]["finish_ns"]) - 1
        assert abs(error) < ROUNDING, row["id"]


@recorded
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_lists_of_nodes_with_listed_groups_take_as_long_as_in_astra_sim(step: int) -> None:
    # Those with experts are exact too, and take up to 8 s.
    cases = [x for x in groups_recorded("list") if "stages" in x[0]["tags"][0]][::step]
    assert len(cases) >= 10 // step
    for row, query in cases:
        assert BACKEND.estimate(query).finish_ns == max(row["answer"]["finish_ns"]), row["id"]


def ask(spec: str, npus: tuple[int, ...], *, flat: bool, outside: float = 1.0) -> Estimate:
    inner, *outer = dims(*npus)
    network_ = (
        inner,
        *(replace(x, bandwidth_gib_per_s=outside * x.bandwidth_gib_per_s) for x in outer),
    )
    ring = ("ring",) * len(network_)
    query = LatencyQuery(
        quantised(workload(spec)), network_, SystemSettings(ring, ring, ring, ring)
    )
    return BACKEND.estimate(replace(query, flat_groups=flat))


@pytest.mark.parametrize(
    ("axes", "npus"),
    [
        ("gpt2@tensor=4,pipeline=2,schedule=gpipe", (4, 2)),
        ("gpt2@tensor=2,pipeline=2,context=2,data=1,sharded=zero1", (4, 2)),
        ("gpt2@tensor=4,data=2,sharded=zero2", (4, 2)),
        ("gpt2-moe@expert=2,pipeline=2,data=4,order=data-pipeline,gpu=h100,precision=bf16", (4, 2)),
    ],
)
def test_groups_inside_one_level_cost_the_same(axes: str, npus: tuple[int, ...]) -> None:
    spec = f"{axes},batch=4,microbatches=2"
    cut, flat = (ask(spec, npus, flat=flat) for flat in (False, True))
    assert (flat.finish_ns, flat.order, flat.axes) == (cut.finish_ns, cut.order, cut.axes)


def test_a_ring_that_leaves_a_machine_may_pay_nothing_for_that() -> None:
    """Neighbours in the ring 0, 2, ... 14 differ in their places in a machine, even 6 and 8."""
    job = "gpt2@tensor=2,order=tensor-data"
    cut, flat = (
        [ask(job, (8, 2), flat=flat, outside=factor).finish_ns for factor in (1.0, 0.1)]
        for flat in (False, True)
    )
    assert cut[0] < cut[1]
    assert flat[0] == flat[1]


def test_long_pipelines_go_on_as_their_last_round_does() -> None:
    spec = "gpt2@batch=32,microbatches=32,tensor=4,pipeline=2"
    cut, flat = (ask(spec, (4, 2), flat=flat).finish_ns for flat in (False, True))
    assert cut == flat


def test_a_job_that_does_not_divide_is_refused() -> None:
    with pytest.raises(DivisionError, match="tensor=4, pipeline=3 do not divide 32 GPUs"):
        ask("gpt2@tensor=4,stages=3", (8, 4), flat=True)
    with pytest.raises(DivisionError, match="tensor=4, pipeline=3 do not divide 32 GPUs"):
        ask("gpt2@tensor=4,pipeline=3", (8, 4), flat=True)


def test_the_estimate_names_its_prices_and_is_cached_separately(tmp_path: Path) -> None:
    job, sources = "gpt2@tensor=4,pipeline=2", []
    for fabric in (FLAT, load_fabric("h100-quantum2-spectrum4"), FLAT):
        service = LatencyService(fabric, BACKEND, workload, DiskStore(tmp_path))
        sources.append((service.estimate(job, (8, 8)).source, service.store_hits))
    assert sources == [("analytical, flat groups", 0), ("analytical", 0), (sources[0][0], 1)]
    service = LatencyService(FLAT, BACKEND, workload)
    assert service.estimate("resnet50", (8, 8)).source == "analytical"


def test_only_the_setting_changes_the_digest_of_a_fabric() -> None:
    plain = load_fabric("h100-quantum2-spectrum4")
    assert with_system(plain, {"groups": "cut"}).digest == plain.digest != FLAT.digest
    assert "groups" not in plain.model_dump()["system"]


def test_contention_asks_for_cut_groups() -> None:
    curves = Curves(Asker(FLAT, BACKEND, workload))
    with pytest.raises(BackendError, match="analytical, flat groups reports no traffic"):
        curves.sent("gpt2@tensor=4,pipeline=2", (8, 8), frozenset())

"""Do jobs run as fast as a table of speeds says, on the kinds of GPUs that they get?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml
from rendered_queries import tiny
from support import cluster, job, on

import artist
from artist.astra.files.chakra_folder import chakra_workload
from artist.astra.files.render import render
from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import load_fabric
from artist.cluster.tree import ClusterTree, nested
from artist.config import Scenario
from artist.engine.invariants import check_kinds
from artist.engine.rows import EndReason, PlacementRow, Rows
from artist.errors import ArtistError, ConfigError, InvariantError
from artist.estimates.calibration import ModelCalibration
from artist.estimates.latency_service import LatencyService
from artist.estimates.speeds import ScaledModels, SpeedsOfRun, SpeedTable, load_speeds, scaled_name
from artist.results.result import Result
from artist.run import open_backend
from artist.workload.models import workload

TABLE: dict[str, Any] = {
    "name": "mine",
    "summary": "two kinds",
    "reference": "new",
    "source": "made up",
    "speeds": {
        "resnet50": {"new": {1: 8, 4: 20}, "old": {1: 2, 4: 10}},
        "vgg11": {"new": 6, "old": 3},
        "any": {"new": 1, "old": 0.5},
    },
}
HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"


def ran(
    folder: Path,
    *rows: str,
    machines: str = "old old new new",
    table: Mapping[str, Any] | None = TABLE,
    header: str = HEADER,
    **settings: Any,
) -> Result:
    """A run on machines of four GPUs, in one rack."""
    units = [{"gpus": 4, "kind": kind} for kind in machines.split()]
    description = {"name": "two", "summary": "", "levels": ["rack", "machine"]}
    whole = {**description, "tree": {"machine": units}}
    (folder / "two.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    (folder / "jobs.csv").write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    if table is not None:
        (folder / "speeds.yaml").write_text(yaml.safe_dump(dict(table)), encoding="utf-8")
        settings = {"speeds": str(folder / "speeds.yaml"), **settings}
    scenario = Scenario(
        trace=str(folder / "jobs.csv"),
        **{
            "cluster": str(folder / "two.yaml"),
            "policy": "fifo",
            "backend": "none",
            **settings,
        },
    )
    return artist.simulate(scenario, cache=False, check=True)


def jct(result: Result) -> list[float]:
    return [float(value) for value in result.tables["jobs"]["jct_s"]]


def test_a_job_takes_as_long_as_the_ratio_of_speeds_says(tmp_path: Path) -> None:
    rows = ("a,0,4,resnet50,100,1", "b,0,1,ResNet-50,100,1", "c,0,1,vgg11@batch=7,100,1")
    result = ran(tmp_path, *rows)
    # On old machines. 20/10 on four GPUs; 8/2 on one; the row of vgg11 serves other batches.
    assert jct(result) == [200.0, 400.0, 200.0]
    assert list(result.tables["placements"]["gpu_kind"]) == ["old"] * 3
    assert jct(ran(tmp_path, *rows, machines="new old")) == [100.0, 400.0, 200.0]
    assert jct(ran(tmp_path, "a,0,2,other,100,1")) == [200.0]  # as `any`


def test_models_compute_on_the_reference_kind(tmp_path: Path) -> None:
    """Speeds are factors on its times: on the reference itself, as much communication hides."""
    kinds = {"reference": "v100", "speeds": {"any": {"v100": 1, "a100": 1.5}}}
    setup: dict[str, Any] = {"machines": "v100 v100", "backend": "analytical"}
    isolated = ran(tmp_path, "a,0,8,resnet50,100,1", table=None, **setup)
    scaled = ran(tmp_path, "a,0,8,resnet50,100,1", table={**TABLE, **kinds}, **setup)
    assert jct(scaled) == jct(isolated)


def test_slower_kinds_compute_longer_and_send_the_same(tmp_path: Path) -> None:
    """A job on GPUs half as fast is one whose trace states twice the compute time."""
    setup: dict[str, Any] = {"backend": "analytical", "communication": "absolute"}
    slower = ran(tmp_path, "a,0,8,vgg11,100,1", machines="old old", **setup)
    longer = ran(tmp_path, "a,0,8,vgg11,100,2", machines="new new", **setup)
    (one,), (other,) = slower.tables["jobs"]["comm_s"], longer.tables["jobs"]["comm_s"]
    assert one == pytest.approx(other, rel=1e-3)  # ratios of compute times have four digits
    assert jct(slower) == pytest.approx([200 + one])


def test_fewer_gpus_than_any_row_of_a_table_has_go_by_the_smallest_number() -> None:
    speeds = {"any": {"new": {4: 8}, "old": {4: 4}}}
    of_run = SpeedsOfRun(SpeedTable(**{**TABLE, "speeds": speeds}), two_kinds())
    assert [of_run.scale("any", gpus, "old") for gpus in (1, 4, 100)] == [2.0, 2.0, 2.0]


def test_speeds_of_two_kinds_are_compared_on_as_many_gpus_of_either() -> None:
    """Totals of all GPUs: four old ones against two new ones would be slower than they are."""
    speeds = {"any": {"new": {1: 8, 2: 16, 8: 64}, "old": {1: 4, 4: 12, 8: 16}}}
    of_run = SpeedsOfRun(SpeedTable(**{**TABLE, "speeds": speeds}), two_kinds())
    found = [of_run.scale("any", gpus, "old") for gpus in (1, 2, 4, 7, 8, 16)]
    assert found == [2.0, 2.0, 2.0, 2.0, 4.0, 4.0]
    never = {"any": {"new": {1: 8, 4: 30}, "old": {2: 4}}}
    with pytest.raises(ValueError, match=r"on 1, 4 GPUs of kind 'new' and on 2 GPUs of kind 'old'"):
        SpeedTable(**{**TABLE, "speeds": never})
    plain = {"any": {"new": 8, "old": {2: 4}}}
    with pytest.raises(ValueError, match=r"on 1 GPU of kind 'new' and on 2 GPUs of kind 'old'"):
        SpeedTable(**{**TABLE, "speeds": plain})


def two_kinds() -> ClusterTree:
    return nested(("machine", "rack", "network"), [[4, 4], [4, 4]], ("old", "old", "new", "new"))


def test_a_gang_on_several_kinds_goes_at_the_slowest(tmp_path: Path) -> None:
    result = ran(tmp_path, "a,0,16,vgg11,100,1")
    assert jct(result) == [200.0]
    assert list(result.tables["placements"]["gpu_kind"]) == ["old+new"]
    kinds = result.tables["gpu_kinds"]
    assert list(kinds["gpu_kind"]) == ["old", "new"]
    assert np.allclose(kinds["kind_gpu_h"], 8 * 200 / 3600)
    assert list(kinds["kind_allocated_share"]) == [1.0, 1.0]


def test_gpu_time_costs_what_its_kind_costs(tmp_path: Path) -> None:
    # 3 GPUs for 100 s on the first machine, which is old, and half as fast.
    rows = ("a,0,3,vgg11,50,1",)
    prices = {"old": 0.5, "new": 4.0}
    assert ran(tmp_path, *rows, prices=prices).summary["gpu_cost"] == 3 * 100 / 3600 * 0.5
    assert ran(tmp_path, *rows, prices=2.0).summary["gpu_cost"] == 3 * 100 / 3600 * 2.0
    spread = ran(tmp_path, "a,0,16,vgg11,50,1", prices=prices).summary
    assert spread["gpu_cost"] == pytest.approx(8 * 100 / 3600 * (0.5 + 4.0))
    assert "gpu_cost" not in ran(tmp_path, *rows).summary


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ({"old": 1.0}, "prices: kind new has none; add new: PRICE_OF_A_GPU_HOUR"),
        ({"old": 1.0, "new": 1.0, "neww": 2.0}, "no GPUs of kind 'neww' .did you mean 'new'"),
        ({"old": 1.0, "new": 0.0}, "'prices.new' is 0.0, expected more than 0.0"),
        ({"old": 1.0, "new": "much"}, "'prices.new' is 'much', expected a number"),
        (0.0, "'prices' is 0.0, expected more than 0.0"),
    ],
)
def test_prices_that_do_not_fit_the_cluster_are_refused(
    tmp_path: Path, prices: Any, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ran(tmp_path, "a,0,3,vgg11,50,1", prices=prices)


def test_a_run_on_the_reference_kind_is_the_run_without_speeds(tmp_path: Path) -> None:
    rows = ("a,0,4,resnet50,100,1", "b,0,8,vgg11,70,.5", "c,3,3,resnet50,50,.1")
    settings: dict[str, Any] = {"machines": "new new", "backend": "analytical", "policy": "las"}
    plain = ran(tmp_path, *rows, table=None, **settings)
    with_speeds = ran(tmp_path, *rows, **settings)
    for name in ("jobs", "placements", "timeline"):
        one, other = plain.tables[name], with_speeds.tables[name]
        assert {k: list(v) for k, v in one.items()} == {k: list(v) for k, v in other.items()}
    same = {k: v for k, v in with_speeds.summary.items() if k not in ("speeds", "wall_s")}
    assert same == {k: v for k, v in plain.summary.items() if k != "wall_s"}


def test_ideal_s_is_of_the_reference_kind_and_alone_s_of_the_fastest_that_a_job_accepts(
    tmp_path: Path,
) -> None:
    table = {"reference": "old", "speeds": {"any": {"old": 1, "new": 2}}}
    rows = ("a,0,4,vgg11,100,1,", "b,0,4,vgg11,100,1,old", "c,0,4,vgg11,100,1,new")
    header = HEADER.replace("\n", ",gpu_kinds\n")
    jobs = ran(tmp_path, *rows, table={**TABLE, **table}, header=header).tables["jobs"]
    assert list(jobs["ideal_s"]) == [100.0] * 3
    assert list(jobs["alone_s"]) == [50.0, 100.0, 50.0]
    assert list(jobs["finish_time_fairness"]) == [1.0, 1.0, 0.5]


def test_a_policy_is_said_to_ignore_kinds_only_where_it_does(tmp_path: Path) -> None:
    assert ran(tmp_path, "a,0,4,vgg11,10,1").summary["reads_gpu_kinds"] == "no"
    assert ran(tmp_path, "a,0,4,vgg11,10,1", policy="mast").summary["reads_gpu_kinds"] == "yes"
    alike = ran(tmp_path, "a,0,4,vgg11,10,1", machines="new new").summary
    assert "reads_gpu_kinds" not in alike and alike["speeds"] == "mine"


def test_kinds_that_a_job_accepts_decide_its_speed_under_mast(tmp_path: Path) -> None:
    header = HEADER.strip() + ",tenant,priority,gpu_kinds\n"
    rows = ("a,0,8,vgg11,100,1,ads,1,a100", "b,0,8,vgg11,100,1,ads,1,h100 a100")
    table = {**TABLE, "reference": "h100", "speeds": {"any": {"h100": 2, "a100": 1}}}
    tenants = {"ads": {"quota": {"a100": 8, "h100": 8}}}
    settings = {"cluster": "three-regions", "tenants": tenants}
    result = ran(tmp_path, *rows, header=header, table=table, policy="mast", **settings)
    assert jct(result) == [200.0, 100.0]


# -- communication ---------------------------------------------------------------------


def test_estimates_are_queried_with_the_compute_time_of_the_kind(tmp_path: Path) -> None:
    result = ran(tmp_path, "a,0,8,vgg11,100,.05", backend="analytical", calibration="none")
    fabric = load_fabric("a100")
    slow = LatencyService(
        fabric,
        open_backend("analytical"),
        lambda model: ModelCalibration(compute_scale=2.0).apply(workload(model)),
    )
    ratio = slow.estimate("vgg11", (4, 4)).comm_ratio
    assert ratio > 0
    assert result.tables["placements"]["iteration_s"][0] == 0.05 * 2.0 * (1.0 + ratio)


def test_a_faster_kind_hides_less_communication_and_two_kinds_share_no_estimate() -> None:
    models = ScaledModels(workload, lambda model: 0.1)
    service = LatencyService(
        load_fabric("t4"), open_backend("analytical"), models.workload, None, models.constant_share
    )
    of_run = SpeedsOfRun(SpeedTable(**TABLE), two_kinds())
    scales = [
        of_run.scale_on(job("a", 8, model="vgg11"), on(at)) for at in ({0: 4, 1: 4}, {2: 4, 3: 4})
    ]
    assert scales == [2.0, 1.0]
    names = [scaled_name("vgg11", scale) for scale in scales]
    assert names[1] == "vgg11"
    old, new = (service.estimate(name, (4, 4)) for name in names)
    assert old.compute_ns == pytest.approx(2 * new.compute_ns, rel=1e-3)
    assert old.comm_ratio < new.comm_ratio
    assert service.distinct == 2
    # The calibration's constant takes the same seconds on both kinds.
    assert models.constant_share(names[0]) == 0.05


def test_a_kind_four_times_as_fast_hides_a_quarter_of_each_exchange_of_experts() -> None:
    name = "mixtral-8x7b@overlap=experts"
    plain = workload(name).staged
    faster = ScaledModels(workload, lambda model: 0.1).workload(scaled_name(name, 0.25)).staged
    assert plain is not None and faster is not None
    assert plain.hidden_ns > 0
    assert faster.hidden_ns == pytest.approx(plain.hidden_ns / 4, abs=1)


def test_traces_of_single_gpus_compute_longer_on_a_slow_kind_and_send_as_much(
    tmp_path: Path,
) -> None:
    """They behave like the layers from which they were rendered."""
    query = tiny(4)
    layers = replace(
        query.workload, layers=tuple(replace(x, update_us=0) for x in query.workload.layers)
    )
    render(replace(query, workload=layers), tmp_path)
    traces = chakra_workload(tmp_path)
    for scale in (1.0, 2.0, 7.0):
        scaled = [
            ScaledModels({"x": one}.__getitem__, lambda model: 0.0).workload(
                scaled_name("x", scale)
            )
            for one in (traces, layers)
        ]
        told = [AnalyticalBackend().estimate(replace(query, workload=one)) for one in scaled]
        assert told[0].finish_ns == told[1].finish_ns
        assert told[0].compute_ns == told[1].compute_ns


def test_links_carry_as_much_of_a_job_on_a_slow_kind_in_a_longer_time(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"backend": "analytical", "fabric": "h100-quantum2-spectrum4"}
    carried = []
    for machines in ("old old", "new new"):
        kept = ran(tmp_path, "a,0,8,vgg11,100,.05", machines=machines, **settings)
        scenario = kept.scenario
        links = artist.simulate(scenario, cache=False, links=True).tables["links"]
        carried.append((float(np.sum(links["bytes"])), jct(kept)[0]))
    (old_bytes, old_s), (new_bytes, new_s) = carried
    assert old_bytes == pytest.approx(new_bytes, rel=1e-3)
    assert 1.3 * new_s < old_s < 2 * new_s


def test_a_lone_job_under_contention_runs_as_in_isolation(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"backend": "analytical", "fabric": "h100-quantum2-spectrum4"}
    alone = ran(tmp_path, "a,0,8,vgg11,100,.05", **settings)
    for contention in ("mean", "phase"):
        contended = ran(tmp_path, "a,0,8,vgg11,100,.05", contention=contention, **settings)
        assert jct(contended) == jct(alone)


# -- laws --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_time_is_conserved_and_no_run_beats_the_bound(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    rows = [
        f"j{i},{draw.randint(0, 200)},{draw.choice([1, 2, 3, 4, 8])},"
        f"{draw.choice(['vgg11', 'resnet50', 'gpt2'])},{draw.randint(1, 300)},{draw.random():.3f}"
        for i in range(30)
    ]
    policy = ("fifo", "las", "srtf", "dally", "gandiva", "tiresias")[seed % 6]
    backend = "analytical" if seed % 2 else "none"
    result = ran(tmp_path, *rows, policy=policy, backend=backend)
    summary = result.summary
    assert summary["makespan_bound_s"] <= summary["makespan_s"]
    parts = ("computing", "communicating", "stalled", "lost")
    assert summary["gpu_allocated_share"] == pytest.approx(
        sum(summary[f"gpu_{part}_share"] for part in parts)
    )
    held = result.tables["gpu_kinds"]["kind_gpu_h"]
    whole = summary["gpu_allocated_share"] * 16 * summary["makespan_s"] / 3600
    assert float(np.sum(held)) == pytest.approx(whole)
    placements, jobs = result.tables["placements"], result.tables["jobs"]
    done = dict.fromkeys(jobs["job_id"], 0)
    for name, iterations in zip(placements["job_id"], placements["iterations"], strict=True):
        done[name] += int(iterations)
    assert list(done.values()) == [int(x) for x in jobs["iterations"]]


def test_more_gpus_of_a_kind_than_there_are_break_a_law() -> None:
    def row(handle: int, leaf: int, start: int) -> PlacementRow:
        return PlacementRow(
            handle, on({leaf: 4}), 0, start, start + 10, 1, 1.0, 1.0, 0, 0, "", EndReason.FINISHED
        )

    tree, rows = two_kinds(), Rows()
    rows.placements = [row(0, 0, 0), row(1, 1, 0), row(2, 0, 10)]
    check_kinds(rows, tree)
    rows.placements.append(row(3, 1, 5))
    with pytest.raises(InvariantError, match="12 GPUs of kind old at tick 5, of 8"):
        check_kinds(rows, tree)
    check_kinds(rows, cluster([4, 4]))  # one kind


# -- the shipped table, and bad ones -----------------------------------------------------


def test_the_shipped_figures_are_those_that_gavel_published() -> None:
    table = load_speeds("gavel")
    assert table.reference == "v100"
    assert len(table.speeds) == 26
    # scheduler/simulation_throughputs.json: ('ResNet-50 (batch size 64)', 4), ('A3C', 1).
    assert {kind: row[4] for kind, row in table.speeds["resnet50@batch=64"].items()} == {
        "k80": 2.412,
        "p100": 10.36,
        "v100": 9.452,
    }
    assert {kind: row[1] for kind, row in table.speeds["A3C"].items()} == {
        "k80": 3.439,
        "p100": 5.681,
        "v100": 7.176,
    }


def _without(model: str, kind: str) -> dict[str, Any]:
    row = {name: value for name, value in TABLE["speeds"][model].items() if name != kind}
    return {**TABLE, "speeds": {**TABLE["speeds"], model: row}}


@pytest.mark.parametrize(
    ("table", "settings", "words"),
    [
        (_without("vgg11", "old"), {}, r"jobs.csv:2: job 'a' .* no speed of it on old, which the"),
        (_without("vgg11", "new"), {}, r"model 'vgg11' has no speed on the reference kind 'new'"),
        (
            {**TABLE, "speeds": {"resnet50": TABLE["speeds"]["resnet50"]}},
            {},
            "job 'a' is of model 'vgg11', and speeds 'mine' has no speed of it; add it to a table",
        ),
        ({**TABLE, "speeds": {"any": {"new": 0, "old": 1}}}, {}, r"speeds.yaml:\d+: .* is 0, exp"),
        ({**TABLE, "speeds": {"any": {"new": {0: 1}}}}, {}, "expected at least 1"),
        ({**TABLE, "speeds": {"any": {"new": {}}}}, {}, "is empty, expected at least 1"),
        ({**TABLE, "speeds": {"any": {"new": "fast"}}}, {}, "expected a number"),
        ({**TABLE, "speed": 1}, {}, "unknown setting 'speed': did you mean 'speeds'?"),
        (
            TABLE,
            {"machines": "other new"},
            "jobs.csv:2: job 'a' may get GPUs of kind 'other', which the cluster has, and speeds "
            "'mine' has .* only; let jobs require one of these",
        ),
        (TABLE, {"speeds": "gavl"}, "unknown table of speeds 'gavl': did you mean 'gavel'?"),
        (
            TABLE,
            {"backend": "recorded:x.csv"},
            "a recorded table holds communication for compute times",
        ),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(
    tmp_path: Path, table: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    (tmp_path / "x.csv").write_text("", encoding="utf-8")
    with pytest.raises(ArtistError, match=words) as error:
        ran(tmp_path, "a,0,4,vgg11,10,1", table=table, **settings)
    assert "\n" not in str(error.value)

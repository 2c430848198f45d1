"""Does the output say in which world results are true, and what is easily misread about it?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import artist as library
from artist.cli.remarks import remarks, unread_quotas
from artist.cluster.fabric import Fabric, fabric_names, load_fabric
from artist.config import Scenario
from artist.default_fabric import MEASURED_FABRIC
from artist.estimates.calibration import load_calibration
from artist.io.shipped import resource
from artist.run import build_fabric, simulate
from artist.run.world import busiest_model, measured_part, what_slows, world
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.generate import synth_jobs


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "fabric dally2025, imitates the simulator of the Dally paper (2025); "
            "calibration: dally2025-table1 (a table of a paper)",
        ),
        (
            {"fabric": "leaf-spine"},
            "fabric leaf-spine, vendors' figures: NVIDIA's data sheets; cal",
        ),
        ({"fabric": "t4"}, "fabric t4, measured: steps of ResNet-50 (error of other models "),
        (
            {"fabric": "t4", "fabric_options": {"rack": {"latency": "5us"}}},
            "fabric t4 (changed), m",
        ),
        ({"calibration": "none"}, "(2025); calibration: no"),
        ({"backend": "none"}, "no network: communication takes no time"),
        ({"backend": "none", "goodput": "mine.yaml"}, "no time, except in steps by goodput"),
    ],
)
def test_a_world_is_named_with_the_source_of_its_figures(
    changes: dict[str, object], words: str
) -> None:
    assert words in world(Scenario.model_validate({"policy": "fifo", "racks": 2, **changes}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fabric": "h100-quantum2-spectrum4"}, ""),
        ({"fabric": "t4"}, ""),
        ({"fabric": "t4", "trained_as": "gpu=v100"}, "calibration: no; trained as gpu=v100"),
        ({"fabric": "a100"}, ""),
        ({"fabric": "dally2025", "calibration": "none"}, ""),
        ({"fabric": "h100-quantum2-spectrum4", "calibration": "dally2025-table1"}, ""),
        ({"fabric": "a100", "cluster": "three-regions"}, "not of an H100"),
        ({"cluster": "k80-p100-v100"}, "not of a K80 or a P100 or a V100"),
        ({"cluster": "k80-p100-v100", "speeds": "gavel"}, ""),
    ],
)
def test_a_world_says_on_which_gpu_models_compute(changes: dict[str, object], words: str) -> None:
    told = world(Scenario.model_validate({"policy": "fifo", "trace": "synth", **changes}))
    assert words in told if words else "compute times" not in told


GOODPUT = """
{name: mine, summary: mine, source: a test, models: {resnet18: {
  batch: 64, batch_max: 512, per_gpu_min: 8, per_gpu_max: 128, alpha_c: .02, beta_c: .001,
  alpha_r: .01, alpha_n: .03, gamma: 2, noise: {0: 200}}}}
"""


@pytest.mark.parametrize(("other", "said"), [("resnet18", False), ("vgg16", True)])
def test_compute_times_of_goodput_parameters_are_of_no_assumed_gpu(
    tmp_path: Path, other: str, said: bool
) -> None:
    (tmp_path / "g.yaml").write_text(GOODPUT)
    header = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
    (tmp_path / "t.csv").write_text(f"{header}a,0,2,resnet18,9,.1\nb,0,2,{other},9,.1\n")
    told = world(
        Scenario(
            trace=f"{tmp_path / 't.csv'}",
            goodput=f"{tmp_path / 'g.yaml'}",
            policy="pollux",
            fabric="a100",
            cluster="k80-p100-v100",
        )
    )
    assert ("compute times of an A100, not of a K80" in told) == said


def test_what_slows_jobs_is_named_where_it_is_not_the_default() -> None:
    assert not what_slows(Scenario())
    changes = {"contention": "mean", "failures": "meta-rsc", "restart_s": 600.0}
    slow = Scenario.model_validate(changes)
    assert what_slows(slow) == ["contention mean", "failures meta-rsc", "restart 10 min"]
    assert what_slows(slow, {"failures", "restart_s"}) == ["contention mean"]
    assert what_slows(Scenario(first_start_s=90.0)) == ["first start 90 s"]
    assert what_slows(Scenario(first_start_s="restart")) == ["first start as restart"]


@pytest.mark.parametrize(
    ("start_s", "end_s", "part"),
    [
        (86_400.0, 259_200.0, "from 24 h to 3 d"),
        (None, 259_200.0, "from 0 s to 3 d"),
        (86_400.0, None, "from 24 h on"),
    ],
)
def test_the_head_says_which_jobs_are_measured(
    start_s: float | None, end_s: float | None, part: str
) -> None:
    scenario = Scenario(measure_from_s=start_s, measure_until_s=end_s)
    assert measured_part(scenario) == [f"measured {part}: the jobs that arrive then"]
    assert not measured_part(scenario, {"measure_until_s"})
    assert not measured_part(Scenario())


def test_a_comparison_names_what_slows_jobs_in_its_head(artist) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "1", "--contention", "mean")
    asked = (*asked, "--policies", "fifo", "--permutations", "1", "--set", "restart_s=2h")
    head = artist(*asked, "--vary", "jobs=9,10").stdout.splitlines()[0]
    assert "; contention mean; restart 120 min; 64 GPUs" in head
    assert (
        "contention" not in artist(*asked, "--vary", "contention=mean,none").stdout.splitlines()[0]
    )
    worlds = artist(*asked[:7], "--policies", "fifo,las", "--across", "t4,a100").stdout
    assert worlds.splitlines()[0].endswith("; contention mean")


def test_another_gpu_is_another_fabric() -> None:
    fabric = load_fabric("hgx-h100")
    assert fabric.machine is not None
    unsaid = fabric.model_copy(update={"machine": fabric.machine.model_copy(update={"kind": None})})
    assert unsaid.digest != fabric.digest


def test_a_model_computes_on_the_gpus_of_the_fabric(artist) -> None:
    """Of arithmetic alone the factor is the ratio of the peaks: 989.4 over 312 TFLOP/s in BF16."""

    def compute_ns(fabric: str, model: str = "resnet50@precision=bf16,timing=arithmetic") -> float:
        return library.latency(model, "4", fabric=fabric).compute_ns

    own = compute_ns("hgx-h100")
    assert compute_ns("a100") / own == pytest.approx(989.4 / 312, rel=1e-3)
    named = "resnet50@precision=bf16,timing=arithmetic,gpu=a100"
    assert compute_ns("hgx-h100", named) == compute_ns("a100")
    assert compute_ns("dally2025", named) == compute_ns("a100")


def test_a_calibrated_model_has_the_times_that_were_fitted() -> None:
    fitted = library.latency("resnet50", "8", fabric="hgx-h100", calibration="h100-eager")
    scale = load_calibration("h100-eager").models["resnet50"].compute_scale
    of_an_a100 = library.latency("resnet50", "8", fabric="a100", calibration="none").compute_ns
    assert fitted.compute_ns == pytest.approx(scale * of_an_a100, rel=1e-4)


def test_an_answer_says_where_the_fabrics_gpu_is_unknown(artist, tmp_path) -> None:
    ours = tmp_path / "ours.yaml"
    text = resource("astra_configs", "fabrics", "t4.yaml").read_text("utf-8")
    ours.write_text(text.replace("kind: t4", "kind: k80"), "utf-8")
    ask = ("latency", "--placement", "4,4", "--fabric", str(ours), "--model")
    assert "Compute times of an A100, not of a K80." in artist(*ask, "resnet50").stdout
    assert "A100" not in artist(*ask, "resnet50@gpu=v100").stdout
    assert (
        "A100"
        not in artist("latency", "--placement", "4,4", "--fabric", "t4", "--model", "vgg11").stdout
    )
    assert "an A100 if it names none, unless" in artist("explain", "llama3-8b").stdout
    assert "Its GPUs are H100." in artist("explain", "hgx-h100").stdout


def test_every_shipped_fabric_says_where_its_figures_come_from() -> None:
    assert [name for name in fabric_names() if load_fabric(name).origin is None] == []


def test_the_origin_changes_no_digest() -> None:
    fabric = load_fabric("t4")
    nameless = fabric.model_copy(update={"origin": None})
    assert nameless.digest == fabric.digest
    assert nameless.origin_words == "its own figures"
    assert Fabric.model_validate(fabric.model_dump()).digest == fabric.digest


def test_the_busiest_model_has_most_gpu_seconds_of_communication() -> None:
    jobs = {
        "model": np.array(["vgg11", "resnet50", "vgg11"]),
        "gpus": np.array([1, 8, 1]),
        "comm_s": np.array([30.0, 10.0, 10.0]),
    }
    jobs |= {"gpus_min": jobs["gpus"], "gpus_max": jobs["gpus"]}
    assert busiest_model(jobs) == "resnet50 jobs account for 67 % of the communication"
    assert busiest_model({**jobs, "comm_s": np.zeros(3)}) == ""
    assert busiest_model({**jobs, "model": np.array(["vgg11", "resnet50", "bert-large"])}) != ""
    even = dict.fromkeys(("gpus", "gpus_min", "gpus_max", "comm_s"), np.ones(3))
    assert busiest_model({**even, "model": np.array(["a", "b", "c"])}) == ""  # a third says nothing
    assert busiest_model({**jobs, "gpus_max": np.array([1, 16, 1])}) == ""  # one may have held 16


def test_the_default_is_the_fabric_of_the_trace_or_a_measured_one() -> None:
    assert Scenario().fabric == Scenario(trace="sensetime-poisson-week").fabric == "dally2025"
    assert (
        Scenario(trace="synth").fabric == Scenario(trace="own.csv", fabric="auto").fabric == "a100"
    )
    assert Scenario(trace="own.csv", fabric="t4").fabric == "t4"
    of_cluster = Scenario(trace="own.csv", fabric="auto", cluster="three-regions")
    assert build_fabric(of_cluster).name.startswith("hgx-h100") and of_cluster.own_fabric is None
    described = load_fabric(MEASURED_FABRIC)
    assert described.origin.kind == "measured" and described.machine is not None
    assert described.machine.gpus == Scenario().gpus_per_machine


@pytest.mark.parametrize("policy", ["las", "fifo", "tiresias", "dally"])
def test_no_job_of_an_own_trace_suffers_from_where_it_runs(tmp_path: Path, policy: str) -> None:
    """The world is a measured one; in the paper's, jobs took up to 50 times as long as recorded."""
    write_csv(synth_jobs(200, 0.9, 128, seed=0), tmp_path / "own.csv")
    result = simulate(Scenario(trace=str(tmp_path / "own.csv"), racks=2, policy=policy))
    fits = result.jobs.gpus <= 64
    assert (result.jobs.run_s / result.jobs.alone_s)[fits].max() < 3


def test_the_world_is_the_first_line_of_a_run(artist) -> None:
    asked = ("sim", "--trace", "tiny-batch", "--racks", "2")
    first, second, *_ = artist(*asked).stdout.splitlines()
    assert first.startswith("# fabric a100, measured: steps of ResNet-50, which bound the data")
    assert not first.endswith("% of the communication")  # no model makes half of it
    assert second.startswith("# dally on tiny-batch")
    compared = artist("compare", *asked[1:], "--policies", "fifo,las", "--permutations", "2")
    assert compared.stdout.startswith("# fabric a100, measured")


SMALL = ("--trace", "tiny-batch", "--racks", "1", "--fabric")
TOLD = "Fabric t4 describes machines of 4 GPUs, but this cluster has machines of 8"


def test_a_run_says_that_its_machines_are_not_those_of_the_fabric(artist) -> None:
    assert TOLD in artist("sim", *SMALL, "t4").stdout
    assert TOLD not in artist("sim", *SMALL, "t4", "--gpus-per-machine", "4").stdout
    assert "describes machines" not in artist("sim", *SMALL, "a100").stdout


def test_a_comparison_names_machine_sizes_unless_it_varies_them(artist) -> None:
    compared = ("compare", *SMALL, "t4", "--permutations", "1", "--workers", "1")
    assert TOLD in artist(*compared, "--policies", "fifo,las").stdout
    varied = artist(*compared, "--policies", "fifo", "--vary", "gpus_per_machine=4,8", code=0)
    assert TOLD not in varied.stdout


@pytest.mark.parametrize(("tree", "told"), [([[4, 4]], False), ([[4, 2], [8]], True)])
def test_an_irregular_cluster_is_judged_by_its_largest_machine(tree: list, told: bool) -> None:
    assert bool(remarks(Scenario(fabric="t4", tree=tree))) == told


def test_machines_of_several_sizes_are_all_named() -> None:
    (told,) = remarks(Scenario(fabric="t4", tree=[[8, 2, 8], [6]]))
    assert "but this cluster has machines of 2, 6 and 8;" in told


@pytest.mark.parametrize("name", fabric_names())
def test_of_the_described_machine_only_the_kind_changes_a_digest(name: str) -> None:
    fabric = load_fabric(name)
    if fabric.machine is not None:
        assert fabric.machine.source
        other = fabric.machine.model_copy(update={"gpus": None, "source": ""})
        assert fabric.model_copy(update={"machine": other}).digest == fabric.digest


def test_an_uplink_that_is_wider_than_its_ratio_says_is_named() -> None:
    asked = {"fabric": "a100", "racks": 2, "contention": "mean"}
    options = {"machine": {"oversubscription": 32}}
    (told,) = remarks(Scenario(**asked, fabric_options=options))
    assert told == (
        "An uplink carries at least one flow, so machine oversubscription 32:1 is 1:1 here."
    )
    assert not remarks(Scenario(**asked, fabric_options={"rack": {"oversubscription": 4}}))
    assert not remarks(Scenario(**asked))


def test_quotas_that_a_policy_does_not_keep_are_named() -> None:
    tenants = {"tenants": {"ads": 8}}
    told = unread_quotas(Scenario(policy="fifo", **tenants))
    assert told == "fifo keeps no quotas of tenants; quota(fifo) does."
    assert not unread_quotas(Scenario(policy="quota(fifo)", **tenants))
    assert not unread_quotas(Scenario(policy="mast", **tenants))
    assert not unread_quotas(Scenario(policy="fifo"))

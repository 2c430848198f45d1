"""Does a comparison of a setting's values vary that setting, and nothing else?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cli.comparison_text import print_comparison
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.rows import comparison_rows
from artist.experiments.comparison.variants import of_setting, parse_vary

SMALL = Scenario(racks=1, trace="tiny-batch", backend="none")
ONE_JOB = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,2,vgg16,100,0.001\n"


def test_communication_is_bytes_by_bandwidth_less_what_hides(tmp_path: Path) -> None:
    # One job on one GPU in each of two racks: without latency an iteration communicates for
    # T = bytes / bandwidth, of which computing hides the same H at every bandwidth. With T at
    # 1 Gbit/s, communication is T - H, T/2 - H and T/4 - H; its differences are T/2 and 3T/4.
    (tmp_path / "one.csv").write_text(ONE_JOB)
    scenario = Scenario(
        racks=2, machines_per_rack=1, gpus_per_machine=1, trace=str(tmp_path / "one.csv"),
        calibration="none", fabric_options={"network": {"latency": "0ns"}},
    )  # fmt: skip
    key, values = parse_vary("fabric.network.bandwidth=1Gbit/s,2Gbit/s,4Gbit/s")
    comparison = compare(scenario, vary={key: values}, seeds=1, permutations=5)
    assert comparison.setting == "fabric.network.bandwidth"
    assert comparison.variants == ("bandwidth=1Gbit/s", "bandwidth=2Gbit/s", "bandwidth=4Gbit/s")
    twice, four_times = comparison.variants[1:]
    metric = "comm_time_mean_s"
    halved, quartered = (comparison.differences[one][metric] for one in (twice, four_times))
    assert 0.45 < halved.ratio < 0.5
    assert quartered.difference == pytest.approx(1.5 * halved.difference, rel=1e-6)
    # Nobody waits: what the job communicates less, it finishes sooner.
    parts = comparison.differences_of_parts(twice)
    assert parts["communication"] == pytest.approx(halved.difference)
    assert comparison.differences[twice]["jct_mean_s"].difference == pytest.approx(
        halved.difference
    )


def test_policies_as_values_are_the_comparison_of_policies() -> None:
    policies = ["fifo", "srtf"]
    one = compare(SMALL, policies, seeds=1, permutations=5)
    other = compare(SMALL, vary={"policy": policies}, seeds=1, permutations=5)
    assert one == other


def test_a_setting_without_effect_is_identical() -> None:
    vary = {"fabric.network.latency": ["1us", "9us"]}
    comparison = compare(SMALL, ["las"], vary=vary, seeds=1, permutations=5)
    verdicts = {one.verdict for one in comparison.differences["latency=9us"].values()}
    assert verdicts == {"identical"}


def test_one_policy_runs_all_values() -> None:
    vary = {"policy.lease_s": [600, 36000]}
    under_las = compare(SMALL, ["las"], vary=vary, seeds=1, permutations=2)
    las = SMALL.model_copy(update={"policy": "las", "policy_options": {"lease_s": 600}})
    twin = compare(las, ["las", "fifo"], seeds=1, permutations=2, metrics=["preemptions"])
    again = compare(SMALL, ["las"], vary=vary, seeds=1, permutations=2, metrics=["preemptions"])
    assert under_las.variants == ("lease_s=600", "lease_s=36000")
    assert again.values["lease_s=600"] == twin.values["las"]
    assert again.values["lease_s=36000"] != twin.values["las"]


def test_each_size_of_the_cluster_has_its_bound(capsys, tmp_path: Path) -> None:
    # Four jobs of 1000 iterations, 1 s each, on one GPU: one GPU needs 4000 s, two need 2000 s.
    rows = [f"{i},0,1,vgg16,1000,1.0" for i in range(4)]
    (tmp_path / "four.csv").write_text("\n".join([ONE_JOB.splitlines()[0], *rows, ""]))
    scenario = Scenario(
        racks=1, machines_per_rack=1, gpus_per_machine=1, trace=str(tmp_path / "four.csv"),
        backend="none",
    )  # fmt: skip
    comparison = compare(scenario, vary={"racks": [1, 2]}, seeds=1, permutations=1)
    assert comparison.bounds_s == {"racks=1": (4000.0,), "racks=2": (2000.0,)}
    assert comparison.bound_s == ()
    told = [row for row in comparison_rows(comparison) if row["metric"] == "makespan_bound_s"]
    assert {row["racks"]: row["mean"] for row in told} == {"racks=1": 4000.0, "racks=2": 2000.0}
    print_comparison(comparison)
    shown = capsys.readouterr().out
    assert "(lower bound of racks=2)" in shown
    assert "in less than 4,000 s with racks=1, 2,000 s with racks=2 (lower bound" in shown


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("racks=2,4", [2, 4]),
        ("calibration=none,auto", ["none", "auto"]),
        ("arrivals=batch,poisson:10", ["batch", "poisson:10"]),
        ("tree=[[8, 8]],[[8], [8]]", [[[8, 8]], [[8], [8]]]),
    ],
)
def test_values_are_read_as_those_of_set(text: str, values: list[object]) -> None:
    assert parse_vary(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize("text", ["racks", "=1,2", "racks=[1,2"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--vary"):
        parse_vary(text)


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("rack", [1, 2], r"--vary rack: unknown setting 'rack' \(did you mean 'racks'"),
        ("racks", [1], "at least two values"),
        ("racks", "12", "at least two values"),
        ("racks", [1, 1], "racks=1 and racks=1 are the same scenario"),
        ("fabric.network.bandwidth", ["100Gbit/s", "12.5GB/s"], "are the same scenario"),
        ("racks", [1, 0], "--vary racks=0: 'racks'"),
        ("policy.lease_s", [600, -1], "lease_s"),
        ("calibration", ["none", "nobody"], "nobody"),
        ("fabric.netwrk.latency", ["1us", "2us"], "did you mean 'network'"),
        ("seed", [1, 2], "choose how many with --seeds and --permutations"),
    ],
)
def test_values_that_cannot_be_compared_are_refused_before_a_run(
    key: str, values: list[object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        of_setting(Scenario(policy="las"), key, values)


@pytest.mark.parametrize(
    ("policies", "vary"),
    [
        (["fifo", "las"], {"racks": [1, 2]}),
        (["fifo"], {"policy": ["las", "srtf"]}),
        ([], {"racks": [1, 2], "jobs": [1, 2]}),
    ],
)
def test_two_questions_at_once_are_refused(policies, vary) -> None:
    with pytest.raises(ConfigError, match="at a time"):
        compare(SMALL, policies, vary=vary, seeds=1, permutations=1)


def test_seeds_must_draw_something_for_every_trace() -> None:
    vary = {"trace": ["sensetime-batch-500", "tiny-batch"]}
    with pytest.raises(ConfigError, match="'tiny-batch' is the same for every seed"):
        compare(SMALL, vary=vary, seeds=2, permutations=1)

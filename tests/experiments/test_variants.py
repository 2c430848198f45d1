"""Does a comparison of a setting's values vary that setting, and nothing else?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cli.comparison_details import print_details
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments import relative_values
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.shown import comparison_rows
from artist.experiments.comparison.variants import (
    AS_GIVEN,
    of_policies,
    of_settings,
    parse_vary,
    partly_taken,
)
from artist.experiments.experiment import load_experiment, runs
from artist.experiments.relative_values import scenario_at
from artist.report.answer import answer
from artist.run import build_fabric
from artist.settings import load_scenario

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
    metrics = ["jct_mean_s", "comm_time_mean_s"]
    comparison = compare(scenario, vary={key: values}, seeds=1, permutations=5, metrics=metrics)
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


def test_an_option_goes_to_the_policies_that_have_it() -> None:
    given = SMALL.model_copy(update={"policy_options": {"skew_threshold": 0.5, "lease_s": 300}})
    alone = {"lease_s": 300}
    policies = ["tiresias", "fifo", "quota(fifo)"]
    for variants in (of_policies(given, policies), of_settings(given, {"policy": policies})):
        options = [one.scenario.policy_options for one in variants]
        assert options == [{"skew_threshold": 0.5, **alone}, alone, alone]
    assert list(partly_taken(given, policies)) == [
        "policy.skew_threshold=0.5 is for tiresias alone"
    ]
    of_none = SMALL.model_copy(update={"policy_options": {"quantum": 1}})
    words = "policies fifo, gandiva: unknown setting 'policy.quantum': did you mean 'quantum_s'"
    with pytest.raises(ConfigError, match=words):
        of_policies(of_none, ["fifo", "gandiva"])


def test_the_answer_names_an_option_that_some_policies_lack() -> None:
    given = SMALL.model_copy(update={"policy_options": {"skew_threshold": 0.5}})
    found = compare(given, ["tiresias", "fifo"], permutations=1)
    sentence = "Not all else is equal: policy.skew_threshold=0.5 is for tiresias alone."
    assert answer(found)[2:] == [sentence]
    assert answer(compare(SMALL, ["tiresias", "fifo"], permutations=1))[2:] == []


def test_a_value_goes_to_the_policies_that_take_it() -> None:
    together = {"placement": "consolidate-or-wait"}
    given = SMALL.model_copy(update={"policy_options": together})
    variants = of_policies(given, ["tiresias", "dally"])
    assert [one.scenario.policy_options for one in variants] == [together, {}]
    assert list(partly_taken(given, ["tiresias", "dally"])) == [
        "policy.placement=consolidate-or-wait is for tiresias alone"
    ]
    with pytest.raises(ConfigError, match="'placement' is 'tight'"):
        of_policies(
            given.model_copy(update={"policy_options": {"placement": "tight"}}),
            ["tiresias", "dally"],
        )


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
    print_details(comparison)
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
def test_a_text_that_is_not_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--vary"):
        parse_vary(text)


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("rack", [1, 2], r"--vary rack=1: unknown setting 'rack' \(did you mean 'racks'"),
        ("racks", [1], "at least two values"),
        ("racks", "12", "at least two values"),
        ("racks", [1, 1], "racks=1 and racks=1 are the same scenario"),
        ("fabric.network.bandwidth", ["100Gbit/s", "12.5GB/s"], "are the same scenario"),
        ("racks", [1, 0], "--vary racks=0: 'racks'"),
        ("policy.lease_s", [600, -1], "lease_s"),
        ("calibration", ["none", "nobody"], "nobody"),
        ("fabric.netwrk.latency", ["1us", "2us"], "did you mean 'network'"),
        ("seed", [1, 2], "choose how many with --seeds and --permutations"),
        ("racks", ["x1.01"], "racks=x1.01: of 16, that is not a whole number"),
        ("policy", ["las", "x2"], "policy is 'las', and only a number"),
        ("restart_s", ["x2"], "restart_s is not set, and only a number takes"),
        ("fabric.network.latency", ["+5"], r"the number needs a unit, such as \+2us"),
        ("fabric.network.bandwidth", ["x2Gbit/s"], "expected x2, \\+2 or a value without sign"),
        ("calibration", ["+1"], "calibration is 'auto', and only a number"),
        ("racks", ["+2", "x1.125"], r"racks=\+2 and racks=x1.125 are the same scenario"),
        ("racks", ["+0"], r"racks=\+0 is the scenario as given; leave it out"),
        ("fabric.netwrk.bandwidth_gbps", ["x1", "x2"], "x1: .*did you mean 'network'"),
        ("fabric.network.bandwidth_gbps", ["x1", "x2"], "bandwidth_gbps=x1: unknown setting"),
        ("rack", ["+1"], "unknown setting 'rack'"),
        (
            "restart_s",
            ["x2"],
            r"^--vary restart_s=x2: restart_s is not set, .*; give the value itself, restart_s=NUM",
        ),
        (
            "fabric.network.bandwith",
            ["x2"],
            "^--vary fabric.network.bandwith=x2: unknown setting 'fabric.network.bandwith' "
            r"\(did you mean 'bandwidth'\?\)$",
        ),
        ("fabric.network.bandwith", ["9Gbit/s", "x2"], ": unknown setting 'fabric.network.bandw"),
        ("fabric.network.bandwidth", ["twice", "x2"], ": 'fabric.network.bandwidth': expected a "),
        ("policy.orde", ["x2"], r"unknown setting 'policy.orde' \(did you mean 'order'\?\)$"),
        ("system.ring", ["x2"], r"unknown setting 'system.ring' \(did you mean 'rings'\?\)$"),
        ("parallelism.tensr", ["x2"], r"unknown setting 'parallelism.tensr' \(did you mean 'tens"),
        ("checkpoint.cost", ["x2"], r"unknown setting 'checkpoint.cost' \(did you mean 'cost_s'"),
    ],
)
def test_values_that_cannot_be_compared_are_refused_before_a_run(
    key: str, values: list[object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        of_settings(Scenario(policy="las"), {key: values})


def test_a_policy_that_stands_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="the policies are given twice"):
        compare(SMALL, ["fifo"], vary={"policy": ["las", "srtf"]}, seeds=1, permutations=1)


# -- several settings, and relative values -------------------------------------------------


def test_several_settings_are_all_their_combinations() -> None:
    vary = {"racks": [1, 2], "policy": ["las", "fifo"]}
    variants = of_settings(SMALL, vary)
    assert [one.label for one in variants] == [
        "racks=1, las", "racks=1, fifo", "racks=2, las", "racks=2, fifo",
    ]  # fmt: skip
    assert [(one.scenario.racks, one.scenario.policy) for one in variants] == [
        (1, "las"), (1, "fifo"), (2, "las"), (2, "fifo"),
    ]  # fmt: skip
    assert variants[1].point == {"racks": "1", "policy": "fifo"}


def test_policies_and_settings_make_a_grid() -> None:
    made = compare(SMALL, ["fifo", "las"], vary={"racks": [1, 2]}, seeds=1, permutations=1)
    assert made.setting == "settings"
    assert made.variants == ("fifo, racks=1", "fifo, racks=2", "las, racks=1", "las, racks=2")
    assert made.gpus["las, racks=2"] == 128


def test_two_questions_at_once_are_one_comparison_with_the_scenario_as_given() -> None:
    vary = {"racks": ["+2"], "fabric.network.bandwidth": ["x2"]}
    given, faster, larger, both = of_settings(Scenario(racks=3, policy="las"), vary)
    assert [one.label for one in (given, faster, larger, both)] == [
        AS_GIVEN, "bandwidth=x2", "racks=+2", "racks=+2, bandwidth=x2",
    ]  # fmt: skip
    assert given.scenario == Scenario(racks=3, policy="las")
    assert [one.scenario.racks for one in (given, faster, larger, both)] == [3, 3, 5, 5]
    speeds = [
        build_fabric(one.scenario).levels[-1].bandwidth_gib_per_s for one in (given, faster, both)
    ]
    assert speeds == [400, 800, 800]


def test_keys_with_the_same_last_part_are_shown_whole() -> None:
    vary = {"fabric.rack.bandwidth": ["x2"], "fabric.network.bandwidth": ["x2"]}
    labels = [one.label for one in of_settings(Scenario(policy="las"), vary)]
    assert labels[1:3] == ["fabric.network.bandwidth=x2", "fabric.rack.bandwidth=x2"]


@pytest.mark.parametrize(
    ("base", "key", "text", "expected"),
    [
        ({}, "racks", "x0.5", {"racks": 8}),
        ({"restart_s": 30}, "restart_s", "+15", {"restart_s": 45}),
        ({"arrivals": "poisson:10"}, "arrivals", "x1.2", {"arrivals": "poisson:12"}),
        ({"policy": "las"}, "policy.lease_s", "x2", {"policy_options": {"lease_s": 7200}}),
        ({"trace": "tiny-batch"}, "jobs", "x0.5", {"jobs": 10}),
        (
            {"policy": "las", "policy_options": {"lease_s": 60}}, "policy.lease_s", "+60",
            {"policy_options": {"lease_s": 120}},
        ),
        (
            {"checkpoint": {"interval_s": 600, "cost_s": 10}}, "checkpoint.cost_s", "x3",
            {"checkpoint": {"interval_s": 600, "cost_s": 30}},
        ),
        (
            {"fabric": "leaf-spine"}, "fabric.rack.oversubscription", "x2",
            {"fabric_options": {"rack": {"oversubscription": 4}}},
        ),
        (
            {"fabric_options": {"network": {"latency": "5us"}}}, "fabric.network.latency", "+2us",
            {"fabric_options": {"network": {"latency": "7us"}}},
        ),
        ({}, "racks", "+0", {}),
        ({}, "fabric.network.bandwidth", "x1", {}),
    ],
)  # fmt: skip
def test_relative_values_are_relative_to_what_the_scenario_has(base, key, text, expected) -> None:
    assert scenario_at(base, [(key, text)], "here") == Scenario.model_validate({**base, **expected})


def test_a_relative_value_follows_the_other_settings_of_its_point() -> None:
    """Twice the bandwidth of each fabric, whichever setting stands first."""
    point = [("fabric", "t4"), ("fabric.rack.bandwidth", "x2")]
    for order in (point, point[::-1]):
        made = build_fabric(scenario_at({}, order, "here"))
        assert made.levels[1].bandwidth_gib_per_s == pytest.approx(2 * 0.598)


def test_a_sweep_takes_relative_values(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    grid = "grid:\n  racks: [x1, +2]\n  fabric.network.bandwidth: [x1, x2]\n"
    file.write_text(f"name: e\nversion: 1\nbase: {{racks: 2, policy: las}}\n{grid}")
    made = runs(load_experiment(file))
    assert [run.scenario.racks for run in made] == [2, 2, 4, 4]
    assert made[1].scenario.fabric_options["network"].bandwidth_gib_per_s == 800
    assert made[0].scenario == Scenario(racks=2, policy="las")


def test_a_relative_value_of_set_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set 'racks=\+2': relative values are for commands"):
        load_scenario(None, {}, ["racks=+2"])


def test_set_takes_relative_values_by_the_rule_of_vary() -> None:
    sets = ["fabric.network.bandwidth=x2", "racks=+2", "racks=3", "fabric=a100"]
    made = relative_values.load_scenario(None, {"policy": "las"}, sets)
    by_vary = scenario_at(
        {"policy": "las", "fabric": "a100", "racks": 3},
        [("fabric.network.bandwidth", "x2"), ("racks", "+2")],
        "--vary",
    )
    assert made == by_vary
    assert made.racks == 5
    with pytest.raises(ConfigError, match=r"^--set policy=x2: .*only a number"):
        relative_values.load_scenario(None, {}, ["policy=x2"])
    with pytest.raises(ConfigError, match=r"^--set racks=x1\.1: .*not a whole number"):
        relative_values.load_scenario(None, {"racks": 4}, ["racks=x1.1"])


def test_seeds_must_draw_something_for_every_trace() -> None:
    vary = {"trace": ["sensetime-batch-500", "tiny-batch"]}
    with pytest.raises(ConfigError, match="'tiny-batch' is the same for every seed"):
        compare(SMALL, vary=vary, seeds=2, permutations=1)

"""Does the comparison tell a difference from noise?"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.shown import comparison_rows, replicate_rows
from artist.experiments.comparison.variants import everyday_policies
from artist.policies.table import POLICIES
from artist.report.metric_text import interval_text

SMALL = Scenario(racks=1, trace="tiny-batch", backend="none")
DRAWN = Scenario(racks=1, jobs=40, backend="none")


def test_values_are_paired_by_replicate_whatever_the_number_of_workers() -> None:
    one, two = (
        compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=2, workers=workers)
        for workers in (1, 2)
    )
    assert one == two
    assert one.replicates == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert len(one.values["fifo"]["jct_mean_s"]) == 4


def test_a_policy_against_its_twin_is_identical() -> None:
    twin = {"order": "arrival", "preemption": "never", "strict": True}
    changed = SMALL.model_copy(update={"policy_options": twin})
    comparison = compare(changed, ["fifo", "sjf"], seeds=1, permutations=5)
    assert {one.verdict for one in comparison.differences["sjf"].values()} == {"identical"}


def test_permutations_of_one_seed_are_one_replicate() -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=3)
    one = comparison.differences["srtf"]["jct_mean_s"]
    assert (one.replicates, one.verdict) == (2, "too few replicates")
    assert "[" not in interval_text("jct_mean_s", one)


def test_seeds_that_draw_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="same for every seed; vary --permutations"):
        compare(SMALL, ["fifo", "srtf"], seeds=2, permutations=1)


def test_seeds_draw_failures_of_a_trace_that_they_do_not_draw(tmp_path: Path) -> None:
    own = tmp_path / "f.yaml"
    own.write_text("machine: {distribution: exponential, mtbf_s: 5.0e4, repair_s: 1800}\n")
    fails = SMALL.model_copy(update={"failures": str(own)})
    comparison = compare(fails, ["fifo", "srtf"], seeds=3, permutations=1)
    assert len({*comparison.values["fifo"]["jct_mean_s"]}) == 3
    planned = tmp_path / "planned.yaml"
    planned.write_text("maintenance: [{kind: machine, unit: 0, at_s: 10, duration_s: 20}]\n")
    known = SMALL.model_copy(update={"failures": str(planned)})
    with pytest.raises(ConfigError, match="same for every seed; vary --permutations"):
        compare(known, ["fifo", "srtf"], seeds=2, permutations=1)


def test_copies_that_differ_by_rounding_have_no_verdict() -> None:
    # Both policies end jobs at equal times in every order; only the order of the sums differs.
    comparison = compare(SMALL, ["sjf", "srtf"], seeds=1, permutations=6)
    verdicts = [one.verdict for one in comparison.differences["srtf"].values()]
    assert set(verdicts) <= {"identical", "too few replicates"}
    assert comparison.without_interval == verdicts.count("too few replicates") > 0


def test_seeds_with_one_permutation_sample_the_orders_too() -> None:
    base = DRAWN.model_copy(update={"seed": 3, "permutation": 2})
    comparison = compare(base, ["fifo", "srtf"], seeds=3, permutations=1)
    assert comparison.replicates == ((3, 2), (4, 3), (5, 4))
    assert comparison.independent == 3


@pytest.mark.parametrize(
    ("seeds", "permutations", "words", "kind"),
    [
        (2, 3, "2 seeds x 3 permutations = 2 independent replicates", "seeds"),
        (1, 3, "1 seed x 3 permutations = 3 independent replicates", "permutations"),
        (2, 1, "2 seeds, each with a permutation of its own = 2 independent replicates", "seeds"),
    ],
)
def test_the_design_in_words(seeds: int, permutations: int, words: str, kind: str) -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=seeds, permutations=permutations)
    assert (comparison.design, comparison.kind) == (words, kind)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"permutations": 0, "until": 0.02}, "--permutations 0: at least 1"),
        ({"permutations": -3, "until": 0.02}, "--permutations -3: at least 1"),
        ({"seeds": 0, "until": 0.02}, "--seeds 0"),
        ({"equivalence": 2.0}, "--equivalence 2: expected"),
    ],
)
def test_senseless_options_are_refused_before_anything_runs(options, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compare(SMALL, ["fifo", "srtf"], **{"seeds": 1, "permutations": 1, **options})


@pytest.mark.parametrize(
    ("policies", "seeds"), [(["fifo"], 1), (["fifo", "fifo"], 1), (["fifo", "las"], 0)]
)
def test_senseless_comparisons_are_refused(policies: list[str], seeds: int) -> None:
    with pytest.raises(ConfigError):
        compare(SMALL, policies, seeds=seeds, permutations=1)


def test_the_parts_of_each_difference_add_up() -> None:
    scenario = Scenario(racks=1, machines_per_rack=4, jobs=60, restart_s=300.0)
    comparison = compare(scenario, ["dally", "srtf", "fifo"], seeds=1, permutations=2)
    for policy in ("srtf", "fifo"):
        parts = comparison.differences_of_parts(policy)
        assert list(parts) == [
            "waiting", "communication", "preemption and restarts", "computing",
        ]  # fmt: skip
        whole = fmean(comparison.values[policy]["jct_mean_s"]) - fmean(
            comparison.values["dally"]["jct_mean_s"]
        )
        assert sum(parts.values()) == pytest.approx(whole, abs=1e-6)
        # Rigid jobs compute the same, whatever the policy; all else may differ.
        assert parts["computing"] == pytest.approx(0, abs=1e-6)
        assert parts["communication"] != 0
    assert comparison.differences_of_parts("srtf")["preemption and restarts"] != 0
    with pytest.raises(ConfigError, match=r"unknown variant 'srft': did you mean 'srtf'\?"):
        comparison.differences_of_parts("srft")


def test_other_metrics_are_compared_in_their_order() -> None:
    metrics = ["jct_p50_s", "preemptions"]
    comparison = compare(SMALL, ["fifo", "las"], seeds=1, permutations=5, metrics=metrics)
    assert list(comparison.values["fifo"]) == metrics
    assert list(comparison.differences["las"]) == metrics
    assert len(comparison.bound_s) == 5


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        (
            ["jct_men_s"],
            r"did you mean 'jct_mean_s'\? \(closest: jct_mean_s, jct_\w+, \w+; artist list metrics",
        ),
        (["wall_s"], "unknown metric 'wall_s'"),
        ([], "give at least one metric"),
        (["jct_mean_s", "jct_mean_s"], "each once"),
        (["latency_fallback_uses"], "unknown metric"),
    ],
)
def test_metrics_that_cannot_be_compared_are_refused(metrics: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compare(SMALL, ["fifo", "las"], seeds=1, permutations=1, metrics=metrics)


def test_a_metric_that_runs_lack_is_named() -> None:
    with pytest.raises(ConfigError, match="--metrics data_copies: runs of fifo do not have it"):
        compare(SMALL, ["fifo", "las"], seeds=1, permutations=1, metrics=["data_copies"])
    # It is not the cluster that lacks it: runs with failures have it.
    vary = {"failures": ["none", "meta-rsc"]}
    with pytest.raises(ConfigError, match="lost_gpu_s: runs of failures=none do not have it"):
        compare(SMALL, seeds=1, permutations=1, metrics=["lost_gpu_s"], vary=vary)


def test_everyday_policies_are_those_that_stand_for_themselves() -> None:
    everyday = everyday_policies()
    assert everyday[0] == "dally"
    known = [entry.id for entry in POLICIES if not (entry.wraps or entry.host)]
    networks, rules = {"learned", "rl-base", "rl-hybrid"}, {"srsf-threshold", "las-threshold"}
    others = networks | rules | {"mast", "federated", "easy", "conservative", "slurm"}
    others |= {"gavel", "gavel-ftf", "gavel-makespan", "lucid"}
    others |= {"pollux", "sia", "equal-share", "max-throughput", "optimus", "tiresias-rounds"}
    of_dally = {name for name in known if name.startswith("dally-")}
    assert everyday == [name for name in known if name not in others | of_dally]
    assert len(everyday) == 10


def test_every_everyday_policy_runs_without_options_or_files() -> None:
    comparison = compare(SMALL, everyday_policies(), seeds=1, permutations=1)
    assert comparison.variants == tuple(everyday_policies())


def test_every_value_of_every_replicate_is_a_row() -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=1, permutations=3)
    rows = replicate_rows(comparison)
    assert len(rows) == 3 * len(comparison_rows(comparison))
    for policy in comparison.variants:
        own = [x for x in rows if (x["policy"], x["metric"]) == (policy, "jct_mean_s")]
        assert [x["value"] for x in own] == list(comparison.values[policy]["jct_mean_s"])
        assert [(x["seed"], x["permutation"]) for x in own] == list(comparison.replicates)
        assert [x["replicate"] for x in own] == [1, 2, 3]
        assert {x["mean"] for x in own} == {fmean(x["value"] for x in own)}
    waiting = [x for x in rows if (x["policy"], x["metric"]) == ("srtf", "jct_mean_s: waiting")]
    assert [x["value"] for x in waiting] == list(comparison.parts["srtf"]["waiting"])


def test_rows_say_what_the_comparison_says() -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=1, permutations=5)
    rows = {(row["metric"], row["policy"]): row for row in comparison_rows(comparison)}
    one, row = comparison.differences["srtf"]["jct_mean_s"], rows["jct_mean_s", "srtf"]
    assert (row["ratio"], row["low"], row["high"], row["verdict"], row["unit"]) == (
        one.ratio, one.low, one.high, one.verdict, "s",
    )  # fmt: skip
    assert "ratio" not in rows["jct_mean_s", "fifo"]
    # There is no ratio of nothing to nothing that differs: NaN is empty in a file.
    assert not any(value != value for row in rows.values() for value in row.values())
    parts = [row["difference"] for (name, policy), row in rows.items()
             if policy == "srtf" and name.startswith("jct_mean_s: ")]  # fmt: skip
    assert sum(parts) == pytest.approx(one.difference, abs=1e-6)
    assert rows["makespan_bound_s", ""]["mean"] == fmean(comparison.bound_s)

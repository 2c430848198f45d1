"""CASSINI around a host policy, in runs: who is placed where, who is held, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import SELF_SUFFICIENT, longer_rounds

from artist.cluster.tree import nested
from artist.config import Scenario
from artist.contract import Policy
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.experiments.experiment import load_experiment, runs
from artist.policies.cassini.wrapper import Cassini
from artist.policies.table import POLICIES
from artist.results.result import Result
from artist.rng import stream
from artist.run import build_policy, open_policy, simulate
from artist.settings import load_scenario
from artist.testing import LevelRates, Situation, check_policy
from artist.workload.job import Job

# CASSINI's servers in racks of two whose uplink carries one flow. Jobs of three GPUs fill a rack
# and half of another one.
TESTBED = {
    "fabric": "cassini-testbed",
    "machines_per_rack": 2,
    "gpus_per_machine": 1,
}
HOSTS = [name for name in SELF_SUFFICIENT if not POLICIES[name].host]
OF_OTHER_CODE = list({POLICIES[name].load(): name for name in reversed(HOSTS)}.values())
"""One of the hosts that differ in options alone."""

LIGHT = "vgg16@batch=64,5000,0.2"  # sends for less than half of its iteration
HEAVY = "vgg16@batch=8,2000,0.05"  # sends for more than half of it


def ran(folder: Path, jobs: list[str], racks: int = 3, **fields: Any) -> Result:
    """A run of jobs that arrive at once: `GPUS,MODEL,ITERATIONS,COMPUTE_S`."""
    trace = folder / "jobs.csv"
    rows = [f"{chr(97 + index)},0,{job}" for index, job in enumerate(jobs)]
    trace.write_text("\n".join(["job_id,arrival_s,gpus,model,iterations,compute_s", *rows, ""]))
    return simulate(Scenario(trace=str(trace), racks=racks, **TESTBED, **fields))


def two_jobs(folder: Path, policy: str = "cassini(fifo)", **fields: Any) -> Result:
    """Two equal jobs that share the uplink of the rack in the middle."""
    options = {"placement": "any"}
    return ran(
        folder,
        [f"3,{LIGHT}"] * 2,
        policy=policy,
        policy_options=options if policy == "fifo" else {"candidates": 1, "host": options},
        **{"contention": "fluid", **fields},
    )


def iterations(result: Result) -> pd.Series:
    """Mean iteration of each job over that alone."""
    rows = result.table("placements")
    grouped = (rows.iteration_s * rows.iterations).groupby(rows.job_id).sum()
    alone = (rows.alone_iteration_s * rows.iterations).groupby(rows.job_id).sum()
    return grouped / alone


def crowded(seed: int = 0) -> list[Situation]:
    """Servers with one GPU, and jobs that mostly cross racks: they meet on many uplinks."""
    tree = nested(("machine", "rack", "network"), [[1, 1, 1]] * 6)
    rng = stream(seed, "test_wrapper")
    jobs = tuple(
        Job(
            id=f"job-{index}",
            arrival_s=float(index // 3 * 40),
            gpus=int(rng.integers(2, 6)),
            model="vgg16",
            iterations=int(rng.integers(5, 60)),
            compute_s=float(rng.choice([1.0, 2.0])),
        )
        for index in range(16)
    )
    return [Situation("crowded links", tree, jobs)]


def always(host: str) -> Policy:
    """CASSINI that aligns whatever can be aligned, around a host."""
    return open_policy(f"cassini({host})", {"least_gain": -1, "host": longer_rounds(host)})


@pytest.mark.parametrize(
    "host", [pytest.param(x, marks=[pytest.mark.slow] * (x == "sia")) for x in OF_OTHER_CODE]
)
def test_any_host_under_cassini_keeps_the_contract(host: str) -> None:
    check_policy(lambda: always(host))


@pytest.mark.parametrize("host", HOSTS)
def test_any_host_under_cassini_keeps_the_contract_on_crowded_links(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artist.testing.policy_checks.situations", crowded)
    check_policy(lambda: always(host))


def test_the_contract_is_tried_with_holds_and_other_placements() -> None:
    (situation,) = crowded()
    policy = always("gandiva")
    rates = LevelRates(situation.tree, restless=True)
    Simulator(situation.tree, situation.jobs, rates, lease=policy.lease).run(policy)
    choices = policy.tables()["cassini"]
    assert sum(row["aligned"] for row in choices) > 10
    assert sum(row["chosen"] > 0 for row in choices) > 1


@pytest.mark.parametrize("contention", ["none", "phase"])
@pytest.mark.parametrize("host", ["themis", "dally", "las", "gandiva"])
def test_without_shared_links_the_rows_are_the_hosts(host: str, contention: str) -> None:
    # At 1:1 no uplink can be full.
    sets = ["trace=tiny-batch", "racks=2", "fabric=leaf-spine", "fabric.rack.oversubscription=1"]
    scenario = load_scenario(None, {}, [*sets, f"policy={host}", f"contention={contention}"])
    alone = simulate(scenario)
    wrapped = simulate(scenario.model_copy(update={"policy": f"cassini({host})"}))
    for table in ("placements", "jobs", "timeline", "waits"):
        assert wrapped.table(table).equals(alone.table(table))


def test_two_jobs_in_step_are_as_on_a_link_of_their_share(tmp_path: Path) -> None:
    # 44 of 50 Gbit/s for two jobs: each is as alone on a network of 22.
    beside = two_jobs(tmp_path, "fifo")
    sets = [f"trace={tmp_path / 'jobs.csv'}", "policy=fifo", "policy.placement=any", "racks=3"]
    sets += [f"{key}={value}" for key, value in TESTBED.items()]
    slow = simulate(load_scenario(None, {}, [*sets, "fabric.network.bandwidth=22Gbit/s"]))
    expected = slow.table("placements").iteration_s[0]
    # Iterations between two points of a curve are within 1 %.
    assert beside.table("placements").iteration_s[0] == pytest.approx(expected, rel=3e-3)
    assert iterations(beside).min() > 1.3


@pytest.mark.parametrize("contention", ["fluid", "phase"])
def test_two_jobs_that_take_turns_are_as_fast_as_alone(tmp_path: Path, contention: str) -> None:
    exact = two_jobs(tmp_path, contention=contention, contention_options={"jitter": 0.0})
    assert iterations(exact).max() < 1.003
    # With jitter they wait for each other now and then.
    assert iterations(two_jobs(tmp_path, contention=contention)).max() < 1.01


def test_a_time_shift_is_stalled_time(tmp_path: Path) -> None:
    result = two_jobs(tmp_path)
    (choice,) = result.table("cassini").to_dict("records")
    stalled = result.table("placements").groupby("job_id").stalled_s.sum()
    # One job goes at once: it is held for the shortest time that a hold can last.
    assert stalled["a"] == 1e-9
    assert stalled["b"] == pytest.approx(choice["held_s"], abs=1e-8)
    assert 0 < stalled["b"] < 0.2
    assert (choice["score"], choice["aligned"]) == (1.0, 2)


def test_jobs_that_drift_apart_lose_what_they_had(tmp_path: Path) -> None:
    options = {"candidates": 1, "host": {"placement": "any"}}
    jobs = [f"3,{LIGHT}"] * 2

    def slowdown(**more: Any) -> float:
        chosen = {"policy": "cassini(fifo)", "policy_options": {**options, **more}}
        jitter = {"contention_options": {"jitter": 0.02}}
        return iterations(ran(tmp_path, jobs, contention="fluid", **chosen, **jitter)).max()

    assert slowdown(drift_correction=False) > slowdown() + 0.02


def test_holds_are_not_given_where_phases_do_not_count(tmp_path: Path) -> None:
    result = two_jobs(tmp_path, contention="mean")
    assert result.table("cassini").aligned.tolist() == [0]
    assert result.table("placements").stalled_s.sum() == 0


def test_another_placement_of_equal_counts_shares_nothing(tmp_path: Path) -> None:
    # `a` takes rack 0 and half of rack 1, `b` the other half and rack 2. Both want more than half
    # of the uplink of rack 1. Two servers of rack 2 and one of rack 3 are as good for `b`.
    jobs = [f"3,{HEAVY}"] * 2
    host = {"host": {"placement": "any"}}
    result = ran(
        tmp_path,
        jobs,
        racks=4,
        contention="fluid",
        policy="cassini(fifo)",
        policy_options=host,
    )
    (choice,) = result.table("cassini").to_dict("records")
    assert choice["chosen"] > 0 and choice["score"] == 1.0 and choice["links"] == 0
    assert iterations(result).max() == 1.0
    kept = {"candidates": 1, **host}
    shared = ran(
        tmp_path, jobs, racks=4, contention="fluid", policy="cassini(fifo)", policy_options=kept
    )
    assert iterations(shared).max() > 1.2


def test_jobs_that_gain_too_little_are_left_alone(tmp_path: Path) -> None:
    # Both send for more than half of the time, so that hardly any rotation is better than another.
    jobs = [f"3,{HEAVY}"] * 2

    def aligned(least_gain: float) -> int:
        options = {"candidates": 1, "least_gain": least_gain, "host": {"placement": "any"}}
        result = ran(
            tmp_path, jobs, contention="fluid", policy="cassini(fifo)", policy_options=options
        )
        return int(result.table("cassini").aligned.sum())

    assert (aligned(0.9), aligned(-1)) == (0, 2)


def test_the_job_that_stays_keeps_its_turn_when_another_leaves(tmp_path: Path) -> None:
    # A chain: `a` and `b` meet on the uplink of rack 1, `b` and `c` on that of rack 2.
    jobs = [
        f"{gpus},vgg16@batch=64,{iterations},0.2"
        for gpus, iterations in ((3, 500), (2, 4000), (3, 4000))
    ]
    result = ran(
        tmp_path,
        jobs,
        racks=4,
        contention="fluid",
        contention_options={"jitter": 0.0},
        policy="cassini(fifo)",
        policy_options={"candidates": 1, "host": {"placement": "any"}},
    )
    choices = result.table("cassini")
    assert choices.jobs.tolist() == [3, 2]
    assert choices.aligned.tolist() == [3, 0]
    assert iterations(result).max() < 1.01


def test_a_common_multiple_out_of_reach_is_snapped_and_counted(tmp_path: Path) -> None:
    # Iterations of 200 and 601 ms have a multiple of two minutes; below, one of half an hour.
    jobs = ["3,vgg16@batch=64,200,0.2", "3,vgg16@batch=64,200,0.601"]
    options = {"periods": "lcm", "candidates": 1, "host": {"placement": "any"}, "least_gain": -1}
    within = ran(tmp_path, jobs, policy="cassini(fifo)", contention="phase", policy_options=options)
    assert set(within.tables["cassini"]["snapped"]) == {0}

    jobs = ["3,vgg16@batch=64,200,1.2011", "3,vgg16@batch=64,200,1.4977"]
    beyond = ran(tmp_path, jobs, policy="cassini(fifo)", contention="phase", policy_options=options)
    assert set(beyond.tables["cassini"]["snapped"]) == {1}
    snapped = {**options, "periods": "snap"}
    same = ran(tmp_path, jobs, policy="cassini(fifo)", contention="phase", policy_options=snapped)
    assert beyond.table("placements").equals(same.table("placements"))


def test_circles_say_who_sends_when(tmp_path: Path) -> None:
    rows = two_jobs(tmp_path).table("circles")
    assert list(rows.link) == ["rack 1", "rack 1"]
    assert list(rows.job_id) == ["a", "b"]
    assert list(rows.score) == [1.0, 1.0]
    assert (rows.bytes_per_s * 2 > rows.capacity_bytes_per_s).all()
    first, second = rows.shift_s
    sends_until = second - rows.up_s[1] + rows.iteration_s[1]
    assert first == 0
    assert rows.up_s[0] <= second  # a ends at 0, b starts at shift - up
    assert sends_until <= rows.turn_s[0] + 1e-9 + rows.up_s[0]


def test_turns_are_written_down_as_long_as_they_last(tmp_path: Path) -> None:
    jobs = [f"3,{LIGHT}", "3,vgg16@batch=64,500,0.2"]
    options = {"candidates": 1, "host": {"placement": "any"}}
    run = ran(tmp_path, jobs, policy="cassini(fifo)", contention="phase", policy_options=options)
    rows = run.table("turns").set_index("job_id")
    finish = run.table("jobs").set_index("job_id").finish_s
    assert rows.start_s.eq(0).all()
    assert (rows.end_s == finish["b"]).all()
    assert "turns" not in ran(tmp_path, jobs, policy="fifo", contention="phase").tables


def test_corrections_are_written_down(tmp_path: Path) -> None:
    per_min = [
        two_jobs(tmp_path, contention="phase", contention_options={"jitter": jitter})
        .table("turns")
        .corrections_per_min.sum()
        for jitter in (0.0, 0.02)
    ]
    assert per_min[0] == 0
    assert per_min[1] > 5


def test_a_run_repeats_exactly(tmp_path: Path) -> None:
    one, two = (two_jobs(tmp_path, contention="phase") for _ in range(2))
    for table in ("placements", "cassini"):
        assert one.table(table).equals(two.table(table))


# -- options -------------------------------------------------------------------------------


def test_named_rows_are_the_wrapper_around_their_host() -> None:
    sets = ["policy=themis-cassini", "policy.angle_deg=10", "policy.host.lease_s=600"]
    policy = build_policy(load_scenario(None, {}, sets))
    assert isinstance(policy, Cassini)
    assert (policy.options.angle_deg, policy.host.options.lease_s) == (10, 600)  # type: ignore[attr-defined]
    assert type(policy.host) is type(open_policy("themis", {}))
    assert policy.lease == policy.host.lease


def test_options_stand_in_a_scenario_and_in_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "policy: dally-cassini\n"
        "policy_options: {choose: centre, loops: discard, host: {lease_s: 60}}\n"
    )
    policy = build_policy(load_scenario(file, {}, []))
    assert isinstance(policy, Cassini)
    assert (policy.options.choose, policy.options.loops) == ("centre", "discard")
    assert policy.host.lease == 60 * 10**9
    grid = tmp_path / "experiment.yaml"
    grid.write_text(
        "name: cassini\nversion: 1\nsummary: s\nbase: {policy: cassini(tiresias)}\n"
        "grid: {policy.candidates: [1, 10], policy.host.lease_s: [600]}\n"
    )
    options = [run.scenario.policy_options for run in runs(load_experiment(grid))]
    assert options == [{"candidates": n, "host": {"lease_s": 600}} for n in (1, 10)]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("cassini(themi)", {}, "unknown policy 'themi': did you mean 'themis'"),
        ("cassini", {}, r"write cassini\(POLICY\)"),
        ("cassini()", {}, r"write cassini\(POLICY\)"),
        ("cassini( )", {}, r"write cassini\(POLICY\)"),
        ("quota(random-placement())", {}, r"write random-placement\(POLICY\)"),
        ("themis-cassini(las)", {}, "write themis-cassini"),
        ("themis-cassini", {"host": {"leas_s": 1}}, "policy themis: unknown setting 'leas_s'"),
        ("themis-cassini", {"candidates": 0}, "candidates"),
        ("themis-cassini", {"choose": "last"}, "choose"),
        ("themis-cassini", {"angle_deg": 7}, "divisor of 360"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_policy(Scenario(policy=name, policy_options=options))


def test_all_of_a_group_show_the_pace_of_its_slowest_and_are_not_corrected(tmp_path: Path) -> None:
    # In isolation their iterations differ by 4 %.
    jobs = ["3,vgg16@batch=64,1500,0.2", "3,vgg16@batch=64,1500,0.21"]
    options = {"candidates": 1, "host": {"placement": "any"}}
    run = ran(tmp_path, jobs, policy="cassini(fifo)", contention="phase", policy_options=options)
    turns = run.table("turns")
    together = run.table("placements").query("end_s <= @turns.end_s.min()")
    slowest_s = together.alone_iteration_s.max()
    assert together.alone_iteration_s.min() < 0.97 * slowest_s
    assert together.job_id.nunique() == len(jobs)
    assert together.iteration_s.to_numpy() == pytest.approx(slowest_s, rel=3e-3)
    assert turns.corrections_per_min.max() < 2


def elastic_pair(folder: Path, policy: str, noise: str, **options: Any) -> Result:
    """Two jobs that fill a rack and a part of the next one; their batch follows the noise scale."""
    (folder / "goodput.yaml").write_text(f"""
name: made up
summary: for a test
source: made up
models:
  vgg16: {{batch: 64, batch_max: 256, per_gpu_min: 16, per_gpu_max: 256, alpha_c: 0.02,
    beta_c: 0.003, alpha_r: 0.01, alpha_n: 0.05, gamma: 2, noise: {noise}}}
""")
    (folder / "jobs.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,gpus_min,gpus_max\n"
        "a,0,4,vgg16,3000,0.2,4,4\nb,0,4,vgg16,3000,0.2,4,4\n"
    )
    settings = {
        "trace": str(folder / "jobs.csv"),
        "goodput": str(folder / "goodput.yaml"),
        "fabric": "cassini-testbed",
        "fabric_options": {"rack": {"oversubscription": 3}},
        "racks": 3,
        "machines_per_rack": 3,
        "gpus_per_machine": 1,
        "contention": "fluid",
        "contention_options": {"jitter": 0.0},
    }
    return simulate(Scenario(**settings, policy=policy, policy_options=options), check=True)


def test_another_batch_is_another_circle(tmp_path: Path) -> None:
    def slowdown(result: Result) -> float:
        rows = result.table("placements")
        large = rows[(rows.gpus == 4) & (rows.batch == 256)]
        return float((large.iteration_s / large.alone_iteration_s).max())

    rises = "{0: 50, 0.5: 5000}"
    host = elastic_pair(tmp_path, "pollux", rises)
    aligned = elastic_pair(tmp_path, "cassini(pollux)", rises)
    at_64, at_256 = aligned.table("circles").groupby("time_s", sort=True).iteration_s
    assert at_256[1].min() > 2 * at_64[1].max()
    assert slowdown(host) > 1.08
    assert slowdown(aligned) < 1.005


def test_a_turn_ends_where_another_batch_gains_too_little(tmp_path: Path) -> None:
    # Batches of 256 samples gain .11 by taking turns, those of 64 only .06.
    falls = "{0: 5000, 0.5: 50}"
    result = elastic_pair(tmp_path, "cassini(pollux)", falls, least_gain=0.08)
    (changed_s,) = set(result.table("turns").end_s)
    rows = result.table("placements")
    assert set(rows[rows.end_s <= changed_s].batch.tail(2)) == {256}
    assert set(rows[rows.start_s >= changed_s].batch) == {64}

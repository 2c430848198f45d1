"""Does Gavel keep the shares of time that its programs give, on the kinds that jobs accept?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support import Outage, S, job, on

import artist
from artist.cluster.tree import ClusterTree, nested
from artist.config import Scenario
from artist.contract import Restore, Withdraw
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, ConfigError
from artist.estimates.backends import NoCommunication
from artist.estimates.speeds import SpeedsOfRun, SpeedTable
from artist.network.rates.isolated import AloneRates
from artist.policies.gavel.allocation import Jobs, makespan
from artist.run import open_policy
from artist.units import seconds
from artist.workload.job import Job

TABLE = SpeedTable(
    name="mine",
    summary="",
    reference="new",
    source="made up",
    speeds={
        "any": {"new": {1: 2}, "old": {1: 1}},
        "same": {"new": {1: 1}, "old": {1: 1}},
        "odd": {"new": {1: 1}, "old": {1: 3}},
    },
)


def cluster(*kinds: str, gpus: int = 1) -> ClusterTree:
    """A machine of each kind in one rack."""
    return nested(("machine", "rack", "network"), [[gpus] * len(kinds)], kinds)


def ran(
    jobs: list[Job],
    tree: ClusterTree,
    policy: str = "gavel",
    prices: dict[str, float] | None = None,
    events: Outage | None = None,
    **options: Any,
) -> Rows:
    none = NoCommunication()
    rates = AloneRates(tree, none.estimate, none.everywhere, SpeedsOfRun(TABLE, tree))
    simulator = Simulator(tree, jobs, rates, events=events, check=True)
    return simulator.run(open_policy(policy, options, prices=prices))


def finishes(rows: Rows) -> dict[str, float]:
    return {row.job.id: seconds(row.finish) for row in rows.jobs}


def kinds_by_job(rows: Rows, tree: ClusterTree) -> dict[str, list[str]]:
    """The kind of each stay, in the order of time."""
    names = {row.handle: row.job.id for row in rows.jobs}
    stays: dict[str, list[str]] = {}
    for row in sorted(rows.placements, key=lambda row: row.start):
        kind = tree.kinds[tree.machine_of[row.placement.leaves[0]]]
        stays.setdefault(names[row.handle], []).append(kind)
    return stays


def test_two_jobs_on_one_gpu_take_turns_by_rounds() -> None:
    rows = ran([job("a", iterations=3600), job("b", iterations=3600)], cluster("new"))
    assert finishes(rows) == {"a": 19 * 360.0, "b": 20 * 360.0}
    lengths = {seconds(row.end - row.start) for row in rows.placements}
    assert lengths == {360.0}


def test_on_one_kind_jobs_get_equal_gpu_time_whatever_gangs_want() -> None:
    """As under LAS: gangs of 2, 2 and 4 on four GPUs have a third of the GPU time each."""
    jobs = [job("a", 2, 10**6), job("b", 2, 10**6), job("c", 4, 10**6)]
    tree, none, policy = cluster("new", gpus=4), NoCommunication(), open_policy("gavel", {})
    running = Simulator(tree, jobs, AloneRates(tree, none.estimate, none.everywhere))
    while (view := running.next_question()) is not None and seconds(view.now) < 300 * 360:
        running.answer(policy.decide(view))
    assert view is not None
    states = [*view.waiting.values(), *view.running.values()]
    had = [state.service_gpu_s(view.now) for state in states]
    assert had == pytest.approx([300 * 360 * 4 / 3] * 3, rel=0.02)


def test_jobs_that_are_faster_on_one_kind_take_turns_there() -> None:
    jobs = [job("a", iterations=7200), job("b", iterations=7200)]
    tree = cluster("old", "new")
    stays = kinds_by_job(ran(jobs, tree), tree)
    # Each has half of the time on each kind: they swap every round.
    assert stays["a"][:6] == ["new", "old"] * 3
    assert stays["b"][:6] == ["old", "new"] * 3


@pytest.mark.parametrize("objective", ["las", "ftf"])
def test_a_gang_gets_more_of_what_others_need_not_at_the_vertex(objective: str) -> None:
    jobs = [*(job(name, iterations=20_000) for name in "abc"), job("gang", 4, 20_000)]
    tree = cluster("old", "new", gpus=4)
    inside, most = (
        finishes(ran(jobs, tree, objective=objective, optimum=optimum))
        for optimum in ("inner", "vertex")
    )
    assert most["gang"] < inside["gang"]
    assert most["a"] > inside["a"]


def test_jobs_that_prefer_different_kinds_stay_on_them() -> None:
    jobs = [job("a", iterations=7200), job("b", iterations=7200, model="odd")]
    tree = cluster("old", "new")
    rows = ran(jobs, tree)
    assert kinds_by_job(rows, tree) == {"a": ["new"], "b": ["old"]}
    assert finishes(rows) == {"a": 7200.0, "b": 2400.0}


def test_makespan_gives_the_longer_job_the_faster_kind() -> None:
    # 1 + a and 2 - a iterations a second of compute time .5, if a is the share of `long` on new:
    # so that 3 x the steps take as long, a = 1.25, and `long` has it all the time.
    jobs = [job("short", iterations=3600), job("long", iterations=10800)]
    tree = cluster("old", "new")
    rows = ran(jobs, tree, "gavel-makespan", reset_s=0.0)
    assert kinds_by_job(rows, tree)["long"] == ["new"]
    assert finishes(rows) == {"short": 7200.0, "long": 10800.0}


@pytest.mark.parametrize("seed", range(2))
def test_a_run_takes_hardly_longer_than_the_shortest_makespan(seed: int) -> None:
    """No run can beat the optimum of the program at its begin, in which jobs may be cut finely."""
    draw = Random(seed)
    jobs = [
        job(
            f"j{i}",
            draw.choice([1, 1, 1, 2, 4]),
            round(120 * 10 ** draw.uniform(1.5, 3)),
            model=draw.choice(["any", "same", "odd"]),
        )
        for i in range(40)
    ]
    relative = {"any": (0.5, 1.0), "same": (1.0, 1.0), "odd": (3.0, 1.0)}
    speeds = np.array([relative[one.model] for one in jobs])
    gpus = np.array([one.gpus for one in jobs], float)
    steps = np.array([one.iterations for one in jobs], float)
    shortest = makespan(Jobs(speeds, gpus, np.array([8.0, 8.0])), steps).value
    tree = cluster("old", "new", gpus=8)
    took = max(finishes(ran(jobs, tree, "gavel-makespan")).values())
    assert shortest <= took < 1.03 * shortest


def test_fifo_gives_the_first_job_its_fastest_kind_and_lets_none_pass() -> None:
    jobs = [job("a", 2, 3600), job("b", 4, 3600), job("c", 1, 3600), job("d", 4, 3600)]
    tree = cluster("old", "new", gpus=4)
    rows = ran(jobs, tree, objective="fifo")
    # `a` has half of the new machine, `b` all of the old one, and `c` what is left of the new. Once
    # these have finished, `b` moves there, and `d` gets its GPUs.
    assert kinds_by_job(rows, tree) == {
        "a": ["new"],
        "b": ["old", "new"],
        "c": ["new"],
        "d": ["old", "new"],
    }
    jobs = [job("a", 3, 3600), job("b", 3, 3600), job("c", 2, 3600), job("d", 1, 3600)]
    starts = {row.job.id: seconds(row.start) for row in ran(jobs, tree, objective="fifo").jobs}
    assert starts["a"] == starts["b"] == 0.0 < starts["c"] <= starts["d"]


def test_smaller_jobs_make_room_for_a_larger_one_that_comes() -> None:
    jobs = [job("short", 3, 100), job("a", 1, 4000), job("b", 1, 4000)]
    tree = cluster("new", "new", gpus=4)
    rows = ran([*jobs, job("large", 4, 1000, arrival_s=200.0)], tree)
    # `short` leaves `a` and `b` on a machine each. `large` gets one of them, and `a` moves.
    names = {row.handle: row.job.id for row in rows.jobs}
    stays: dict[str, list[set[int]]] = {}
    for row in sorted(rows.placements, key=lambda row: row.start):
        machines = {tree.machine_of[leaf] for leaf in row.placement.leaves}
        stays.setdefault(names[row.handle], []).append(machines)
    assert stays == {"short": [{0}], "a": [{0}, {1}], "b": [{1}], "large": [{0}]}


def test_a_job_that_comes_during_a_round_waits_for_the_next() -> None:
    jobs = [job("a", 1, 1000), job("b", 1, 100, arrival_s=100.0)]
    rows = ran(jobs, cluster("new", gpus=4))
    assert {row.job.id: seconds(row.start) for row in rows.jobs} == {"a": 0.0, "b": 360.0}
    reasons = [row.reason for row in rows.wait_reasons if row.reason]
    assert reasons == ["jobs start at the beginning of a round of 6 min"]


def test_a_round_begins_at_once_on_an_idle_cluster() -> None:
    jobs = [job("a", 1, 10), job("b", 1, 10, arrival_s=100.0)]
    assert finishes(ran(jobs, cluster("new"))) == {"a": 10.0, "b": 110.0}


def test_a_job_whose_kinds_are_ignored_is_on_each_in_every_second_round() -> None:
    tree = cluster("old", "new")
    rows = ran([job("a", iterations=360 * 600, model="same")], tree, aware=False)
    rounds = Counter[str]()
    for row in rows.placements:
        kind = tree.kinds[tree.machine_of[row.placement.leaves[0]]]
        rounds[kind] += round(seconds(row.end - row.start) / 360)
    assert rounds.total() == 600
    assert 250 < rounds["old"] < 350


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", ["las", "ftf", "makespan", "fifo", "cost"])
def test_random_runs_are_lawful_and_the_same_twice(objective: str, seed: int) -> None:
    draw = Random(seed)
    jobs = [
        job(
            f"j{i}",
            draw.choice([1, 1, 2, 4]),
            draw.randint(1, 4000),
            arrival_s=float(draw.randint(0, 6000)),
            model=draw.choice(["any", "same", "odd"]),
            gpu_kinds=draw.choice([(), (), ("new",), ("old", "new")]),
        )
        for i in range(20)
    ]
    jobs.sort(key=lambda one: one.arrival_s)
    tree = cluster("old", "new", "new", gpus=4)
    options: dict[str, Any] = {"objective": objective, "aware": seed % 4 != 3}
    if objective == "cost":
        options["prices"] = {"old": 1.0, "new": 2.0}
    first = ran(jobs, tree, **options)
    assert first == ran(jobs, tree, **options)
    accepted = {one.id: one.gpu_kinds or ("old", "new") for one in jobs}
    for name, kinds in kinds_by_job(first, tree).items():
        assert set(kinds) <= set(accepted[name])
    for row in first.placements:
        assert len({tree.kinds[tree.machine_of[leaf]] for leaf in row.placement.leaves}) == 1
    assert Counter(row.job.id for row in first.jobs) == Counter(one.id for one in jobs)


@pytest.mark.parametrize(("dear", "kind"), [(1.9, "new"), (2.1, "old")])
def test_under_cost_a_free_kind_that_is_too_dear_stays_free(dear: float, kind: str) -> None:
    # The new kind is twice as fast.
    prices = {"old": 1.0, "new": dear}
    rows = ran([job("a", iterations=9)], cluster("old", "new"), objective="cost", prices=prices)
    assert kinds_by_job(rows, cluster("old", "new")) == {"a": [kind]}


@pytest.mark.parametrize("objective", ["cost", "fifo"])
def test_a_job_whose_kind_has_left_service_gets_another(objective: str) -> None:
    jobs = [job("a", iterations=2000, model="odd")]  # three times as fast on the old kind
    rows = ran(
        jobs,
        cluster("old", "new"),
        objective=objective,
        prices={"old": 1.0, "new": 1.0},
        events=Outage(Withdraw(500 * S, on({0: 1}))),
    )
    assert kinds_by_job(rows, cluster("old", "new")) == {"a": ["old", "new"]}


def test_under_cost_a_job_moves_to_a_cheaper_kind_that_is_back_in_service() -> None:
    # It has the fastest kind, and nothing waits. Shares are computed every 1,920 s, rounds last
    # 360 s.
    out = Withdraw(0, on({0: 1})), Restore(500 * S, on({0: 1}))
    tree, prices = cluster("old", "new"), {"old": 1.0, "new": 2.1}
    jobs = [job("a", iterations=4000)]
    rows = ran(jobs, tree, objective="cost", prices=prices, events=Outage(*out))
    assert kinds_by_job(rows, tree) == {"a": ["new", "old"]}
    assert rows.placements[1].start == 2160 * S


@pytest.mark.parametrize(("dear", "kind"), [(2.9, "new"), (3.1, "old")])
def test_cost_weighs_speed_by_the_price_of_a_kind(dear: float, kind: str) -> None:
    # a does 1 iteration a second on the new kind and .5 on the old one, b .25 on both:
    # 1 / dear + .25 is more than .5 + .25 / dear up to a price of 3.
    jobs = [job("a", iterations=9), job("b", iterations=9, model="same", compute_s=4.0)]
    prices = {"old": 1.0, "new": dear}
    rows = ran(jobs, cluster("old", "new"), objective="cost", prices=prices)
    assert kinds_by_job(rows, cluster("old", "new"))["a"][0] == kind


# -- whole runs, and bad input ---------------------------------------------------------

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,gpu_kinds\n"


def scenario(folder: Path, *rows: str, **settings: Any) -> Scenario:
    trace = folder / "jobs.csv"
    trace.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    defaults = {"cluster": "k80-p100-v100", "speeds": "gavel", "backend": "none"}
    return Scenario(trace=str(trace), **{"policy": "gavel", **defaults, **settings})


def test_a_run_says_that_the_policy_reads_kinds_and_uses_the_fastest(tmp_path: Path) -> None:
    rows = ("a,0,4,resnet50,1000,1,", "b,0,1,recoder@batch=512,1000,1,k80 v100")
    made = scenario(tmp_path, *rows, policy_options={"objective": "fifo"})
    result = artist.simulate(made, cache=False, check=True)
    assert result.summary["reads_gpu_kinds"] == "yes"
    # Four GPUs train ResNet-50 faster on P100s than on V100s, and `b` accepts no P100.
    placed = result.tables["placements"]
    kinds = dict(zip(placed["job_id"], placed["gpu_kind"], strict=True))
    assert kinds == {"a": "p100", "b": "k80"}


def test_failures_of_all_machines_of_a_kind_end_no_run(tmp_path: Path) -> None:
    log = tmp_path / "down.yaml"
    outages = [
        f"  - {{kind: machine, unit: {unit}, at_s: 500, duration_s: 5000}}"
        for unit in range(18, 27)
    ]
    log.write_text("\n".join(["outages:", *outages, ""]), encoding="utf-8")
    rows = [f"j{i},{100 * i},8,resnet50,5000,.3," for i in range(12)]
    made = scenario(tmp_path, *rows, "v,0,8,resnet50,5000,.3,v100", failures=str(log))
    result = artist.simulate(made, cache=False, check=True)
    assert result.summary["jobs_finished"] == 13
    assert artist.simulate(made, cache=False).summary["makespan_s"] == result.summary["makespan_s"]


def test_a_failure_before_the_first_arrival_changes_nothing(tmp_path: Path) -> None:
    """The policy is asked before it knows any job."""
    log = tmp_path / "down.csv"
    log.write_text("unit,from,until\nmachine 0,5,8\n", encoding="utf-8")
    row = "a,10,4,resnet50,1000,1,"
    plain = artist.simulate(scenario(tmp_path, row), cache=False)
    failed = artist.simulate(scenario(tmp_path, row, failures=str(log)), cache=False, check=True)
    assert failed.placements.start_s.tolist() == plain.placements.start_s.tolist() == [10.0]


def test_fair_shares_go_on_while_kinds_are_out_of_service(tmp_path: Path) -> None:
    """First the V100s, on which alone `v` runs; then, for a while, all kinds."""
    log = tmp_path / "down.yaml"
    outages = [(2, 500, 5000), (0, 3000, 500), (1, 3000, 500)]
    lines = [
        f"  - {{kind: rack, unit: {unit}, at_s: {at_s}, duration_s: {lasts_s}}}"
        for unit, at_s, lasts_s in outages
    ]
    log.write_text("\n".join(["outages:", *lines, ""]), encoding="utf-8")
    rows = [f"j{i},{100 * i},16,resnet50,5000,.3," for i in range(8)]
    made = scenario(
        tmp_path, *rows, "v,600,8,resnet50,500,.3,v100", policy="gavel-ftf", failures=str(log)
    )
    placed = artist.simulate(made, cache=False, check=True).tables["placements"]
    stays = list(zip(placed["job_id"], placed["start_s"], placed["end_s"], strict=True))
    assert min(start_s for name, start_s, _ in stays if name == "v") >= 5500
    assert not any(start_s < 3500 and end_s > 3000 for _, start_s, end_s in stays)
    assert any(500 < start_s < 3000 for _, start_s, _ in stays)


@pytest.mark.parametrize(
    ("row", "settings", "words"),
    [
        ("a,0,37,resnet50,10,1,", {}, "wants 37 GPUs of one kind .* no such kind has that many"),
        ("a,0,1,resnet50,10,1,h100", {}, "'h100', which the cluster lacks"),
        ("a,0,40,resnet50,10,1,k80", {}, "wants 40 GPUs of kind k80, but the cluster has 36"),
        (
            "a,0,1,resnet50,10,1,",
            {"policy_options": {"objective": "cost"}},
            r"the price of a GPU-hour .* --set 'prices=\{.*\}'$",  # as a shell takes it
        ),
        ("a,0,1,resnet50,10,1,", {"policy_options": {"round_s": 0}}, "round_s"),
        ("a,0,1,resnet50,10,1,", {"policy_options": {"objective": "max"}}, "objective"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    tmp_path: Path, row: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArtistError, match=words) as error:
        artist.simulate(scenario(tmp_path, row, **settings), cache=False)
    assert "\n" not in str(error.value)
    assert error.value.exit_code in (2, 3)  # the user's mistake, not the policy's


def test_the_extra_is_named_where_scipy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artist.io.optional_libraries.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"policy gavel needs scipy.*artist-sim\[exact\]"):
        open_policy("gavel", {})

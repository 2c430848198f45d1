"""Do jobs get GPUs of the kinds that they accept, and are quotas by kind kept?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support import job

import artist
from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree, nested
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError
from artist.policies.mast.books import Books
from artist.policies.mast.cells import Cells
from artist.policies.quota.ledger import LAST_CLASS
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import seconds
from artist.workload.job import Job
from artist.workload.tenants import Tenant

LEVELS = ("machine", "rack", "cluster", "region", "network")


def two_kinds() -> ClusterTree:
    """Region 0: a cluster of two new machines. Region 1: one of two new, one of two old ones."""
    new = old = [[4, 4]]
    return nested(LEVELS, [[new], [new, old]], ("new", "new", "new", "new", "old", "old"))


def ran(
    jobs: Sequence[Job], cell: int = 6, tenants: Mapping[str, Tenant] | None = None
) -> tuple[Rows, ClusterTree]:
    tree = two_kinds()
    policy = open_policy("mast", {"cell": cell}, FIRST_DRAWS, tenants or {})
    return Simulator(tree, jobs, LevelRates(tree), check=True).run(policy), tree


def kinds_of(rows: Rows, tree: ClusterTree) -> dict[str, set[str]]:
    """The kinds of GPUs that each job held."""
    names = {row.handle: row.job.id for row in rows.jobs}
    held: dict[str, set[str]] = {}
    for row in rows.placements:
        kinds = {tree.kinds[tree.machine_of[leaf]] for leaf in row.placement.leaves}
        held.setdefault(names[row.handle], set()).update(kinds)
    return held


def drawn(seed: int) -> list[Job]:
    """Jobs of two tenants that accept one kind, the other, or both in some order."""
    draw = Random(seed)
    accepted = [(), ("new",), ("old",), ("old", "new"), ("new", "old")]
    return [
        job(
            str(number),
            draw.choice([1, 2, 4, 8]),
            draw.randint(20, 900),
            arrival_s=float(10 * number),
            tenant=draw.choice(["ads", "web"]),
            priority=draw.choice([1, 4, 7]),
            gpu_kinds=draw.choice(accepted),
        )
        for number in range(40)
    ]


def test_kinds_of_free_gpus_are_the_reason_from_the_first_question_on() -> None:
    # first and wide have all new GPUs. A pass comes only after 300 s.
    jobs = [
        job("first", 8, 400, gpu_kinds=("new",)),
        job("wide", 8, 1000, gpu_kinds=("new",)),
        job("late", 4, 9, gpu_kinds=("new",), arrival_s=10.0),
    ]
    rows, _ = ran(jobs)
    told = [(seconds(row.tick), row.reason, row.cause) for row in rows.wait_reasons]
    words = "0 of 8 free GPUs were GPUs of kind new"
    assert told == [(10.0, words, "gpu_kind")]


def test_the_reason_names_the_kind_to_which_a_quota_binds_a_job() -> None:
    # two is within its quota for old GPUs only, and other holds all of these until 500.
    tenants = {
        "ads": Tenant(quota={"new": 4, "old": 8}),
        "web": Tenant(quota={"new": 0, "old": 8}),
    }
    jobs = [
        job("other", 8, 500, tenant="web", gpu_kinds=("old",)),
        job("one", 4, 900, tenant="ads", gpu_kinds=("new",), arrival_s=1.0),
        job("two", 4, 9, tenant="ads", gpu_kinds=("new", "old"), arrival_s=2.0),
    ]
    rows, _ = ran(jobs, tenants=tenants)
    told = [(seconds(row.tick), row.reason, row.cause) for row in rows.wait_reasons]
    words = "0 of 12 free GPUs were GPUs of kind old, to which its quota binds it"
    assert told == [(2.0, words, "gpu_kind")]


def test_kinds_are_no_reason_any_more_where_too_few_gpus_are_free_in_all() -> None:
    # From 20 on no GPU is free.
    jobs = [
        job("a", 8, 400, gpu_kinds=("new",)),
        job("b", 8, 400, gpu_kinds=("new",)),
        job("late", 4, 9, gpu_kinds=("new",), arrival_s=10.0),
        job("old", 8, 900, gpu_kinds=("old",), arrival_s=20.0),
    ]
    told = [(seconds(row.tick), row.cause) for row in ran(jobs)[0].wait_reasons if row.reason]
    lapsed = [seconds(row.tick) for row in ran(jobs)[0].wait_reasons if not row.reason]
    assert (told, lapsed) == ([(10.0, "gpu_kind")], [20.0])


@pytest.mark.parametrize("cell", [1, 3, 5, 6, 9])
def test_no_job_gets_gpus_of_a_kind_that_it_does_not_accept(cell: int) -> None:
    for seed in range(4):
        jobs = drawn(seed)
        rows, tree = ran(jobs, cell)
        held = kinds_of(rows, tree)
        assert len(rows.jobs) == len(jobs)
        for one in jobs:
            assert not one.gpu_kinds or held[one.id] <= set(one.gpu_kinds)


def test_a_job_goes_to_the_kind_that_is_free_and_waits_for_none_that_it_does_not_accept() -> None:
    jobs = [
        job("east", 8, 100, gpu_kinds=("new",), priority=1),
        job("west", 8, 100, gpu_kinds=("new",), priority=1),
        job("either", 8, 50, gpu_kinds=("new", "old"), arrival_s=1.0, priority=1),
        job("only-new", 8, 50, gpu_kinds=("new",), arrival_s=2.0, priority=1),
    ]
    rows, tree = ran(jobs)
    begun = {row.job.id: seconds(row.start) for row in rows.jobs}
    assert kinds_of(rows, tree)["either"] == {"old"}
    assert begun["either"] == 1.0
    assert begun["only-new"] >= 100.0  # though the old cluster is free from 51 on


def test_a_plan_of_another_kind_wins_if_it_preempts_no_job() -> None:
    jobs = [
        job("low-1", 8, 500, gpu_kinds=("new",), priority=7),
        job("low-2", 8, 500, gpu_kinds=("new",), priority=7),
        job("urgent", 8, 50, gpu_kinds=("new", "old"), arrival_s=10.0, priority=1),
        job("second", 8, 50, gpu_kinds=("new", "old"), arrival_s=11.0, priority=1),
    ]
    rows, tree = ran(jobs)
    held = kinds_of(rows, tree)
    assert (held["urgent"], held["second"]) == ({"old"}, {"new"})
    assert sum(row.preemptions for row in rows.jobs) == 1


def test_a_job_that_accepts_many_kinds_has_a_reason_for_its_wait() -> None:
    """The names of its kinds would be longer than a reason may be."""
    others = tuple(f"{number:040}" for number in range(9))
    jobs = [replace(one, gpu_kinds=("new", "old", *others)) for one in drawn(0)]
    rows, _ = ran(jobs, tenants={name: Tenant(quota=8) for name in ("ads", "web")})
    assert any("free ones in one cluster of its kinds" in row.reason for row in rows.wait_reasons)


@pytest.mark.parametrize("cell", [6, 9])
def test_a_quota_by_kind_is_charged_by_kind(cell: int) -> None:
    tenants = {
        "ads": Tenant.model_validate({"quota": {"new": 8}}),
        "web": Tenant.model_validate({"quota": {"new": 8, "old": 8}}),
    }
    jobs = [
        job("ads-new", 8, 500, tenant="ads", priority=1, gpu_kinds=("new",)),
        job("ads-old", 8, 500, tenant="ads", priority=1, gpu_kinds=("old",)),
        job("ads-more", 8, 500, tenant="ads", priority=1, gpu_kinds=("new",)),
        job("web-old", 8, 50, tenant="web", priority=7, arrival_s=10.0, gpu_kinds=("old",)),
        job("web-new", 8, 50, tenant="web", priority=7, arrival_s=20.0, gpu_kinds=("new",)),
    ]
    rows, _ = ran(jobs, cell, tenants)
    fell = {row.job.id: row.preemptions for row in rows.jobs}
    # `ads` is above its quota with its second job on new GPUs, and with any on old ones.
    assert fell == {"ads-new": 0, "ads-old": 1, "ads-more": 1, "web-old": 0, "web-new": 0}


def test_no_job_within_a_quota_by_kind_waits_for_what_jobs_above_quota_hold() -> None:
    """After every answer. Within: by the class of the last pass (docs/decisions/0027)."""
    tenants = {
        "ads": Tenant.model_validate({"quota": {"new": 12, "old": 6}}),
        "web": Tenant.model_validate({"quota": {"new": 10, "old": 6}}),
    }
    waits = 0
    for seed in range(12):
        tree = two_kinds()
        policy = open_policy("mast", {}, FIRST_DRAWS, tenants)

        def after_answers(running: Simulator, policy=policy, tree=tree) -> None:
            nonlocal waits
            waits += _wronged(running, policy, tree)

        made = drawn(seed)
        simulator = Simulator(tree, made, LevelRates(tree), check=True)
        simulator.run(policy, after_answers)
    assert waits  # otherwise the test could not fail


def _wronged(running: Simulator, policy: object, tree: ClusterTree) -> int:
    """Waiting jobs within quota; for none of them jobs above quota hold enough of its kind."""
    ledger = policy._ledger  # type: ignore[attr-defined]
    view = running.view()
    for handle, entry in ledger.waiting.items():
        if not entry.within:
            continue
        for cluster in range(len(tree.levels[2])):
            first = tree.units_inside(2, cluster, tree.machine)[0]
            if tree.kinds[first] != entry.kind:
                continue
            could = view.free.of(2, cluster)
            for other, state in view.running.items():
                if ledger.running[other].rank == LAST_CLASS:
                    inside = set(tree.leaves(2, cluster))
                    pairs = zip(state.placement.leaves, state.placement.counts, strict=True)
                    could += sum(count for leaf, count in pairs if leaf in inside)
            assert could < entry.gpus, (handle, cluster)
    return sum(entry.within for entry in ledger.waiting.values())


HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,tenant,priority,gpu_kinds\n"


def scenario(folder: Path, row: str, policy: str = "mast", **settings: object) -> Scenario:
    trace = folder / "jobs.csv"
    trace.write_text(HEADER + row + "\n", encoding="utf-8")
    more = {"backend": "none", "cluster": "three-regions", **settings}
    return Scenario(trace=str(trace), policy=policy, **more)


@pytest.mark.parametrize(
    ("gpus", "kind", "words"),
    [
        (
            8,
            "h200",
            r"jobs.csv:2: job 'a' accepts .* 'h200', which the cluster lacks \(did you",
        ),
        (
            8,
            "h100|a100",
            r"'h100\|a100', which .* lacks \(separate kinds with spaces: 'h100 a100'\)",
        ),
        (128, "a100", "wants 128 GPUs of kind a100, but the cluster has 64; accept other kinds"),
        (64, "h100", "wants 64 GPUs of kind h100 in one cluster, and no cluster of one such kind"),
    ],
)
def test_a_job_of_a_kind_that_the_cluster_cannot_give_is_refused_in_one_sentence(
    tmp_path: Path, gpus: int, kind: str, words: str
) -> None:
    assert_refused(scenario(tmp_path, f"a,0,{gpus},any,10,1,,,{kind}"), words)


def test_a_cluster_without_kinds_names_none_of_its_own(tmp_path: Path) -> None:
    jobs = scenario(tmp_path, "a,0,8,any,10,1,,,h100", "fifo", cluster=None, racks=1)
    assert_refused(jobs, r"'h100', which the cluster lacks \(its machines state no kind\)")


@pytest.mark.parametrize(
    ("policy", "quota", "words"),
    [
        ("mast", {"h200": 8}, "'ads' has a quota of GPUs of kind 'h200', which the cluster lacks"),
        (
            "mast",
            {"a100": 65},
            "'ads' is 65 GPUs of kind a100, but the cluster has 64; give",
        ),
        ("quota(fifo)", {"a100": 8}, "no quotas by kind of GPUs, but tenant 'ads' has a quota of"),
        ("gavel", {"a100": 8}, "gavel keeps no quotas by kind of GPUs, but tenant 'ads' has a"),
        ("federated", {"a100": 8}, "quotas by kind of GPUs under policy.cell=5"),
    ],
)
def test_a_quota_by_kind_that_cannot_be_kept_is_refused_in_one_sentence(
    tmp_path: Path, policy: str, quota: dict[str, int], words: str
) -> None:
    tenants = {"ads": {"quota": quota}}
    assert_refused(scenario(tmp_path, "a,0,8,any,10,1,ads,1,", policy, tenants=tenants), words)


def assert_refused(made: Scenario, words: str) -> None:
    with pytest.raises(ArtistError, match=words) as error:
        artist.simulate(made, cache=False)
    assert "\n" not in str(error.value)
    assert error.value.exit_code in (2, 3)  # the user's mistake, not the policy's


def test_a_scenario_with_kinds_runs_and_its_quota_reads_back_as_it_was_written(
    tmp_path: Path,
) -> None:
    tenants = {"ads": {"quota": {"h100": 8, "a100": 16}}}
    made = scenario(tmp_path, "a,0,8,any,10,1,ads,1,a100", tenants=tenants)
    again = Scenario.model_validate(made.model_dump())
    assert again == made
    result = artist.simulate(made, cache=False, check=True)
    assert made.tenants["ads"].quota == 24
    assert result.summary["jobs_finished"] == 1


def test_a_federation_binds_by_the_load_of_the_kind_that_a_job_wants() -> None:
    """Region 1 has most GPUs, and least to do; of old GPUs only it has any."""
    cells = Cells(5, Books(two_kinds()))
    free = FreeGpus(two_kinds())

    def bound(handle: int, gpus: int, *kinds: str) -> int:
        (region,) = cells.where(free, handle, gpus, (0, 1), kinds).regions
        return region

    assert bound(0, 8, "old") == 1  # now all old GPUs are wanted, and half of region 1
    assert bound(1, 4, "new") == 0  # both regions have 8 new ones; a tie
    assert bound(2, 4, "new") == 1  # 4 of 8 wanted in region 0, none here; of all GPUs, half each

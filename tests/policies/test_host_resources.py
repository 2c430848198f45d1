"""Do jobs get GPUs only where machines have the CPU cores and memory, and wait otherwise?"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine.gpu_sharing import assert_reads_back, assert_refused, scenario_of
from failures.made import run_with_failures
from hypothesis import given, settings
from hypothesis import strategies as st
from support import (
    SELF_SUFFICIENT,
    EstimateByLevel,
    Script,
    job,
    make_policy,
    on,
    simulator,
    starts,
)
from support import run as run_script

from artist.api import simulate
from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import FreeHosts
from artist.cluster.placement import machine_counts
from artist.cluster.tree import ClusterTree, HostSizes, Nested, nested
from artist.cluster.visiting_order import VisitingOrder
from artist.config import Scenario
from artist.contract import Migrate, Policy, Preempt, Start, Wait
from artist.engine.compiled_core import core
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, PolicyError
from artist.network.rates.isolated import AloneRates
from artist.run.traces import READ_HOSTS
from artist.trace.read import read_trace
from artist.units import seconds
from artist.workload.job import Job

READERS = [name for name in SELF_SUFFICIENT if getattr(make_policy(name), "reads_hosts", False)]
LEVELS = ("machine", "rack", "network")
SOME = ["dally", "tiresias", "gandiva", "easy", "las", "srtf", "fifo"]


def machines(
    *racks: Nested, cores: int | None = 16, gib: int | None = 64, levels: Sequence[str] = LEVELS
) -> ClusterTree:
    """Machines that all have this many cores and this much memory."""
    count = len(nested(levels, racks).kinds)
    milli, mib = None if cores is None else 1000 * cores, None if gib is None else 1024 * gib
    return nested(levels, racks, hosts=HostSizes((milli,) * count, (mib,) * count))


def needs(name: str, gpus: int, cores: float = 0, gib: float = 0, **fields: Any) -> Job:
    milli, mib = round(1000 * cores), round(1024 * gib)
    return job(name, gpus, fields.pop("s", 100), cpu_milli=milli, memory_mib=mib, **fields)


def ran(tree: ClusterTree, jobs: Sequence[Job], policy: Policy) -> Rows:
    return simulator(tree, jobs, lease_s=lease_s(policy)).run(policy)


def lease_s(policy: Policy) -> float | None:
    return None if policy.lease is None else seconds(policy.lease)


@pytest.mark.parametrize("policy", READERS)
def test_the_second_of_two_jobs_waits_for_cores_and_starts_when_the_first_ends(policy: str) -> None:
    """Eight GPUs and 16 cores; each job wants 2 GPUs and 12 cores."""
    tree = machines([8])
    jobs = [needs("a", 2, 12), needs("b", 2, 12, arrival_s=10.0)]
    rows = ran(tree, jobs, make_policy(policy))
    assert starts(rows) == {"a": 0.0, "b": 100.0}
    told = {(seconds(row.tick), row.handle, row.cause) for row in rows.wait_reasons if row.reason}
    assert told == {(10.0, 1, "cpu_cores")}
    assert next(row.reason for row in rows.wait_reasons) == (
        "2 GPUs were free, but their machines had 4 free CPU cores of the 12 that it needs there"
    )


@pytest.mark.parametrize("policy", READERS)
def test_the_reason_names_memory_where_it_is_memory(policy: str) -> None:
    jobs = [needs("a", 2, 4, 48), needs("b", 2, 4, 48, arrival_s=10.0)]
    rows = ran(machines([8]), jobs, make_policy(policy))
    assert starts(rows)["b"] == 100.0
    assert [row.cause for row in rows.wait_reasons if row.reason] == ["memory"]


@pytest.mark.parametrize("policy", READERS)
def test_a_job_that_no_machine_can_feed_alone_spans_two_at_once(policy: str) -> None:
    """Four GPUs with 24 cores, on machines of 16: two GPUs with 12 on each, or 2.67 at most."""
    rows = ran(machines([8, 8]), [needs("wide", 4, 24)], make_policy(policy))
    assert starts(rows) == {"wide": 0.0}
    assert sorted(rows.placements[0].placement.counts) in ([2, 2], [1, 3])


@pytest.mark.parametrize("policy", READERS)
def test_a_machine_with_free_gpus_and_no_cores_is_passed(policy: str) -> None:
    jobs = [needs("a", 7, 16), needs("b", 1, 2, arrival_s=1.0), needs("c", 1, arrival_s=2.0)]
    rows = ran(machines([8, 8]), jobs, make_policy(policy))
    of = {row.handle: row.placement.leaves for row in rows.placements}
    assert starts(rows) == {"a": 0.0, "b": 1.0, "c": 2.0}
    assert of[0] != of[1]


def test_a_placement_that_a_machine_cannot_feed_is_refused() -> None:
    jobs = [needs("a", 2, 12), needs("b", 2, 12)]
    both = Script({0: [Start(0, on({0: 2})), Start(1, on({0: 2}))]})
    with pytest.raises(PolicyError, match=r"job 'b': .* 4 free CPU cores of the 12"):
        run_script(machines([8]), jobs, both)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """Jobs that each fit some machines of the cluster, some of which state nothing."""
    sockets = draw(st.booleans())
    machine: Nested = [2, 2] if sockets else 4
    levels = ("socket", *LEVELS) if sockets else LEVELS
    stated = st.one_of(st.none(), st.integers(4, 12))
    cores = tuple(None if x is None else 1000 * x for x in draw(st.tuples(*[stated] * 4)))
    gib = tuple(None if x is None else 1024 * x for x in draw(st.tuples(*[stated] * 4)))
    tree = nested(levels, [[machine] * 2] * 2, hosts=HostSizes(cores, gib))
    jobs = [
        needs(
            str(number),
            draw(st.integers(1, 6)),
            draw(st.sampled_from([0, 0.5, 1, 3, 4, 7])),
            draw(st.sampled_from([0, 1, 2.5, 4])),
            s=draw(st.integers(1, 300)),
            arrival_s=float(draw(st.integers(0, 300))),
            model=draw(st.sampled_from(["vgg11", "resnet18"])),
        )
        for number in range(draw(st.integers(1, 12)))
    ]
    idle = FreeHosts.of_idle(tree)
    fit = [x for x in jobs if idle is None or idle.tree_for(x).gpus >= x.gpus]
    return tree, sorted(fit, key=lambda x: x.arrival_s)


def most_held(rows: Rows, tree: ClusterTree) -> dict[tuple[int, str], int]:
    """By machine and resource: the most that jobs hold together, recounted at each start."""
    parts = []
    for row in rows.placements:
        of = rows_job(rows, row.handle)
        for machine, gpus in machine_counts(tree, row.placement).items():
            for name in ("cpu_milli", "memory_mib"):
                share = -(-gpus * getattr(of, name) // of.gpus)
                parts.append((row.start, row.end, machine, name, share))
    most: dict[tuple[int, str], int] = {}
    for now in {part[0] for part in parts}:
        for machine, name in {(x[2], x[3]) for x in parts}:
            held = sum(
                x[4] for x in parts if x[0] <= now < x[1] and (x[2], x[3]) == (machine, name)
            )
            most[machine, name] = max(held, most.get((machine, name), 0))
    return most


def rows_job(rows: Rows, handle: int) -> Job:
    return next(row.job for row in rows.jobs if row.handle == handle)


@given(st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("policy", SOME)
def test_no_machine_gives_more_than_it_has_and_every_job_finishes(
    policy: str, data: st.DataObject
) -> None:
    tree, jobs = data.draw(crowds())
    if not jobs:
        return
    options: Mapping[str, Any] = {"lease_s": 60.0} if policy in ("dally", "tiresias", "las") else {}
    rows = ran(tree, jobs, make_policy(policy, **options))
    assert len(rows.jobs) == len(jobs)
    assert tree.hosts is not None
    for (machine, name), held in most_held(rows, tree).items():
        size = getattr(tree.hosts, name)[machine]
        assert size is None or held <= size


@pytest.mark.parametrize("policy", SOME)
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_with_more_than_enough_the_rows_are_those_of_gpus_alone(
    policy: str, data: st.DataObject
) -> None:
    tree, jobs = data.draw(crowds())
    if not jobs:
        return
    plain = nested(tree.level_names, [[list_of(tree)] * 2] * 2)
    plenty = nested(
        tree.level_names, [[list_of(tree)] * 2] * 2, hosts=HostSizes((10**9,) * 4, (10**9,) * 4)
    )
    got = [ran(one, jobs, make_policy(policy)) for one in (plain, plenty)]
    assert got[0].placements == got[1].placements
    assert starts(got[0]) == starts(got[1])


def list_of(tree: ClusterTree) -> Nested:
    return [2, 2] if tree.machine else 4


@pytest.mark.parametrize("policy", ["las", "srsf", "dally", "gandiva", "lookahead(srsf)"])
def test_notices_and_outages_leave_no_machine_with_too_little(policy: str) -> None:
    """Gates mend answers: jobs that keep their GPUs keep their cores as well."""
    tree = machines([4, 4], [4, 4], cores=12, gib=48)
    work = [
        {"kind": "machine", "unit": unit, "at_s": at, "duration_s": 60.0, "notice_s": 50.0}
        for unit, at in ((0, 100.0), (1, 230.0), (3, 380.0), (2, 500.0))
    ]
    for seed in range(6):
        draw = Random(seed)
        jobs = [
            needs(
                str(number),
                draw.choice([1, 2, 4, 6]),
                draw.choice([0, 2, 5, 11]),
                draw.choice([0, 6, 20]),
                s=draw.randint(10, 120),
                arrival_s=float(12 * number),
            )
            for number in range(40)
        ]
        options = {"lease_s": 60.0} if policy in ("las", "dally") else {}
        host = make_policy(policy, **options)
        rows, _ = run_with_failures(tree, jobs, {"maintenance": work}, policy=host)
        assert len(rows.jobs) == len(jobs)


def lift(patch: pytest.MonkeyPatch, name: str) -> None:
    """One job needs nothing of machines any more."""
    fed, shortage, take = FreeGpus.fed, FreeHosts.shortage, FreeHosts.take
    patch.setattr(FreeGpus, "fed", lambda x, y: x if y.id == name else fed(x, y))
    patch.setattr(
        FreeHosts, "shortage", lambda x, p, y: (y.id != name and shortage(x, p, y)) or None
    )
    patch.setattr(FreeHosts, "take", lambda x, p, y: y.id != name and take(x, p, y))


@pytest.mark.skipif(core() == "compiled", reason="rules of compiled classes cannot be lifted")
@pytest.mark.parametrize("policy", ["fifo-backfill", "las", "srtf", "dally", "tiresias"])
def test_without_the_stated_shortage_the_job_would_have_started(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Random(1)
    jobs = [
        needs(
            str(number),
            draw.choice([1, 2, 4, 8]),
            draw.choice([0, 3, 8, 15]),
            draw.choice([0, 10, 50]),
            s=draw.randint(10, 200),
            arrival_s=float(9 * number),
        )
        for number in range(50)
    ]
    one = make_policy(policy, **({"lease_s": 60.0} if make_policy(policy).lease else {}))
    engine = simulator(machines([8, 8], [8, 8]), jobs, lease_s=lease_s(one))
    told = set()
    while (view := engine.next_question(one)) is not None:
        before = copy.deepcopy(one)
        answer = list(one.decide(view))
        for wait in answer:
            if not isinstance(wait, Wait) or wait.cause not in ("cpu_cores", "memory"):
                continue
            told.add(wait.cause)
            with monkeypatch.context() as patch:
                lift(patch, jobs[wait.handle].id)
                without = copy.deepcopy(before).decide(view)
            served = {x.handle for x in without if isinstance(x, Start | Migrate)}
            lost = {x.handle for x in without if isinstance(x, Preempt)}
            runs = wait.handle in view.running and wait.handle not in lost
            assert wait.handle in served or runs
        engine.answer(answer)
    assert told == {"cpu_cores", "memory"}


def test_fed_gpus_are_those_that_a_count_one_by_one_finds() -> None:
    tree = nested(LEVELS, [[4, 4], [4]], hosts=HostSizes((8000, 5000, None), (4096, None, 1024)))
    free = FreeGpus(tree)
    free.hosts = FreeHosts.of_idle(tree)
    free.claim(on({0: 1, 1: 1}), needs("held", 2, 4, 2))
    left = {0: (6000, 3072), 1: (3000, None), 2: (None, 1024)}
    for gpus, cores, gib in product((1, 2, 3), (0, 1, 2.5, 9), (0, 1, 4)):
        one = needs("one", gpus, cores, gib)
        expected = []
        for machine, idle in enumerate((3, 3, 4)):
            fed = 0
            for count in range(idle + 1):
                shares = (-(-count * x // gpus) for x in (one.cpu_milli, one.memory_mib))
                if all(y is None or x <= y for x, y in zip(shares, left[machine], strict=True)):
                    fed = count
            expected.append(fed)
        assert list(free.fed(one).leaves) == expected
        assert free.fed(one).total == sum(expected)
        assert free.fed(one) is free.fed(one)
    before = free.fed(needs("one", 1, 2))
    free.release(on({1: 1}), needs("held", 2, 4, 2))
    assert free.fed(needs("one", 1, 2)).total == before.total + 1


@pytest.mark.parametrize("policy", ["fifo", "dally", "tiresias"])
def test_machines_that_change_their_names_and_turns_together_change_no_time(policy: str) -> None:
    sizes = [(8000, 16384), (32000, None), (None, 65536), (16000, 32768), (24000, 8192)]
    jobs = [
        needs(
            str(number),
            1 + number % 4,
            3 * number % 13,
            5 * number % 17,
            s=50 + number,
            arrival_s=float(7 * number),
        )
        for number in range(30)
    ]
    times = []
    for permutation in range(3):
        visited = VisitingOrder(nested(LEVELS, [[4] * 5]), permutation).units[0]
        named = [sizes[visited.index(machine)] for machine in range(5)]
        hosts = HostSizes(*(tuple(one) for one in zip(*named, strict=True)))
        tree = nested(LEVELS, [[4] * 5], hosts=hosts)
        one, order = make_policy(policy), VisitingOrder(tree, permutation)
        rates = AloneRates(tree, EstimateByLevel(tree))
        engine = Simulator(tree, jobs, rates, lease=one.lease, visiting_order=order, check=True)
        times.append([(row.job.id, row.start, row.finish) for row in engine.run(one).jobs])
    assert times[0] == times[1] == times[2]


CLUSTER = """name: small
summary: two machines
levels: [rack, machine]
tree: {count: 1, machine: [{gpus: 8}, {gpus: 8, cpu_cores: 16, memory_gib: 64}]}
"""
TRACE = "job_id,arrival_s,gpus,model,iterations,compute_s,cpu_cores,memory_gib\n"
ROWS = "a,0,8,vgg16,100,1,,\nb,0,2,vgg16,100,1,12.5,8\nc,10,2,vgg16,100,1,4,\n"


def scenario(folder: Path, rows: str = ROWS, cluster: str = CLUSTER, **more: Any) -> Scenario:
    return scenario_of(folder, cluster, TRACE + rows, **more)


def test_columns_of_a_trace_and_a_cluster_file_let_a_job_wait_and_the_tables_say_why(
    tmp_path: Path,
) -> None:
    result = simulate(scenario(tmp_path), check=True, cache=False)
    waits, causes = result.tables["waits"], result.tables["wait_causes"]
    assert list(waits["job_id"]) == ["c"]
    assert list(waits["wait_s"]) == [90.0]
    assert list(waits["cause"]) == list(causes["cause"]) == ["cpu_cores"]
    assert "3.5 free CPU cores of the 4 that it needs" in next(iter(waits["reason"]))


def test_where_the_cluster_states_nothing_the_columns_change_nothing(tmp_path: Path) -> None:
    bare = CLUSTER.replace(", cpu_cores: 16, memory_gib: 64", "")
    rows = [
        simulate(scenario(tmp_path, text, bare), check=True, cache=False).tables["placements"]
        for text in (ROWS, ROWS.replace("12.5,8", ",").replace("1,4,", "1,,"))
    ]
    assert all(list(rows[0][name]) == list(rows[1][name]) for name in rows[1])


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        ("a,0,2,vgg16,9,1,-1,\n", {}, r"t.csv:2: field 'cpu_cores' is '-1', expected a number"),
        ("a,0,2,vgg16,9,1,1,x\n", {}, r"t.csv:2: field 'memory_gib' is 'x', expected a number"),
        ("a,0,16,vgg16,9,1,40,\n", {}, r"t.csv:2: job 'a' needs 40 CPU cores; of its 16 .* 14;"),
        (ROWS, {"policy": "themis"}, "policy themis looks at GPUs only, but job 'b' needs"),
        (
            ROWS,
            {"policy": "gandiva", "policy_options": {"packing": True}},
            "policy gandiva packs jobs by GPUs only",
        ),
        (ROWS, {"policy": "quota(fifo)"}, r"policy quota\(fifo\) moves jobs by GPUs only"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(
    tmp_path: Path, rows: str, more: dict[str, Any], words: str
) -> None:
    assert_refused(scenario(tmp_path, rows, **more), words)


def test_a_policy_that_shares_gpus_is_refused_whatever_it_reads(tmp_path: Path) -> None:
    source = """from artist.contract import BasePolicy
class Shares(BasePolicy):
    reads_hosts = True
    jobs_per_gpu = 2
    def decide(self, view):
        return ()
"""
    (tmp_path / "shares.py").write_text(source)
    policy = f"{tmp_path / 'shares.py'}:Shares"
    with pytest.raises(ArtistError, match="packs jobs by GPUs only"):
        simulate(scenario(tmp_path, ROWS, policy=policy), cache=False)


@pytest.mark.parametrize("wrong", ["cpu_cores: 0", "memory_gib: -1", "cpu_cores: 2000000"])
def test_a_bad_size_of_a_machine_names_its_line(tmp_path: Path, wrong: str) -> None:
    bad = CLUSTER.replace("cpu_cores: 16", wrong).replace("memory_gib: 64, ", "")
    with pytest.raises(ArtistError, match=r"c.yaml:4: a machine: .*'" + wrong.partition(":")[0]):
        simulate(scenario(tmp_path, cluster=bad.replace(", memory_gib: 64", "")), cache=False)


def test_messages_name_policies_that_read_hosts() -> None:
    assert set(READ_HOSTS) <= set(READERS)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_trace_reads_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    jobs = [needs("a", 2, 12.345, 0.1), needs("b", 2), needs("c", 2, 0.001, 8)]
    assert_reads_back(jobs, tmp_path / name)


@pytest.mark.parametrize(
    ("format_", "cores", "gib"),
    [("openb", 12.0, 16.0), ("pai", 12.0, 58.0), ("sacct", 16.0, 62.5)],
)
def test_foreign_traces_keep_what_they_state(
    tmp_path: Path, format_: str, cores: float, gib: float
) -> None:
    """Per pod in openb; per instance in PAI, in per cent of a core and GB; per job in Slurm."""
    texts = {
        "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,pod_phase,creation_time,"
        "deletion_time,scheduled_time\na,12000,16384,2,1000,Running,0,50,10\n",
        "pai": "a,worker,2,Terminated,10,60,600,29,100,V100\nb,worker,1,Terminated,10,60,,,100,\n",
        "sacct": "JobID|Submit|Start|End|State|AllocTRES\n7|2026-03-01T10:00:00|"
        "2026-03-01T10:00:05|2026-03-01T10:01:05|COMPLETED|billing=16,cpu=16,gres/gpu=2,mem=62.50G,node=1\n",
    }
    path = tmp_path / "trace.csv"
    path.write_text(texts[format_])
    job = read_trace(path, format_=format_).jobs[0]
    assert (job.gpus, job.cpu_cores, job.memory_gib) == (2, cores, gib)

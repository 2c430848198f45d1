"""Do jobs get MIG instances where GPUs can be divided that way, and never share one?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine.gpu_sharing import (
    ONE,
    OTHER,
    READERS,
    assert_lawful,
    assert_reads_back,
    assert_refused,
    machines,
    part,
    ran,
    scenario_of,
    together,
    told,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from support import Script, finishes, job, on, speeds
from support import run as run_script

from artist.api import simulate
from artist.cluster.mig import ALL, PROFILES, SLICE_MILLI, Mode
from artist.cluster.tree import ClusterTree, HostSizes
from artist.config import Scenario
from artist.contract import Start
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, InvariantError, PolicyError
from artist.network.rates.interference import PairSpeeds
from artist.workload.job import Job

KEPT_OFF = "1 GPU had room, but MIG keeps the job off it"


def instance(name: str, profile: str, iterations: int = 10, **fields: Any) -> Job:
    milli = SLICE_MILLI * ALL[profile].memory
    return part(name, milli, iterations, mig=profile, **fields)


@pytest.mark.parametrize("policy", READERS)
def test_instances_lie_on_one_gpu_as_fast_as_alone_until_none_may_begin(policy: str) -> None:
    """3g begins at slice 4, so that 4g finds its only place, 0. A second 3g waits."""
    jobs = [instance("a", "3g.40gb"), instance("b", "4g.40gb"), instance("c", "3g.40gb")]
    rows = ran(machines("h100-80gb"), jobs, policy)
    assert finishes(rows) == {"a": 10.0, "b": 10.0, "c": 20.0}
    assert together(rows) == {frozenset({0, 1})}


@pytest.mark.parametrize("policy", READERS)
def test_an_eighth_is_left_where_no_instance_may_begin(policy: str) -> None:
    """Seven instances 1g.5gb leave memory slice 7, where none begins, and no compute slice. So no
    GPU has room for an eighth, which waits for one of them to end."""
    jobs = [instance(f"j{n}", "1g.5gb", 9 + n) for n in range(8)]
    rows = ran(machines("a100-40gb"), jobs, policy)
    assert finishes(rows) == {**{f"j{n}": 9.0 + n for n in range(7)}, "j7": 25.0}
    assert told(rows) == []


@pytest.mark.parametrize("policy", READERS)
def test_shares_and_instances_never_lie_on_one_gpu(policy: str) -> None:
    jobs = [instance("a", "1g.10gb"), part("b", 500, arrival_s=1.0)]
    rows = ran(machines("a100-80gb", "a100-80gb"), jobs, policy)
    assert {row.handle: row.placement for row in rows.placements} == {0: ONE, 1: OTHER}
    for one in (jobs, [part("a", 125), instance("b", "3g.40gb", arrival_s=1.0)]):
        rows = ran(machines("a100-80gb"), one, policy)
        assert finishes(rows) == {"a": 10.0, "b": 20.0}
        assert told(rows) == [(1.0, 1, "mig", KEPT_OFF)]


def test_instances_come_and_go_while_others_run() -> None:
    """Where 4g was, two 2g begin beside 3g. A whole GPU waits until the last instance has ended."""
    jobs = [
        instance("a", "4g.20gb", 5),
        instance("b", "3g.20gb", 30),
        instance("c", "2g.10gb", arrival_s=1.0),
        instance("d", "2g.10gb", arrival_s=1.0),
        job("e", 1, 5, arrival_s=2.0),
    ]
    rows = ran(machines("a100-40gb"), jobs)
    assert finishes(rows) == {"a": 5.0, "c": 15.0, "d": 15.0, "b": 30.0, "e": 35.0}


@pytest.mark.parametrize("policy", READERS)
@pytest.mark.parametrize("profile", ["3g.20gb", "7g.40gb"])
def test_an_instance_waits_for_a_gpu_of_its_mode(policy: str, profile: str) -> None:
    """The first GPU has no MIG mode, the second another one, the third is held."""
    jobs = [instance("a", "7g.40gb"), instance("b", profile, arrival_s=1.0)]
    rows = ran(machines(None, "h100-80gb", "a100-40gb"), jobs, policy)
    assert {row.placement for row in rows.placements} == {on({2: 1})}
    assert finishes(rows) == {"a": 10.0, "b": 20.0}
    assert told(rows) == [(1.0, 1, "mig", KEPT_OFF)]


def test_no_other_job_slows_an_instance() -> None:
    tree = machines("h100-80gb")
    jobs = [instance("a", "3g.40gb", model="m"), instance("b", "4g.40gb", model="m")]
    engine = Simulator(tree, jobs, speeds(), check=True)
    engine.next_question()
    engine.answer([Start(0, ONE), Start(1, ONE)])
    running = engine._holdings.running
    assert PairSpeeds(tree, {("m", "m", ""): 0.1}).stretch(running[0], running) == 1.0


def test_an_instance_where_none_may_begin_is_refused() -> None:
    both = Script({0: [Start(0, ONE), Start(1, ONE)]})
    jobs = [instance("a", "3g.40gb"), instance("b", "7g.80gb")]
    with pytest.raises(PolicyError, match="'b': 1 GPUs of machine 0 claimed, but 0 are free"):
        run_script(machines("h100-80gb"), jobs, both)
    with pytest.raises(PolicyError, match="have 0 free GPUs for its MIG instance of the 1 that it"):
        run_script(machines(None, "h100-80gb"), jobs[:1], Script({0: [Start(0, ONE)]}))


@pytest.mark.parametrize("broken", ["two on one slice", "a place that is none", "no instance"])
def test_check_notices_instances_that_are_not_lawful(broken: str) -> None:
    jobs = [
        instance("a", "2g.20gb"),
        instance("b", "2g.20gb"),
        instance("c", "1g.10gb", arrival_s=1.0),
    ]
    engine = Simulator(machines("h100-80gb"), jobs, speeds(), check=True)
    engine.next_question()
    engine.answer([Start(0, ONE), Start(1, ONE)])
    shares: Any = engine._holdings.free.shares
    first = shares.instance(jobs[0])
    slices = {"two on one slice": first, "a place that is none": first << 1, "no instance": 0}
    shares._slices["b"] = slices[broken]
    with pytest.raises(InvariantError, match="MIG instance"):
        engine.next_question()


# -- files -----------------------------------------------------------------------------

CLUSTER = """name: small
summary: two machines
levels: [rack, machine]
tree: {count: 1, machine: [{gpus: 1}, {gpus: 1, mig: a100-80gb, gpu_memory_gib: 80}]}
"""
TRACE = "job_id,arrival_s,gpus,model,iterations,compute_s,mig,gpu_share,gpu_memory_gib\n"
ROWS = "a,0,1,vgg16,100,1,4g.40gb,,30\nb,0,1,vgg16,100,1,3g.40gb,0.5,40\nc,9,1,vgg16,9,1,,0.5,\n"


def scenario(folder: Path, rows: str = ROWS, cluster: str = CLUSTER, **more: Any) -> Scenario:
    return scenario_of(folder, cluster, TRACE + rows, **more)


def test_the_column_gives_jobs_instances(tmp_path: Path) -> None:
    result = simulate(scenario(tmp_path, interference="h200"), check=True, cache=False)
    jobs = result.tables["jobs"]
    assert dict(zip(jobs["job_id"], jobs["gpu_share"], strict=True)) == {
        "a": 0.5,
        "b": 0.5,
        "c": 0.5,
    }
    assert result.summary["makespan_s"] == 100.0


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        (
            "a,0,1,vgg16,9,1,3g.80gb,,\n",
            {},
            r"t.csv:2: field 'mig' is '3g.80gb', expected one of 1g",
        ),
        ("a,0,2,vgg16,9,1,3g.40gb,,\n", {}, "field 'mig' is '3g.40gb', expected none for a job of"),
        ("a,0,1,vgg16,9,1,3g.40gb,0.4,\n", {}, "'gpu_share' is '0.4', expected 0.5 or nothing bes"),
        (
            "a,0,1,vgg16,9,1,3g.40gb,,41\n",
            {},
            "expected at most 40, the memory of 3g.40gb; correct",
        ),
        (
            "a,0,1,vgg16,9,1,,,\nb,0,1,vgg16,9,1,3g.20gb,,\n",
            {},
            r"t.csv:3: job 'b' asks for a MIG instance 3g.20gb, which no GPU of the cluster can "
            r"have; give machines mig: a100-40gb in the cluster file, or correct mig",
        ),
        (
            ROWS,
            {"policy": "gandiva"},
            "gandiva hands out whole GPUs only, but job 'a' asks for a MIG",
        ),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(
    tmp_path: Path, rows: str, more: dict[str, Any], words: str
) -> None:
    assert_refused(scenario(tmp_path, rows, **more), words)


def test_a_mode_that_is_none_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ArtistError, match=r"c.yaml:4: a machine: .*'mig'.*a100-40gb"):
        simulate(scenario(tmp_path, cluster=CLUSTER.replace("a100-80gb", "v100")), cache=False)


def test_the_mode_is_the_memory_of_the_gpus(tmp_path: Path) -> None:
    rows = "a,0,1,vgg16,9,1,,0.4,70\nb,0,1,vgg16,9,1,,0.4,70\n"
    one = CLUSTER.replace("{gpus: 1}, ", "").replace(", gpu_memory_gib: 80", "")
    alone = simulate(scenario(tmp_path, rows, one), cache=False)
    assert alone.summary["makespan_s"] == 18.0
    other = CLUSTER.replace("gpu_memory_gib: 80", "gpu_memory_gib: 10")
    with pytest.raises(ArtistError, match=r"gpu_memory_gib is 10, but GPUs a100-80gb have 80"):
        simulate(scenario(tmp_path, cluster=other), cache=False)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_trace_reads_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    jobs = [instance("a", "3g.40gb", gpu_memory_mib=9), part("b", 250), instance("c", "7g.80gb")]
    assert_reads_back(jobs, tmp_path / name)


# -- random runs -----------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """Up to fourteen jobs: instances, shares and whole GPUs; the first machine has a MIG mode."""
    tree = draw(trees())
    modes: list[Mode | None] = [draw(st.sampled_from(list(PROFILES)))]
    modes += draw(st.tuples(*[st.sampled_from([None, *PROFILES])] * (len(tree.kinds) - 1)))
    none = (None,) * len(modes)
    tree = replace(tree, hosts=HostSizes(none, none, (), tuple(modes)))
    profiles = sorted({name for mode in modes if mode for name in PROFILES[mode]})
    arrivals = draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 300.0]), min_size=1, max_size=14))
    jobs = []
    for index, arrival_s in enumerate(sorted(arrivals)):
        name, iterations = f"j{index}", draw(st.integers(1, 100))
        match draw(st.sampled_from(["instance", "instance", "share", "whole"])):
            case "instance":
                profile = draw(st.sampled_from(profiles))
                jobs.append(instance(name, profile, iterations, arrival_s=arrival_s))
            case "share":
                milli = draw(st.sampled_from([125, 500, 875]))
                jobs.append(part(name, milli, iterations, arrival_s=arrival_s))
            case _:
                count = draw(st.integers(1, tree.gpus))
                jobs.append(job(name, count, iterations, arrival_s=arrival_s))
    return tree, jobs


def can_lie_together(profiles: Sequence[str], held: int = 0) -> bool:
    """Whether instances have places that do not overlap, tried one by one."""
    if not profiles:
        return True
    first, *rest = profiles
    masks = [((1 << ALL[first].memory) - 1) << start for start in ALL[first].starts]
    return any(not mask & held and can_lie_together(rest, held | mask) for mask in masks)


@pytest.mark.parametrize("policy", READERS)
@settings(max_examples=12)
@given(case=cases())
def test_jobs_share_gpus_only_as_they_may_be_divided_and_all_finish(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    tree, jobs = case
    rows = ran(tree, jobs, policy)
    assert len(rows.jobs) == len(jobs)
    assert_lawful(rows, jobs)
    assert tree.hosts is not None
    for row in rows.placements:
        there = [jobs[x].mig for x in (row.handle, *row.beside)]
        assert all(there) or not any(there)
        if any(there):
            mode = tree.hosts.mig[tree.machine_of[row.placement.leaves[0]]]
            assert mode is not None
            assert set(there) <= set(PROFILES[mode])
            assert can_lie_together(there)

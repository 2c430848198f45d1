"""Do tensor groups stay in a machine, whatever places them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import nested
from artist.config import Scenario
from artist.policies.shared.usable import for_groups
from artist.run import simulate
from artist.workload.job import Job

TREE = nested(("machine", "network"), [8, 8, 8])


def job(gpus: int, tensor: int) -> Job:
    return Job("a", 0.0, gpus, "gpt2", 1, 1.0, tensor=tensor)


@pytest.mark.parametrize(
    ("tensor", "usable"), [(1, [5, 8, 3]), (2, [4, 8, 2]), (4, [4, 8, 0]), (8, [0, 8, 0])]
)
def test_what_would_split_a_group_is_not_offered(tensor: int, usable: list[int]) -> None:
    free = FreeGpus(TREE)
    free.claim(Placement((0, 2), (3, 5)))
    offered = for_groups(free, job(8, tensor))
    assert list(offered.leaves) == usable
    assert list(free.leaves) == [5, 8, 3]


def test_larger_groups_take_whole_machines_and_odd_clusters_are_no_obstacle() -> None:
    free = FreeGpus(TREE)
    free.claim(Placement((0,), (1,)))
    assert list(for_groups(free, job(16, 16)).leaves) == [0, 8, 8]
    odd = FreeGpus(nested(("machine", "network"), [6, 6]))
    assert list(for_groups(odd, job(8, 4)).leaves) == [4, 4]
    assert for_groups(odd, job(12, 4)) is odd


ROWS = """job_id,arrival_s,gpus,model,iterations,compute_s
a,0,4,gpt2,100,1
b,0,4,gpt2,100,1
c,1,8,"gpt2@tensor=8,sharded=zero1",10,1
"""


@pytest.mark.parametrize("policy", ["fifo", "las", "easy", "conservative", "dally", "tiresias"])
def test_policies_wait_for_a_whole_machine(tmp_path: Path, policy: str) -> None:
    """Two machines, of which one has 8 GPUs free only when job a or b ends."""
    path = tmp_path / "t.csv"
    path.write_text(ROWS.replace("a,0,4", "a,0,5").replace("b,0,4", "b,0,5"))
    scenario = Scenario(trace=str(path), racks=1, machines_per_rack=2, policy=policy, fabric="a100")
    placements = simulate(scenario).tables["placements"]
    held = [
        text
        for name, text in zip(placements["job_id"], placements["signature"], strict=True)
        if name == "c"
    ]
    assert set(held) == {"8@tensor"}


@pytest.mark.parametrize("policy", ["fifo", "las"])
def test_groups_wait_for_one_domain_of_72_gpus(tmp_path: Path, policy: str) -> None:
    """Two domains of 72 GPUs, of which 70 are taken: 4 are free, then a domain is."""
    path = tmp_path / "t.csv"
    taken = "a,0,70,gpt2,100,1\nb,0,70,gpt2,200,1\n"
    rows = 'c,1,4,"gpt2@tensor=4,sharded=zero1",10,1\nd,2,8,"gpt2@tensor=8,sharded=zero1",10,1\n'
    path.write_text(f"job_id,arrival_s,gpus,model,iterations,compute_s\n{taken}{rows}")
    scenario = Scenario(
        trace=str(path), racks=1, machines_per_rack=2, gpus_per_machine=72, policy=policy,
        backend="analytical", fabric="h100-quantum2-spectrum4",
    )  # fmt: skip
    result = simulate(scenario).tables
    held = result["placements"]
    where = dict(zip(held["job_id"], held["signature"], strict=True))
    starts = dict(zip(result["jobs"]["job_id"], result["jobs"]["start_s"], strict=True))
    ends = dict(zip(result["jobs"]["job_id"], result["jobs"]["finish_s"], strict=True))
    assert where == {"a": "70", "b": "70", "c": "4@tensor", "d": "8@tensor"}
    assert min(starts["c"], starts["d"]) >= ends["a"]

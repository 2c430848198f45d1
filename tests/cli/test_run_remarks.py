"""Are settings remarked on that are easily taken for something else, and only those?"""

from __future__ import annotations

import pytest

from artist.cli.run_remarks import remarks
from artist.cluster.fabric import fabric_names, load_fabric
from artist.config import Scenario

SMALL = ("--trace", "tiny-batch", "--racks", "1", "--fabric")
TOLD = "Fabric t4 describes machines of 4 GPUs, but this cluster has machines of 8"


def test_a_run_says_that_its_machines_are_not_those_of_the_fabric(artist) -> None:
    assert TOLD in artist("sim", *SMALL, "t4").stdout
    assert TOLD not in artist("sim", *SMALL, "t4", "--gpus-per-machine", "4").stdout
    assert "describes machines" not in artist("sim", *SMALL, "a100").stdout


def test_a_comparison_says_it_unless_it_varies_the_machines(artist) -> None:
    compared = ("compare", *SMALL, "t4", "--permutations", "1", "--workers", "1")
    assert TOLD in artist(*compared, "--policies", "fifo,las").stdout
    varied = artist(*compared, "--policies", "fifo", "--vary", "gpus_per_machine=4,8")
    assert varied.returncode == 0, varied.stderr
    assert TOLD not in varied.stdout


@pytest.mark.parametrize(("tree", "told"), [([[4, 4]], False), ([[4, 2], [8]], True)])
def test_an_irregular_cluster_is_judged_by_its_largest_machine(tree: list, told: bool) -> None:
    assert bool(remarks(Scenario(fabric="t4", tree=tree))) == told


@pytest.mark.parametrize("name", fabric_names())
def test_the_described_machine_has_a_source_and_changes_no_digest(name: str) -> None:
    fabric = load_fabric(name)
    assert fabric.machine is None or fabric.machine.source
    assert fabric.model_copy(update={"machine": None}).digest == fabric.digest

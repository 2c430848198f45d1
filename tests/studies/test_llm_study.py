"""May a group of rails be a rack of more machines, for the jobs of the study?"""

from __future__ import annotations

import math

import pytest

import artist
from artist.workload.division.staged import Axis, sizes_of
from artist.workload.models import workload
from studies.llm.study.plan import LAYOUTS, USUAL_LAYOUT
from studies.llm.study.workloads import GPUS, HARDWARE, KINDS, Kind

MACHINE_GPUS = 8


def split(machines: int, inside: int) -> str:
    """Whole machines, this many of them in the first group of rails."""
    groups = (inside, machines - inside)
    return "/".join(",".join([str(MACHINE_GPUS)] * group) for group in groups if group)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.model)
def test_what_leaves_a_machine_goes_between_equal_ranks_and_as_much_from_each(kind: Kind) -> None:
    name = f"{kind.model}@{kind.how},{HARDWARE},order=best"
    staged = workload(name).staged
    assert staged is not None
    for gpus in kind.gpus:
        sizes = sizes_of(staged.axes, gpus)
        machines = gpus // MACHINE_GPUS
        for inside in {min(machines, LAYOUTS["rails"][1]), machines // 2, 3 * machines // 8}:
            sent = artist.latency(name, split(machines, inside), fabric="leaf-spine")
            outer = [axis for axis in sent.axes or () if axis.dimension > 0]
            assert outer
            assert all(axis.stride % MACHINE_GPUS == 0 for axis in outer)
            # A stage has whole machines: all GPUs of a machine send to the next one.
            within = sent.order.partition("pipeline")[0].strip("-").split("-")
            assert math.prod(sizes[Axis(axis)] for axis in within) % MACHINE_GPUS == 0


def test_a_leaf_of_every_layout_with_machines_has_ports_for_as_many_gpus() -> None:
    racks, machines, gpus = LAYOUTS[USUAL_LAYOUT]
    rails = LAYOUTS["rails"]
    assert rails[1] == machines * gpus  # one port for each machine, in place of eight
    assert all(math.prod(layout) == GPUS for layout in LAYOUTS.values())
    assert racks == rails[0] * gpus

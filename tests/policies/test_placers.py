"""Which GPUs do placers take, also in ties? The free GPUs of the cluster are written out."""

from __future__ import annotations

import pytest
from support import SELF_SUFFICIENT, EstimateByLevel, cluster, job, make_policy, on, run, with_free

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import tier
from artist.cluster.tree import nested
from artist.network.rates.isolated import AloneRates
from artist.policies.shared.packing import best_level
from artist.policies.shared.placers import FirstFreePlacer, placer

RACKS = [[4, 4, 4], [4, 4, 4]]


@pytest.mark.parametrize(
    ("name", "gpus", "expected"),
    [
        ("any", 2, {0: 1, 1: 1}),  # the first free ones, wherever they lie
        ("any", 5, {0: 1, 1: 3, 3: 1}),
        ("pack", 2, {3: 2}),  # the fullest machine that suffices, not the first
        ("pack", 3, {1: 3}),  # machines 1 and 4: the first among equals
        ("pack", 4, {0: 1, 1: 3}),  # no machine has four; rack 0 is the fuller one
        ("pack", 5, {4: 3, 3: 2}),  # only rack 1: most free GPUs first
        ("pack", 6, {4: 3, 3: 2, 5: 1}),
        ("pack", 8, {3: 2, 4: 3, 5: 1, 1: 2}),  # all six of rack 1, then two where they fit
        ("pack", 11, None),
        ("consolidate-or-wait", 3, {1: 3}),
        ("consolidate-or-wait", 4, None),  # an empty machine would hold it
        ("consolidate-or-wait", 5, {4: 3, 3: 2}),  # no machine would: the rack that has room
        ("consolidate-or-wait", 7, None),  # an empty rack would hold it
        ("consolidate-or-wait", 12, None),
    ],
)
def test_where_gpus_are_taken(name, gpus, expected) -> None:
    free = with_free(RACKS, 1, 3, 0, 2, 3, 1)
    placement = placer(name).place(free, gpus)
    assert placement == (None if expected is None else on(expected))
    assert placer(name).possible(free, gpus) or placement is None


def test_the_rest_goes_where_the_fewest_suffice_and_to_the_first_among_equals() -> None:
    pack = placer("pack")
    assert pack.place(with_free(RACKS, 4, 2, 1, 0, 0, 0), 5) == on({0: 4, 2: 1})
    assert pack.place(with_free(RACKS, 4, 1, 1, 0, 0, 0), 5) == on({0: 4, 1: 1})


REGIONS = nested(("machine", "rack", "network"), RACKS, wide_area=True)


def with_room(*free: int) -> FreeGpus:
    """The machines of `REGIONS` with this many free GPUs each."""
    state = FreeGpus(REGIONS)
    state.claim(on({unit: 4 - count for unit, count in enumerate(free) if count < 4}))
    return state


@pytest.mark.parametrize("name", ["pack", "least-contended"])
def test_no_job_spans_regions_that_fits_one(name) -> None:
    """A region has 12 GPUs. Here 6 and 5 are free, in the second one 4 of a machine."""
    free, place = with_room(3, 3, 0, 4, 1, 0), placer(name)
    assert place.place(free, 6) == on({0: 3, 1: 3})
    assert place.place(free, 7) is None and not place.possible(free, 7)
    assert place.place(with_room(4, 4, 4, 4, 4, 3), 12) == on({0: 4, 1: 4, 2: 4})
    assert place.place(with_room(4, 4, 3, 4, 4, 3), 12) is None
    assert place.place(with_room(4, 4, 4, 4, 4, 3), 13) is not None


def test_the_first_free_gpus_are_those_of_one_region_and_any_are_not() -> None:
    free = with_room(3, 0, 0, 4, 1, 0)
    assert FirstFreePlacer().place(free, 4) == on({3: 4})
    assert FirstFreePlacer().place(free, 6) is None
    assert placer("any").place(free, 4) == on({0: 3, 3: 1})
    assert placer("any").place(free, 6) == on({0: 3, 3: 3})


PLAN_REGIONS = {"mast", "federated", "slurm"}
"""Policies with a rule of their own for what spans regions: a cell of MAST's Table 1, or what Slurm
does in a cluster whose switches all hang together."""


@pytest.mark.parametrize("policy", [name for name in SELF_SUFFICIENT if name not in PLAN_REGIONS])
def test_policies_wait_for_a_region_rather_than_span_two(policy) -> None:
    """Two jobs of 7 leave 5 of 12 GPUs in each region: a third one would fit across both."""
    jobs = [job(f"j{index}", gpus, 50) for index, gpus in enumerate([7, 7, 7, 4, 4, 4])]
    rates = AloneRates(REGIONS, EstimateByLevel(REGIONS, rack=0.5, network=100.0))
    rows = run(REGIONS, jobs, make_policy(policy), rates)
    assert {tier(REGIONS, row.placement) for row in rows.placements} <= {0, 1}


def test_the_best_level_holds_the_job_exactly() -> None:
    tree = cluster(*RACKS)
    assert [best_level(tree, gpus) for gpus in (4, 5, 12, 13)] == [
        tree.machine,
        tree.machine + 1,
        tree.machine + 1,
        tree.root,
    ]

"""Placers on a cluster whose free GPUs are written out: which GPUs they take, also in ties."""

from __future__ import annotations

import pytest
from support import cluster, on, with_free

from artist.policies.shared.packing import best_level
from artist.policies.shared.placers import placer

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


def test_the_best_level_holds_the_job_exactly() -> None:
    tree = cluster(*RACKS)
    assert [best_level(tree, gpus) for gpus in (4, 5, 12, 13)] == [
        tree.machine,
        tree.machine + 1,
        tree.machine + 1,
        tree.root,
    ]

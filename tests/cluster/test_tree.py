"""Is the tree what its nesting says?"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from support import cluster, on

from artist.cluster.placement import unit_counts
from artist.cluster.tree import MAX_GPUS, nested, regular
from artist.errors import ConfigError

SOCKETS = ("socket", "machine", "rack", "network")


def test_a_regular_cluster_has_racks_of_machines_of_gpus() -> None:
    tree = regular(racks=2, machines_per_rack=3, gpus_per_machine=8)
    assert tree.level_names == ("machine", "rack", "network")
    assert [level.gpus for level in tree.levels] == [(8,) * 6, (24, 24), (48,)]
    assert tree.levels[0].parent == (0, 0, 0, 1, 1, 1)
    assert (tree.gpus, tree.machine, tree.root) == (48, 0, 2)
    assert tree.kinds == ("gpu-machine",) * 6


def test_sockets_are_a_level_inside_machines_and_the_last_may_be_smaller() -> None:
    tree = regular(racks=1, machines_per_rack=2, gpus_per_machine=6, gpus_per_socket=4)
    assert tree.level_names == SOCKETS
    assert [level.gpus for level in tree.levels] == [(4, 2, 4, 2), (6, 6), (12,), (12,)]
    assert tree.machine == 1


def test_a_machine_smaller_than_a_socket_has_one() -> None:
    tree = regular(racks=1, machines_per_rack=1, gpus_per_machine=2, gpus_per_socket=4)
    assert tree.levels[0].gpus == (2,)


@pytest.mark.parametrize(
    ("racks", "text"),
    [
        ([[8, 8], [8, 8]], "2x2x8"),
        ([[8, 8], [8, 4, 4]], "[2x8, [8, 4, 4]]"),
        ([[8], [8, 8]], "[1x8, 2x8]"),
        ([[8, 4]], "1x[8, 4]"),
    ],
)
def test_a_cluster_as_text_lists_children_that_differ(racks: Any, text: str) -> None:
    assert nested(SOCKETS[1:], racks).text == text


def test_long_texts_of_different_clusters_differ() -> None:
    sizes = [[1 + index % 7] * (1 + index % 5) for index in range(500)]
    texts = [nested(SOCKETS[1:], [*sizes, [last]]).text for last in (1, 2)]
    assert texts[0] != texts[1]
    assert max(map(len, texts)) < 250


def test_children_may_differ_in_number_and_size() -> None:
    tree = cluster([8, 4], [2], [1, 1, 1])
    assert [level.gpus for level in tree.levels] == [(8, 4, 2, 1, 1, 1), (12, 2, 3), (17,)]
    assert [list(tree.children(1, rack)) for rack in range(3)] == [[0, 1], [2], [3, 4, 5]]
    assert list(tree.children(2, 0)) == [0, 1, 2]
    assert [tree.ancestor(0, leaf, 1) for leaf in range(6)] == [0, 0, 1, 2, 2, 2]
    assert [tree.largest(level) for level in range(3)] == [8, 12, 17]
    assert tree.leaf_gpus.tolist() == [8, 4, 2, 1, 1, 1]


def test_any_number_of_levels_may_lie_outside_and_inside_machines() -> None:
    names = ("die", "socket", "machine", "rack", "row", "hall", "site")
    tree = nested(names, [[[[[[1, 1], [2]]]], [[[[4]]]]]])
    assert [len(level) for level in tree.levels] == [4, 3, 2, 2, 2, 1, 1]
    assert tree.machine == 2
    assert tree.gpus == 8


def test_units_above_leaves_come_once_and_in_order() -> None:
    tree = cluster([8, 8], [8, 8], [8])
    three = on({0: 8, 1: 2, 3: 4})
    assert list(unit_counts(tree, three, 1).items()) == [(0, 10), (1, 4)]
    assert list(unit_counts(tree, three, 0).items()) == [(0, 8), (1, 2), (3, 4)]
    assert unit_counts(tree, on({2: 1, 4: 1}), 2) == {0: 2}


def test_trees_are_values() -> None:
    assert cluster([8, 4]) == cluster([8, 4])
    assert cluster([8, 4]) != cluster([4, 8])
    tree = cluster([8, 4])
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([[8, 0]], "a machine must hold a positive number of GPUs, got 0"),
        ([[8, -4]], "a machine must hold a positive number of GPUs, got -4"),
        ([[8, 2.5]], "a machine must hold a positive number of GPUs, got 2.5"),
        ([[8, True]], "a machine must hold a positive number of GPUs, got True"),
        ([[8, None]], "a machine must hold a positive number of GPUs, got None"),
        ([[8, [4]]], r"a machine must hold a positive number of GPUs, got \[4\]"),
        ([[8], 4], "a rack must be a non-empty list of machines, got 4"),
        ([[8], []], r"a rack must be a non-empty list of machines, got \[\]"),
        ([[8], 2.5], "a rack must be a non-empty list of machines, got 2.5"),
        ([[8], "88"], "a rack must be a non-empty list of machines, got '88'"),
        ([[8], {4: 4}], "a rack must be a non-empty list of machines, got {4: 4}"),
        ([[8], None], "a rack must be a non-empty list of machines, got None"),
        ([], r"a network must be a non-empty list of racks, got \[\]"),
        ([[MAX_GPUS, 1]], f"{MAX_GPUS + 1} GPUs, but at most {MAX_GPUS}"),
        ([[10**12]], f"at most {MAX_GPUS}"),
    ],
)
def test_a_nesting_that_is_not_a_cluster_is_an_error(tree: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        nested(("machine", "rack", "network"), tree)


@pytest.mark.parametrize(
    "names", [("machine", "machine", "network"), ("node", "rack", "network"), ("rack", "machine")]
)
def test_levels_must_differ_and_hold_machines_inside_the_outermost(names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="names must differ and 'machine'"):
        nested(names, [[8]] if len(names) == 3 else [8])


@pytest.mark.parametrize("size", ["racks", "machines_per_rack", "gpus_per_machine"])
def test_sizes_must_be_positive(size: str) -> None:
    sizes = {"racks": 1, "machines_per_rack": 1, "gpus_per_machine": 1, size: 0}
    flag = size.replace("_", "-")
    with pytest.raises(ConfigError, match=f"--{flag} 0: must be at least 1"):
        regular(**sizes)


def test_an_absurdly_large_cluster_is_refused_before_it_is_built() -> None:
    with pytest.raises(ConfigError, match="at most"):
        regular(racks=10**6, machines_per_rack=10**6, gpus_per_machine=10**6)

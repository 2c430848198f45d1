"""Is a signature the shape of a placement, and nothing else?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import LEVELS, SIX_LEVELS, placements_on, regular_trees, trees
from support import cluster, on

from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.placement_shape import (
    Shape,
    gpus_of,
    parse_signature,
    shape,
    shape_text,
    signature,
)
from artist.cluster.tree import nested, regular
from artist.errors import ConfigError

SOCKETS = ("socket", "machine", "rack", "network")
# Leaves (sockets of four) 0-3 are in rack 0, 4-7 in rack 1; two per machine.
DALLY = regular(racks=2, machines_per_rack=2, gpus_per_machine=8, gpus_per_socket=4)


def test_a_placement_lists_leaves_in_ascending_order() -> None:
    assert on({3: 1, 0: 4}) == Placement((0, 3), (4, 1))
    assert on({3: 1, 0: 4}).gpus == 5


@pytest.mark.parametrize(
    ("taken", "text", "level"),
    [
        ({2: 1}, "1", "machine"),
        ({2: 4}, "4", "machine"),
        ({0: 4, 1: 4}, "4+4", "machine"),
        ({0: 1, 1: 3}, "3+1", "machine"),  # largest first
        ({1: 4, 2: 4}, "4,4", "rack"),
        ({0: 2, 2: 4, 3: 4}, "4+4,2", "rack"),
        ({0: 4, 1: 4, 2: 4, 3: 4}, "4+4,4+4", "rack"),
        ({0: 1, 7: 1}, "1/1", "network"),
        ({0: 2, 4: 4, 5: 4, 6: 4, 7: 4}, "4+4,4+4/2", "network"),
        ({0: 4, 1: 4, 2: 4, 6: 2}, "4+4,4/2", "network"),
    ],
)
def test_signature_and_tier_of_hand_drawn_placements(
    taken: dict[int, int], text: str, level: str
) -> None:
    placement = on(taken)
    assert signature(DALLY, placement) == text
    assert DALLY.levels[tier(DALLY, placement)].name == level


def test_the_tier_is_at_least_the_machine() -> None:
    assert tier(DALLY, on({0: 1})) == DALLY.machine == 1


def test_machine_counts_add_the_sockets_of_a_machine() -> None:
    assert machine_counts(DALLY, on({0: 4, 1: 1, 6: 2})) == {0: 5, 3: 2}


def test_levels_beyond_the_usual_have_separators_of_their_own() -> None:
    tree = nested(SIX_LEVELS, [[[[[1, 1], [1, 1]]], [[[1], [1]]]], [[[[1]]]]])
    assert signature(tree, on({0: 1, 1: 1})) == "1++1"
    assert signature(tree, on({0: 1, 2: 1})) == "1+1"
    assert signature(tree, on({0: 1, 4: 1})) == "1/1"
    assert signature(tree, on({0: 1, 1: 1, 4: 1, 5: 1, 6: 1})) == "1+1/1++1//1"


def test_shapes_are_nested_by_level_from_the_smallest_unit_that_holds_all() -> None:
    assert shape(DALLY, on({5: 3})) == 3
    assert shape(DALLY, on({4: 4, 5: 1})) == (4, 1)
    assert shape(DALLY, on({0: 1, 2: 4, 3: 4})) == ((4, 4), (1,))
    assert gpus_of(((4, 4), (1,))) == 9


# -- properties ------------------------------------------------------------------------


@given(st.data())
def test_a_signature_read_back_is_the_shape(data: st.DataObject) -> None:
    tree = data.draw(trees())
    placement = data.draw(placements_on(tree))
    text = signature(tree, placement)
    drawn = shape(tree, placement)
    assert parse_signature(text, tree.level_names) == drawn
    assert shape_text(drawn, tree.level_names) == text
    assert gpus_of(drawn) == placement.gpus


@given(st.data())
def test_relabelling_equal_units_leaves_the_signature_unchanged(data: st.DataObject) -> None:
    tree = data.draw(regular_trees())
    placement = data.draw(placements_on(tree))
    moved = {}
    names: dict[tuple[int, int], list[int]] = {}

    def relabelled(level: int, unit: int) -> int:
        """A unit's new number: every parent permutes its children in its own way."""
        if level == tree.root:
            return 0
        parent = tree.levels[level].parent[unit]
        children = tree.children(level + 1, parent)
        if (level, parent) not in names:
            names[level, parent] = data.draw(st.permutations(range(len(children))))
        new_parent = relabelled(level + 1, parent)
        place = names[level, parent][unit - children.start]
        return tree.children(level + 1, new_parent)[place]

    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        moved[relabelled(0, leaf)] = count
    assert signature(tree, on(moved)) == signature(tree, placement)
    assert tier(tree, on(moved)) == tier(tree, placement)


@given(st.data())
def test_placements_of_different_shapes_have_different_signatures(data: st.DataObject) -> None:
    tree = data.draw(trees())
    one, other = data.draw(placements_on(tree)), data.draw(placements_on(tree))
    same = shape(tree, one) == shape(tree, other)
    # Depth tells "1,1" from "1/1": it is part of the signature, not of a shape's repr alone.
    assert (signature(tree, one) == signature(tree, other)) == same


@given(st.data())
def test_the_tier_is_the_first_level_with_one_unit_above_all_leaves(data: st.DataObject) -> None:
    tree = data.draw(trees())
    placement = data.draw(placements_on(tree))
    spans = [
        {tree.ancestor(0, leaf, level) for leaf in placement.leaves}
        for level in range(len(tree.levels))
    ]
    first = next(level for level, units in enumerate(spans) if len(units) == 1)
    assert tier(tree, placement) == max(first, tree.machine)


# -- signatures written by hand ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", (4, 4)),  # a machine written as one number fills its sockets
        ("6", (4, 2)),
        ("4", 4),
        ("8,8/4", (((4, 4), (4, 4)), ((4,),))),
        ("2,4+4", ((4, 4), (2,))),  # any order
        ("1/3", (((3,),), ((1,),))),
        ("1+3", (3, 1)),
    ],
)
def test_a_signature_written_by_hand_is_brought_into_order(text: str, expected: Shape) -> None:
    assert parse_signature(text, SOCKETS, gpus_per_socket=4) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected GPU counts separated by"),
        ("four", "expected GPU counts separated by"),
        ("4,", "expected GPU counts separated by"),
        ("4 4", "expected GPU counts separated by"),
        ("-4", "expected GPU counts separated by"),
        ("4.0", "expected GPU counts separated by"),
        ("٤", "expected GPU counts separated by"),  # an Arabic digit four
        ("4+,4", "expected GPU counts separated by"),
        ("4+4", r"separator '\+' has no level in this fabric \(levels: machine, rack, network"),
        ("4//4", "separator '//' has no level"),
        ("4,,4", "separator ',,' has no level"),
        ("4,0", "counts must be 1 to"),
        ("0", "counts must be 1 to"),
        ("99999999", "counts must be 1 to"),
        ("9" * 5000, "counts must be 1 to"),
    ],
)
def test_what_is_not_a_signature_of_the_fabric_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_signature(text, LEVELS)


@pytest.mark.parametrize("text", ["4+,4", "4,+4", "4/,4", "4+4,/4"])
def test_separators_of_two_levels_do_not_follow_each_other(text: str) -> None:
    with pytest.raises(ConfigError, match="expected GPU counts separated by"):
        parse_signature(text, SOCKETS)


def test_a_whole_uneven_cluster_has_a_signature() -> None:
    tree = cluster([2], [8, 4, 4])
    assert signature(tree, on({0: 2, 1: 8, 2: 4, 3: 4})) == "8,4,4/2"


def test_a_socket_holds_no_more_than_those_of_the_fabric() -> None:
    names = ("socket", "machine", "rack", "network")
    with pytest.raises(ConfigError, match=r"'9\+9': 9 GPUs in a socket, and this fabric's have 4"):
        parse_signature("9+9", names, 4)
    assert parse_signature("4+4", names, 4) == (4, 4)
    assert parse_signature("9+9", names) == (9, 9)


@pytest.mark.parametrize(("text", "most"), [("9", 9), ("8/9", 9), ("4+4+1,8", 9), ("9,9/2", 9)])
def test_a_machine_holds_no_more_than_the_machines_do(text: str, most: int) -> None:
    names = ("socket", "machine", "rack", "network") if "+" in text else LEVELS
    with pytest.raises(ConfigError, match=f"{most} GPUs in a machine, and machines have 8"):
        parse_signature(text, names, gpus_per_machine=8)
    assert parse_signature(text, names, gpus_per_machine=most)

"""Are the regular neighbours of a shape the largest inside and the smallest around it?"""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.cluster.placement_shape import (
    Shape,
    gpus_of,
    is_regular,
    leaf_counts,
    parse_signature,
    regular_alike,
    regular_around,
    regular_inside,
    regular_wider,
    shape_text,
    unit_counts,
)

SOCKETS = ("socket", "machine", "rack", "network")
LARGEST = (4, 2, 3, 3)
"""Most GPUs of a socket, sockets of a machine, machines of a rack, racks."""


@st.composite
def shapes(draw: st.DrawFn, level: int = 3) -> Shape:
    """A shape of racks, not reduced to its smallest unit."""
    if level == 0:
        return draw(st.integers(1, LARGEST[0]))
    parts = draw(st.lists(shapes(level - 1), min_size=1, max_size=LARGEST[level]))
    return tuple(sorted(parts, key=str, reverse=True))


def holds(shape: Shape, sizes: tuple[int, ...]) -> bool:
    """Whether a shape holds the regular shape with these parts per level."""
    if isinstance(shape, int):
        return shape >= sizes[0]
    return sum(holds(part, sizes[:-1]) for part in shape) >= sizes[-1]


def built(sizes: tuple[int, ...]) -> Shape:
    shape: Shape = sizes[0]
    for count in sizes[1:]:
        shape = (shape,) * count if count > 1 or not isinstance(shape, int) else (shape,)
    while not isinstance(shape, int) and len(shape) == 1:
        shape = shape[0]
    return shape


def most_parts(shape: Shape) -> tuple[int, ...]:
    if isinstance(shape, int):
        return (shape,)
    inner = [most_parts(part) for part in shape]
    return (*map(max, zip(*inner, strict=True)), len(shape))


@given(shapes())
def test_the_one_inside_has_the_most_gpus_of_all_that_fit(shape: Shape) -> None:
    fitting = [
        sizes for sizes in product(*(range(1, n + 1) for n in LARGEST)) if holds(shape, sizes)
    ]
    best = max(fitting, key=lambda sizes: (math.prod(sizes), sizes[::-1]))
    assert regular_inside(shape) == built(best)


@given(shapes())
def test_the_one_around_has_as_many_parts_as_the_largest_unit_of_each_level(shape: Shape) -> None:
    assert regular_around(shape) == built(most_parts(shape))


@given(shapes())
def test_a_regular_shape_is_its_own_neighbours(shape: Shape) -> None:
    around = regular_around(shape)
    assert is_regular(around)
    assert is_regular(regular_inside(shape))
    assert regular_inside(around) == regular_around(around) == around


@pytest.mark.parametrize(
    ("placement", "inside", "around"),
    [
        ("8/7", "3+3/3+3", "4+4/4+4"),
        ("4+4,4", "4,4", "4+4,4+4"),
        ("4,4/4", "4/4", "4,4/4,4"),  # 4,4 in one rack has as many GPUs, but spans no racks
        ("4,4/2", "4,4", "4,4/4,4"),
        ("8/1", "4+4", "4+4/4+4"),
        ("2/1", "1/1", "2/2"),
    ],
)
def test_neighbours_worked_out_by_hand(placement: str, inside: str, around: str) -> None:
    shape = parse_signature(placement, SOCKETS, 4)
    assert shape_text(regular_inside(shape), SOCKETS) == inside
    assert shape_text(regular_around(shape), SOCKETS) == around


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("2,1", ["1,1,1", "2,2"]),
        ("2/1,1", ["1,1/1,1", "1/1/1/1", "2,2/2,2", "2/2/2"]),
        ("4,4", ["1,1,1,1,1,1,1,1", "2,2,2,2", "4,4"]),
    ],
)
def test_shapes_that_are_wider(text: str, wider: list[str]) -> None:
    machines = ("machine", "rack", "network")
    found = regular_wider(parse_signature(text, machines))
    assert {shape_text(one, machines) for one in found} == set(wider)


@given(shapes())
def test_a_wider_shape_is_regular_and_has_room_for_all_gpus(shape: Shape) -> None:
    for one in regular_wider(shape):
        assert is_regular(one)
        assert sum(leaf_counts(one)) >= sum(leaf_counts(shape))
    if is_regular(shape):
        assert built(most_parts(shape)) in regular_wider(shape)


@given(shapes())
def test_regular_shapes_alike_have_as_many_gpus_and_no_fewer_units_of_any_level(
    shape: Shape,
) -> None:
    for alike in regular_alike(shape):
        assert is_regular(alike)
        assert gpus_of(alike) == gpus_of(shape)
        units = unit_counts(alike)
        assert all(more >= few for more, few in zip(units, unit_counts(shape), strict=False))
        assert max(leaf_counts(alike)) <= max(leaf_counts(shape))


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("8,8,8,4,4", ["4,4,4,4,4,4,4,4"]),
        ("8,8,8,7/1", ["4,4,4,4/4,4,4,4"]),
        ("8,8,8/8", ["8,8/8,8"]),
        ("8,8/8", ["8/8/8", "6,6/6,6"]),
        ("4,2", ["3,3", "2,2,2"]),
        ("4,4/8/4", ["5/5/5/5", "4/4/4/4/4"]),
        ("8,8/8,8", ["8,8/8,8"]),
    ],
)
def test_regular_shapes_alike_by_hand(text: str, alike: list[str]) -> None:
    levels = SOCKETS[1:]
    found = regular_alike(parse_signature(text, levels))
    assert [shape_text(one, levels) for one in found] == alike

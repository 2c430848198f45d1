"""A placement without labels: as nested tuples (**shape**) and as text (**signature**).

In the signature `4+4,8/2`, `+` separates sockets of a machine, `,` machines of a rack and `/`
racks. Levels outside racks have `//`, `///` and so on; levels inside sockets have `++` and so on.
ASTRA-sim cannot tell two placements of one shape apart.

The program works with shapes. Signatures are for files, tables, messages and keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from artist.cluster.placement import Placement
from artist.cluster.tree import MAX_GPUS, ClusterTree
from artist.errors import ConfigError

Shape: TypeAlias = "int | tuple[Shape, ...]"
"""The GPU count of a leaf, or the shapes of the children of a unit, largest first."""


def shape(tree: ClusterTree, placement: Placement) -> Shape:
    """The placement's shape, down from the smallest unit that holds the whole placement."""
    units: Sequence[int] = placement.leaves
    shapes: Sequence[Shape] = placement.counts
    level = 0
    while len(units) > 1:
        parent = tree.levels[level].parent
        around: list[int] = []
        parts: list[list[Shape]] = []
        for unit, part in zip(units, shapes):
            outer = parent[unit]
            if around and around[-1] == outer:  # leaves ascend, and so do the units above them
                parts[-1].append(part)
            else:
                around.append(outer)
                parts.append([part])
        units, shapes = around, [_canonical(tuple(group)) for group in parts]
        level += 1
    return shapes[0]


def signature(tree: ClusterTree, placement: Placement) -> str:
    """The placement's signature."""
    if len(placement.leaves) == 1:
        return str(placement.counts[0])
    return shape_text(shape(tree, placement), tree.level_names)


def parse_signature(
    text: str,
    level_names: tuple[str, ...],
    gpus_per_socket: int | None = None,
    gpus_per_machine: int | None = None,
) -> Shape:
    """Read a signature written by hand; the inverse of `signature`.

    The parts may come in any order. A machine may be written as one number that is larger than a
    socket; it then fills its sockets one after the other. With sockets of four, `8` means `4+4`.

    Raises:
        ConfigError: the text is not a signature of a cluster with these levels.
    """
    separators = _separators(level_names)
    if not re.fullmatch(r"[0-9]+(([+]+|,+|/+)[0-9]+)*", text):
        raise ConfigError(
            f"placement {text!r}: expected GPU counts separated by '+' (socket), ',' (machine) "
            "or '/' (rack), such as 4+4,8/2"
        )
    unknown = sorted(set(re.findall(r"[+]+|,+|/+", text)) - set(separators))
    if unknown:
        raise ConfigError(
            f"placement {text!r}: separator {unknown[0]!r} has no level in this fabric "
            f"(levels: {', '.join(level_names)}; separators: {' '.join(separators)})"
        )
    # `int` refuses very long numbers, so they are read nine digits at a time. The first nine digits
    # of such a number are too large already.
    counts = [int(count) for count in re.findall("[0-9]{1,9}", text)]
    if 0 in counts or sum(counts) > MAX_GPUS:
        raise ConfigError(f"placement {text!r}: counts must be 1 to {MAX_GPUS} GPUs in all")
    parsed = _parse(text, separators, gpus_per_socket)
    if gpus_per_socket is not None and (most := max(leaf_counts(parsed))) > gpus_per_socket:
        raise ConfigError(
            f"placement {text!r}: {most} GPUs in a socket, and this fabric's have {gpus_per_socket}"
        )
    most = max(_gpus_of_machines(parsed, level_names.index("machine")))
    if gpus_per_machine is not None and most > gpus_per_machine:
        raise ConfigError(
            f"placement {text!r}: {most} GPUs in a machine, and machines have {gpus_per_machine}; "
            "write several machines with ',', or give --gpus-per-machine"
        )
    # A shape starts at the smallest unit that holds the whole placement.
    while not isinstance(parsed, int) and len(parsed) == 1:
        parsed = parsed[0]
    return parsed


def _gpus_of_machines(shape: Shape, levels_inside: int) -> list[int]:
    """GPUs of each machine. A machine has `levels_inside` levels inside."""
    if isinstance(shape, int) or depth(shape) <= levels_inside:
        return [gpus_of(shape)]
    return [gpus for part in shape for gpus in _gpus_of_machines(part, levels_inside)]


@lru_cache(maxsize=4096)
def shape_text(shape: Shape, level_names: tuple[str, ...]) -> str:
    """The signature of a shape."""
    return _text(shape, _separators(level_names)[: depth(shape)])


@lru_cache(maxsize=16384)
def gpus_of(shape: Shape) -> int:
    """Number of GPUs in a shape."""
    return sum(leaf_counts(shape))


@lru_cache(maxsize=4096)
def _canonical(parts: tuple[Shape, ...]) -> Shape:
    """The parts in the order in which a shape lists them, largest first."""
    return tuple(sorted(parts, key=_order, reverse=True))


def _order(shape: Shape) -> tuple[int, tuple[int, ...], str]:
    leaves = tuple(leaf_counts(shape))
    return (sum(leaves), leaves, repr(shape))


def leaf_counts(shape: Shape) -> list[int]:
    """GPUs of each leaf, in the order of the shape."""
    if isinstance(shape, int):
        return [shape]
    return [count for part in shape for count in leaf_counts(part)]


def depth(shape: Shape) -> int:
    """How many levels a shape has inside: 0 for a leaf, 1 for several leaves of one unit."""
    return 0 if isinstance(shape, int) else 1 + depth(shape[0])


def is_regular(shape: Shape) -> bool:
    """Whether the parts of every unit are alike."""
    if isinstance(shape, int):
        return True
    return all(part == shape[0] for part in shape) and is_regular(shape[0])


@lru_cache(maxsize=16384)
def unit_counts(shape: Shape) -> tuple[int, ...]:
    """How many units of each level the shape spans, innermost first, up to the one around all."""
    if isinstance(shape, int):
        return (1,)
    inside = zip(*(unit_counts(part) for part in shape), strict=True)
    return (*map(sum, inside), 1)


def regular_around(shape: Shape) -> Shape:
    """The smallest regular shape that contains this one.

    At each level it has as many parts as the unit with the most parts: `4+4,4` gives `4+4,4+4`.
    """
    return _regular(_most_parts(shape))


def regular_inside(shape: Shape) -> Shape:
    """The regular shape with the most GPUs that this one contains.

    `4+4,4+3` contains `4,4` (8 GPUs) and `3+3,3+3` (12 GPUs), so it gives the latter. Among equals,
    it is the one with more parts at the outermost level at which they differ.
    """
    best = max(_regular_sizes(shape), key=lambda sizes: (math.prod(sizes), sizes[::-1]))
    return _regular(best)


def regular_wider(shape: Shape) -> tuple[Shape, ...]:
    """Regular shapes that spread at least as far as this one, and have at least as many GPUs.

    Units are cut into pieces, and pieces filled up, until all parts are alike: `2/1,1` becomes
    `1/1/1/1`, `1,1/1,1`, `2/2/2` and `2,2/2,2`. Every other regular shape that spreads as far has
    more units of the outermost level than one of these.
    """
    return tuple(_regular(sizes) for sizes in sorted(set(_wider_sizes(shape))))


@lru_cache(maxsize=4096)
def regular_alike(shape: Shape) -> tuple[Shape, ...]:
    """Regular shapes with as many GPUs that spread at least as far, the one of fullest units first.

    They have at least as many units of every level: `4,4/8/4` becomes `5/5/5/5` and `4/4/4/4/4`.
    Those with less in a unit, by a divisor of what another one has there, are left out.
    """
    gpus, most = gpus_of(shape), max(leaf_counts(shape))
    return tuple(map(_regular, _alike_sizes(gpus, most, unit_counts(shape))))


def _alike_sizes(left: int, most: int, units: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Parts per level, innermost first, of `left` parts: at most `most` of them in a unit."""
    if not units:
        return [()]
    fullest: list[int] = []
    for size in range(min(most, left // units[0]), 0, -1):
        if left % size == 0 and all(larger % size for larger in fullest):
            fullest.append(size)
    return [
        (size, *outer)
        for size in fullest
        for outer in _alike_sizes(left // size, left // size, units[1:])
    ]


@lru_cache(maxsize=4096)
def _wider_sizes(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Parts per level, innermost first, of the regular shapes that are wider."""
    if isinstance(shape, int):
        return ((shape,),)
    # Several leaf sizes may give the same pieces; the smallest of them, which comes last, is kept.
    sizes = range(max(leaf_counts(shape)), 0, -1)
    size_of = {_in_pieces(shape, size): size for size in sizes}
    return tuple((size, *outer) for rest, size in size_of.items() for outer in _wider_sizes(rest))


def _in_pieces(shape: tuple[Shape, ...], size: int) -> Shape:
    """The shape in which each unit of leaves counts pieces of `size` GPUs in place of its GPUs."""
    if isinstance(shape[0], int):
        return sum(-(-gpus_of(leaf) // size) for leaf in shape)
    return tuple(_in_pieces(part, size) for part in shape if not isinstance(part, int))


def _most_parts(shape: Shape) -> tuple[int, ...]:
    """Per level, innermost first: the parts of the unit that has the most parts."""
    if isinstance(shape, int):
        return (shape,)
    inner = [_most_parts(part) for part in shape]
    return (*(max(sizes) for sizes in zip(*inner, strict=True)), len(shape))


@lru_cache(maxsize=4096)
def _regular_sizes(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Parts per level, innermost first, of the regular shapes in a shape that cannot grow."""
    if isinstance(shape, int):
        return ((shape,),)
    inside = [_regular_sizes(part) for part in shape]
    # A regular shape has the same inner sizes in all of its parts: those of one part, or the
    # smaller sizes of two parts, and so on.
    inner = set(inside[0]).union(*inside[1:])
    while True:
        met = {tuple(map(min, one, other)) for one, other in combinations(sorted(inner), 2)} - inner
        if not met:
            break
        inner |= met
    return tuple(
        (*sizes, sum(any(_covers(own, sizes) for own in part) for part in inside))
        for sizes in sorted(inner)
    )


def _covers(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(size >= least for size, least in zip(one, other, strict=True))


def _regular(sizes: Sequence[int]) -> Shape:
    """The regular shape with these numbers of parts per level, innermost first."""
    shape: Shape = sizes[0]
    for count in sizes[1:]:
        shape = (shape,) * count
    while not isinstance(shape, int) and len(shape) == 1:
        shape = shape[0]
    return shape


def _separators(level_names: tuple[str, ...]) -> list[str]:
    """The separator between units of each level, inner to outer; the outermost level has none."""
    machine = level_names.index("machine")
    inner = ["+" * repeats for repeats in range(machine, 0, -1)]
    outer = ["/" * repeats for repeats in range(1, len(level_names) - machine - 1)]
    return [*inner, ",", *outer]


def _text(shape: Shape, separators: list[str]) -> str:
    if isinstance(shape, int):
        return str(shape)
    return separators[-1].join(_text(part, separators[:-1]) for part in shape)


def _parse(text: str, separators: list[str], gpus_per_socket: int | None) -> Shape:
    if not separators:
        return int(text)
    mark = re.escape(separators[-1])
    char = re.escape(separators[-1][0])
    parts = re.split(rf"(?<!{char}){mark}(?!{char})", text)
    if separators == ["+"] and gpus_per_socket and len(parts) == 1 and int(text) > gpus_per_socket:
        full, rest = divmod(int(text), gpus_per_socket)
        return _canonical((gpus_per_socket,) * full + ((rest,) if rest else ()))
    return _canonical(tuple(_parse(part, separators[:-1], gpus_per_socket) for part in parts))

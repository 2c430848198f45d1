"""Do written placements lie where they say, and beside each other where they say nothing?"""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies import placements_on
from support import cluster

from artist.cluster.fabric import load_fabric
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import signature
from artist.errors import ConfigError
from artist.estimates.placements_from_text import WrittenPlacements

TREE = cluster([8, 8], [8, 8])


def taken(*texts: str) -> list[dict[int, int]]:
    """Leaf -> GPUs of each text, one after the other on four machines in two racks."""
    room = WrittenPlacements(TREE)
    placements = [room.take(text) for text in texts]
    return [dict(zip(one.leaves, one.counts, strict=True)) for one in placements]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["4"], [{0: 4}]),
        (["8/8"], [{0: 8, 2: 8}]),
        (["8/8", "8/8"], [{0: 8, 2: 8}, {1: 8, 3: 8}]),  # the same racks
        (["4,4", "4,4"], [{0: 4, 1: 4}, {0: 4, 1: 4}]),  # the same machines
        (["8", "4,4"], [{0: 8}, {2: 4, 3: 4}]),  # rack 0 has no room for two parts
        (["8/8@1,2", "8/8"], [{1: 8, 2: 8}, {0: 8, 3: 8}]),
        (["4,4/8@0-2"], [{0: 4, 1: 4, 2: 8}]),
        (["2/6@0,3"], [{0: 2, 3: 6}]),  # as written, though the shape is 6/2
    ],
)
def test_where_written_placements_lie(texts: list[str], expected: list[dict[int, int]]) -> None:
    assert taken(*texts) == expected


def test_a_machine_of_sockets_may_be_one_number() -> None:
    fabric = load_fabric("dally2025")
    tree = fabric.cluster(racks=2, machines_per_rack=2, gpus_per_machine=8)
    placed = WrittenPlacements(tree, fabric.gpus_per_socket).take("8/6@2,3,4,5")
    assert placed == Placement((2, 3, 4, 5), (4, 4, 4, 2))


@given(placements_on(TREE))
def test_a_placement_is_its_signature_at_its_leaves(placement: Placement) -> None:
    text = ",".join(map(str, placement.leaves))
    # The signature lists the largest parts first; only equal counts come back in any order.
    if len(set(placement.counts)) == 1:
        assert WrittenPlacements(TREE).take(f"{signature(TREE, placement)}@{text}") == placement
    assert signature(TREE, WrittenPlacements(TREE).take(signature(TREE, placement))) == signature(
        TREE, placement
    )


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["8/8@0,4"], "machine 4 is outside the cluster of 2x2x8, which has machines 0 to 3"),
        (["8/8@0,1"], "on these machines it is 8,8 on a cluster of 2x2x8"),
        (["8/8@0,1,2"], "3 different machines for 2 parts"),
        (["8/8@0,0"], "1 different machines for 2 parts"),
        (["8/8@"], "expected numbers of machines after '@'"),
        (["8/8@0;2"], "expected numbers of machines after '@'"),
        (["9"], "has no room for it"),
        (["1/1/1"], "has no room for it"),
        (["8,8", "8,8", "1"], "has no room for it"),
        (["8/8@0,2", "8/8@0,3"], "machine 0 has 8 GPUs, of which 0 are free, not 8"),
    ],
)
def test_each_mistake_has_its_own_message(texts: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        taken(*texts)

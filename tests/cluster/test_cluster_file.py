"""Does a cluster file become the tree, the kinds and the names that it describes?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cli.cluster_outline import lines, outline
from artist.cluster.cluster_file import cluster_names, load_cluster
from artist.cluster.cluster_links import fabric_of_cluster
from artist.cluster.fabric import load_fabric
from artist.cluster.tree import regular
from artist.config import Scenario
from artist.errors import ConfigError
from artist.run import build_cluster, build_fabric

HEAD = """\
name: mine
summary: for a test
levels: [region, rack, machine]
tree:
"""
EAST = """\
- name: east
  storage: 40TB
  kind: h100
  rack:
  - {count: 2, machine: {count: 3, gpus: 8}}
  - name: spare
    machine:
    - {gpus: 4, kind: a100}
    - {gpus: 2}
"""
WEST = "- {count: 2, rack: {machine: {gpus: 8}}}\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_units_are_counted_and_listed_from_the_outside_in(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, HEAD + EAST + WEST))
    tree = cluster.tree(("machine", "rack", "region", "network"), None)
    assert [level.gpus for level in tree.levels] == [
        (8, 8, 8, 8, 8, 8, 4, 2, 8, 8),
        (24, 24, 6, 8, 8),
        (54, 8, 8),
        (70,),
    ]
    assert tree.levels[1].parent == (0, 0, 0, 1, 2)
    assert cluster.gpus == tree.gpus


def test_a_kind_holds_for_all_machines_inside_unless_one_says_otherwise(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, HEAD + EAST + WEST))
    tree = cluster.tree(("machine", "rack", "region", "network"), None)
    assert tree.kinds == ("h100",) * 6 + ("a100", "h100", "gpu-machine", "gpu-machine")


def test_units_without_a_name_are_called_by_level_and_number(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, HEAD + EAST + WEST))
    assert cluster.regions == ("east", "region-1", "region-2")
    assert cluster.names["rack"] == ("rack-0", "rack-1", "spare", "rack-3", "rack-4")
    assert cluster.storage_bytes["region"] == (40 * 10**12, None, None)


def test_units_of_one_description_are_numbered(tmp_path: Path) -> None:
    west = WEST.replace("count: 2", "name: west, count: 2")
    assert load_cluster(written(tmp_path, HEAD + EAST + west)).regions == (
        "east",
        "west-0",
        "west-1",
    )


@pytest.mark.parametrize("fabric", ["dally2025", "hgx-h100"])
def test_racks_and_machines_make_the_tree_of_the_flags(tmp_path: Path, fabric: str) -> None:
    text = (
        f"name: mine\nsummary: as flags\nfabric: {fabric}\nlevels: [rack, machine]\n"
        "tree: {count: 3, machine: {count: 2, gpus: 6}}\n"
    )
    scenario = Scenario(cluster=written(tmp_path, text))
    links = build_fabric(scenario)
    sockets = links.gpus_per_socket
    assert build_cluster(scenario, links) == regular(
        racks=3, machines_per_rack=2, gpus_per_machine=6, gpus_per_socket=sockets
    )
    assert links == build_fabric(Scenario(fabric=fabric))


def test_a_scenario_may_name_another_fabric(tmp_path: Path) -> None:
    text = HEAD.replace("levels", "fabric: hgx-h100\nlevels") + WEST
    name = written(tmp_path, text)
    assert build_fabric(Scenario(cluster=name)).name == "hgx-h100"
    assert build_fabric(Scenario(cluster=name, fabric="t4")).name == "t4"
    assert build_fabric(Scenario(cluster=written(tmp_path, HEAD + WEST))).name == "dally2025"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + EAST + EAST, 14, "a second region called 'east'"),
        (HEAD + "- {rack: {machine: {count: 0, gpus: 8}}}", 5, "'count' is 0, expected at least 1"),
        (HEAD + "- {rack: {machine: {gpus: -8}}}", 5, "'gpus' is -8, expected at least 1"),
        (HEAD + EAST.replace("kind: a100", "knd: a100"), 12, "unknown setting 'knd' of a machine"),
        (HEAD + EAST.replace("storage", "storaeg"), 6, "did you mean 'storage'?"),
        (HEAD + EAST.replace("40TB", "40"), 6, "the number needs a unit (GB, TB, PB, TiB)"),
        (HEAD + "- {name: east}", 5, "a region without 'rack'"),
        (HEAD + "- {rack: {machine: {count: 2}}}", 5, "a machine without 'gpus'"),
        (HEAD + "- {rack: {machine: {gpus: ~}}}", 5, "a machine without 'gpus'"),
        (
            HEAD + "- {rack: {gpus: 2, machine: {gpus: 8}}}",
            5,
            "unknown setting 'gpus' of a rack: this entry is a rack, which takes machine, name, "
            "count, kind, storage, storage_bytes; gpus is for its machines",
        ),
        (
            HEAD + "- {region: {rack: {machine: {gpus: 8}}}}",
            5,
            "unknown setting 'region' of a region: this entry is a region, which takes rack, name",
        ),
        (HEAD + "- {rack: []}", 5, "a list without a rack"),
        (HEAD + "- {rack: 8}", 5, "a rack is 8, expected a mapping"),
        (HEAD + "- {name: region-1, rack: {machine: {gpus: 8}}}\n" + WEST, 5, "'region-1' is what"),
        (HEAD.replace("rack, machine", "rack") + WEST, 3, "the last one must be 'machine'"),
        (HEAD.replace("rack,", "count,") + WEST, 3, "'count' cannot be the name of a level"),
        ("wide: 1\n" + HEAD + WEST, 1, "unknown setting 'wide'"),
        (
            HEAD.replace("tree", "links: {rck: {}}\ntree") + WEST,
            4,
            "'links': unknown level 'rck': did you mean 'rack'?",
        ),
        (
            HEAD.replace("tree", "wide_area: {bandwidth: 0Gbit/s}\ntree") + WEST,
            4,
            "'wide_area.bandwidth': expected more than 0, got '0Gbit/s'",
        ),
        (HEAD + "- {rack: {count: 4000000, machine: {gpus: 999}}}", 5, "more than 4000000 GPUs"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_cluster(written(tmp_path, text))
    assert f"mine.yaml:{line}: " in str(refused.value)
    assert message in str(refused.value)


def test_levels_that_the_fabric_has_in_another_order_are_refused(tmp_path: Path) -> None:
    fabric = load_fabric("hgx-h100")
    machine, rack, network = fabric.levels
    spine = rack.model_copy(update={"name": "spine"})
    longer = fabric.model_copy(update={"levels": (machine, rack, spine, network)})
    text = "name: mine\nsummary: x\nlevels: [%s, %s, machine]\ntree: {%s: {machine: {gpus: 8}}}\n"
    right, wrong = (
        load_cluster(written(tmp_path, text % (outer, inner, inner))).file
        for outer, inner in (("spine", "rack"), ("rack", "spine"))
    )
    assert fabric_of_cluster(right, longer) == longer
    with pytest.raises(ConfigError, match="rack, spine, machine are not in the order of fabric"):
        fabric_of_cluster(wrong, longer)


def test_an_unknown_cluster_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown cluster 'thre-regions': did you mean 'three-re"):
        load_cluster("thre-regions")


@pytest.mark.parametrize("name", cluster_names())
def test_shipped_clusters_load_with_their_fabric(name: str) -> None:
    scenario = Scenario(cluster=name)
    tree = build_cluster(scenario, build_fabric(scenario))
    cluster = load_cluster(name)
    assert cluster.file.name == name
    assert tree.gpus == cluster.gpus
    for level, names in cluster.names.items():
        assert len(names) == len(set(names)) == len(tree.levels[tree.level_names.index(level)])


def test_alike_neighbours_are_one_line_of_the_outline(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, HEAD + EAST + WEST))
    tree = cluster.tree(("machine", "rack", "region", "network"), None)
    assert "\n".join(lines(outline(tree, cluster))) == (
        "network: 70 GPUs\n"
        "|- region east: 54 GPUs, storage 40 TB\n"
        "|  |- 2 racks of 24 GPUs\n"
        "|  |  `- 3 machines of 8 GPUs (h100)\n"
        "|  `- rack spare: 6 GPUs\n"
        "|     |- machine: 4 GPUs (a100)\n"
        "|     `- machine: 2 GPUs (h100)\n"
        "`- 2 regions of 8 GPUs\n"
        "   `- rack: 8 GPUs\n"
        "      `- machine: 8 GPUs"
    )

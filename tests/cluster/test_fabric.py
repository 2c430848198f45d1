"""Are fabric files read as they say, and is each mistake in them reported with its line?"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from artist.cluster.fabric import Fabric, fabric_names, load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.io.shipped import resource
from artist.run import build_cluster
from artist.units import GIB


def document(name: str = "dally2025") -> dict:
    return yaml.safe_load(resource("astra_configs", "fabrics", f"{name}.yaml").read_text())


def gib_per_s(gigabits_per_s: float) -> float:
    """A vendor's decimal Gb/s in ASTRA-sim's unit."""
    return gigabits_per_s * 1e9 / 8 / GIB


@pytest.mark.parametrize("name", fabric_names())
def test_a_shipped_fabric_says_where_each_number_comes_from(name: str) -> None:
    fabric = load_fabric(name)
    assert fabric.name == name
    for level in fabric.levels:
        assert level.source
        assert level.uplink is None or level.uplink.source


@pytest.mark.parametrize(
    ("name", "levels", "gpus_per_socket"),
    [
        ("dally2025", ("socket", "machine", "rack", "network"), 4),
        ("h100-quantum2-spectrum4", ("machine", "rack", "network"), None),
    ],
)
def test_a_fabric_builds_the_regular_cluster_of_its_levels(
    name: str, levels: tuple[str, ...], gpus_per_socket: int | None
) -> None:
    fabric = load_fabric(name)
    tree = fabric.cluster(racks=2, machines_per_rack=3, gpus_per_machine=8)
    assert fabric.level_names == tree.level_names == levels
    assert fabric.gpus_per_socket == gpus_per_socket
    assert tree.gpus == 48


@pytest.mark.parametrize(
    ("level", "gigabits_per_s"),
    [
        # NVLink 4: 900 GB/s both ways = 450 GB/s = 3,600 Gb/s per direction.
        ("machine", 3600),
        ("rack", 400),  # Quantum-2 NDR
        ("network", 400),  # still the GPU's port
    ],
)
def test_vendors_decimal_bandwidths_are_converted_to_gib_per_s(
    level: str, gigabits_per_s: float
) -> None:
    levels = {entry.name: entry for entry in load_fabric("h100-quantum2-spectrum4").levels}
    assert levels[level].bandwidth_gib_per_s == pytest.approx(gib_per_s(gigabits_per_s), rel=1e-4)


@pytest.mark.parametrize(
    ("level", "gigabits_per_s", "count"), [("machine", 400, 8), ("rack", 800, 32)]
)
def test_uplinks_are_the_vendors_ports(level: str, gigabits_per_s: float, count: int) -> None:
    levels = {entry.name: entry for entry in load_fabric("h100-quantum2-spectrum4").levels}
    uplink = levels[level].uplink
    assert uplink is not None
    assert uplink.rate_gib_per_s == pytest.approx(gib_per_s(gigabits_per_s), rel=1e-3)
    assert uplink.count == count
    assert uplink.links_gib_per_s == uplink.rate_gib_per_s * count


def test_a_fabric_with_other_levels_cannot_build_a_regular_cluster() -> None:
    levels = document("h100-quantum2-spectrum4")["levels"]
    levels.insert(2, {**levels[1], "name": "row"})
    fabric = Fabric.model_validate({**document(), "levels": levels})
    with pytest.raises(
        ConfigError, match=r"has levels machine, rack, row, network, but .*--cluster"
    ):
        fabric.cluster(racks=1, machines_per_rack=1, gpus_per_machine=8)


# -- files -------------------------------------------------------------------------------


def test_a_fabric_in_the_working_directory_comes_before_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "astra_configs" / "fabrics"
    folder.mkdir(parents=True)
    own = {**document(), "summary": "my own"}
    (folder / "dally2025.yaml").write_text(yaml.safe_dump(own))
    monkeypatch.chdir(tmp_path)
    assert load_fabric("dally2025").summary == "my own"
    assert load_fabric("h100-quantum2-spectrum4").name == "h100-quantum2-spectrum4"
    assert load_fabric("astra_configs/fabrics/dally2025.yaml").summary == "my own"


def test_an_unknown_fabric_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown fabric 'daly2025': did you mean 'dally2025'"):
        load_fabric("daly2025")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        load_fabric(str(tmp_path / "none.yaml"))


TEXT = """\
name: mine
summary: two levels
levels:
  - name: machine
    topology: Ring
    bandwidth_gib_per_s: 100
    latency_ns: 10
    source: me
  - name: network
    topology: Switch
    bandwidth_gib_per_s: 10
    latency_ns: 100
    source: me
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("levels:", "sytem: {}\nlevels:", ":3: unknown setting 'sytem': did you mean 'system'"),
        ("name: machine", "level: machine", ":4: unknown setting 'levels.0.level': known: name, "),
        ("topology: Ring", "topology: Rign", ":5: 'levels.0.topology' is 'Rign', expected 'Ring'"),
        ("_s: 10\n", "_s: -10\n", ":11: 'levels.1.bandwidth_gib_per_s' is -10, expected more tha"),
        ("_s: 10\n", "_s: .inf\n", ":11: 'levels.1.bandwidth_gib_per_s' is inf, expected a finite"),
        ("_s: 10\n", "_s: ten\n", ":11: 'levels.1.bandwidth_gib_per_s' is 'ten', expected a numbe"),
        ("    latency_ns: 100\n", "", ":9: setting 'levels.1.latency_ns' is missing"),
        ("name: network", "name: machine", "levels machine, machine: names must differ"),
        ("name: machine", "name: socket", "levels socket, network: names must differ"),
        ("levels:", "levels: [", "not valid YAML"),
        (
            "    source: me\n  - name: net",
            "    gpus: 4\n    source: me\n  - name: net",
            "'gpus' belongs",
        ),
        (
            "    latency_ns: 100\n",
            "    latency_ns: 100\n    uplink: {rate_gib_per_s: 1, count: 1, source: me}\n",
            "level network: the outermost level can have no 'uplink'",
        ),
        ("latency_ns: 100\n", "latency: 100\n", ":12: 'levels.1.latency'.*latency_ns takes"),
        ("levels:", "system: {endpoint_delay: 10}\nlevels:", "did you mean 'endpoint_delay_ns'"),
    ],
)
def test_a_mistake_in_a_file_is_found_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in TEXT
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as caught:
        load_fabric(str(path))
    assert str(caught.value).startswith(f"{path}:")


@pytest.mark.parametrize(
    ("uplink", "message"),
    [
        ("rate_gib_per_s: 1, count: 0", ":8: 'levels.0.uplink.count' is 0, expected at least 1"),
        ("rate_gib_per_s: 4, count: 2", "its uplink carries 8 GiB/s, but level network gives one"),
        ("rate_gib_per_s: 10", "give rate and count, or oversubscription"),
        ("oversubscription: 2, count: 2", "give rate and count, or oversubscription"),
        ("oversubscription: 0", ":8: 'levels.0.uplink.oversubscription' is 0, expected"),
        ("oversubscription: 2, eta: 1.1", ":8: 'levels.0.uplink.eta' is 1.1, expected at most 1"),
        ("oversubscripton: 2", ":8: .*did you mean 'oversubscription'"),
    ],
)
def test_a_mistake_in_an_uplink_is_found(tmp_path: Path, uplink: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    first = "    latency_ns: 10\n"
    path.write_text(TEXT.replace(first, f"{first}    uplink: {{{uplink}, source: me}}\n"))
    with pytest.raises(ConfigError, match=message):
        load_fabric(str(path))


@pytest.mark.parametrize(("rate", "good"), [(9.991, True), (9.98, False)])
def test_an_uplink_below_one_flow_is_refused_but_for_rounding(rate: float, good: bool) -> None:
    raw = yaml.safe_load(TEXT)
    raw["levels"][0]["uplink"] = {"rate_gib_per_s": rate, "count": 1, "source": "me"}
    if good:
        assert Fabric.model_validate(raw).levels[0].uplink is not None
    else:
        with pytest.raises(ValueError, match="gives one flow 10 GiB/s"):
            Fabric.model_validate(raw)


def test_a_rack_that_shares_its_bandwidth_needs_no_machine_with_all_of_it() -> None:
    raw = document("h100-quantum2-spectrum4")
    raw["levels"][2] |= {"bandwidth_gib_per_s": 2980, "shared_by": "rack"}
    assert Fabric.model_validate(raw)


def test_a_tree_with_larger_sockets_than_the_fabrics_is_refused() -> None:
    with pytest.raises(ConfigError, match="socket of 8 GPUs"):
        build_cluster(Scenario(tree=[[[8, 8]]]), load_fabric("dally2025"))


def test_sockets_must_say_how_many_gpus_they_hold() -> None:
    raw = document()
    del raw["levels"][0]["gpus"]
    with pytest.raises(ValueError, match="level socket: 'gpus' must say"):
        Fabric.model_validate(raw)

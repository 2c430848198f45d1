"""Are a scenario's changes of its fabric what they say, in every spelling, and nothing else?"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from artist.cluster.fabric import Fabric, FabricLevel, fabric_names, load_fabric, with_system
from artist.cluster.fabric_options import LevelOptions, changes_text, with_options
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.experiment import Experiment, runs
from artist.experiments.relative_values import scenario_at
from artist.io.documents import validate
from artist.run import build_fabric
from artist.settings import assign, load_scenario
from artist.units import BANDWIDTH_UNITS, GIB, bandwidth_texts, from_base_unit, latency_text

DALLY = load_fabric("dally2025")


def changed(*sets: str) -> Fabric:
    """The fabric `dally2025` with these assignments of `--set`."""
    scenario = load_scenario(None, {}, [f"fabric.{text}" for text in sets])
    return with_options(DALLY, scenario.fabric_options)


def level(fabric: Fabric, name: str) -> FabricLevel:
    return next(level for level in fabric.levels if level.name == name)


def uplinks_gib_per_s(fabric: Fabric) -> dict[str, float | None]:
    return {level.name: level.uplink.links_gib_per_s for level in fabric.levels if level.uplink}


def test_twice_the_network_has_network_cards_that_carry_it() -> None:
    a100 = load_fabric("a100")
    twice = with_options(a100, {"network": LevelOptions(bandwidth_gib_per_s=372.6)})
    assert level(twice, "network").bandwidth_gib_per_s == 372.6
    assert uplinks_gib_per_s(twice) == {"machine": 372.6}
    # A network card that carries the faster flow stays as it is: t4 has 5.82 GiB/s.
    t4 = load_fabric("t4")
    twice = with_options(t4, {"network": LevelOptions(bandwidth_gib_per_s=1.2)})
    assert uplinks_gib_per_s(twice) == uplinks_gib_per_s(t4)
    slower = with_options(a100, {"network": LevelOptions(bandwidth_gib_per_s=1.2)})
    assert uplinks_gib_per_s(slower) == uplinks_gib_per_s(a100)


def uplink_of(fabric: Fabric) -> tuple[object, ...]:
    uplink = level(fabric, "rack").uplink
    assert uplink is not None
    return uplink.oversubscription, uplink.count, uplink.routing, uplink.routed_links


def test_a_scenario_says_how_many_links_an_uplink_has_and_how_connections_share_them() -> None:
    assert uplink_of(changed("rack.links=4", "rack.routing=ecmp")) == (1, 4, "ecmp", 4)
    assert uplink_of(changed("rack.links=4", "rack.routing=pooled")) == (1, 4, "pooled", 1)
    sets = ("rack.routing=static", "rack.oversubscription=2", "rack.links=8")
    assert uplink_of(changed(*sets)) == (2, 8, "static", 8)
    ports = load_fabric("h100-quantum2-spectrum4")
    assert uplink_of(with_options(ports, {"rack": LevelOptions(routing="ecmp")})) == (
        None, 32, "ecmp", 32
    )  # fmt: skip
    # Without a routing it is the fabric that it was, to the digest.
    assert with_options(ports, {"rack": LevelOptions(links=32)}).digest == ports.digest


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("rack.links=4",), r"fabric.rack.links: .* give fabric.rack.routing=ecmp too"),
        (("rack.routing=ecmp",), r"fabric.rack.routing: .* give fabric.rack.links=4 too"),
        (("rack.queue_pairs=4",), r"queue_pairs has no effect without routing"),
        (("network.links=4",), r"fabric.network.links: this level states no uplink"),
    ],
)
def test_links_and_routing_go_together(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        changed(*sets)


@pytest.mark.parametrize("fabric", ["dally2025", "h100-quantum2-spectrum4"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queue_pairs": 4}, "queue_pairs has no effect without routing"),
        ({"links": 4, "routing": "pooled", "queue_pairs": 4}, "give routing ecmp or static too"),
        ({"links": 1025, "routing": "ecmp"}, "1025 links with routing ecmp, .* at most 1024"),
    ],
)
def test_links_are_refused_whether_or_not_a_fabric_states_rates(
    fabric: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^fabric\.rack.*{message}"):
        with_options(load_fabric(fabric), {"rack": LevelOptions(**options)})


def test_only_routed_links_have_a_limit() -> None:
    assert uplink_of(changed("rack.links=1024", "rack.routing=ecmp"))[1] == 1024
    assert uplink_of(changed("rack.links=2000", "rack.routing=pooled"))[1] == 2000


def test_a_routed_link_carries_one_flow() -> None:
    # Eight links carry together what one of them cannot.
    a100 = load_fabric("a100")
    fast = level(a100, "network").bandwidth_gib_per_s
    narrow = {"machine": LevelOptions(links=8, routing="ecmp")}
    with pytest.raises(
        ConfigError, match=r"one link of its uplink carries 23\.28 GiB/s, but level"
    ):
        with_options(a100, narrow)
    twice = {**narrow, "network": LevelOptions(bandwidth_gib_per_s=fast)}
    faster = level(with_options(a100, twice), "machine").uplink
    assert faster is not None
    assert faster.rate_gib_per_s == fast


# -- units -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("100Gbit/s", 12_500_000_000),
        ("100Gb/s", 12_500_000_000),
        ("100 Gbps", 12_500_000_000),
        ("100000Mbit/s", 12_500_000_000),
        ("0.1Tbit/s", 12_500_000_000),
        ("1e2Gbit/s", 12_500_000_000),
        ("12.5GB/s", 12_500_000_000),
        ("12.5 GBps", 12_500_000_000),
        ("12500MB/s", 12_500_000_000),
        ("12GiB/s", 12 * 2**30),
        ("512MiB/s", 2**29),
    ],
)
def test_bandwidths_are_read_exactly(text: str, bytes_per_s: int) -> None:
    read = level(changed(f"network.bandwidth={text}"), "network").bandwidth_gib_per_s
    assert read == float(Fraction(bytes_per_s, GIB))


def test_a_hundred_gigabits_in_the_unit_of_fabrics() -> None:
    assert level(changed("rack.bandwidth=100Gbit/s"), "rack").bandwidth_gib_per_s == pytest.approx(
        11.641532182693481, rel=1e-15
    )
    assert bandwidth_texts(11.641532182693481) == ("100 Gbit/s", "12.5 GB/s", "11.64 GiB/s")
    assert bandwidth_texts(1e-9)[2] == "1e-09 GiB/s"


@pytest.mark.parametrize(
    ("text", "ns"),
    [("500ns", 500.0), ("2us", 2000.0), ("2µs", 2000.0), ("2μs", 2000.0), ("1.5 ms", 1.5e6)],
)
def test_latencies_are_read_exactly(text: str, ns: float) -> None:
    assert level(changed(f"rack.latency={text}"), "rack").latency_ns == ns


def test_latencies_are_shown_short() -> None:
    assert [latency_text(ns) for ns in (0, 936.25, 50_000, 2e6)] == [
        "0 ns", "936.2 ns", "50 us", "2 ms",
    ]  # fmt: skip


@given(st.floats(1e-3, 1e5), st.sampled_from(sorted(BANDWIDTH_UNITS)))
def test_a_bandwidth_in_any_unit_comes_back(gib_per_s: float, unit: str) -> None:
    written = f"{from_base_unit(gib_per_s, unit, BANDWIDTH_UNITS):.17g}{unit}"
    read = LevelOptions.model_validate({"bandwidth": written}).bandwidth_gib_per_s
    assert read == pytest.approx(gib_per_s, rel=1e-14)


@pytest.mark.parametrize(
    ("bandwidth", "gib_per_s"), [("1Mbit/s", 1e6 / 8 / 2**30), ("1000000Gbit/s", 1e15 / 8 / 2**30)]
)
@pytest.mark.parametrize(("latency", "ns"), [("0ns", 0.0), ("1s", 1e9)])
def test_the_slowest_and_the_fastest_link_are_accepted(
    bandwidth: str, gib_per_s: float, latency: str, ns: float
) -> None:
    rack = level(changed(f"rack.bandwidth={bandwidth}", f"rack.latency={latency}"), "rack")
    assert (rack.bandwidth_gib_per_s, rack.latency_ns) == (gib_per_s, ns)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("bandwidth=0.999Mbit/s", r"a link of 0\.0001163 GiB/s; expected 1 Mbit/s to 1 Pbit/s"),
        ("bandwidth=1000001Gbit/s", r"a link of 1\.164e\+05 GiB/s; expected 1 Mbit/s to 1 Pbit/s"),
        ("bandwidth_gib_per_s=1e-9", r"so check the unit"),
        ("latency=10s", r"a hop of 10000 ms; expected at most 1 s, so check the unit"),
        ("latency_ns=1000000001", r"expected at most 1 s"),
    ],
)
def test_a_link_that_no_cluster_has_is_refused(change: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        changed(f"rack.{change}")


def test_a_fabric_file_has_the_same_bounds() -> None:
    for key, value in (("bandwidth_gib_per_s", 1e-9), ("latency_ns", 1e10)):
        document = DALLY.model_dump()
        document["levels"][0][key] = value
        with pytest.raises(ConfigError, match="so check the unit"):
            validate(document, Fabric, "fabric")


# -- one change, one form --------------------------------------------------------------


def test_only_what_is_named_changes() -> None:
    fabric = changed("network.bandwidth=100Gbit/s", "rack.topology=Switch")
    assert [one.name for one in fabric.levels] == [one.name for one in DALLY.levels]
    assert level(fabric, "rack").topology == "Switch"
    assert level(fabric, "network").latency_ns == 50_000
    assert [level(fabric, name) for name in ("socket", "machine")] == list(DALLY.levels[:2])
    assert (fabric.system, fabric.calibration) == (DALLY.system, DALLY.calibration)


def test_two_spellings_are_one_scenario() -> None:
    spellings = [
        ["fabric.network.bandwidth=100Gbit/s", "fabric.machine.latency=1us"],
        ["fabric.machine.latency_ns=1000", "fabric.network.bandwidth_gib_per_s=11.641532182693481"],
        ["fabric.network.bandwidth=12.5GB/s", "fabric.machine.latency=0.001ms"],
    ]
    scenarios = [load_scenario(None, {}, sets) for sets in spellings]
    assert len({scenario.model_dump_json() for scenario in scenarios}) == 1
    assert scenarios[0] == scenarios[1] == scenarios[2]
    again = Scenario.model_validate(scenarios[0].model_dump())
    assert again == scenarios[0]


def test_a_fabric_that_is_not_changed_leaves_no_trace() -> None:
    """Thus ids of runs, digests and bytes of manifests stay what they were."""
    assert "fabric_options" not in Scenario().model_dump()
    assert Scenario(fabric_options={"network": {}}) == Scenario()
    assert with_options(DALLY, {}) is DALLY
    for name in fabric_names():
        assert "shared_by" not in load_fabric(name).model_dump_json()


def test_a_changed_fabric_has_another_digest() -> None:
    assert changed("network.bandwidth=100Gbit/s").digest != DALLY.digest
    assert changed("network.bandwidth_gib_per_s=400").digest == DALLY.digest


@pytest.mark.parametrize("base", [{"bandwidth": "1Gbit/s"}, {"bandwidth_gib_per_s": 3}])
@pytest.mark.parametrize("key", ["bandwidth", "bandwidth_gib_per_s"])
def test_the_later_setting_counts_in_any_spelling(base: dict, key: str) -> None:
    value = "100Gbit/s" if key == "bandwidth" else 11.641532182693481
    before = {"fabric_options": {"network": {**base, "latency": "1us"}}}
    scenario = Scenario(**assign(before, f"fabric.network.{key}", value))
    options = scenario.fabric_options["network"]
    assert (options.bandwidth_gib_per_s, options.latency_ns) == (11.641532182693481, 1000)


def test_a_grid_changes_the_base() -> None:
    experiment = Experiment(
        name="e",
        version=1,
        base={"fabric_options": {"network": {"bandwidth": "1Gbit/s", "latency": "1us"}}},
        grid={"fabric.network.bandwidth": ["10Gbit/s", "100Gbit/s"]},
    )
    cells = runs(experiment)
    texts = [changes_text(run.scenario.fabric_options) for run in cells]
    assert texts == [f"network bandwidth {n} Gbit/s, network latency 1 us" for n in (10, 100)]
    assert [run.point for run in cells] == [
        (("fabric.network.bandwidth", text),) for text in ("10Gbit/s", "100Gbit/s")
    ]
    assert [run.id.split("_")[0] for run in cells] == ["10Gbit-s", "100Gbit-s"]


# -- uplinks ---------------------------------------------------------------------------


def test_an_oversubscription_replaces_what_the_file_states() -> None:
    fabric = load_fabric("h100-quantum2-spectrum4")
    options = {"rack": LevelOptions(oversubscription=4)}
    uplink = level(with_options(fabric, options), "rack").uplink
    assert uplink is not None
    assert (uplink.oversubscription, uplink.rate_gib_per_s, uplink.count) == (4, None, None)
    assert uplink.source == "chosen in the scenario"
    # Where the file states none, there is one now.
    assert level(with_options(load_fabric("t4"), options), "rack").uplink == uplink


def test_the_efficiency_of_an_uplink_stays_beside_its_links() -> None:
    fabric = load_fabric("h100-quantum2-spectrum4")
    before = level(fabric, "rack").uplink
    one = with_options(fabric, {"rack": LevelOptions(eta=0.9)})
    assert before is not None
    assert level(one, "rack").uplink == before.model_copy(update={"eta": 0.9})
    both = level(with_options(one, {"rack": LevelOptions(oversubscription=2)}), "rack").uplink
    assert both is not None
    assert (both.eta, both.oversubscription) == (0.9, 2)


def test_an_oversubscription_is_swept_and_shown() -> None:
    experiment = Experiment(
        name="e", version=1, base={}, grid={"fabric.rack.oversubscription": [1, 2, 4]}
    )
    texts = [changes_text(run.scenario.fabric_options) for run in runs(experiment)]
    assert texts == [f"rack oversubscription {n}:1" for n in (1, 2, 4)]


# -- files -----------------------------------------------------------------------------


def test_a_fabric_file_may_use_units() -> None:
    plain = yaml.safe_load(DALLY.model_dump_json())
    spelt = yaml.safe_load(DALLY.model_dump_json())
    for raw in (plain, spelt):
        raw["levels"][3] |= {"bandwidth_gib_per_s": 1}
        raw["levels"][1]["uplink"] = {"count": 8, "source": "me"}
    plain["levels"][2] |= {"bandwidth_gib_per_s": 12_500_000_000 / GIB, "latency_ns": 2000.0}
    plain["levels"][1]["uplink"] |= {"rate_gib_per_s": 50_000_000_000 / GIB}
    rack, uplink = spelt["levels"][2], spelt["levels"][1]["uplink"]
    for key in ("bandwidth_gib_per_s", "latency_ns"):
        del rack[key]
    rack |= {"bandwidth": "100Gbit/s", "latency": "2us"}
    uplink |= {"rate": "400Gbit/s"}
    read = Fabric.model_validate(spelt)
    assert read == Fabric.model_validate(plain)
    assert read.digest == Fabric.model_validate(plain).digest


# -- mistakes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("network.bandwidth=100", ["needs a unit", "bandwidth=100Gbit/s", "per_s takes a number"]),
        ("network.latency=5", ["needs a unit", "ns, us, ms", "latency=2us", "latency_ns takes"]),
        ("network.bandwidth=100Gbit", ["a number with a unit", "'100Gbit'"]),
        ("network.bandwidth=100us", ["a number with a unit", "'100us'"]),
        ("network.bandwidth=-1Gbit/s", ["a number with a unit", "'-1Gbit/s'"]),
        ("network.bandwidth=true", ["a number with a unit", "True"]),
        ("network.bandwidth=", ["a number with a unit", "None"]),
        ("network.bandwidth=0GB/s", ["expected more than 0"]),
        ("network.bandwidth_gib_per_s=3Gbit/s", ["expected a number", "'3Gbit/s'"]),
        ("network.bandwith=1Gbit/s", ["network.bandwith'", "did you mean 'bandwidth'"]),
        ("network.colour=red", ["known: ", "bandwidth", "latency", "topology", "pair_share"]),
        ("network.topology=Torus", ["'Ring', 'FullyConnected' or 'Switch'", "'Torus'"]),
        ("network.pair_share=2", ["expected at most 1"]),
        ("network.collective=magic", ["collective", "'magic'"]),
        ("network=12", ["KEY: VALUE", "bandwidth: 100Gbit/s"]),
        ("netwrk.latency=1us", ["socket, machine, rack, network", "did you mean 'network'?"]),
        ("moon.latency=1us", ["'dally2025' has the levels socket, machine, rack, network"]),
        ("rack.oversubscription=0", ["more than 0"]),
        ("network.oversubscription=2", ["level network: the outermost level can have no 'uplink'"]),
        ("rack.eta=0", ["more than 0"]),
        ("rack.eta=1.2", ["at most 1"]),
        ("socket.eta=0.9", ["states no uplink", "fabric.socket.oversubscription too"]),
        ("rack.shared_by=network", ["rack: ", "not a level inside it", "socket, machine"]),
        ("socket.shared_by=machine", ["level socket", "none is"]),
    ],
)  # fmt: skip
def test_each_mistake_has_its_own_message(text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(text)
    for word in words:
        assert word in str(caught.value)


def test_a_level_that_the_cluster_file_leaves_out_is_said_to_be_its(tmp_path: Path) -> None:
    document = {"name": "mine", "summary": "", "levels": ["machine"],
                "tree": [{"count": 2, "gpus": 8}]}  # fmt: skip
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(document))
    base = {"cluster": str(tmp_path / "mine.yaml"), "fabric": "a100"}
    says = "'a100' has the levels machine, network of the cluster file 'mine'"
    with pytest.raises(ConfigError, match=says):
        build_fabric(load_scenario(None, base, ["fabric.rack.bandwidth=1GB/s"]))
    with pytest.raises(ConfigError, match=says):
        scenario_at(base, [("fabric.rack.bandwidth", "x2")], "here")


def test_one_setting_in_two_spellings_is_refused() -> None:
    with pytest.raises(ConfigError, match="bandwidth and bandwidth_gib_per_s are the same setting"):
        Scenario(fabric_options={"rack": {"bandwidth": "1GB/s", "bandwidth_gib_per_s": 1}})


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        ({}, {}, "needs system.rings=one, or system.collective_optimization=localBWAware"),
        ({"rings": "one"}, {"collective": "direct"}, "take collective 'ring'"),
        (
            {"collective_optimization": "localBWAware"}, {"collective": "oneRing"},
            "take collective 'ring'",
        ),
    ],
)  # fmt: skip
def test_settings_that_would_miscount_a_shared_card_are_refused(
    system: dict, options: dict, words: str
) -> None:
    shared = LevelOptions(shared_by="machine", **options)
    with pytest.raises(ConfigError, match=words):
        with_system(with_options(DALLY, {"rack": shared}), system)

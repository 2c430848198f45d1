"""What do the links of a cluster file's outer levels grant a job, and carry?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cluster.links import capacity_gib_per_s
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.dimensions import dimensions
from artist.run import build_cluster, build_fabric, build_latency

GIB_PER_GBIT = 10**9 / 8 / 2**30

TEXT = """\
name: mine
summary: for a test
fabric: hgx-h100
levels: [region, datacenter, rack, machine]
links:
  region: {bandwidth: 100Gbit/s, latency: 20us}
wide_area: {bandwidth: 400Gbit/s, latency: 30ms, source: a test}
tree:
  count: 3
  datacenter: {count: 2, rack: {count: 2, machine: {count: 2, gpus: 8}}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    return Scenario(cluster=str(path))


def test_a_level_that_the_fabric_does_not_know_is_like_its_outermost(scenario: Scenario) -> None:
    rack, datacenter, region = build_fabric(scenario).levels[1:4]
    assert datacenter.bandwidth_gib_per_s == 50  # the network of hgx-h100
    assert region.bandwidth_gib_per_s == pytest.approx(100 * GIB_PER_GBIT)
    assert region.latency_ns == 20_000
    assert rack == build_fabric(Scenario(fabric="hgx-h100")).levels[1]


def test_a_missing_fabric_that_the_file_names_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "far.yaml"
    path.write_text(
        "{name: far, summary: x, fabric: near.yaml, levels: [machine], tree: {count: 2, gpus: 8}}"
    )
    words = r"cluster '.*far\.yaml': 'fabric': near\.yaml: cannot be read .*; paths count from the"
    with pytest.raises(ConfigError, match=words):
        build_fabric(Scenario(cluster=str(path)))
    with pytest.raises(ConfigError, match=r"^mine\.yaml: cannot be read"):
        build_fabric(Scenario(cluster=str(path), fabric="mine.yaml"))


def test_gpus_of_a_job_in_a_region_share_its_wide_area_link(scenario: Scenario) -> None:
    sixteen = ((8, 8), (8, 8))
    wide = dimensions((sixteen[0], sixteen[1]), build_fabric(scenario))  # inside a datacenter
    assert [dim.level for dim in wide] == ["machine", "rack", "datacenter"]
    one = (((8, 8),),)
    last = dimensions((one, one), build_fabric(scenario))[-1]
    assert last.level == "network"
    assert last.bandwidth_gib_per_s == pytest.approx(400 / 16 * GIB_PER_GBIT)
    assert last.latency_ns == 15e6  # a Switch counts two hops


def test_a_gpu_gets_no_more_between_regions_than_inside_one(scenario: Scenario) -> None:
    last = dimensions(((((1,),),), (((1,),),)), build_fabric(scenario))[-1]
    assert last.bandwidth_gib_per_s == pytest.approx(100 * GIB_PER_GBIT)


def test_the_link_of_a_region_carries_what_the_file_states(scenario: Scenario) -> None:
    fabric = build_fabric(scenario)
    tree = build_cluster(scenario, fabric)
    region = tree.level_names.index("region")
    carried = capacity_gib_per_s(tree, fabric, region, 0)
    assert carried == pytest.approx(400 * GIB_PER_GBIT)


def test_a_fast_wide_area_network_widens_no_link_inside_a_region(tmp_path: Path) -> None:
    """An uplink stated as a ratio is as wide as what units can send, and that passes the rack."""
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT.replace("400Gbit/s", "100Tbit/s"))
    changed = {"rack": {"oversubscription": 2.0}}
    scenario = Scenario(cluster=str(path), fabric_options=changed)
    fabric = build_fabric(scenario)
    tree = build_cluster(scenario, fabric)
    assert capacity_gib_per_s(tree, fabric, 1, 0) == pytest.approx(16 * 50 / 2)


def test_a_fabric_whose_gpus_all_send_everything_cannot_share_a_wide_area_link(
    scenario: Scenario,
) -> None:
    settings = scenario.model_copy(
        update={"system": {"collective_optimization": "baseline"}},
    )
    with pytest.raises(ConfigError, match=r"shared_by region needs .*localBWAware"):
        build_latency(settings, build_fabric(settings))

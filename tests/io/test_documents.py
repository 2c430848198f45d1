"""Do errors in YAML files lead to the line and to the nearest key?"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from artist.cluster.fabric import Fabric, load_fabric
from artist.config import Scenario
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.io.documents import load_yaml
from artist.io.shipped import resource
from artist.network.rates.isolated import AloneRates
from artist.run import (
    build_calibration,
    build_cluster,
    build_latency,
    build_policy,
    build_trace,
    simulate,
)

SHIPPED = resource("astra_configs", "fabrics", "dally2025.yaml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("summary:", "sumary:", ["unknown setting 'sumary'", "did you mean 'summary'"]),
        ("    latency_ns: 5000", "    latency: 5000", ["levels.2.latency", "latency_ns"]),
        ("      oversubscription", "      oversubscripton", ["did you mean 'oversubscription'"]),
        ("  endpoint_delay_ns: 10", "  endpoint_delay: 10", ["did you mean 'endpoint_delay_ns'"]),
        ("bandwidth_gib_per_s: 200", "bandwidth_gib_per_s: fast", ["'fast'"]),
        ("topology: Switch", "topology: Star", ["'Star'"]),
    ],
)
def test_a_mistake_in_a_fabric_is_named_with_its_line(tmp_path: Path, old, new, words) -> None:
    assert old in SHIPPED
    path = tmp_path / "mine.yaml"
    path.write_text(SHIPPED.replace(old, new, 1))
    line = SHIPPED[: SHIPPED.index(old)].count("\n") + 1
    with pytest.raises(ConfigError) as caught:
        load_yaml(path, Fabric)
    assert f"mine.yaml:{line}" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_sockets_larger_than_the_fabrics_are_refused() -> None:
    scenario = Scenario(tree=[[[8, 8]]])
    with pytest.raises(ConfigError, match="socket of 8 GPUs"):
        build_cluster(scenario, load_fabric("dally2025"))


def test_the_real_composition_pickles_at_a_question_and_goes_on_the_same() -> None:
    scenario = Scenario(racks=1, trace="tiny-batch")
    fabric = load_fabric(scenario.fabric)
    tree = build_cluster(scenario, fabric)
    policy = build_policy(scenario)
    service = build_latency(scenario, fabric, build_calibration(scenario, fabric))
    simulator = Simulator(
        tree,
        build_trace(scenario, tree).jobs,
        AloneRates(tree, service.estimate),
        lease=policy.lease,
    )
    for _ in range(5):
        view = simulator.next_question()
        assert view is not None
        simulator.answer(policy.decide(view))
    assert simulator.next_question() is not None
    simulator, policy = pickle.loads(pickle.dumps((simulator, policy)))  # noqa: S301 - our own
    simulator.answer(policy.decide(simulator.view()))
    while (view := simulator.next_question()) is not None:
        simulator.answer(policy.decide(view))
    whole = simulate(scenario)
    assert len(simulator.rows.placements) == len(whole.tables["placements"]["job_id"])
    assert simulator.rows.events == whole.summary["events"]

"""What the episodes of one scenario share: everything that does not depend on the seed.

`artist.run.prepare` builds everything for one run from scratch. An episode lasts a tenth of a
second, so cluster, estimates and curves are kept between episodes. They depend only on models and
links, not on the order of episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from artist.cluster.visiting_order import VisitingOrder
from artist.config import Scenario
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.network.demand.curves import Curves
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.rate_functions import open_contention
from artist.run import (
    build_calibration,
    build_cluster,
    build_fabric,
    build_failures,
    build_latency,
    build_trace,
)
from artist.trace.native.trace import Trace


@dataclass(frozen=True)
class _Network(NetworkOfRun):
    """A network whose curves are kept. Copies of it share them."""

    kept: list[Curves] = field(default_factory=list)

    def curves(self, what: str) -> Curves:
        if not self.kept:
            self.kept.append(super().curves(what))
        return self.kept[0]


class ScenarioSetup:
    """Makes simulators of one scenario for different seeds."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises ArtistError if anything but the trace of the scenario is wrong."""
        if scenario.data is not None:
            raise ConfigError(
                f"data={scenario.data}: an agent cannot be told where tables are; leave data out"
            )
        self.scenario = scenario
        fabric = build_fabric(scenario)
        self.tree = build_cluster(scenario, fabric)
        calibration = build_calibration(scenario, fabric)
        estimates = build_latency(scenario, fabric, calibration)
        self._network = _Network(self.tree, fabric, estimates, scenario.seed)
        self._order = VisitingOrder(self.tree, scenario.permutation)

    def simulator(self, seed: int) -> tuple[Simulator, Trace]:
        """A simulator of the scenario with this seed, as `artist.run.prepare` would make it.

        There is no policy and there are no leases: whoever drives the simulator answers.
        """
        scenario = self.scenario.model_copy(update={"seed": seed})
        trace = build_trace(scenario, self.tree)
        rates = open_contention(
            scenario.contention, scenario.contention_options, replace(self._network, seed=seed)
        )
        failures = build_failures(scenario, self.tree, trace)
        simulator = Simulator(
            self.tree,
            trace.jobs,
            rates,
            visiting_order=self._order,
            events=None if failures is None else failures.events(seed),
            checkpoints=None if failures is None else failures.checkpoints,
        )
        return simulator, trace

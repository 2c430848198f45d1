"""The network of a run for its rate function, and records of turns and links that jobs took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from artist.cluster.fabric import Fabric
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError, shortened
from artist.estimates.backends import NoCommunication
from artist.network.rates.isolated import AloneRates
from artist.units import Tick

# Only for types: a run without a network does not load these modules.
if TYPE_CHECKING:
    from artist.estimates.latency_service import LatencyService
    from artist.estimates.model_steps import ModelSteps
    from artist.estimates.speeds import SpeedsOfRun
    from artist.network.demand.curves import Curves
    from artist.network.demand.routes import Taken
    from artist.network.rates.interference import PairSpeeds


class TurnTaken(NamedTuple):
    """A job that took turns from `start` to `end` at one rate."""

    handle: int
    start: Tick
    end: Tick
    corrections_per_min: float


class TurnsOfRun:
    """A record, filled during a run, of the jobs that take turns and of their corrections."""

    def __init__(self) -> None:
        self.taken: list[TurnTaken] = []
        """Turns in the order in which they ended."""
        self._now: dict[int, tuple[Tick, float]] = {}

    def takes(self, handle: int, now: Tick, corrections_per_min: float) -> None:
        """Note that from now on a job takes turns, with this many corrections a minute."""
        if self._now.get(handle, (now, None))[1] != corrections_per_min:
            self.ends(handle, now)
            self._now[handle] = now, corrections_per_min

    def ends(self, handle: int, now: Tick) -> None:
        """Note that from now on a job takes no turns."""
        if handle in self._now:
            start, corrections_per_min = self._now.pop(handle)
            if start < now:
                self.taken.append(TurnTaken(handle, start, now, corrections_per_min))


class LinksTaken:
    """A record, filled during a run, of the links that the connections of each job take."""

    def __init__(self) -> None:
        self._of: dict[int, list[tuple[Tick, Taken]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A copy without records, because copies of a run write no table of links."""
        return {"_of": {}}

    def note(self, handle: int, since: Tick, taken: Taken) -> None:
        """Note that a job has these links from a tick on."""
        of_job = self._of.setdefault(handle, [])
        if not of_job or of_job[-1] != (since, taken):
            of_job.append((since, taken))

    def at(self, handle: int, tick: Tick) -> tuple[Tick, Taken] | None:
        """The links of a job at a tick, and since when it has them; None if it has none."""
        before = [noted for noted in self._of.get(handle, ()) if noted[0] <= tick]
        return before[-1] if before else None


@dataclass(frozen=True)
class NetworkOfRun:
    """What models of contention may ask: the links, and estimates of iterations on them."""

    tree: ClusterTree
    fabric: Fabric
    estimates: LatencyService | NoCommunication
    seed: int
    turns: TurnsOfRun = field(default_factory=TurnsOfRun)
    """Filled while the run goes on."""
    taken: LinksTaken = field(default_factory=LinksTaken)
    """Filled while the run goes on; empty if all links are pooled."""
    speeds: SpeedsOfRun | None = None
    """Speeds of kinds of GPUs, if the cluster has several kinds."""
    model_steps: ModelSteps | None = None
    """Steps of the trace's models, if jobs send the bytes of their models."""
    sharing: PairSpeeds | None = None
    """What jobs on the same GPUs cost each other, if the policy lets any share."""

    @property
    def alone(self) -> AloneRates:
        """The rate function of jobs in isolation."""
        estimates = self.estimates
        return AloneRates(
            self.tree, estimates.estimate, estimates.everywhere, self.speeds, self.model_steps
        )

    def curves(self, what: str) -> Curves:
        """Curves: what jobs send, and how long iterations take at a share of the bandwidth.

        Raises:
            ConfigError: the run has no backend; `what` names the option that needs one.
        """
        if isinstance(self.estimates, NoCommunication):
            raise ConfigError(
                f"{what}: backend none has no communication, so jobs send nothing on links; take "
                "--backend analytical, or leave it out"
            )
        from artist.network.demand.curves import Curves

        return Curves(self.estimates.asker, self.estimates.known_query)

    def check_uplinks(self, model: str) -> None:
        """Check that jobs can meet on links.

        Raises:
            ConfigError: no level has an uplink.
        """
        if not self.fabric.uplink_levels:
            raise ConfigError(
                f"contention {model}: fabric {self.fabric.name!r} states no uplink, so jobs share "
                "no link; describe one (uplink), or use --contention none"
            )


def lone_rates(argument: str, options: Mapping[str, Any], network: NetworkOfRun) -> AloneRates:
    """The rate function of `--contention none`: every job runs as in isolation."""
    if argument:
        raise ConfigError(f"contention none:{argument}: none takes no argument; write none")
    if options:
        raise ConfigError(
            f"contention none takes no settings, got {shortened(next(iter(options)))}; "
            "contention.* goes with --contention mean, phase or fluid"
        )
    return network.alone

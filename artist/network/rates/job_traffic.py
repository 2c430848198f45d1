"""What each job of a run sends on uplinks in isolation.

The rate at which a job sends on an uplink depends on the level. Bytes that leave a rack are sent
while a dimension outside the rack is busy (`Curve.busy_ratio`), not while the job communicates
inside the rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from artist.cluster.links import Link, both_directions
from artist.cluster.placement import Placement, unit_counts
from artist.cluster.placement_shape import gpus_of, shape
from artist.cluster.tree import ClusterTree
from artist.contract import LinkPattern, Uplink, UpPhase
from artist.estimates.dimensions import asked_shapes, level_sizes
from artist.network.co_located import SLOWED, CurvedJob
from artist.network.demand.curves import Curves, LevelTraffic
from artist.network.demand.routes import outside, routed
from artist.network.demand.traffic import Traffic
from artist.network.demand.up_phases import UpPhases
from artist.network.demand.ways import Known, Way, ways
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.placed_job import LookedUpTraffic, On, PlacedJob
from artist.units import GIB

MOST_LOOKED = 4096
"""Placements that are remembered; they return again and again."""


class JobTraffic:
    """Answers about single jobs. They never change, so copies of a run share them."""

    def __init__(
        self, network: NetworkOfRun, curves: Curves, up_phases: Mapping[str, UpPhases]
    ) -> None:
        self._tree, self._fabric, self._curves = network.tree, network.fabric, curves
        self._up_phases = up_phases
        self.levels = network.fabric.uplink_levels
        """Levels with uplinks, inner to outer."""
        names, levels = network.fabric.level_names, network.fabric.levels
        self._level = {name: index for index, name in enumerate(names)}
        self._granted = [
            sum(level.bandwidth_gib_per_s for level in levels[index + 1 :])
            for index in range(len(levels))
        ]
        """By level: the bandwidth of a GPU on all levels outside together, GiB/s."""
        self._outer = [frozenset(names[index + 1 :]) for index in range(len(names))]
        """By level: the names of the levels outside."""
        self._capacities: dict[On, float] = {}
        self._known_links: Known = {}
        self._crossed: dict[Placement, dict[On, int]] = {}
        self._looked_before: dict[tuple[str, Placement, int], LookedUpTraffic] = {}

    def crossed(self, placement: Placement) -> dict[On, int]:
        """By uplink that a placement crosses: a bound on the GPUs that send over it.

        That is the GPUs in the placement's largest part. If a regular shape stands for an uneven
        placement, its parts may have more (`traffic`).
        """
        if placement not in self._crossed:
            if len(self._crossed) >= MOST_LOOKED:
                self._crossed.clear()
            self._crossed[placement] = self._look_up_crossed(placement)
        return self._crossed[placement]

    def _look_up_crossed(self, placement: Placement) -> dict[On, int]:
        found: dict[On, int] = {}
        found.update(crossed(self._tree, self.levels, placement).items())
        placed = shape(self._tree, placement)
        asked = asked_shapes(placed, self._fabric) if found else (placed,)
        if asked == (placed,):
            return found
        largest = max(gpus_of(shape_) // level_sizes(shape_)[-1][1] for shape_ in asked)
        return {uplink: max(gpus, largest) for uplink, gpus in found.items()}

    def capacity(self, uplink: On) -> float:
        """Bytes per second in one direction, of a whole uplink or of one link of it."""
        if uplink not in self._capacities:
            level, unit, *index = uplink
            up, _ = both_directions(self._tree, self._fabric, level, unit)
            self._capacities[uplink] = up.bytes_per_s / (self.routed_links(level) if index else 1)
        return self._capacities[uplink]

    def links_of(self, uplink: Uplink) -> list[On]:
        """The links of an uplink on which connections are put; the uplink itself if pooled."""
        count = self.routed_links(uplink[0])
        return [uplink] if count == 1 else [(*uplink, index) for index in range(count)]

    def routed_links(self, level: int) -> int:
        """The number of links per uplink of a level; 1 if they are pooled."""
        stated = self._fabric.levels[level].uplink
        return 1 if stated is None else stated.routed_links

    def on(self, link: Link) -> On:
        """The key of a link: its uplink, with `link.index` if it is one of several links."""
        level = self._level[link.level]
        return (level, link.unit) if link.index is None else (level, link.unit, link.index)

    def sends(self, placed: PlacedJob, uplink: On) -> bool:
        """Whether a job sends on an uplink. A job may cross one without sending."""
        return uplink in self.at(placed, uplink[0]).offered

    def most(self, placed: PlacedJob, uplink: On) -> float:
        """A bound on the bytes/s that a job sends out of a unit: its largest part at full rates."""
        granted = self._granted[uplink[0]]
        return placed.gpus_in_a_part[uplink] * granted * GIB / placed.stretch

    def at(self, placed: PlacedJob, level: int) -> LookedUpTraffic:
        """What a job sends over the uplinks of a level and outer ones."""
        looked = placed.looked.get(level)
        if looked is None:
            # Jobs of one model on the same GPUs send the same; only their compute times differ.
            key = (placed.job.model, placed.placement, level)
            looked = self._looked_before.get(key) if placed.taken is None else None
            if placed.taken is not None:
                looked = self._look_up_traffic(placed, level)
            elif looked is None:
                if len(self._looked_before) >= MOST_LOOKED:
                    self._looked_before.clear()
                looked = self._looked_before[key] = self._look_up_traffic(placed, level)
            placed.looked[level] = looked
        return looked

    def _look_up_traffic(self, placed: PlacedJob, level: int) -> LookedUpTraffic:
        sent = self.sent(placed, level)
        of_job = self._ways(placed, sent.traffic, level)
        busy_s = sent.busy_s
        offered: dict[On, tuple[float, float]] = {}
        for way in of_job if busy_s else ():
            if not way.volume_bytes:
                continue
            for link in way.links:
                uplink = self.on(link)
                up, down = offered.get(uplink, (0.0, 0.0))
                rate = way.volume_bytes / busy_s
                offered[uplink] = (up + rate, down) if link.direction == "up" else (up, down + rate)
        return LookedUpTraffic(of_job, offered, busy_s / sent.compute_s)

    def _ways(self, placed: PlacedJob, traffic: Traffic, level: int) -> tuple[Way, ...]:
        if placed.taken is None:
            return self.every_way(placed, traffic, level)
        # Routes belong to connections between the innermost units, so all ways are routed first.
        every = self.every_way(placed, traffic)
        names = self._fabric.level_names
        return outside(routed(every, placed.taken), frozenset(names[level:]))

    def every_way(self, placed: PlacedJob, traffic: Traffic, level: int = 0) -> tuple[Way, ...]:
        """The job's ways on pooled links, at `level` and outer ones."""
        return ways(self._tree, self._fabric, placed.placement, traffic, level, self._known_links)

    def sent(self, placed: PlacedJob, level: int) -> LevelTraffic:
        """The model's traffic over a level and outer ones, at the whole bandwidth."""
        key = (placed.job.model, shape(self._tree, placed.placement), self._outer[level])
        return self._curves.sent(*key)

    def curved(self, placed: PlacedJob, level: int) -> CurvedJob:
        """The job for a model of contention, with its traffic over a level and outer ones."""
        if level not in placed.curved:
            curve = self._curves.curve(
                placed.job.model, shape(self._tree, placed.placement), self._outer[level]
            )
            of_job = self.at(placed, level).ways
            stretch = placed.stretch
            placed.curved[level] = CurvedJob(
                of_job,
                curve,
                placed.job.compute_s * stretch,
                stretch=stretch,
                phases=self._phases_of(placed.job.model),
            )
        return placed.curved[level]

    def pattern(self, placed: PlacedJob) -> LinkPattern:
        """What the job does on its uplinks in isolation (`SharedLinks.pattern`).

        A job that wants more of one uplink than it carries sends for longer, on all uplinks.
        """
        up: dict[Uplink, UpPhase] = {}
        phases = self._phases_of(placed.job.model)
        tightest, filled = 1.0 + SLOWED, None
        for uplink in placed.gpus_in_a_part:
            looked = self.at(placed, uplink[0])
            if uplink in looked.offered:
                rates = looked.offered[uplink]
                up[uplink] = UpPhase(looked.busy_ratio * placed.job.compute_s, *rates)
                times = max(rates) / self.capacity(uplink)
                if times > tightest:
                    tightest, filled = times, uplink
        if filled is None:
            return _in_phases(LinkPattern(placed.alone.iteration_s, up), phases)
        shape_ = shape(self._tree, placed.placement)
        curve = self._curves.curve(placed.job.model, shape_, self._outer[filled[0]])
        curved = CurvedJob((), curve, placed.job.compute_s)
        # At shares below the smallest of the curve, nothing becomes longer.
        share = max(1.0 / tightest, curve.shares[-1])
        longer_s = curved.iteration_s(share) - curved.iteration_s(1.0)
        slower = {}
        for uplink, x in up.items():
            part, out, into = x.up_s / (x.up_s + longer_s), x.out_bytes_per_s, x.in_bytes_per_s
            slower[uplink] = UpPhase(x.up_s + longer_s, out * part, into * part)
        return _in_phases(LinkPattern(placed.alone.iteration_s + longer_s, slower), phases)

    def _phases_of(self, model: str) -> UpPhases | None:
        """Up phases measured for the model with its settings, or else for the model."""
        if not self._up_phases:
            return None
        from artist.workload.models import canonical_if_known

        name = canonical_if_known(model.partition(" (")[0])
        return self._up_phases.get(name) or self._up_phases.get(name.partition("@")[0])


def crossed(tree: ClusterTree, stated: Iterable[int], placement: Placement) -> dict[Uplink, int]:
    """By uplink that a placement crosses: the most GPUs that it has in one unit of the level."""
    inside: dict[Uplink, int] = {}
    for level in stated:
        units = unit_counts(tree, placement, level)
        if len(units) == 1:
            break
        inside.update(dict.fromkeys(((level, unit) for unit in units), max(units.values())))
    return inside


def _in_phases(pattern: LinkPattern, phases: UpPhases | None) -> LinkPattern:
    """The pattern with measured Up phases, if there are any."""
    if phases is None:
        return pattern
    return pattern._replace(
        up={
            uplink: x._replace(bursts=phases.bursts(x.up_s, pattern.iteration_s))
            for uplink, x in pattern.up.items()
        }
    )

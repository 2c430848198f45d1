"""Which jobs meet on which uplinks, and where they want more than there is.

Only jobs that cross an uplink which **binds** can be slowed down. An uplink binds if what its jobs
send while they communicate, each as in isolation, exceeds what it carries. On an oversubscribed
fabric one job can do that (decision 20). Most uplinks never bind, so they are left out before a
model is asked anything.

What a job sends on an uplink depends on the level from which it is looked at. Its bytes on the
dimensions that leave a rack are sent while any of these is busy (`Curve.busy_ratio`), not while the
job communicates inside the rack.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from artist.cluster.links import Link, both_directions
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import gpus_of, shape
from artist.cluster.tree import ClusterTree
from artist.contract import LinkPattern, Uplink, UpPhase
from artist.estimates.dimensions import asked_shapes, level_sizes
from artist.network.co_located import SLOWED, CurvedJob, seen_by_models
from artist.network.demand.curves import Curves, LevelTraffic
from artist.network.demand.routes import Routes, Taken, outside, routed
from artist.network.demand.traffic import Traffic
from artist.network.demand.up_phases import UpPhases
from artist.network.demand.ways import (
    Known,
    Way,
    bytes_on_links,
    contention,
    efficiency,
    shared_link,
    together,
    ways,
)
from artist.network.models.mean import sending_job
from artist.network.models.patterns import Flow, SharedLink
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.placed_job import LoneJob, LookedUpTraffic, On, PlacedJob
from artist.units import GIB

MOST_LOOKED = 4096
"""Placements that are remembered; they return again and again."""


class Uplinks:
    """The jobs on each uplink, kept while jobs come and go."""

    def __init__(
        self,
        network: NetworkOfRun,
        curves: Curves,
        eta: float,
        up_phases: Mapping[str, UpPhases] | None = None,
    ) -> None:
        self._tree, self._fabric, self._curves = network.tree, network.fabric, curves
        self._up_phases = up_phases or {}
        self.eta = eta
        self._uplink_levels = network.fabric.uplink_levels
        names = network.fabric.level_names
        self._level = {name: index for index, name in enumerate(names)}
        # Out of a machine lead its network cards. They serve connections in turn.
        self.fair_queued = frozenset(names[: network.tree.machine + 1])
        self._capacities: dict[On, float] = {}
        self._known_links: Known = {}
        self._crossed: dict[Placement, dict[On, int]] = {}
        levels = network.fabric.levels
        self._granted = [
            sum(level.bandwidth_gib_per_s for level in levels[index + 1 :])
            for index in range(len(levels))
        ]
        """By level: what all levels outside grant a GPU together."""
        self._outer = [frozenset(names[index + 1 :]) for index in range(len(names))]
        """By level: the names of the levels outside."""
        self._jobs: dict[On, dict[int, PlacedJob]] = {}
        self._routes = Routes(network.fabric, network.seed)
        self._busy: dict[Uplink, float] = {}
        """Those that are busy, until a job enters or leaves."""
        self._changed: set[On] = set()
        """Those that jobs have entered or left since `_busy` was asked for."""
        self.binding: set[On] = set()
        self._looked_before: dict[tuple[str, Placement, int], LookedUpTraffic] = {}

    def facts(self, jobs: Iterable[PlacedJob]) -> Iterator[object]:
        """What copies of a run may share, also of jobs: answers that stay true."""
        yield from (self._fabric, self._curves, self._capacities, self._looked_before)
        yield from (self._known_links, self._crossed, self._granted, self._outer)
        for placed in jobs:
            yield from (placed.looked, placed.curved, placed.lone, placed.lone_shares)
            yield from (placed.placement, placed.alone, placed.taken)

    def enter(self, placed: PlacedJob, taken: Taken | None = None) -> None:
        """A job gets its GPUs; `taken` are the links that its connections are on already."""
        if self._routes.routed:
            self._put_on_links(placed, taken)
        self._enter(placed)

    def _enter(self, placed: PlacedJob) -> None:
        for uplink in placed.gpus_in_a_part:
            self._jobs.setdefault(uplink, {})[placed.handle] = placed
        self._changed |= placed.gpus_in_a_part.keys()

    def leave(self, placed: PlacedJob) -> None:
        """A job loses its GPUs."""
        self._routes.leave(placed.handle)
        self._leave(placed)

    def _leave(self, placed: PlacedJob) -> None:
        for uplink in placed.gpus_in_a_part:
            there = self._jobs[uplink]
            del there[placed.handle]
            if not there:
                del self._jobs[uplink]
        self._changed |= placed.gpus_in_a_part.keys()

    def after(self, gone: Sequence[PlacedJob], come: Sequence[PlacedJob]) -> Uplinks:
        """A copy of these uplinks on which some jobs have left and others have entered."""
        # Policies ask this for each placement that they consider. So only the jobs of uplinks that
        # change are copied; the other uplinks are shared with the copy.
        twin = copy.copy(self)
        if self._routes.routed:
            twin._routes = self._routes.without([placed.handle for placed in gone])
            for placed in come:
                twin._put_on_links(placed)
        touched = {uplink for placed in (*gone, *come) for uplink in placed.gpus_in_a_part}
        copied = {uplink: dict(self._jobs.get(uplink, {})) for uplink in touched}
        twin._jobs = {**self._jobs, **copied}
        twin._busy, twin._changed = dict(self._busy), set(self._changed)
        twin.binding = set(self.binding)
        for placed in gone:
            twin._leave(placed)
        for placed in come:
            twin._enter(placed)
        twin.changed(touched)
        return twin

    def busy(self) -> dict[Uplink, float]:
        """Of each busy uplink: what its jobs would send in isolation, over what it carries.

        Averages over iterations; the busier direction counts. An uplink that carries all that the
        GPUs of its unit can send is never busy. Its links count together, since who asks does not
        know on which of them a job's connections would be put.
        """
        # Several jobs may have come and gone since the last question. One sum serves them all.
        for uplink in {(x[0], x[1]) for x in self._changed}:
            busy = self._busy_now(uplink) if self._oversubscribed(uplink) else 0.0
            if busy:
                self._busy[uplink] = busy
            else:
                self._busy.pop(uplink, None)
        self._changed.clear()
        return self._busy

    def crossed(self, placement: Placement) -> dict[On, int]:
        """The uplinks that a placement crosses, and the GPUs that may send over each.

        These are its GPUs in the largest part. A part of a regular shape that stands for an uneven
        placement may have more (`traffic`).
        """
        if placement not in self._crossed:
            if len(self._crossed) >= MOST_LOOKED:
                self._crossed.clear()
            self._crossed[placement] = self._look_up_crossed(placement)
        return self._crossed[placement]

    def _look_up_crossed(self, placement: Placement) -> dict[On, int]:
        found: dict[On, int] = {}
        found.update(crossed(self._tree, self._uplink_levels, placement).items())
        placed = shape(self._tree, placement)
        asked = asked_shapes(placed, self._fabric) if found else (placed,)
        if asked == (placed,):
            return found
        largest = max(gpus_of(one) // level_sizes(one)[-1][1] for one in asked)
        return {uplink: max(gpus, largest) for uplink, gpus in found.items()}

    def changed(self, touched: Iterable[On]) -> set[int]:
        """Look again at uplinks that jobs have entered or left: handles of all affected jobs."""
        affected: set[int] = set()
        for uplink in sorted(touched):
            binds = self._binds(uplink)
            # Jobs on an uplink that has just ceased to bind are affected too: they run faster.
            if binds or uplink in self.binding:
                affected.update(self._jobs.get(uplink, ()))
            if binds:
                self.binding.add(uplink)
            else:
                self.binding.discard(uplink)
        return affected

    def bound(self, placed: PlacedJob) -> list[On]:
        """The uplinks that bind and on which a job sends. A job may cross one without sending."""
        return [
            uplink
            for uplink in placed.gpus_in_a_part
            if uplink in self.binding and self._sends(placed, uplink)
        ]

    def sharers(self, placed: PlacedJob) -> set[int]:
        """Handles of the jobs that share a binding uplink with a job, and its own."""
        return {placed.handle} | {
            handle
            for uplink in self.bound(placed)
            for handle, other in self._jobs[uplink].items()
            if self._sends(other, uplink)
        }

    def joined(
        self, handles: Iterable[int], placed: Mapping[int, PlacedJob], most: int
    ) -> list[int]:
        """Handles of all jobs that are joined to some; more than `most`, maybe not all of them."""
        joined = set(handles)
        front = sorted(joined)
        while front and len(joined) <= most:
            sharers = self.sharers(placed[front.pop()]) - joined
            joined |= sharers
            front += sorted(sharers)
        return sorted(joined)

    def curved(self, placed: PlacedJob) -> CurvedJob:
        """The job for a model of contention, looked at from its innermost uplink that binds."""
        level = min(self.bound(placed))[0]
        if level not in placed.curved:
            curve = self._curves.curve(
                placed.job.model, shape(self._tree, placed.placement), self._outer[level]
            )
            of_job = self._traffic_at(placed, level).ways
            stretch = placed.stretch
            placed.curved[level] = CurvedJob(
                of_job,
                curve,
                placed.job.compute_s * stretch,
                stretch=stretch,
                phases=self._phases_of(placed.job.model),
            )
        return placed.curved[level]

    def lone(self, placed: PlacedJob) -> LoneJob:
        """The same job on its links, without any other."""
        level = min(self.bound(placed))[0]
        if level not in placed.lone:
            placed.lone[level] = _lone(self.curved(placed))
        return placed.lone[level]

    def pattern(self, placed: PlacedJob) -> LinkPattern:
        """What the job does on its uplinks in isolation (`SharedLinks.pattern`).

        If it overfills one of its own, it sends for longer, on all of them.
        """
        if placed.taken is not None:
            # Turns are taken on all links of an uplink together.
            crossed = self.crossed(placed.placement)
            placed = PlacedJob(-1, placed.job, placed.placement, 0, placed.alone, crossed)
        up: dict[Uplink, UpPhase] = {}
        phases = self._phases_of(placed.job.model)
        tightest, filled = 1.0 + SLOWED, None
        for level, unit in placed.gpus_in_a_part:
            uplink = level, unit
            looked = self._traffic_at(placed, level)
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
        # Beyond the smallest share nothing becomes longer.
        share = max(1.0 / tightest, curve.shares[-1])
        longer_s = curved.iteration_s(share) - curved.iteration_s(1.0)
        slower = {}
        for uplink, x in up.items():
            part, out, into = x.up_s / (x.up_s + longer_s), x.out_bytes_per_s, x.in_bytes_per_s
            slower[uplink] = UpPhase(x.up_s + longer_s, out * part, into * part)
        return _in_phases(LinkPattern(placed.alone.iteration_s + longer_s, slower), phases)

    def _phases_of(self, model: str) -> UpPhases | None:
        """Those that were measured of the model with its settings, or else of the model."""
        if not self._up_phases:
            return None
        from artist.workload.models import canonical_if_known

        name = canonical_if_known(model.partition(" (")[0])
        return self._up_phases.get(name) or self._up_phases.get(name.partition("@")[0])

    def binds(self, link: Link) -> bool:
        """Whether a link belongs to an uplink that binds."""
        return self._on(link) in self.binding

    def shared_link(self, link: Link) -> SharedLink:
        """A link as models of contention know it."""
        return shared_link(link, self.eta, self.fair_queued)

    def _oversubscribed(self, uplink: Uplink) -> bool:
        level, unit = uplink
        granted = max(x.bandwidth_gib_per_s for x in self._fabric.levels[level + 1 :])
        most = self._tree.levels[level].gpus[unit] * granted * GIB
        return most > self.capacity(uplink) * (1 + SLOWED)

    def _busy_now(self, uplink: Uplink) -> float:
        ups, downs = [], []
        for link in self._links_of(uplink):
            for placed in self._jobs.get(link, {}).values():
                looked = self._traffic_at(placed, uplink[0])
                up, down = looked.offered.get(link, (0.0, 0.0))
                part = looked.busy_ratio * placed.job.compute_s / placed.alone.iteration_s
                ups.append(up * part / placed.stretch)
                downs.append(down * part / placed.stretch)
        return max(math.fsum(ups), math.fsum(downs)) / self.capacity(uplink)

    def _links_of(self, uplink: Uplink) -> list[On]:
        count = self._routed_links(uplink[0])
        return [uplink] if count == 1 else [(*uplink, index) for index in range(count)]

    def _routed_links(self, level: int) -> int:
        stated = self._fabric.levels[level].uplink
        return 1 if stated is None else stated.routed_links

    def _binds(self, uplink: On) -> bool:
        jobs = self._jobs.get(uplink, {}).values()
        if not jobs:
            return False
        capacity = self.capacity(uplink)
        usable = capacity * self._efficiency(uplink[0])
        # This bound needs GPU counts only. Often it spares looking up the traffic of each job.
        if sum(self._most(placed, uplink) for placed in jobs) <= usable:
            return False
        offered = [
            (up / placed.stretch, down / placed.stretch)
            for placed in jobs
            if self._sends(placed, uplink)
            for up, down in [self._traffic_at(placed, uplink[0]).offered[uplink]]
        ]
        most = max(sum(up for up, _ in offered), sum(down for _, down in offered))
        # A lone job loses nothing to others, and capacities are rounded.
        return most > (usable if len(offered) > 1 else capacity * (1 + SLOWED))

    def capacity(self, uplink: On) -> float:
        """Bytes per second in one direction, of all links of an uplink or of one of them."""
        if uplink not in self._capacities:
            level, unit, *which = uplink
            up, _ = both_directions(self._tree, self._fabric, level, unit)
            self._capacities[uplink] = up.bytes_per_s / (self._routed_links(level) if which else 1)
        return self._capacities[uplink]

    def _efficiency(self, level: int) -> float:
        stated = self._fabric.levels[level]
        assert stated.uplink is not None
        return efficiency(stated.name, stated.uplink.eta, self.eta, self.fair_queued)

    def _on(self, link: Link) -> On:
        level = self._level[link.level]
        return (level, link.unit) if link.index is None else (level, link.unit, link.index)

    def _sends(self, placed: PlacedJob, uplink: On) -> bool:
        return uplink in self._traffic_at(placed, uplink[0]).offered

    def _most(self, placed: PlacedJob, uplink: On) -> float:
        """More than a job can send out of a unit: its largest part at the rates of all levels."""
        granted = self._granted[uplink[0]]
        return placed.gpus_in_a_part[uplink] * granted * GIB / placed.stretch

    def _traffic_at(self, placed: PlacedJob, level: int) -> LookedUpTraffic:
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
        sent = self._sent(placed, level)
        of_job = self._ways(placed, sent.traffic, level)
        busy_s = sent.busy_s
        offered: dict[On, tuple[float, float]] = {}
        for way in of_job if busy_s else ():
            if not way.volume_bytes:
                continue
            for link in way.links:
                uplink = self._on(link)
                up, down = offered.get(uplink, (0.0, 0.0))
                rate = way.volume_bytes / busy_s
                offered[uplink] = (up + rate, down) if link.direction == "up" else (up, down + rate)
        return LookedUpTraffic(of_job, offered, busy_s / sent.compute_s)

    def _ways(self, placed: PlacedJob, traffic: Traffic, level: int) -> tuple[Way, ...]:
        if placed.taken is None:
            return together(self._every_way(placed, traffic, level))
        # Connections are those between the innermost units, wherever the job is looked at from.
        every = self._every_way(placed, traffic)
        names = self._fabric.level_names
        return outside(routed(every, placed.taken), frozenset(names[level:]))

    def _every_way(self, placed: PlacedJob, traffic: Traffic, level: int = 0) -> tuple[Way, ...]:
        return ways(self._tree, self._fabric, placed.placement, traffic, level, self._known_links)

    def _put_on_links(self, placed: PlacedJob, taken: Taken | None = None) -> None:
        """Choose links for a job's connections, or note that it goes on with those of before."""
        crossed = self.crossed(placed.placement)
        for known in (placed.looked, placed.curved, placed.lone, placed.lone_shares):
            known.clear()
        placed.gpus_in_a_part, placed.taken = crossed, None
        if not crossed:
            return
        sent = self._sent(placed, self._uplink_levels[0])
        every = self._every_way(placed, sent.traffic)
        if taken is None:
            taken = self._routes.enter(placed.handle, every, sent.busy_s)
        else:
            self._routes.enter_as(placed.handle, every, sent.busy_s, taken)
        placed.taken = taken
        sends = {self._on(x) for of_way in taken.values() for links, _ in of_way for x in links}
        pooled = {uplink for uplink in crossed if self._routed_links(uplink[0]) == 1}
        placed.gpus_in_a_part = {on: crossed[on[:2]] for on in sorted(sends | pooled)}

    def _sent(self, placed: PlacedJob, level: int) -> LevelTraffic:
        """The model's traffic over a level and outer ones, at the whole bandwidth."""
        key = (placed.job.model, shape(self._tree, placed.placement), self._outer[level])
        return self._curves.sent(*key)


def crossed(tree: ClusterTree, stated: Iterable[int], placement: Placement) -> dict[Uplink, int]:
    """The uplinks of some levels that a placement crosses, and its GPUs in the largest part.

    Parts are those in the units of a level.
    """
    inside: dict[Uplink, int] = {}
    for level in stated:
        units: dict[int, int] = {}
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            unit = tree.ancestor(0, leaf, level)
            units[unit] = units.get(unit, 0) + count
        if len(units) == 1:
            break
        inside.update(dict.fromkeys(((level, unit) for unit in units), max(units.values())))
    return inside


def _in_phases(pattern: LinkPattern, phases: UpPhases | None) -> LinkPattern:
    """The same with the measured Up phases."""
    if phases is None:
        return pattern
    return pattern._replace(
        up={
            uplink: x._replace(bursts=phases.bursts(x.up_s, pattern.iteration_s))
            for uplink, x in pattern.up.items()
        }
    )


def _lone(curved: CurvedJob) -> LoneJob:
    """The flows of a job, each at the rate at which all end together."""
    # `mean` does not ask when a job sends.
    seen = seen_by_models(replace(curved, phases=None), 1.0)
    sent = bytes_on_links(seen.ways)
    if all(x <= link.bytes_per_s * seen.busy_s for link, x in sent.items()):
        busy_s = seen.busy_s
    else:
        busy_s = sending_job(contention([seen]), 0).busy_s
    sending = [way for way in seen.ways if way.volume_bytes]
    flows = tuple(Flow((), way.volume_bytes / busy_s, way.connections) for way in sending)
    return LoneJob(curved, tuple(way.links for way in sending), flows, busy_s)

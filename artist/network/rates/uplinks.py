"""Which jobs meet on which uplinks, and which uplinks they overload.

Only jobs that cross an uplink which **binds** can be slowed down. An uplink binds if what its jobs
send while they communicate, each as in isolation, exceeds what it carries. On an oversubscribed
fabric one job can do that (decision 20). Most uplinks never bind, so they are left out before a
model is asked anything.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from artist.cluster.links import Link
from artist.contract import Uplink
from artist.network.co_located import SLOWED, CurvedJob, seen_by_models
from artist.network.demand.curves import Curves
from artist.network.demand.routes import Routes, Taken
from artist.network.demand.up_phases import UpPhases
from artist.network.demand.ways import bytes_on_links, contention, efficiency, shared_link
from artist.network.models.mean import sending_job
from artist.network.models.patterns import Flow, SharedLink
from artist.network.rates.job_traffic import JobTraffic
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.placed_job import LoneJob, On, PlacedJob
from artist.units import GIB


class Uplinks:
    """The jobs on each uplink, kept while jobs come and go."""

    def __init__(
        self,
        network: NetworkOfRun,
        curves: Curves,
        eta: float,
        up_phases: Mapping[str, UpPhases] | None,
    ) -> None:
        self._tree, self._fabric, self.eta = network.tree, network.fabric, eta
        self.traffic = JobTraffic(network, curves, up_phases or {})
        # Links out of machines are their NICs, which serve connections in turn.
        self.fair_queued = frozenset(network.fabric.level_names[: network.tree.machine + 1])
        self._jobs: dict[On, dict[int, PlacedJob]] = {}
        self._routes = Routes(network.fabric, network.seed)
        self._busy: dict[Uplink, float] = {}
        """How busy uplinks are (`busy`), as of the last question."""
        self._changed: set[On] = set()
        """Uplinks that jobs have entered or left since that question."""
        self.binding: set[On] = set()
        """Uplinks that bind."""

    def facts(self, jobs: Iterable[PlacedJob]) -> Iterator[object]:
        """What copies of a run may share: answers that never change, also about jobs."""
        yield from (self._fabric, self.traffic)
        for placed in jobs:
            yield from (placed.looked, placed.curved, placed.lone, placed.lone_shares)
            yield from (placed.placement, placed.alone, placed.taken)

    @property
    def routed(self) -> bool:
        """Whether any level puts connections on links one by one."""
        return self._routes.routed

    def enter(self, placed: PlacedJob, taken: Taken | None = None) -> None:
        """Enter a job that gets its GPUs, on the links `taken` if it has them already."""
        if self.routed:
            self._put_on_links(placed, taken)
        self._enter(placed)

    def _enter(self, placed: PlacedJob) -> None:
        for uplink in placed.gpus_in_a_part:
            self._jobs.setdefault(uplink, {})[placed.handle] = placed
        self._changed |= placed.gpus_in_a_part.keys()

    def leave(self, placed: PlacedJob) -> None:
        """Remove a job that loses its GPUs."""
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
        """A copy of these uplinks, after the jobs `gone` left and the jobs `come` entered."""
        # Policies ask for each placement that they consider, so only the uplinks that change are
        # copied; the copy shares the others.
        twin = copy.copy(self)
        if self.routed:
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

    def foreseen(self, placed: PlacedJob) -> PlacedJob:
        """A job before it comes, on the links that operators can foresee.

        They can compute the hash of their switches. A static table is filled only when the job
        comes, and evenly, so links with static routes count together, as pooled links do.
        """
        if not self.routed:
            return placed
        crossed = self.traffic.crossed(placed.placement)
        alone = PlacedJob(
            placed.handle, placed.job, placed.placement, placed.started, placed.alone, crossed
        )
        if placed.handle >= 0 and self._routes.hashed.routed:
            hashed = copy.copy(self)
            hashed._routes = self._routes.hashed
            hashed._put_on_links(alone)
        return alone

    def busy(self) -> dict[Uplink, float]:
        """By busy uplink: what its jobs would send in isolation, over its capacity.

        Both are averages over iterations, in the busier direction. An uplink that carries all that
        the GPUs of its unit can send is never busy. All links of an uplink count together: a hash
        depends on both ends of a connection, and a question about a unit knows only one end. The
        busiest link instead was a worse guide (150 hashes on 8 links: losses 12 % higher).
        """
        # One sum for each changed uplink, however many jobs came and went since the last question.
        for uplink in {(x[0], x[1]) for x in self._changed}:
            busy = self._busy_now(uplink) if self._oversubscribed(uplink) else 0.0
            if busy:
                self._busy[uplink] = busy
            else:
                self._busy.pop(uplink, None)
        self._changed.clear()
        return self._busy

    def changed(self, touched: Iterable[On]) -> set[int]:
        """Update uplinks that jobs entered or left. Returns the handles of all affected jobs."""
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
        """The uplinks that bind and on which the job sends. A job may cross one without sending."""
        return [
            uplink
            for uplink in placed.gpus_in_a_part
            if uplink in self.binding and self.traffic.sends(placed, uplink)
        ]

    def overfills(self, placed: PlacedJob) -> bool:
        """Whether the job alone sends more on an uplink than the uplink carries."""
        return any(
            max(self.traffic.at(placed, uplink[0]).offered[uplink]) / placed.stretch
            > self.traffic.capacity(uplink) * (1 + SLOWED)
            for uplink in self.bound(placed)
        )

    def sharers(self, placed: PlacedJob) -> set[int]:
        """Handles of the job, and of the jobs that share a binding uplink with it."""
        return {placed.handle} | {
            handle
            for uplink in self.bound(placed)
            for handle, other in self._jobs[uplink].items()
            if self.traffic.sends(other, uplink)
        }

    def joined(
        self, handles: Iterable[int], placed: Mapping[int, PlacedJob], most: int
    ) -> list[int]:
        """Handles of all jobs joined to some by binding uplinks, directly or through other jobs.

        The search stops at more than `most` jobs, so a longer answer may be incomplete.
        """
        joined = set(handles)
        front = sorted(joined)
        while front and len(joined) <= most:
            sharers = self.sharers(placed[front.pop()]) - joined
            joined |= sharers
            front += sorted(sharers)
        return sorted(joined)

    def curved(self, placed: PlacedJob) -> CurvedJob:
        """The job for a model of contention: its traffic from its innermost binding level on."""
        return self.traffic.curved(placed, min(self.bound(placed))[0])

    def lone(self, placed: PlacedJob) -> LoneJob:
        """The job on its links without any other job."""
        level = min(self.bound(placed))[0]
        if level not in placed.lone:
            placed.lone[level] = _lone(self.curved(placed))
        return placed.lone[level]

    def binds(self, link: Link) -> bool:
        """Whether a link belongs to an uplink that binds."""
        return self.traffic.on(link) in self.binding

    def shared_link(self, link: Link) -> SharedLink:
        """A link as models of contention know it."""
        return shared_link(link, self.eta, self.fair_queued)

    def _oversubscribed(self, uplink: Uplink) -> bool:
        level, unit = uplink
        granted = max(x.bandwidth_gib_per_s for x in self._fabric.levels[level + 1 :])
        most = self._tree.levels[level].gpus[unit] * granted * GIB
        return most > self.traffic.capacity(uplink) * (1 + SLOWED)

    def _busy_now(self, uplink: Uplink) -> float:
        ups, downs = [], []
        for link in self.traffic.links_of(uplink):
            for placed in self._jobs.get(link, {}).values():
                looked = self.traffic.at(placed, uplink[0])
                up, down = looked.offered.get(link, (0.0, 0.0))
                part = looked.busy_ratio * placed.job.compute_s / placed.alone.iteration_s
                ups.append(up * part / placed.stretch)
                downs.append(down * part / placed.stretch)
        return max(math.fsum(ups), math.fsum(downs)) / self.traffic.capacity(uplink)

    def _binds(self, uplink: On) -> bool:
        jobs = self._jobs.get(uplink, {}).values()
        if not jobs:
            return False
        capacity = self.traffic.capacity(uplink)
        usable = capacity * self._efficiency(uplink[0])
        # This bound needs only GPU counts. It often saves looking up the traffic of each job.
        if sum(self.traffic.most(placed, uplink) for placed in jobs) <= usable:
            return False
        offered = [
            (up / placed.stretch, down / placed.stretch)
            for placed in jobs
            if self.traffic.sends(placed, uplink)
            for up, down in [self.traffic.at(placed, uplink[0]).offered[uplink]]
        ]
        most = max(sum(up for up, _ in offered), sum(down for _, down in offered))
        # A lone job loses nothing to others, and capacities are rounded.
        return most > (usable if len(offered) > 1 else capacity * (1 + SLOWED))

    def _efficiency(self, level: int) -> float:
        stated = self._fabric.levels[level]
        assert stated.uplink is not None
        return efficiency(stated.name, stated.uplink.eta, self.eta, self.fair_queued)

    def _put_on_links(self, placed: PlacedJob, taken: Taken | None = None) -> None:
        """Choose links for a job's connections, or note that it keeps the links `taken`."""
        crossed = self.traffic.crossed(placed.placement)
        for known in (placed.looked, placed.curved, placed.lone, placed.lone_shares):
            known.clear()
        placed.gpus_in_a_part, placed.taken = crossed, None
        if not crossed:
            return
        sent = self.traffic.sent(placed, self.traffic.levels[0])
        every = self.traffic.every_way(placed, sent.traffic)
        if taken is None:
            taken = self._routes.enter(placed.handle, every, sent.busy_s)
        else:
            self._routes.enter_as(placed.handle, every, sent.busy_s, taken)
        placed.taken = taken
        sends = {
            self.traffic.on(x) for of_way in taken.values() for links, _ in of_way for x in links
        }
        pooled = {uplink for uplink in crossed if self.traffic.routed_links(uplink[0]) == 1}
        placed.gpus_in_a_part = {on: crossed[on[:2]] for on in sorted(sends | pooled)}


def _lone(curved: CurvedJob) -> LoneJob:
    """A job alone on its links, its flows at rates at which all end together."""
    # Up phases count as one: `mean` ignores when a job sends.
    seen = seen_by_models(replace(curved, phases=None), 1.0)
    sent = bytes_on_links(seen.ways)
    if all(x <= link.bytes_per_s * seen.busy_s for link, x in sent.items()):
        busy_s = seen.busy_s
    else:
        busy_s = sending_job(contention([seen]), 0).busy_s
    sending = [way for way in seen.ways if way.volume_bytes]
    flows = tuple(Flow((), way.volume_bytes / busy_s, way.connections) for way in sending)
    return LoneJob(curved, tuple(way.links for way in sending), flows, busy_s)

"""Which job gets how many GPUs of which machines, so that the jobs' values are fair and large.

    objective = (mean over jobs of (value + 1e-3)^p)^(1/p),  p = -1 in Pollux; the more negative,
                                                             the fairer
    value     = speedup x restart factor, if the job's GPUs change

A speedup depends on the number of GPUs, and on whether they lie in one machine. So the best numbers
of GPUs follow exactly from dynamic programming over jobs (`counts.py`), but for machines: parts of
jobs may not fit together. `_pack` puts the numbers on machines and takes what it can get. Then some
jobs at a time are taken away and put back in the same way (Shaw, *Using constraint programming and
local search methods to solve vehicle routing problems*, 1998), as often as `budget` allows, and the
better state is kept.

The authors' program searches the same objective by a genetic algorithm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from artist.policies.pollux.counts import Floats, best_counts, best_counts_by_kind

Spread = dict[int, int]
"""Machine -> GPUs."""

_FLOOR = 1e-3
"""Added to values as in the authors' program, so that jobs without GPUs do not decide alone."""

_MOST_APART = 5
"""The most jobs taken away at a time. At least two are, so that they can exchange GPUs."""

_ROUNDING = 1e-12
"""The share of the bound by which a sum of costs may miss it."""

# artist's own: probability that jobs of two drawn machines are taken away first; probability that
# jobs are put back in drawn order, and that GPUs are left over; and the most GPUs left over.
_BY_MACHINE, _UNUSUAL, _MOST_SPARE = 0.5, 0.5, 3


@dataclass(frozen=True)
class Player:
    """A job in the search. Values are indexed by GPUs, from 0 up to the most that it may have."""

    one: Floats
    """The job's value on other GPUs of one machine; 0 on numbers that it cannot run on."""
    several: Floats
    """The job's value on other GPUs of several machines."""
    present: Spread
    """The GPUs that it has; empty if it waits."""
    stays: float
    """Its value on the present GPUs."""
    kinds: frozenset[str] = frozenset()
    """The kinds of GPUs that it accepts; empty: all."""

    @property
    def most(self) -> int:
        """The most GPUs that it may have."""
        return len(self.one) - 1


@dataclass(frozen=True)
class SearchRules:
    """The rules of a search."""

    power: float
    one_distributed: bool
    """At most one job of several machines on each machine."""
    most_machines: int
    """The most machines of one job."""
    budget: int
    """How often jobs are taken away and put back."""
    regions: Mapping[int, int] = field(default_factory=dict)
    """The region of each machine, if there are several. No job that fits one spans two."""
    kinds: Mapping[int, str] = field(default_factory=dict)
    """The kind of each machine's GPUs, if some job does not accept all kinds."""


def objective(values: Floats, power: float) -> float:
    """The power mean of values."""
    if power == 0:
        return float(np.exp(np.log(np.maximum(values, _FLOOR)).mean()))
    return float(((values + _FLOOR) ** power).mean() ** (1 / power))


def _costs(values: Floats, power: float) -> Floats:
    """Costs of values: the smaller their sum, the larger the objective."""
    if power == 0:
        return -np.log(np.maximum(values, _FLOOR))
    costs = (values + _FLOOR) ** power
    return costs if power < 0 else -costs


class _Part:
    """The machines whose GPUs jobs of some kinds accept."""

    def __init__(
        self, capacity: Mapping[int, int], rules: SearchRules, kinds: frozenset[str]
    ) -> None:
        self.kinds = kinds
        self.machines = {x: n for x, n in capacity.items() if not kinds or rules.kinds[x] in kinds}
        self.gpus = sum(self.machines.values())
        self.largest = max(self.machines.values(), default=0)
        in_region: Counter[int] = Counter()
        for machine, region in rules.regions.items():
            in_region[region] += self.machines.get(machine, 0)
        self.largest_region = max(in_region.values(), default=0)

    def of(self, free: Mapping[int, int]) -> Mapping[int, int]:
        """The free GPUs of these machines."""
        return {x: free[x] for x in self.machines} if self.kinds else free


class Search:
    """One round's search. `capacity` has the GPUs of each machine that these jobs can have."""

    def __init__(self, capacity: Mapping[int, int], players: Sequence[Player], rules: SearchRules):
        self.players, self.rules = players, rules
        self._capacity = dict(capacity)
        parts = {x: _Part(capacity, rules, x) for x in {player.kinds for player in players}}
        self._parts = [parts[player.kinds] for player in players]
        self._one = [_costs(player.one, rules.power) for player in players]
        self._several = [_costs(player.several, rules.power) for player in players]
        self._stay = _costs(np.array([player.stays for player in players]), rules.power).tolist()
        # Costs if every number of GPUs were as close together as machines allow.
        self._close = [
            np.where(np.arange(len(one)) <= part.largest, one, several)
            for part, one, several in zip(self._parts, self._one, self._several, strict=True)
        ]
        self._by_count = [self._where_staying(index) for index in range(len(players))]

    def _where_staying(self, index: int) -> Floats:
        """The costs as if machines did not matter, and the present GPUs were kept."""
        costs = self._close[index]
        present = sum(self.players[index].present.values())
        if present and present < len(costs):
            costs = costs.copy()
            costs[present] = min(costs[present], self._stay[index])
        return costs

    def best(self, rng: np.random.Generator) -> list[Spread]:
        """The machines and GPUs of each job; empty if it gets none."""
        everyone = list(range(len(self.players)))
        counts = self._numbers(everyone, self._capacity)
        state = _State(self)
        self._put(state, everyone, counts)
        kept = _State(self)
        for index in everyone:
            if self.players[index].present:
                kept.put(index, dict(self.players[index].present))
        others = [index for index in everyone if not kept.spreads[index]]
        self._put(kept, others, self._numbers(others, kept.free))
        if kept.cost < state.cost:
            state = kept
        bound = self._bound(counts)
        for _ in range(self.rules.budget if len(everyone) > 1 else 0):
            if state.cost <= bound:
                break
            self._improve(state, rng)
        return state.spreads

    def _bound(self, counts: Mapping[int, int]) -> float:
        """A lower bound of costs: their sum for these counts, as if machines did not matter.

        With kinds of GPUs it is a bound only if each further GPU gains less. Otherwise a state may
        be below it, and is good enough.
        """
        costs = []
        for index, gpus in counts.items():
            close = float(self._close[index][gpus])
            stays = gpus and gpus == sum(self.players[index].present.values())
            costs.append(min(close, self._stay[index]) if stays else close)
        bound = math.fsum(costs)
        return bound + _ROUNDING * abs(bound)

    def value(self, index: int, spread: Spread) -> float:
        """The value of a job on some GPUs."""
        player = self.players[index]
        if spread == player.present:
            return player.stays
        return float((player.one if len(spread) == 1 else player.several)[sum(spread.values())])

    def cost(self, index: int, spread: Spread) -> float:
        """The cost of a job on some GPUs: its part of the sum."""
        if spread == self.players[index].present:
            return float(self._stay[index])
        costs = self._one[index] if len(spread) == 1 else self._several[index]
        return float(costs[sum(spread.values())])

    def _improve(self, state: _State, rng: np.random.Generator) -> None:
        """Take some jobs away and put them back.

        This is undone if the cost rises, and at random if it stays the same.
        """
        jobs = len(self.players)
        apart = min(jobs, int(rng.integers(2, _MOST_APART + 1)))
        chosen = rng.permutation(jobs).tolist()
        if rng.random() < _BY_MACHINE:
            # Jobs on two drawn machines first: else jobs of one GPU keep larger jobs apart.
            machines = list(self._capacity)
            some = {machines[x] for x in rng.integers(0, len(machines), 2).tolist()}
            chosen.sort(key=lambda index: some.isdisjoint(state.spreads[index]))
        chosen = chosen[:apart]
        before = {index: state.spreads[index] for index in chosen}
        cost = state.cost
        for index in chosen:
            state.take(index)
        spare = int(rng.integers(0, _MOST_SPARE + 1)) if rng.random() < _UNUSUAL else 0
        counts = self._numbers(chosen, state.free, spare)
        self._put(state, chosen, counts, as_given=rng.random() < _UNUSUAL)
        if state.cost > cost or (state.cost == cost and rng.random() < 0.5):
            for index in chosen:
                state.take(index)
            for index, spread in before.items():
                state.put(index, spread)

    # -- putting jobs on machines ----------------------------------------------------------

    def _put(
        self,
        state: _State,
        chosen: Sequence[int],
        counts: Mapping[int, int],
        *,
        as_given: bool = False,
    ) -> None:
        """Put jobs without GPUs on free GPUs, as many as `counts` says if they fit.

        They come in the order given (`as_given`), or those that accept the fewest GPUs first, and
        among these the largest.
        """
        moved = []
        for index in chosen:
            present = self.players[index].present
            if present and counts[index] == sum(present.values()) and state.fits(present):
                stays, moves = self._stay[index], self._close[index][counts[index]]
                if stays <= moves:
                    state.put(index, dict(present))
                    continue
            moved.append(index)
        if not as_given:
            moved.sort(key=lambda x: (self._parts[x].gpus, -counts[x], x))
        for index in moved:
            if counts[index]:
                state.put(index, self._reach(state, index, counts[index]))
        for index in moved:
            if not any(state.free.values()):
                break
            if not state.spreads[index]:
                state.put(index, self._reach(state, index, self.players[index].most))

    def _numbers(
        self, chosen: Sequence[int], free: Mapping[int, int], spare: int = 0
    ) -> dict[int, int]:
        """How many of these GPUs each job should have; `spare` are left over."""
        gpus = max(sum(free.values()) - spare, 0)
        costs = {index: self._by_count[index] for index in chosen}
        if not self.rules.kinds:
            return best_counts(costs, gpus)
        room: Counter[str] = Counter()
        for machine, left in free.items():
            room[self.rules.kinds[machine]] += left
        accepted = {index: self.players[index].kinds or room.keys() for index in chosen}
        return best_counts_by_kind(costs, accepted, gpus, room)

    def _reach(self, state: _State, index: int, most: int) -> Spread:
        """The best free GPUs for a job, at most `most`; empty if no GPUs are better than none."""
        one, several = self._one[index], self._several[index]
        found: Spread = {}
        cost = float(one[0])
        present = self.players[index].present
        if present and sum(present.values()) <= most and state.fits(present):
            found, cost = dict(present), self._stay[index]
        part = self._parts[index]
        there = part.of(state.free)
        roomiest = max(there.values(), default=0)
        if limit := min(roomiest, most):
            gpus = int(one[: limit + 1].argmin())
            if one[gpus] < cost:
                machine = min((free, x) for x, free in there.items() if free >= gpus)[1]
                found, cost = {machine: gpus}, float(one[gpus])
        if most > roomiest or roomiest < part.largest:
            machines = self._together(index, state)[: self.rules.most_machines]
            limit = min(most, sum(state.free[x] for x in machines))
            if limit >= 2 and len(machines) > 1:
                gpus = int(several[: limit + 1].argmin())
                if several[gpus] < cost:
                    spread = _spread(state, machines, gpus)
                    if len(spread) > 1:
                        found = spread
        return found

    def _together(self, index: int, state: _State) -> list[int]:
        """Machines among which a job may be distributed, of the region with most free GPUs.

        A job that no region could hold may be distributed over all regions.
        """
        part, regions = self._parts[index], self.rules.regions
        machines = [x for x in state.for_distributed() if x in part.machines]
        if not machines or not regions:
            return machines
        runs_on = np.flatnonzero(self.players[index].several)
        if len(runs_on) and runs_on[0] > part.largest_region:
            return machines
        room: Counter[int] = Counter()
        for machine in machines:
            room[regions[machine]] += state.free[machine]
        roomiest = max(room, key=lambda region: room[region])
        return [machine for machine in machines if regions[machine] == roomiest]


def _spread(state: _State, machines: Sequence[int], gpus: int) -> Spread:
    """GPUs of as few machines as possible: the roomiest first, and last the tightest that fits."""
    taken: Spread = {}
    left = list(machines)
    while gpus:
        enough = [x for x in left if state.free[x] >= gpus]
        machine = min(enough, key=lambda x: state.free[x]) if enough else left[0]
        left.remove(machine)
        taken[machine] = min(gpus, state.free[machine])
        gpus -= taken[machine]
    return taken


class _State:
    """Which job has which GPUs, and the sum of costs."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self.free = dict(search._capacity)
        self._distributed = dict.fromkeys(self.free, 0)
        self.spreads: list[Spread] = [{} for _ in search.players]
        self._costs = [search.cost(x, {}) for x in range(len(search.players))]

    @property
    def cost(self) -> float:
        """The sum of all jobs' costs."""
        return math.fsum(self._costs)

    def fits(self, spread: Spread) -> bool:
        """Whether these GPUs are free, and no rule about distributed jobs forbids them."""
        if any(self.free.get(machine, 0) < count for machine, count in spread.items()):
            return False
        alone = self._search.rules.one_distributed and len(spread) > 1
        return not (alone and any(self._distributed[machine] for machine in spread))

    def for_distributed(self) -> list[int]:
        """Machines where a part of a distributed job may be, the roomiest first."""
        alone = self._search.rules.one_distributed
        machines = [
            x for x, free in self.free.items() if free and not (alone and self._distributed[x])
        ]
        return sorted(machines, key=lambda x: -self.free[x])

    def put(self, index: int, spread: Spread) -> None:
        """Give GPUs to a job that has none."""
        self._move(spread, -1)
        self.spreads[index] = spread
        self._costs[index] = self._search.cost(index, spread)

    def take(self, index: int) -> None:
        """Take a job's GPUs away."""
        self._move(self.spreads[index], 1)
        self.spreads[index] = {}
        self._costs[index] = self._search.cost(index, {})

    def _move(self, spread: Spread, sign: int) -> None:
        for machine, count in spread.items():
            self.free[machine] += sign * count
            if len(spread) > 1:
                self._distributed[machine] -= sign

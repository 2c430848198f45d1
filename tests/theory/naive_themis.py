"""A naive simulator of Themis: its written rule, without any shortcut (see `naive.py`).

Rho and valuations are fractions, so ties are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from naive import SECOND, Cluster, Gpus, Rules, Simulation, State, ticks

from artist.workload.job import Job

Option = tuple[int, Fraction]
"""GPUs, and the valuation of them over the valuation of none."""


@dataclass(frozen=True, kw_only=True)
class ThemisRules(Rules):
    """The options of Themis; times in ticks.

    Bidding periods are counted from the tick `origin`. `draw` draws a random order of this many
    jobs; None takes them worst first.
    """

    period: int
    knob: Fraction
    draw: Callable[[int], Sequence[int]] | None
    origin: int


class ElasticState(State):
    """A job whose iterations are worth GPUs held / GPUs asked for.

    `done_before` counts iterations as submitted.
    """

    def worth(self) -> Fraction:
        """What an iteration on its present GPUs is worth."""
        return Fraction(sum(self.gpus.values()), self.job.gpus)

    def finish(self) -> int:
        """When it has done all its iterations."""
        return self.boundary(math.ceil((self.job.iterations - self.done_before) / self.worth()))

    def done(self, now: int) -> int:
        """Whole iterations as submitted."""
        return math.floor(self.done_before + self.done_here(now) * self.worth())

    def left(self, now: int) -> int:
        """Iterations as submitted that are not done."""
        return self.job.iterations - self.done(now)


class Themis(Simulation):
    """One run of Themis."""

    state = ElasticState
    rules: ThemisRules

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], rules: ThemisRules, slowdown: Sequence[float]
    ) -> None:
        super().__init__(cluster, jobs, rules, slowdown)
        self.auctions: set[int] = set()
        """The ends of bidding periods that are planned, past ones too."""

    # -- rounds ----------------------------------------------------------------------

    def times(self, here: list[State]) -> list[int]:
        """Also the planned ends of bidding periods."""
        return [*super().times(here), *self.auctions]

    def contest(self, here: list[State], now: int) -> dict[int, Gpus]:
        """One round."""
        offered = [s for s in here if now in self.auctions and self.on_offer(s, now)]
        kept = {s.handle: s.gpus for s in here if s.gpus and s not in offered}
        free, _ = self.left_over(kept, [])
        counts = self.hand_out(here, offered, sum(free.values()), now)
        if counts:
            given = kept | self.place(offered, counts, free)
        else:
            given = {s.handle: s.gpus for s in here if s.gpus}
        self.note(here, offered, given)
        self.plan(here, given, now)
        return given

    def on_offer(self, state: State, now: int) -> bool:
        """Whether a running job had a lease end in the period that ends now, and did an iteration.

        The iteration is a whole one as submitted.
        """
        if not state.gpus or state.done(now) == math.floor(state.done_before):
            return False
        return self.lease_end(state.start, now - self.rules.period) <= now

    def lease_end(self, start: int, after: int) -> int:
        """The first end of a lease after a tick."""
        end = start + self.rules.lease
        while end <= after:
            end += self.rules.lease
        return end

    def plan(self, here: list[State], given: dict[int, Gpus], now: int) -> None:
        """Plan the end of the first period in which a lease ends, if a job could use more GPUs."""
        period, origin = self.rules.period, self.rules.origin
        hungry = any(sum(given.get(s.handle, {}).values()) < s.job.gpus_max for s in here)
        planned = any(end > now for end in self.auctions)
        since = origin + (now - origin) // period * period
        ends = [
            self.lease_end(s.start, since) if given[s.handle] == s.gpus else now + self.rules.lease
            for s in here
            if s.handle in given
        ]
        if hungry and ends and not planned:
            self.auctions.add(origin - (origin - min(ends)) // period * period)

    # -- who gets how many -------------------------------------------------------------

    def hand_out(
        self, here: list[State], offered: list[State], left: int, now: int
    ) -> dict[int, int]:
        """Number of GPUs per job; empty if no job could use the GPUs on offer."""
        jobs = [s for s in here if not s.gpus or s in offered]
        if not any(s.job.gpus_min <= left and sum(s.gpus.values()) < s.job.gpus_max for s in jobs):
            return {}
        ranked = sorted(jobs, key=lambda s: (-self.rho(s, 0, now), s.handle))
        bidders = math.ceil((1 - self.rules.knob) * len(ranked))
        bids = {s.handle: useful(self.valuations(s, left, now)) for s in ranked[:bidders]}
        won = winners(bids, left)
        counts = kept(bids, won, left)
        self.happened["wins"] += len(won)
        self.happened["pays"] += sum(counts[handle] < won[handle] for handle in won)
        left -= sum(counts.values())
        others = ranked[bidders:]
        if self.rules.draw is not None:
            others = [others[index] for index in self.rules.draw(len(others))]
        for state in others + ranked[:bidders]:
            has = counts.get(state.handle, 0)
            gets = min(state.job.gpus_max, has + left)
            if gets >= state.job.gpus_min and gets > has:
                kind = "others" if state in others else "winners" if has else "losers"
                self.happened[f"leftovers to {kind}"] += 1
                left -= gets - has
                counts[state.handle] = gets
        return counts

    def rho(self, state: State, gpus: int, now: int) -> Fraction:
        """Finish-time fairness with this many GPUs from now on; 0 waits one more lease first."""
        waited = now - ticks(state.job.arrival_s)
        own = self.iteration(state.job, state.job.gpus)
        left = state.left(now)
        shared = left * self.iteration(state.job, gpus) if gpus else self.rules.lease + left * own
        return (waited + shared) / (state.job.iterations * own)

    def iteration(self, job: Job, gpus: int) -> Fraction:
        """Ticks of an iteration as submitted on this many GPUs, packed into an empty cluster."""
        placed = self.cluster.place("pack", dict(enumerate(self.cluster.sizes)), gpus)
        assert placed is not None  # every job fits the cluster
        iteration_s = job.compute_s * self.slowdown[self.cluster.level(placed)]
        return Fraction(str(iteration_s)) * SECOND * Fraction(job.gpus, gpus)

    def valuations(self, state: State, gpus: int, now: int) -> list[Option]:
        """Every number of GPUs that a job can run on, with its valuation of them."""
        return [
            (count, self.rho(state, 0, now) / self.rho(state, count, now))
            for count in range(state.job.gpus_min, min(state.job.gpus_max, gpus) + 1)
        ]

    # -- where they lie --------------------------------------------------------------

    def place(self, offered: list[State], counts: dict[int, int], pool: Gpus) -> dict[int, Gpus]:
        """GPUs of the pool for each job. A job that cannot be placed gets none."""
        pool, given = dict(pool), {}
        same = {
            s.handle: s.gpus for s in offered if sum(s.gpus.values()) == counts.get(s.handle, 0)
        }

        def take(handle: int, gpus: Gpus) -> None:
            given[handle] = gpus
            for leaf, n in gpus.items():
                pool[leaf] -= n

        for handle, own in sorted(same.items()):
            if self.cluster.level(own) <= self.cluster.best_level(counts[handle]):
                take(handle, own)
        for handle in sorted(counts, key=lambda handle: (-counts[handle], handle)):
            if handle in given:
                continue
            gpus = self.cluster.place(self.rules.placement, pool, counts[handle])
            own = same.get(handle, {})
            if own and all(pool[leaf] >= n for leaf, n in own.items()):
                better = gpus and self.cluster.level(gpus) < self.cluster.level(own)
                self.happened["moves to a better level" if better else "keeps its level"] += 1
                gpus = gpus if better else own
            if gpus is not None:
                take(handle, gpus)
        return given

    # -- what happened ----------------------------------------------------------------

    def leave(self, state: State, now: int, how: str) -> None:
        """A job leaves its GPUs."""
        done = state.done_before + state.done_here(now) * state.worth()
        super().leave(state, now, how)
        state.done_before = done

    def note(self, here: list[State], offered: list[State], given: dict[int, Gpus]) -> None:
        """Count what happened to the jobs."""
        for state in here:
            before, after = sum(state.gpus.values()), sum(given.get(state.handle, {}).values())
            if state in offered:
                kind = "loses" if not after else "shrinks" if after < before else "grows"
                self.happened["keeps its number" if after == before else kind] += 1
            elif not before and after:
                self.happened["starts on offered GPUs" if offered else "starts"] += 1
            elif not before:
                self.happened["waits"] += 1


SAME = 1 + Fraction(1, 10**9)
"""Valuations and products that differ by a smaller factor count as equal, by the written rule."""


def useful(options: Sequence[Option]) -> list[Option]:
    """Options worth more than every option of fewer GPUs, and more than none."""
    chosen: list[Option] = []
    most = Fraction(1)
    for count, value in sorted(options):
        if value > most * SAME:
            chosen.append((count, value))
            most = value
    return chosen


def winners(bids: Mapping[int, Sequence[Option]], gpus: int) -> dict[int, int]:
    """GPUs per winner: the allocation of at most this many GPUs with the largest product.

    Among equal products the first bid gets the most, then the second bid, and so on.
    """
    # largest[i][g]: the largest product of the bids i, i + 1, ... with g GPUs.
    largest = [[Fraction(1)] * (gpus + 1)]
    for options in reversed(list(bids.values())):
        rest = largest[0]
        largest.insert(
            0,
            [
                max(
                    value * rest[left - count]
                    for count, value in [(0, Fraction(1)), *options]
                    if count <= left
                )
                for left in range(gpus + 1)
            ],
        )
    won, left = {}, gpus
    for (handle, options), products, rest in zip(bids.items(), largest, largest[1:], strict=False):
        for count, value in sorted(options, reverse=True):
            if count <= left and value * rest[left - count] * SAME >= products[left]:
                won[handle] = count
                left -= count
                break
    return won


def kept(bids: Mapping[int, Sequence[Option]], won: Mapping[int, int], gpus: int) -> dict[int, int]:
    """GPUs per winner after its hidden payment."""
    counts = {}
    for handle, count in won.items():
        others = {other: options for other, options in bids.items() if other != handle}
        without = winners(others, gpus)
        fraction = product_of(others, won) / product_of(others, without)
        options = [option for option, _ in bids[handle]]
        counts[handle] = max(
            (option for option in options if option <= fraction * count), default=options[0]
        )
    return counts


def product_of(bids: Mapping[int, Sequence[Option]], won: Mapping[int, int]) -> Fraction:
    """The product of valuations of an allocation."""
    return math.prod(
        (dict(options)[won[handle]] for handle, options in bids.items() if handle in won),
        start=Fraction(1),
    )

"""CASSINI around any policy: the host decides, CASSINI places and aligns (section 4).

    host's decisions -> other placements of equal counts -> scores -> the best one    (Algorithm 2)
    its affinity graph -> one time-shift per job -> holds                             (Algorithm 1)

The host says who gets how many GPUs, and offers the first candidate: its own placements. Where no
uplink could be full, that is the answer. Jobs that the host does not start or move stay where they
are. Aligned are the jobs of every group that has changed; each waits for an iteration at most.

A rate function without uplinks has nothing to score (contention `none`, `table`): the host's
decisions are the answer. Under `mean` phases do not count, so jobs are placed and never held.

The options of the host stand under `host`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

from pydantic import Field, field_validator

from artist.cluster.kinds import accepts
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import (
    NO_SHARED_LINKS,
    ClusterView,
    Decision,
    Hold,
    JobView,
    LinkPattern,
    Migrate,
    Options,
    Policy,
    Preempt,
    SetBatch,
    Start,
    Uplink,
    WrapperPolicy,
)
from artist.policies.cassini.affinity import Loops
from artist.policies.cassini.candidates import MOST_CANDIDATES, Chosen, choose
from artist.policies.cassini.jobs_on_links import JobsOnLinks
from artist.policies.cassini.link_circle import ANGLE_DEG, DRIFT, Choice, Periods
from artist.policies.cassini.pace import TurnGroup, groups
from artist.policies.cassini.same_shape import other_joint_placements
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.time_shifts import SolverOptions
from artist.policies.cassini.turns import circle_rows, held, holds, turns
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, seconds, ticks
from artist.workload.goodput import Batch


class CassiniOptions(Options):
    """Options of CASSINI."""

    # Section 5.1: up to 10 placement candidates.
    candidates: int = Field(
        default=MOST_CANDIDATES,
        ge=1,
        le=MOST_CANDIDATES,
        description="placements of equal counts that are scored; 1 keeps the host's",
    )
    # Section 5.1.
    angle_deg: int = Field(
        default=ANGLE_DEG, description="precision of rotations, degrees; a divisor of 360"
    )
    # The paper's values are first feasible angles (decision 21).
    choose: Choice = Field(
        default=Choice.FIRST, description="which of equally good time-shifts: first or centre"
    )
    # Algorithm 2 discards candidates with loops, which leaves none in a busy cluster (decision 21).
    loops: Loops = Field(
        default=Loops.MERGE,
        description="merge: candidates with the fewest loops, whose least harmful links are "
        "dropped; discard: none with loops",
    )
    # The paper has no threshold (-1). Jobs that take turns wait for the slowest. On 587 random
    # links with two or three jobs, turns on all made iterations longer on average. On those that
    # gain .03 or more they made them shorter (decision 22).
    least_gain: float = Field(
        default=0.03,
        ge=-1,
        le=1,
        description="jobs of a link take turns only if that raises its score over random phases by "
        "this much, net of what they lose by waiting for the slowest",
    )
    # Whole milliseconds have common multiples of minutes (decision 21).
    periods: Periods = Field(
        default=Periods.SNAP,
        description="snap ratios of periods, or take the lcm of milliseconds; where that has more "
        "than a million angles, they are snapped",
    )
    # Section 5.7 has an agent that corrects, by 5 %.
    drift_correction: bool = Field(
        default=True,
        description="an agent keeps the time-shifts: a job that is ahead by more than 5 % of its "
        "iteration waits for the others",
    )

    @field_validator("angle_deg")
    @classmethod
    def _divides_a_circle(cls, angle_deg: int) -> int:
        if angle_deg < 1 or 360 % angle_deg:
            raise ValueError("expected a whole divisor of 360 degrees")
        return angle_deg

    def solver(self, seed: int) -> SolverOptions:
        """How links are solved."""
        return SolverOptions(self.angle_deg, self.periods, self.choose, seed)

    @property
    def slack(self) -> float | None:
        """Share of an iteration that a job may be ahead."""
        return DRIFT if self.drift_correction else None


# Sums of scores that differ by less are equal: scores are rounded to twelve digits.
_SAME = 1e-9


class Cassini(WrapperPolicy):
    """A host policy whose jobs take turns on links."""

    Options = CassiniOptions

    def __init__(self, options: CassiniOptions, host: Policy, draws: Draws = FIRST_DRAWS) -> None:
        super().__init__(host)
        self.options = options
        self._solver = LinkSolver(options.solver(draws.seed))
        self._jobs = JobsOnLinks()
        self._groups = 0
        self._known: dict[tuple[int, Placement], LinkPattern] = {}
        self._batches: dict[int, Batch] = {}
        """The batches that the host sets in this answer, by handle."""
        self._log: list[dict[str, Any]] = []
        self._circles: list[dict[str, Any]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions, at the best of its placements, and the holds that align jobs."""
        decisions = self.host.decide(view)
        if view.links is NO_SHARED_LINKS:
            return decisions
        placed = {x.handle: x.placement for x in decisions if isinstance(x, Start | Migrate)}
        self._batches = {x.handle: x.batch for x in decisions if isinstance(x, SetBatch)}
        self._known.clear()
        again = self._with_other_batches(view, placed)
        self._know(view, [placed, again])
        touched = self._gone(view, decisions) | self._crossed({**placed, **again})
        if not touched:
            self._put({**placed, **again})
            return decisions
        candidates = [
            {**candidate, **again} for candidate in self._candidates(view, decisions, placed)
        ]
        self._know(view, candidates)
        touched |= {uplink for candidate in candidates for uplink in self._crossed(candidate)}
        uses = [self._uses(view, candidate, touched) for candidate in candidates]
        if not any(uses):
            self._put(candidates[0])
            return _with_holds(decisions, _ended_turns(view, again))
        chosen = choose(uses, self._solver, self.options.loops, self.options.least_gain)
        best = candidates[chosen.index]
        self._put(best)
        aligned = self._aligned(view, best, uses[chosen.index], chosen)
        self._note(view, uses, chosen, aligned)
        lost = again.keys() - {hold.handle for hold in aligned}
        return _with_holds(_at(decisions, best), [*aligned, *_ended_turns(view, lost)])

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The host's tables, and what CASSINI did.

        `cassini` has a row for every choice among candidates. `circles`, if jobs were aligned, has
        one for every job of every link on which they were.
        """
        circles = {"circles": self._circles} if self._circles else {}
        return {**self.host.tables(), "cassini": self._log, **circles}

    # -- where jobs are --------------------------------------------------------------

    def _gone(self, view: ClusterView, decisions: Sequence[Decision]) -> set[Uplink]:
        """Forget jobs without GPUs, or about to lose them. Returns the uplinks they were on."""
        lost = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | SetBatch)}
        touched: set[Uplink] = set()
        for handle, placement in list(self._jobs.where.items()):
            running = view.running.get(handle)
            if running is None or handle in lost or running.placement != placement:
                touched.update(self._jobs.pattern(handle).up)
                self._jobs.remove(handle)
        return touched

    def _with_other_batches(
        self, view: ClusterView, placed: Mapping[int, Placement]
    ) -> dict[int, Placement]:
        """The jobs that keep their GPUs but get another batch, and so another pattern."""
        stay = {
            handle: state.placement
            for handle in self._batches
            if handle not in placed and (state := view.running.get(handle))
        }
        return {handle: placement for handle, placement in stay.items() if placement is not None}

    def _know(self, view: ClusterView, candidates: Sequence[Mapping[int, Placement]]) -> None:
        """Ask what jobs would do on links, once per job and placement."""
        for candidate in candidates:
            for job in candidate.items():
                if job not in self._known:
                    handle, placement = job
                    batch = self._batches.get(handle)
                    asked = _job(view, handle).job
                    self._known[job] = view.links.pattern(asked, placement, batch, handle)

    def _crossed(self, candidate: Mapping[int, Placement]) -> set[Uplink]:
        """The uplinks on which jobs of a candidate send."""
        return {uplink for job in candidate.items() for uplink in self._known[job].up}

    def _put(self, placed: Mapping[int, Placement]) -> None:
        for handle, placement in placed.items():
            self._jobs.put(handle, placement, self._known[handle, placement])

    # -- candidates ------------------------------------------------------------------

    def _candidates(
        self, view: ClusterView, decisions: Sequence[Decision], placed: Mapping[int, Placement]
    ) -> list[Mapping[int, Placement]]:
        """The host's placements first, then others of equal shapes."""
        if not placed or self.options.candidates == 1 or self.remembers_placements:
            return [placed]
        pool = view.free.copy()
        kept: dict[int, Placement | None] = {}
        for decision in decisions:
            if isinstance(decision, Preempt | Migrate):
                kept[decision.handle] = view.running[decision.handle].placement
        for placement in kept.values():
            assert placement is not None  # running jobs have GPUs
            pool.release(placement)
        for placement in placed.values():
            pool.claim(placement)
        others: Iterator[dict[int, Placement]] = other_joint_placements(pool, placed, kept)
        if pool.hosts is not None:
            others = (x for x in others if self._accepted(view, x))
        return list(islice(chain([placed], others), self.options.candidates))

    def _accepted(self, view: ClusterView, candidate: Mapping[int, Placement]) -> bool:
        """Whether all jobs accept the kinds of their GPUs."""
        return all(accepts(view.cluster, _job(view, x).job, at) for x, at in candidate.items())

    def _uses(
        self, view: ClusterView, candidate: Mapping[int, Placement], touched: set[Uplink]
    ) -> list[LinkPatterns]:
        """The uplinks that could be full under a candidate and are joined to `touched` ones."""
        self._put(candidate)
        links = self._jobs.joined(touched, view.links.capacity)
        uses = [self._jobs.use(uplink, view.links) for uplink in links]
        for handle in candidate:
            self._jobs.remove(handle)
        return uses

    # -- alignment -------------------------------------------------------------------

    def _aligned(
        self,
        view: ClusterView,
        placed: Mapping[int, Placement],
        uses: Sequence[LinkPatterns],
        chosen: Chosen,
    ) -> list[Hold]:
        """Holds for the jobs of every group that has changed."""
        if not view.links.phases_count or not chosen.shifts:
            return []
        aligned: list[Hold] = []
        for group in groups([uses[link] for link in chosen.links], self._solver):
            if not self._stands(view, placed, group):
                aligned += self._align(view, placed, group, chosen.shifts)
        return aligned

    def _stands(self, view: ClusterView, placed: Mapping[int, Placement], group: TurnGroup) -> bool:
        """Whether the group is still aligned as well as possible: no job has come, or moved."""
        if any(handle in placed for handle in group.jobs):
            return False
        own = [(handle, view.running[handle].turn) for handle in sorted(group.jobs)]
        kept = {handle: turn for handle, turn in own if turn is not None}
        if len(kept) < len(own) or len({turn.group for turn in kept.values()}) > 1:
            return False
        first = min(turn.start for turn in kept.values())
        parts = {x: (turn.start - first) % turn.period / turn.period for x, turn in kept.items()}
        now = sum(self._solver.score_at(use, parts) for use in group.uses)
        return now >= sum(self._solver.solve(use).score for use in group.uses) - _SAME

    def _align(
        self,
        view: ClusterView,
        placed: Mapping[int, Placement],
        group: TurnGroup,
        shifts: Mapping[int, Tick],
    ) -> list[Hold]:
        jobs = {}
        for handle in sorted(group.jobs):
            job = _job(view, handle)
            gpus = placed[handle].gpus if handle in placed else job.gpus
            alone_s = self._jobs.pattern(handle).iteration_s
            comes = handle in placed and placed[handle] != job.placement
            jobs[handle] = held(job, view.now, gpus, alone_s, placed=comes)
        periods = {handle: ticks(group.periods_s[handle]) for handle in jobs}
        slack = self.options.slack
        slacks = {x: None if slack is None else round(slack * periods[x]) for x in jobs}
        self._groups += 1
        ids = {handle: _job(view, handle).job.id for handle in jobs}
        rows = circle_rows(group, self._solver, shifts, ids, partial(_link_name, view.cluster))
        self._circles += [{"time_s": seconds(view.now), **row} for row in rows]
        return holds(turns(self._groups, jobs, shifts, periods), slacks, view.now)

    def _note(
        self,
        view: ClusterView,
        uses: Sequence[Sequence[LinkPatterns]],
        chosen: Chosen,
        aligned: Sequence[Hold],
    ) -> None:
        self._log.append(
            {
                "time_s": seconds(view.now),
                "candidates": len(uses),
                "chosen": chosen.index,
                "score": chosen.score,
                "links": len(uses[chosen.index]),
                "jobs": len({job for use in uses[chosen.index] for job in use.jobs}),
                "snapped": sum(self._solver.snaps(use) for use in uses[chosen.index]),
                "cycles": chosen.cycles,
                "dropped": len(chosen.dropped),
                "discarded": chosen.discarded,
                "aligned": len(aligned),
                "held_s": seconds(sum(hold.until - view.now for hold in aligned)),
            }
        )


def _link_name(tree: ClusterTree, uplink: Uplink) -> str:
    level, *numbers = uplink
    return f"{tree.levels[level].name} {'.'.join(map(str, numbers))}"


def _job(view: ClusterView, handle: int) -> JobView:
    return view.waiting.get(handle) or view.running[handle]


def _at(decisions: Sequence[Decision], placed: Mapping[int, Placement]) -> list[Decision]:
    """The decisions with other placements."""
    return [
        replace(decision, placement=placed[decision.handle])
        if isinstance(decision, Start | Migrate)
        else decision
        for decision in decisions
    ]


def _ended_turns(view: ClusterView, handles: Iterable[int]) -> list[Hold]:
    """Holds without a turn, which end the turns of jobs that run on at another pace."""
    turns = [x for x in sorted(handles) if view.running[x].turn is not None]
    return [Hold(handle, view.now + 1, "another batch") for handle in turns]


def _with_holds(decisions: Sequence[Decision], aligned: Sequence[Hold]) -> list[Decision]:
    """The decisions with holds. If the host holds a job too, the longer hold counts."""
    by_host = {x.handle: x.until for x in decisions if isinstance(x, Hold)}
    ours = {x.handle for x in aligned}
    others = [x for x in decisions if not (isinstance(x, Hold) and x.handle in ours)]
    return [*others, *(replace(x, until=max(x.until, by_host.get(x.handle, 0))) for x in aligned)]

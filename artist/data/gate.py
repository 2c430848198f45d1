"""The gate between a policy and the engine: no job starts in a region without its data.

In MAST (section 4.3) a region without the data gives up on a job. If all regions do, data is
copied, and the job waits without GPUs until the data is there. So

- when a job enters the queue and no region holds all of its tables, they are copied: to the region
  that lacks the fewest bytes, among regions that are large enough and have room;
- a start in a region without the data is refused, and no job loses GPUs for it. With `replicate:
  on-demand` the tables are copied there, unless they are on the way to another region.

A policy that reads `ClusterView.data` breaks neither rule by mistake, and asks for copies
(`Fetch`). To any other policy, a refused job looks as if it had started and lost its GPUs at once:
it enters the queue again at the next question.

`DataOptions` says what happens to a job in a region without its data: `--set data.KEY=VALUE`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from artist.contract import (
    ClusterView,
    Decision,
    Fetch,
    JobView,
    Migrate,
    Options,
    Policy,
    Start,
    Wait,
    Wake,
    WrapperPolicy,
    policy_name,
)
from artist.contract.gates import without
from artist.data.store import Store
from artist.data.wide_area import Copies, Copy
from artist.errors import PolicyError, one_line, shortened
from artist.units import Tick, seconds, size_text
from artist.workload.job import Job


class DataOptions(Options):
    """MAST, sections 2 and 4.3: a job elsewhere than its data has "unacceptable performance", so
    regions without it give up; if all do, data is moved and the job waits until it is there."""

    remote: Literal["refuse", "slow"] = Field(
        default="refuse",
        description="what happens to a job in a region without its tables: it may not start "
        "(refuse), or reads them over the wide-area network (slow)",
    )
    replicate: Literal["on-demand", "never"] = Field(
        default="on-demand",
        description="whether the tables of a job that was refused are copied to the region",
    )


MOST_IDLE = 2_000
"""Answers in a row that may leave jobs with tables waiting on an empty cluster."""


class DataGate(WrapperPolicy):
    """A gate around a policy whose jobs need tables. `copies` is None if data is never copied."""

    def __init__(
        self, host: Policy, options: DataOptions, store: Store, copies: Copies | None
    ) -> None:
        super().__init__(host)
        self._options, self._store, self._copies = options, store, copies
        self._idle = 0
        """Answers in a row that left jobs waiting on an empty cluster, with nothing on the way."""
        self._woken: Tick = -1
        self._headed: dict[int, int] = {}
        """Handle -> the region to which the job's tables are on the way."""
        self._ids: dict[int, str] = {}
        self._refused: dict[int, None] = {}
        self._told: list[int] = []
        """Waiting jobs whose last reason is that their tables are elsewhere."""
        self._put_off: list[int] = []
        """Jobs that the policy believes to have started. At the next question they enter again."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's answer, less starts in regions without the data."""
        self._arrived(view.now)
        reasons = self._copy_for_homeless(view)
        # Show refused jobs as entered, since policies keep their own records of waiting jobs.
        again = [view.waiting[handle] for handle in self._put_off]
        shown = view._replace(entered=[*again, *view.entered], data=self._store)
        decisions, self._put_off = self._copy_as_asked(self.host.decide(shown), view, reasons), []
        if self._options.remote == "refuse":
            decisions, refused = self._lawful(decisions, view)
            reasons |= refused
            self._check_idle(decisions, view)
        own = {x.handle for x in decisions if isinstance(x, Start | Wait)}
        waits = [
            Wait(handle, words, "data") for handle, words in reasons.items() if handle not in own
        ]
        waits += self._there_now(view, {x.handle for x in waits} | own)
        self._told = [*dict.fromkeys((*self._told, *(x.handle for x in waits if x.reason)))]
        return [*decisions, *waits, *self._wake(view)]

    @property
    def called(self) -> str:
        """The host's name, since users choose a policy, not a gate."""
        return policy_name(self.host)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The host's tables, and a table of the copies that were made."""
        return {**self.host.tables(), "copies": [self._row(copy) for copy in self._made()]}

    def summary(self) -> Mapping[str, int]:
        """The entries of a run's summary about its data."""
        made = self._made()
        return {
            "data_copies": len(made),
            "data_copied_bytes": sum(copy.size_bytes for copy in made),
            "data_refused_jobs": len(self._refused),
        }

    def _made(self) -> list[Copy]:
        return [] if self._copies is None else self._copies.made

    def _row(self, copy: Copy) -> dict[str, Any]:
        catalogue = self._store.catalogue
        pieces = [catalogue.pieces[piece] for piece in copy.pieces]
        return {
            "table": pieces[0].table,
            "partitions": len([piece for piece in pieces if piece.partition]),
            "bytes": copy.size_bytes,
            "source": catalogue.regions[copy.source],
            "target": catalogue.regions[copy.target],
            "job_id": self._ids[copy.handle],
            "start_s": seconds(copy.start),
            "end_s": None if copy.end is None else seconds(copy.end),
        }

    def _there_now(self, view: ClusterView, spoken_of: Collection[int]) -> list[Wait]:
        """Take back the reason of jobs whose tables have arrived."""
        told, self._told = self._told, []
        taken_back = []
        for handle in told:
            state, headed = view.waiting.get(handle), self._headed.get(handle)
            if state is None or handle in spoken_of:
                continue
            if headed is None or self._store.missing(state.job, headed):
                self._told.append(handle)
            else:
                taken_back.append(Wait(handle, ""))
        return taken_back

    # -- copies --------------------------------------------------------------------

    def _arrived(self, now: Tick) -> None:
        """Note the copies that have arrived since the last question."""
        for copy in self._copies.advance(now) if self._copies is not None else ():
            for piece in copy.pieces:
                self._store.arrive(piece, copy.target)

    def _copy_for_homeless(self, view: ClusterView) -> dict[int, str]:
        """Copy tables for entered jobs whose tables no region holds. Returns reasons by handle."""
        reasons = {}
        for state in view.entered:
            if self._copies is None or self._store.regions_holding(state.job):
                continue
            self._refused[state.handle] = None
            self._store.check(state.job)
            target = self._best_region(state.job, view)
            reasons[state.handle] = self._why_it_waits(state, target, view.now)
        return reasons

    def _copy_as_asked(
        self, decisions: Sequence[Decision], view: ClusterView, reasons: dict[int, str]
    ) -> Sequence[Decision]:
        """Copy what the policy fetches, and add to `reasons`. Returns the other decisions."""
        asked = [x for x in decisions if isinstance(x, Fetch)]
        if not asked or self._copies is None:
            return decisions  # without copies the engine refuses a `Fetch`
        for fetch in asked:
            state = view.waiting.get(fetch.handle)
            if state is None:
                return decisions  # the engine refuses a `Fetch` for a job that does not wait
            if fetch.handle in reasons:
                continue
            self._refused[fetch.handle] = None
            target = self._best_of(fetch.regions, state.job, view)
            if target is None:
                self._store.check(state.job)
            reasons[fetch.handle] = self._why_it_waits(state, target, view.now)
        return [x for x in decisions if not isinstance(x, Fetch)]

    def _why_it_waits(self, state: JobView, target: int | None, now: Tick) -> str:
        """Copy a job's tables to a region, if there is one with room. Returns why the job waits."""
        if target is None:
            return "no region that is large enough has room for its tables"
        return self._fetch(state, target, now)

    def _best_region(self, job: Job, view: ClusterView) -> int | None:
        """The region to which tables are copied, among those that are large enough."""
        gpus = self._store.gpus(job)
        large = [region for region, count in enumerate(gpus) if count >= job.gpus]
        return self._best_of(large, job, view)

    def _best_of(self, regions: Sequence[int], job: Job, view: ClusterView) -> int | None:
        """The region with room that lacks the fewest bytes; among equals, with most free GPUs."""
        store = self._store
        choices = [
            (store.missing_bytes(job, region), -view.free.of(store.level, region), region)
            for region in regions
            if store.has_room_for(job, region)
        ]
        return min(choices)[2] if choices else None

    def _fetch(self, state: JobView, target: int, now: Tick) -> str:
        """Copy what a region lacks of a job's tables, unless it is on the way.

        There is one copy per table, from the region that sends the fewest copies, and from the home
        among equals. Returns why the job waits.
        """
        regions, job = self._store.catalogue.regions, state.job
        self._ids[state.handle] = job.id
        assert self._copies is not None
        headed = self._headed.get(state.handle)
        if headed is not None and self._store.missing(job, headed):
            return f"its tables are on the way to region {regions[headed]}"
        wanted = self._store.to_copy(job, target)
        if not self._store.has_room(wanted, target):
            self._store.check(job)
            return f"region {regions[target]} has no room for its tables"
        by_table: dict[str, list[int]] = {}
        for piece in wanted:
            by_table.setdefault(self._store.catalogue.pieces[piece].table, []).append(piece)
        made = [self._copy(pieces, target, state.handle, now) for pieces in by_table.values()]
        self._copies.begin(made, now)
        self._headed[state.handle] = target
        size = size_text(self._store.missing_bytes(job, target))
        return f"{size} of its tables are on the way to region {regions[target]}"

    def _copy(self, pieces: Sequence[int], target: int, handle: int, now: Tick) -> Copy:
        assert self._copies is not None
        common = set(self._store.sources(pieces[0]))
        common = common.intersection(*(self._store.sources(piece) for piece in pieces))
        order = [region for region in self._store.sources(pieces[0]) if region in common]
        source = min(order, key=self._copies.sent_by)
        size = sum(self._store.catalogue.pieces[piece].size_bytes for piece in pieces)
        for piece in pieces:
            self._store.leave(piece, target)
        return Copy(tuple(pieces), size, source, target, handle, now)

    # -- starts --------------------------------------------------------------------

    def _lawful(
        self, decisions: Sequence[Decision], view: ClusterView
    ) -> tuple[list[Decision], dict[int, str]]:
        """The decisions without starts and moves to regions without the data, and why jobs wait."""
        refused: dict[int, str] = {}
        dropped: set[int] = set()
        for decision in decisions:
            if not isinstance(decision, Start | Migrate):
                continue
            state = view.running.get(decision.handle) or view.waiting.get(decision.handle)
            if state is None or not state.job.tables:
                continue  # no job (which the engine refuses), or no tables
            lacking = [
                region
                for region in self._store.regions_of(decision.placement)
                if self._store.missing(state.job, region)
            ]
            if not lacking:
                continue
            dropped.add(decision.handle)
            self._refused[decision.handle] = None
            if isinstance(decision, Start):
                refused[decision.handle] = self._reason(state, lacking, view.now)
        if not dropped:
            return list(decisions), refused
        kept, self._put_off = without(decisions, dropped, view, "its tables are not where it moves")
        return kept, refused

    def _reason(self, state: JobView, lacking: Sequence[int], now: Tick) -> str:
        if self._copies is not None:
            return self._fetch(state, lacking[0], now)
        names = ", ".join(self._store.catalogue.regions[region] for region in lacking)
        return one_line(f"region {names} does not hold all of its tables", most=150)

    def _check_idle(self, decisions: Sequence[Decision], view: ClusterView) -> None:
        """Stop a policy that keeps leaving jobs waiting although nothing prevents their start."""
        free = view.free.total == view.cluster.gpus
        started = any(isinstance(x, Start) for x in decisions)
        if started or not free or view.running or (self._copies and self._copies.next_end()):
            self._idle = 0
            return
        reading = [state.job for state in view.waiting.values() if state.job.tables]
        self._idle += bool(reading)
        if self._idle < MOST_IDLE:
            return
        job, names = reading[0], self._store.catalogue.regions
        held = ", ".join(names[x] for x in self._store.regions_holding(job)) or "no region"
        raise PolicyError(
            f"{self.called} left job {job.id!r} waiting {self._idle:,} times in a row on an empty "
            f"cluster: it reads {shortened(', '.join(job.tables))}, which {held} holds, and no "
            "data is on the way; choose a policy that goes where data is (mast), or let data move "
            "with data.replicate=on-demand"
        )

    def _wake(self, view: ClusterView) -> list[Wake]:
        """A wake-up for when the next copy arrives, if a job waits."""
        end = None if self._copies is None else self._copies.next_end()
        if end is None or end == self._woken or not view.waiting:
            return []
        self._woken = end
        return [Wake(end)]

"""Decision by decision: would our policy have decided as the original did?

Before each recorded allocation, the state of cluster and jobs is rebuilt from the rows before it.
Then the policy's round (`bids.py`) names the next grant. It agrees if it
names the same job, the same tier and the same shape. It may name another of several equal machines;
how often even the GPUs are the same is counted too. A grant to another job whose priority differs
by at most 1e-9 is counted as a tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.placement_shape import signature
from artist.cluster.tree import ClusterTree
from validation.original.accounts import Account
from validation.original.bids import Bid, BidQueue, Grant, OriginalRule
from validation.original.files import Allocation, RecordedRun, RecordedTrace
from validation.original.hash_order import HashOrder
from validation.original.pools import pool_of

# Smaller differences of priorities can be rounding.
TIE = 1e-9


@dataclass(slots=True)
class Agreement:
    """How the decisions of a recorded run compare with ours."""

    decisions: int = 0
    agree: int = 0
    ties: int = 0
    same_gpus: int = 0
    """Decisions that agree and name the same sockets."""
    idle_rounds: int = 0
    idle_agree: int = 0
    """Of the `idle_rounds` (ends of instants with allocations): ours has nothing left to grant."""
    priorities: int = 0
    """Recorded priorities that differ from ours by at most 1e-9 (relative)."""
    disagreements: list[str] = field(default_factory=list)


class Replay:
    """The state of one recorded run, rebuilt row by row."""

    def __init__(
        self,
        run: RecordedRun,
        trace: RecordedTrace,
        tree: ClusterTree,
        rule: OriginalRule,
        visits: HashOrder,
        granularity: int,
    ) -> None:
        self.agreement = Agreement()
        self._run = run
        self._jobs = trace.jobs
        self._rule = rule
        self._visits = visits
        self._granularity = granularity
        self._free = FreeGpus(tree)
        self._queue = BidQueue()
        self._handles = {job.id: handle for handle, job in enumerate(trace.jobs)}
        self._accounts: dict[int, Account] = {}
        self._iteration_s: dict[int, float] = {}
        self._held: dict[int, Placement] = {}
        self._arrived = 0
        self._round: Iterator[Grant] | None = None
        self._granted: list[int] = []
        self._now = 0.0

    def run(self) -> Agreement:
        """Go through all rows."""
        for row in self._run.rows:
            if row.time_s != self._now or row.event != "ALLOC":
                self._end_round()
            self._now = row.time_s
            handle = self._handles[row.job]
            if row.event == "ALLOC":
                self._allocated(row, handle)
            else:
                self._free.release(self._held.pop(handle))
                if row.event == "EXPIRE":
                    self._expired(row, handle)
        self._end_round()
        return self.agreement

    def _allocated(self, row: Allocation, handle: int) -> None:
        """Compare a recorded allocation with our next grant, and apply the recorded one."""
        if self._round is None:
            self._arrivals()
            self._start_round()
        assert self._round is not None  # just started
        actual = leaves(self._free.tree, row.sockets)
        bid = self._queue[handle]
        ours = next(self._round, None)
        agreed = self._compare(row, bid, actual, ours)
        self._free.claim(actual)
        self._held[handle] = actual
        self._iteration_s[handle] = self._jobs[handle].compute_s / row.speed
        tree = self._free.tree
        waited_s = self._now - bid.since_s
        level = ours.level if ours is not None and agreed else tier(tree, actual)
        self._rule.granted(tree, level, row.gpus, waited_s, self._now)
        self._granted.append(handle)
        if not agreed:
            self._start_round()

    def _start_round(self) -> None:
        """Start with the jobs left. A round cannot go on after a grant that was not its own."""
        self._leave_queue()
        self._round = self._queue.round(self._free, self._rule, self._visits, self._now)

    def _end_round(self) -> None:
        """The original granted nothing more. Count whether ours grants nothing more either."""
        if self._round is None:
            return
        self.agreement.idle_rounds += 1
        self.agreement.idle_agree += next(self._round, None) is None
        self._round = None
        self._leave_queue()

    def _leave_queue(self) -> None:
        for handle in self._granted:
            self._queue.remove(handle)
        self._granted.clear()

    def _compare(self, row: Allocation, bid: Bid, actual: Placement, ours: Grant | None) -> bool:
        """Count one decision, and return whether it agrees."""
        agreement, tree = self.agreement, self._free.tree
        agreement.decisions += 1
        agreement.priorities += abs(bid.measure + row.priority) <= TIE * max(1.0, bid.measure)
        if ours is None:
            self._note(row, actual, "nothing")
            return False
        other, _, placement = ours
        same = tier(tree, placement) == tier(tree, actual) and signature(
            tree, placement
        ) == signature(tree, actual)
        if other.handle == bid.handle and same:
            agreement.agree += 1
            agreement.same_gpus += placement == actual
            return True
        if other.handle != bid.handle and abs(other.measure - bid.measure) <= TIE:
            agreement.ties += 1
        else:
            name = self._jobs[other.handle].id
            self._note(row, actual, f"job {name} on {signature(tree, placement)}")
        return False

    def _note(self, row: Allocation, actual: Placement, ours: str) -> None:
        shape = signature(self._free.tree, actual)
        self.agreement.disagreements.append(
            f"{row.time_s:.3f} s: job {row.job} on {shape} after {row.waited_s:.3f} s; ours: {ours}"
        )

    def _arrivals(self) -> None:
        while self._arrived < len(self._jobs):
            job, handle = self._jobs[self._arrived], self._arrived
            if job.arrival_s > self._now:
                return
            total = job.iterations * job.gpus
            self._accounts[handle] = Account(total, job.compute_s, job.gpus, job.arrival_s)
            self._enter(handle)
            self._arrived += 1

    def _expired(self, row: Allocation, handle: int) -> None:
        """A lease ended: bring the job's books up to date and let it bid again."""
        account = self._accounts[handle]
        batch = self._granularity * row.gpus
        batches = (account.remaining - row.remaining) // batch
        if not account.run_s:
            # A trace holds whole batches. The first expiry tells the original's own total.
            account.total = account.remaining = pool_of(
                self._jobs[handle], row.remaining, self._granularity
            )
        account.ran(batches, self._iteration_s[handle], self._granularity)
        account.since_s = self._now
        self._enter(handle)

    def _enter(self, handle: int) -> None:
        account, job = self._accounts[handle], self._jobs[handle]
        kind = self._rule.kind(job.model)
        measure = self._rule.measure(account)
        self._queue.add(Bid(handle, job.gpus, kind, measure, account.since_s))


def leaves(tree: ClusterTree, sockets: Sequence[tuple[int, int, int]]) -> Placement:
    """A recorded list of GPUs as a placement."""
    taken: dict[int, int] = {}
    for rack, machine, socket in sockets:
        outer = tree.levels[tree.machine + 1].first_child[rack] + machine
        leaf = tree.levels[tree.machine].first_child[outer] + socket
        taken[leaf] = taken.get(leaf, 0) + 1
    return Placement.of(taken)

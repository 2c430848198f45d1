"""Decision by decision: would our policy have done what the original did?

Before each recorded allocation the state of cluster and jobs is rebuilt from the rows before it;
the policy's round (`original_queue.py`) then names the next grant. It agrees if it names the
same job, on the same level, in the same shape. A grant to another job whose priority differs by
no more than 1e-9 is a tie: set aside and counted. Which of several equal machines is taken
does not count (but is reported).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.shape import signature
from artist.cluster.tree import ClusterTree
from artist.policies.original.accounts import Account
from artist.policies.original.hash_order import HashOrder
from artist.policies.original.queue import Bid, BidQueue, Grant
from artist.policies.original.rules import OriginalRule
from validation.original.files import Allocation, RecordedRun, ReferenceTrace
from validation.original.pools import pool_of

TIE = 1e-9


@dataclass(slots=True)
class Agreement:
    """How a run's decisions compare with ours."""

    decisions: int = 0
    agree: int = 0
    ties: int = 0
    same_gpus: int = 0
    """Of those that agree: also the same sockets."""
    idle_rounds: int = 0
    idle_agree: int = 0
    """Ends of instants with allocations at which ours, too, has nothing left to grant."""
    priorities: int = 0
    """Recorded priorities that ours equal within 1e-9 (relative)."""
    disagreements: list[str] = field(default_factory=list)


class Replay:
    """The state of one recorded run, rebuilt row by row."""

    def __init__(
        self,
        run: RecordedRun,
        trace: ReferenceTrace,
        tree: ClusterTree,
        rule: OriginalRule,
        visits: HashOrder,
        granularity: int,
    ) -> None:
        self.found = Agreement()
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
        return self.found

    def _allocated(self, row: Allocation, handle: int) -> None:
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
        """From what is left; a round cannot go on after a grant that it did not make itself."""
        self._leave_queue()
        self._round = self._queue.round(self._free, self._rule, self._visits, self._now)

    def _end_round(self) -> None:
        """Ours must have nothing left to grant either."""
        if self._round is None:
            return
        self.found.idle_rounds += 1
        self.found.idle_agree += next(self._round, None) is None
        self._round = None
        self._leave_queue()

    def _leave_queue(self) -> None:
        for handle in self._granted:
            self._queue.remove(handle)
        self._granted.clear()

    def _compare(self, row: Allocation, bid: Bid, actual: Placement, ours: Grant | None) -> bool:
        """Count one decision; whether it agrees."""
        found, tree = self.found, self._free.tree
        found.decisions += 1
        found.priorities += abs(bid.measure + row.priority) <= TIE * max(1.0, bid.measure)
        if ours is None:
            self._note(row, actual, "nothing")
            return False
        other, _, placement = ours
        same = tier(tree, placement) == tier(tree, actual) and signature(
            tree, placement
        ) == signature(tree, actual)
        if other.handle == bid.handle and same:
            found.agree += 1
            found.same_gpus += placement == actual
            return True
        if other.handle != bid.handle and abs(other.measure - bid.measure) <= TIE:
            found.ties += 1
        else:
            name = self._jobs[other.handle].id
            self._note(row, actual, f"job {name} on {signature(tree, placement)}")
        return False

    def _note(self, row: Allocation, actual: Placement, ours: str) -> None:
        shape = signature(self._free.tree, actual)
        self.found.disagreements.append(
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
        account = self._accounts[handle]
        batch = self._granularity * row.gpus
        batches = (account.remaining - row.remaining) // batch
        if not account.run_s:
            # Traces hold whole batches; the original's total is what the first expiry implies.
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

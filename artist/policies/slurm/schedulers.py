"""The two schedulers of slurmctld: which jobs each starts in a pass, and which ones it preempts.

The **main scheduler** starts jobs in order; the first that does not fit closes its partition.
**Backfill** starts jobs that delay none of those before them. `policy.py` says when they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from artist.contract import LONGEST_REASON, Preempt
from artist.policies.slurm.backfill import Possible, ReservedMachines, will_run
from artist.policies.slurm.limits import Limits
from artist.policies.slurm.passes import SchedulingPass, Tried
from artist.policies.slurm.preemption import Graces, Preemption
from artist.policies.slurm.request import MOST_CPUS, Request
from artist.policies.slurm.reservations import Reservations
from artist.policies.slurm.running import RunningJob
from artist.policies.slurm.selection import Selection
from artist.policies.slurm.settings import SlurmSettings

RESOURCES = "Resources: its machines are not free"
_RESERVED = "Reservation: it would run into one by its time limit"
GRACE = "Resources: the jobs that it preempts have a grace"


class Schedulers:
    """Both schedulers of a cluster."""

    def __init__(
        self,
        settings: SlurmSettings,
        requests: Mapping[int, Request],
        *,
        selection: Selection,
        limits: Limits,
        reservations: Reservations,
    ) -> None:
        self._settings = settings
        self._requests = requests
        self._selection = selection
        self._limits = limits
        self._reservations = reservations
        least = (settings.numbers[f"bf_min_{x}_reserve"] for x in ("prio", "age"))
        self._reserves_for_all = not any(least)
        self.preemption = Preemption(settings)
        self.graces = Graces(settings.preempt_again_s)
        self.cut_short = False
        """Whether the pass left out jobs that a later pass may start without any event."""

    def main_pass(self, state: SchedulingPass, ordered: Sequence[Request], *, full: bool) -> None:
        """Start jobs in order; the first that does not fit closes its partition."""
        depth = self._settings.numbers["default_queue_depth"]
        most = self._settings.numbers["sched_max_job_start"]
        closed, closed_machines = set[str](), 0
        tested = -1
        for request in ordered:
            if request.handle in state.started:  # in another partition
                continue
            tested += 1
            if (not full and tested > depth) or (most and len(state.started) >= most):
                break
            partition = request.partition
            if partition.name in closed:
                state.reasons[request.handle] = "Priority: a job before it does not fit"
                continue
            if self._array_is_busy(state, request):
                continue
            if not self._permits(state, request):
                if "assoc_limit_stop" in self._settings.switches:
                    closed.add(partition.name)
                    closed_machines |= partition.machines
                continue
            kept = self._reservations.closed(state.now_s, state.now_s + request.limit_s)
            open_ = partition.machines & ~closed_machines & ~kept
            if self._start(state, request, open_):
                continue
            state.reasons[request.handle] = self._why_not(request, kept)
            # A job that only a reservation keeps from starting does not close its partition.
            if not kept & partition.machines or open_.bit_count() >= request.nodes:
                closed.add(partition.name)
                closed_machines |= partition.machines

    def _why_not(self, request: Request, kept: int) -> str:
        """Why the main scheduler cannot start a job, if the machines `kept` are reserved."""
        if self.graces.awaited_by(request.handle):
            return GRACE
        return _RESERVED if kept & request.partition.machines else RESOURCES

    def _start(self, state: SchedulingPass, request: Request, open_: int) -> bool:
        """Start a job on some of these machines, and preempt others for it if need be."""
        now_s = state.now_s
        chosen = self._selection.choose(request, state.free, open_)
        if chosen is None and self.preemption.on and self.graces.may_try(request.handle, now_s):
            found = self.preemption.choose(
                request, state.free, open_, self._candidates(state, request), self._selection
            )
            if found is not None:
                chosen, victims = found
                if not self._take(state, request.handle, victims):
                    return False
        if chosen is None:
            return False
        state.start(request, chosen)
        return True

    def _take(self, state: SchedulingPass, preemptor: int, victims: Sequence[RunningJob]) -> bool:
        """Preempt jobs for another one; False if some of them run on for their grace."""
        waits = False
        for victim in victims:
            grace_s = self.preemption.grace_s(self._requests[victim.handle])
            if self.graces.give(victim.handle, preemptor, grace_s, state.now_s):
                state.tell_to_leave(victim, self.graces.of[victim.handle].until_s)
                waits = True
            else:
                state.preempt(victim, self.loss(victim.handle, preemptor))
        return not waits

    def loss(self, handle: int, preemptor: int) -> Preempt:
        """The decision that preempts a job: it is cancelled or requeued."""
        request = self._requests[handle]
        for_good = self.preemption.mode(request) == "CANCEL"
        done = "" if for_good else "requeued "
        words = f"{done}by Slurm for job {self._requests[preemptor].job.id}"
        if handle in self.graces.of:
            words += f", after {self.preemption.grace_s(request)} s of grace"
        return Preempt(handle, words[:LONGEST_REASON], for_good)

    def _array_is_busy(self, state: SchedulingPass, request: Request, reserving: int = 0) -> bool:
        """Whether its array has as many tasks as may run at once, with `reserving` planned ones."""
        if not request.tasks_at_once:
            return False
        busy = state.by_number[request.number[0]] + reserving >= request.tasks_at_once
        if busy:
            state.reasons[request.handle] = "the limit of tasks of its array that run at once"
        return busy

    def _permits(self, state: SchedulingPass, request: Request) -> bool:
        chosen = None
        if self._limits.count_machines:
            chosen = self._selection.choose(request, state.free, request.partition.machines)
        permitted = self._limits.permits(request, state.now_s, chosen)
        if not permitted:
            state.reasons[request.handle] = "a limit of its QOS or account"
        self.cut_short |= not permitted and self._limits.fall
        return permitted

    def _candidates(self, state: SchedulingPass, request: Request) -> list[RunningJob]:
        if not self.preemption.on:
            return []
        return self.preemption.candidates(request, state.preemptable(), self._requests, state.now_s)

    def backfill_pass(self, state: SchedulingPass, ordered: Sequence[Request]) -> None:
        """Start jobs that delay none of those before them, and reserve machines for the others."""
        numbers, now_s = self._settings.numbers, state.now_s
        window_s = 60 * numbers["bf_window"]
        resolution_s = max(1, numbers["bf_resolution"])
        reserved = ReservedMachines(now_s, resolution_s, window_s, self._serving(state))
        usage = Tried(numbers)
        # How many tasks of an array have been tested and did not start, in each partition.
        reserving = Counter[tuple[int, str]]()
        most_of_array = max(1, numbers["bf_max_job_array_resv"])
        tested = started = 0
        for request in ordered:
            if request.handle in state.started:
                continue
            if tested >= numbers["bf_max_job_test"]:
                self.cut_short = True
                break
            array = request.number[0], request.partition.name
            if reserving[array] >= most_of_array:
                continue
            if self._array_is_busy(state, request, reserving[array]):
                continue
            if not self._permits(state, request):
                continue
            if not usage.permits(request):
                self.cut_short = True
                continue
            tested += 1
            before = len(state.started)
            self._try(state, reserved, request, window_s)
            started += len(state.started) - before
            reserving[array] += len(state.started) == before
            if numbers["bf_max_job_start"] and started >= numbers["bf_max_job_start"]:
                break

    def _try(
        self, state: SchedulingPass, reserved: ReservedMachines, request: Request, window_s: int
    ) -> None:
        """Start a job, or reserve machines for it as soon as it could start."""
        now_s = state.now_s
        later_s: int | None = now_s
        while later_s is not None:
            from_s = later_s
            end_s = max(from_s, now_s) + request.limit_s
            kept = self._reservations.closed(from_s, end_s)
            open_, later_s = reserved.available(request.partition.machines & ~kept, from_s, end_s)
            if kept & request.partition.machines:
                until_s = self._reservations.next_end_s(from_s)
                later_s = min(x for x in (until_s, later_s) if x is not None)
            if open_.bit_count() < request.nodes:
                continue
            now_only = self._may_not_reserve(request, now_s)
            possible = will_run(
                request, state.free, open_, state.departures, now_s, now_only=now_only,
                busy_until=state.busy_until, preemptable=self._candidates(state, request),
            )  # fmt: skip
            if possible is None:
                continue
            start_s = max(possible.start_s, from_s)
            if start_s <= now_s:
                if not self._start(state, request, open_):
                    machines = self._expected(request, possible, open_)
                    reserved.reserve(machines, now_s, now_s + request.limit_s)
                return
            if now_only:
                return
            if later_s is not None and start_s > later_s:
                continue
            if start_s > now_s + window_s:
                return
            machines = self._expected(request, possible, open_)
            if not reserved.overlaps(machines, start_s, start_s + request.limit_s):
                reserved.reserve(machines, start_s, start_s + request.limit_s)
                return
            later_s = start_s

    def _expected(self, request: Request, possible: Possible, open_: int) -> int:
        """The machines that a job would get at its possible start, when it fits."""
        chosen = self._selection.choose(request, possible.free(), open_)
        assert chosen is not None
        return chosen

    def _may_not_reserve(self, request: Request, now_s: int) -> bool:
        """Whether bf_min_prio_reserve or bf_min_age_reserve denies a job a reservation."""
        if self._reserves_for_all:
            return False
        numbers = self._settings.numbers
        if request.priority < numbers["bf_min_prio_reserve"]:
            return True
        young = now_s - request.eligible_s < numbers["bf_min_age_reserve"]
        self.cut_short |= young
        return young

    def _serving(self, state: SchedulingPass) -> int:
        """The machines that have a GPU in service."""
        serving = state.free.room(1, -MOST_CPUS)
        for job in state.running:
            serving |= job.machines
        return serving

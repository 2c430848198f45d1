"""`lookahead(HOST)`: rollout search around any policy, without training.

The host answers. Some of its starts are doubtful: the job would lie at a worse level than on an
empty cluster, or would slow another job down or be slowed down. For each doubtful start, the answer
without it is tried as well, and so is the answer without all of them: at most `answers` in all. To
try means that a copy of the run goes on with the host until all present jobs have finished
(`ClusterView.what_if`). The answer with the smallest sum of finish times wins; of equal ones the
host's, then the one that leaves out an earlier start. This is one step of policy improvement by
simulation (Bertsekas, Tsitsiklis and Wu, *Rollout algorithms for combinatorial optimization*,
Journal of Heuristics 1997).

**What it knows.** A trial has no jobs that are still to come. But it shows when present jobs will
finish, so with any host the policy knows run times.

**What the host sees** of a job that was left out: it started and lost its GPUs at once, as in an
outage. It enters the queue again at the next question.

**Cost.** A trial is a run of the present jobs: about two milliseconds a job, so a question with a
doubtful start costs up to `answers` times that. Questions without one cost nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import tier
from artist.contract import (
    ClusterView,
    Decision,
    JobView,
    Options,
    Policy,
    Preempt,
    Start,
    WrapperPolicy,
)
from artist.contract.gates import without
from artist.errors import ConfigError
from artist.policies.shared.packing import best_level
from artist.policies.shared.sharing import Sharing
from artist.units import Tick


class LookaheadOptions(Options):
    """Options of the search."""

    # A choice of ours. More than three doubtful starts at one question are rare.
    answers: int = Field(
        default=4, ge=2, le=64, description="most answers that are tried per question"
    )


class LeavesOut(WrapperPolicy):
    """A host some of whose starts are left out. It is told that those jobs lost their GPUs."""

    def __init__(self, host: Policy) -> None:
        super().__init__(host)
        self.head_blocks = False  # which may be left out
        self.left_out: tuple[int, ...] = ()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's answer, once it knows that the jobs left out wait again."""
        back = [view.waiting[handle] for handle in self.left_out if handle in view.waiting]
        self.left_out = ()
        return self.host.decide(view._replace(entered=[*back, *view.entered]))

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """What the host says, but True while it does not know of the jobs left out."""
        return bool(self.left_out) or self.host.contests(ended, free, now)


class Lookahead(LeavesOut):
    """A host whose doubtful starts are tried before they are made."""

    Options = LookaheadOptions

    def __init__(self, options: LookaheadOptions, host: Policy) -> None:
        super().__init__(host)
        self.reads_hosts = getattr(host, "reads_hosts", False)
        if self.remembers_placements:
            raise ConfigError(
                "policy lookahead: the policy inside keeps its own record of which job has which "
                "GPUs; take another one"
            )
        self._answers = options.answers

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's answer, or a better one without some of its starts."""
        answer = list(super().decide(view))
        choices = self._choices(view, answer) if in_service(view) else []
        if len(choices) > 1:
            self.left_out = min(choices, key=lambda left_out: self._cost(view, answer, left_out))
        return _without(view, answer, self.left_out)

    def _choices(self, view: ClusterView, answer: Sequence[Decision]) -> list[tuple[int, ...]]:
        """What could be left out; nothing comes first."""
        doubtful = doubtful_starts(view, answer)
        ones = [(handle,) for handle in doubtful]
        choices = [(), *ones[: self._answers - 1]]
        if len(doubtful) > 1:
            choices = [*choices[: self._answers - 1], tuple(doubtful)]
        return [x for x in choices if any_job_runs(view, _without(view, answer, x))]

    def _cost(
        self, view: ClusterView, answer: Sequence[Decision], left_out: tuple[int, ...]
    ) -> Tick:
        """The sum of finish times of all present jobs."""
        then = LeavesOut(self.host)
        then.left_out = left_out
        return sum(view.what_if(_without(view, answer, left_out), then).values())


def in_service(view: ClusterView) -> bool:
    """Whether no GPU is out of service: a copy of the run does not know when it will be back."""
    held = sum(job.gpus for job in view.running.values())
    return view.free.total + held == view.cluster.gpus


def doubtful_starts(view: ClusterView, answer: Sequence[Decision]) -> list[int]:
    """Handles of the jobs that might better wait, in the order of the answer."""
    sharing, tree = Sharing(view), view.cluster
    sharing.decisions = answer
    return [
        x.handle
        for x in answer
        if isinstance(x, Start)
        and (
            tier(tree, x.placement) > best_level(tree, x.placement.gpus)
            or sharing.slowdowns(x.handle, x.placement).most > 0
        )
    ]


def _without(
    view: ClusterView, answer: Sequence[Decision], left_out: Sequence[int]
) -> list[Decision]:
    """The answer without some starts, and without the preemptions that served only these."""
    return without(answer, left_out, view, "lookahead leaves out what came after it")[0]


def any_job_runs(view: ClusterView, answer: Sequence[Decision]) -> bool:
    """Whether a job runs after an answer. If none does, nothing else may ever happen."""
    lost = sum(isinstance(x, Preempt) for x in answer)
    return len(view.running) > lost or any(isinstance(x, Start) for x in answer)

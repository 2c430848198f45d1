"""Jobs that take turns to send: which of them wait before an Up phase, and for how long.

The lateness of a job is the time at which its Up phase starts, less the time at which it should.

    pace         A job that needs less than its turn waits before it sends, until it is as late as
                 the slowest of its group. Its Up phase then ends with the turn.
    correction   A job that is ahead of the latest of its group by more than its slack waits until
                 it is as late, because the latest cannot make up for lost time.

A wait counts as a correction if it exceeds the job's spare time and its slack together (CASSINI,
section 5.7: an Up phase starts more than 5 % of the iteration off).

Relative phases are kept, whatever the pace of the group. A job whose slack is None never waits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from artist.network.models.patterns import Contention, Member
from artist.rng import stream

# Standard deviation of an iteration, as a share of it: the largest with less than two corrections a
# minute (CASSINI, Fig. 17; studies/cassini/study/drift.py).
JITTER = 0.005

# Random drift of .5 % an iteration reaches a slack of 5 % after (5 % / .5 %)^2 = 100 iterations.
# Answers use the later half.
MOST_IN_TURN = 256

# Of all jobs together. With many jobs the mean of fewer iterations is as good, and each costs more.
ITERATIONS_IN_TURN = 1024

# A share of a turn. Less spare time than that is rounding, since turns are rounded to ticks.
SAME = 1e-6


def iterations_in_turn(jobs: int, least: int) -> int:
    """How many iterations of each job to simulate, where some of the jobs take turns."""
    return max(min(ITERATIONS_IN_TURN // jobs, MOST_IN_TURN), least)


class TurnsNow:
    """Lateness of the jobs of a contention while it is simulated.

    `alone_s` holds the isolated iteration of each job, in seconds.
    """

    def __init__(self, members: Sequence[Member], alone_s: Sequence[float]) -> None:
        self._members = members
        self._late_s = [0.0] * len(members)
        self._groups: dict[int, list[int]] = {}
        self._spare_s = [0.0] * len(members)
        """By job: the turn's period less the isolated iteration, at least 0."""
        for index, member in enumerate(members):
            if member.turn is not None:
                self._groups.setdefault(member.turn.group, []).append(index)
                self._spare_s[index] = max(member.turn.period_s - alone_s[index], 0.0)
        self._slowest = {
            group: min(jobs, key=lambda job: self._spare_s[job] / alone_s[job])
            for group, jobs in self._groups.items()
        }
        self.corrections = [0] * len(members)
        self.waited_s: list[list[float]] = [[] for _ in members]
        """Waits by job and iteration."""

    def held_s(self, index: int, iterations: int) -> float:
        """Mean wait of a job per iteration, over the later half of its first `iterations`."""
        later_s = self.waited_s[index][iterations // 2 : iterations]
        return math.fsum(later_s) / len(later_s) if later_s else 0.0

    def wait_s(self, index: int, iteration: int, now_s: float) -> float:
        """Seconds for which a job waits before its Up phase, which would start now; 0 if none."""
        member = self._members[index]
        turn = member.turn
        if turn is None or turn.slack_s is None:
            return 0.0
        start_s = member.offset_s + iteration * turn.period_s
        due_s = start_s + self._spare_s[index] + member.pattern.steps[0].down_s
        late_s = now_s - due_s
        pace_s = spare_s = 0.0
        if len(self.waited_s[index]) == iteration:
            # The job waits for its pace once an iteration: others may be later after the wait.
            self.waited_s[index].append(0.0)
            spare_s = self._spare_s[index]
            if spare_s > SAME * turn.period_s:
                pace_s = max(self._late_s[self._slowest[turn.group]] - late_s, 0.0)
        self._late_s[index] = late_s + pace_s
        latest_s = max(self._late_s[other] for other in self._groups[turn.group])
        ahead_s = latest_s - self._late_s[index]
        wait_s = pace_s + (ahead_s if ahead_s > turn.slack_s else 0.0)
        if wait_s > spare_s + turn.slack_s:
            self.corrections[index] += 1
        self.waited_s[index][-1] += wait_s
        return wait_s


def in_turn(contention: Contention) -> bool:
    """Whether any job takes turns."""
    return any(member.turn is not None for member in contention.members)


def with_jitter(
    contention: Contention, alone_s: Sequence[float], jitter: float, iterations: int, seed: int
) -> Contention:
    """The contention with normal jitter on the iterations of jobs that take turns.

    The standard deviation is `jitter` x the isolated iteration. The Down times vary, and stay at
    least 0.
    """
    if not jitter:
        return contention
    streams = contention.streams

    def varied(index: int, member: Member) -> Member:
        down_s = member.pattern.steps[0].down_s
        if member.turn is None or not down_s:
            return member
        normals = stream(seed, f"turns {streams[index]}").normal(0.0, jitter, iterations)
        factors = 1.0 + normals * (alone_s[index] / down_s)
        return replace(member, down_factors=tuple(factors.clip(min=0.0).tolist()))

    members = (varied(index, member) for index, member in enumerate(contention.members))
    return Contention(contention.links, tuple(members))

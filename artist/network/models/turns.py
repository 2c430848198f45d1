"""Jobs that take turns to send: who has drifted ahead of the others, and how long it waits.

A job's lateness is when its Up phase starts, less when it should have started. No job makes up for
lost time, so in a group the latest job counts, and the others wait for it: a job that is ahead
by more than its slack sends that much later (CASSINI, section 5.7: a correction where an Up phase
starts more than 5 % of the iteration off). Relative phases stay, whatever the pace of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artist.io.digests import sha256
from artist.network.models.patterns import Contention, Member
from artist.rng import stream

# Standard deviation of an iteration, as a share of it. The largest at which there are under two
# corrections a minute (CASSINI, Fig. 17; studies/cassini/study/drift.py).
JITTER = 0.005

# A turn that drifts is settled after (5 % / .5 %)^2 = 100 iterations; the later half counts.
MOST_IN_TURN = 256

# Of all jobs together: many jobs average over more of them, and each costs more.
ITERATIONS_IN_TURN = 1024


def iterations_in_turn(jobs: int, least: int) -> int:
    """How many iterations of each job to simulate, where some of the jobs take turns."""
    return max(min(ITERATIONS_IN_TURN // jobs, MOST_IN_TURN), least)


class TurnsNow:
    """Lateness of the jobs of a contention while it is simulated."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._late_s = [0.0] * len(members)
        self._groups: dict[int, list[int]] = {}
        for index, member in enumerate(members):
            if member.turn is not None:
                self._groups.setdefault(member.turn.group, []).append(index)
        self.corrections = [0] * len(members)

    def wait_s(self, index: int, iteration: int, now_s: float) -> float:
        """How long a job waits before its Up phase, which would start now. 0 if it need not."""
        member = self._members[index]
        turn = member.turn
        if turn is None:
            return 0.0
        due_s = member.offset_s + iteration * turn.period_s + member.pattern.steps[0].down_s
        self._late_s[index] = now_s - due_s
        latest_s = max(self._late_s[other] for other in self._groups[turn.group])
        ahead_s = latest_s - self._late_s[index]
        if turn.slack_s is None or ahead_s <= turn.slack_s:
            return 0.0
        self.corrections[index] += 1
        return ahead_s


@dataclass(frozen=True, slots=True)
class _Jittered:
    """What names a contention's random numbers."""

    contention: Contention
    turns: tuple[object, ...]


def in_turn(contention: Contention) -> bool:
    """Whether some job takes turns."""
    return any(member.turn is not None for member in contention.members)


def with_jitter(
    contention: Contention, alone_s: Sequence[float], jitter: float, iterations: int, seed: int
) -> Contention:
    """The same with iterations of jobs that take turns varied: normal, by `jitter` x isolated time.

    What varies is the Down time, which ends at 0 at the least.
    """
    if not jitter:
        return contention
    name = sha256(repr(_Jittered(contention, tuple(x.turn for x in contention.members))))

    def varied(index: int, member: Member) -> Member:
        down_s = member.pattern.steps[0].down_s
        if member.turn is None or not down_s:
            return member
        normals = stream(seed, f"turns {name} {index}").normal(0.0, jitter, iterations)
        factors = 1.0 + normals * (alone_s[index] / down_s)
        return replace(member, down_factors=tuple(factors.clip(min=0.0).tolist()))

    members = (varied(index, member) for index, member in enumerate(contention.members))
    return Contention(contention.links, tuple(members))

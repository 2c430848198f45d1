"""Rewards by name.

All are integrals over time, so they do not depend on how often the agent is queried.

| name | reward between two moments | sum over an episode |
| --- | --- | --- |
| `jobs-in-system` | -(jobs that wait or run) x time / (n T) | -(mean JCT) / T |
| `jct` | -(sum of JCT of the jobs that finish) / (n T) | -(mean JCT) / T |
| `paper:W1` | (-W1 (CS - 1) + (1 - W1) Util) x time / 300 s | |

n is the number of jobs and T their mean ideal run time, so rewards have the same magnitude on all
traces. `jobs-in-system` gives an agent at once what `jct` gives only when jobs finish.

`paper` is eq. 2 of Ryu and Eo with W2 = 1 - W1: CS is the mean contention sensitivity of running
jobs (time of an iteration / time alone), Util the share of GPUs that jobs hold. Algorithm 1 gives
one such reward per scheduling interval, 300 s in the authors' code. It has CS - 1 in place of the
paper's CS, as that code does: with CS an idle cluster would be better than one without contention.

A reward is a sum: `jobs-in-system + 0.1*paper:0.3`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from artist.engine.simulator import Simulator
from artist.errors import ConfigError, did_you_mean, shortened
from artist.policies.learned.observation_sensitivity import mean_loss
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job

INTERVAL_S = 300.0
"""Scheduling interval of the authors' code (the paper leaves it open)."""

W1 = 0.3
"""Weight of contention in `paper` if none is given: branch A of the paper (section VI)."""

_TERM = re.compile(
    r"(?:(?P<weight>[-+.0-9eE]+)\s*\*\s*)?(?P<name>[a-z-]+)(?::(?P<argument>[.0-9]+))?"
)


class RewardTerm(Protocol):
    """One term of the reward in one episode."""

    def answered(self, simulator: Simulator) -> None:
        """Note the state of the cluster after an answer."""
        ...

    def passed(self, simulator: Simulator, time: Tick) -> float:
        """The reward for the time since the last answer, up to the present question or the end."""
        ...


class JobsInSystem:
    """`jobs-in-system`."""

    def __init__(self, jobs: Sequence[Job], argument: float | None) -> None:
        self._scale_ticks = total_ideal_s(jobs) * TICKS_PER_S
        self._jobs = 0

    def answered(self, simulator: Simulator) -> None:
        """Count the jobs; until the next question none arrives or finishes."""
        self._jobs = simulator.jobs_running + simulator.jobs_waiting

    def passed(self, simulator: Simulator, time: Tick) -> float:
        """Jobs x time."""
        return -self._jobs * time / self._scale_ticks


class Jct:
    """`jct`."""

    def __init__(self, jobs: Sequence[Job], argument: float | None) -> None:
        self._scale_ticks = total_ideal_s(jobs) * TICKS_PER_S
        self._counted = 0

    def answered(self, simulator: Simulator) -> None:
        """Do nothing: no job finishes at an answer."""

    def passed(self, simulator: Simulator, time: Tick) -> float:
        """The completion times of jobs that finished."""
        rows = simulator.rows.jobs
        new = rows[self._counted :]
        self._counted = len(rows)
        return -sum(row.finish - row.arrival for row in new) / self._scale_ticks


class PaperReward:
    """`paper:W1`."""

    def __init__(self, jobs: Sequence[Job], argument: float | None) -> None:
        self._w1 = W1 if argument is None else argument
        if not 0 <= self._w1 <= 1:
            raise ConfigError(f"reward paper:{self._w1:g}: W1 is a share, from 0 to 1")
        self._value = 0.0

    def answered(self, simulator: Simulator) -> None:
        """Equation 2."""
        running = simulator.view().running.values()
        held = sum(job.gpus for job in running) / simulator.tree.gpus
        self._value = -self._w1 * mean_loss(running) + (1 - self._w1) * held

    def passed(self, simulator: Simulator, time: Tick) -> float:
        """The value of equation 2, per interval."""
        return self._value * time / (INTERVAL_S * TICKS_PER_S)


REWARDS: dict[str, Callable[[Sequence[Job], float | None], RewardTerm]] = {
    "jobs-in-system": JobsInSystem,
    "jct": Jct,
    "paper": PaperReward,
}
WITH_ARGUMENT = ("paper",)


class WeightedTerm(NamedTuple):
    """A term in the text of a reward."""

    weight: float
    name: str
    argument: float | None


class Reward:
    """A reward of one episode: the weighted sum of its terms."""

    def __init__(self, terms: Sequence[WeightedTerm], jobs: Sequence[Job]) -> None:
        self._terms = [(term.weight, REWARDS[term.name](jobs, term.argument)) for term in terms]
        self._since: Tick = 0

    def answered(self, simulator: Simulator) -> None:
        """Note the state and the time after an answer."""
        self._since = simulator.now
        for _, term in self._terms:
            term.answered(simulator)

    def passed(self, simulator: Simulator) -> float:
        """The reward since the last answer."""
        time = simulator.now - self._since
        return sum(weight * term.passed(simulator, time) for weight, term in self._terms)


def parse_reward(text: str) -> list[WeightedTerm]:
    """The terms of `[WEIGHT*]NAME[:ARGUMENT] + ...`.

    Raises:
        ConfigError: the text is not of this form, or a name is unknown.
    """
    terms = []
    for part in text.split(" + ") if text.strip() else [""]:
        match = _TERM.fullmatch(part.strip())
        if match is None:
            raise ConfigError(
                f"reward {shortened(text)}: expected NAME, NAME:NUMBER or WEIGHT*NAME, several "
                "with ' + ' between them, e.g. jobs-in-system + 0.1*paper:0.3"
            )
        name, argument = match["name"], match["argument"]
        if name not in REWARDS:
            raise ConfigError(f"unknown reward {shortened(name)}: {did_you_mean(name, REWARDS)}")
        if argument is not None and name not in WITH_ARGUMENT:
            raise ConfigError(f"reward {name}:{argument}: {name} takes no number; write {name}")
        terms.append(
            WeightedTerm(
                1.0 if match["weight"] is None else _number(match["weight"], text),
                name,
                None if argument is None else _number(argument, text),
            )
        )
    return terms


def _number(number: str, text: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ConfigError(f"reward {shortened(text)}: {number!r} is not a number") from None


def total_ideal_s(jobs: Sequence[Job]) -> float:
    """The sum of the ideal run times of all jobs, in seconds: n T."""
    return sum(job.ideal_s for job in jobs)

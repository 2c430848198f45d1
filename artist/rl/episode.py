"""One run of a scenario as an episode: an outside driver of the engine, action by action.

    start -> [observe, mask, act] ... until `done`

`act` ends the round where there is no more to choose, answers the engine, and goes on to the next
question with a candidate. Questions without one are answered here; they cost no action.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.errors import PolicyError
from artist.policies.learned.observe import Observation, open_observation, open_task
from artist.policies.learned.options import TaskOptions
from artist.policies.learned.task import Mask
from artist.rl.rewards import Reward, Weighted
from artist.rl.stage import Stage
from artist.units import TICKS_PER_S


class Episode:
    """A run that waits for actions. It ends when all jobs have finished."""

    def __init__(
        self, stage: Stage, seed: int, options: TaskOptions, reward: Sequence[Weighted]
    ) -> None:
        self.seed = seed
        self.simulator, trace = stage.simulator(seed)
        self.task = open_task(options, stage.tree)
        self.observation: Observation = open_observation(options, stage.tree)
        self._reward = Reward(reward, trace.jobs)
        self.done = False
        self.actions: list[int] = []
        """All actions so far: with the scenario they are the episode."""
        self._advance()

    def act(self, action: int) -> float:
        """Do an action that `lawful` has passed; the reward of the time that it lets pass."""
        self.actions.append(action)
        if self.task.act(action):
            return 0.0
        self._answer()
        return self._advance()

    def mask(self) -> Mask:
        """Which actions are allowed."""
        return self.task.mask()

    def lawful(self, action: int) -> int:
        """The action itself if it is allowed; else none; else the first that is allowed."""
        mask = self.mask()
        if mask[action]:
            return action
        return self.task.actions - 1 if mask[-1] else int(mask.argmax())

    def jct_mean_s(self) -> float:
        """Mean completion time of the jobs that have finished, in seconds."""
        rows = self.simulator.rows.jobs
        return sum(row.finish - row.arrival for row in rows) / (len(rows) * TICKS_PER_S)

    def _advance(self) -> float:
        """Go on to the next round, or to the end; the reward on the way."""
        reward = 0.0
        while (view := self.simulator.next_question()) is not None:
            reward += self._reward.passed(self.simulator)
            if self.task.begin(view):
                return reward
            self._answer()
        if self.simulator.jobs_waiting:
            raise PolicyError("an episode ended with waiting jobs; no candidate was offered")
        self.done = True
        return reward

    def _answer(self) -> None:
        self.simulator.answer(self.task.decisions(), "the agent")
        self._reward.answered(self.simulator)

"""The gymnasium environments `artist/Schedule-v0` and `artist/Place-v0`.

An `Episode` is one run of a scenario. It drives the engine from outside, action by action:

    start -> [observe, mask, act] ... until `done`

When a round ends, `act` answers the engine and goes on to the next question with a candidate.
Questions without a candidate are answered here and cost no action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, PolicyError
from artist.io.documents import validate
from artist.policies.learned.observation_graph import WIDTH
from artist.policies.learned.observations import Observation, open_observation, open_task
from artist.policies.learned.task import Mask
from artist.policies.learned.task_options import TaskName, TaskOptions
from artist.rl.rewards import Reward, WeightedTerm, parse_reward
from artist.rl.scenario_setup import ScenarioSetup
from artist.rng import stream
from artist.settings import load_scenario
from artist.units import TICKS_PER_S


class Episode:
    """A run that waits for actions. It ends when all jobs have finished."""

    def __init__(
        self, setup: ScenarioSetup, seed: int, options: TaskOptions, reward: Sequence[WeightedTerm]
    ) -> None:
        self.seed = seed
        self.simulator, trace = setup.simulator(seed)
        self.task = open_task(options, setup.tree)
        self.observation: Observation = open_observation(options, setup.tree)
        self._reward = Reward(reward, trace.jobs)
        self.done = False
        self.actions: list[int] = []
        """All actions so far. With the scenario they determine the episode."""
        # Time may pass before the first action, which gets the reward of that time.
        self._before = self._advance()

    def act(self, action: int) -> float:
        """Do an action that is allowed; returns the reward of the time that passes after it."""
        self.actions.append(action)
        before, self._before = self._before, 0.0
        if self.task.act(action):
            return before
        self._answer()
        return before + self._advance()

    def mask(self) -> Mask:
        """Which actions are allowed."""
        return self.task.mask()

    def allowed(self, action: int) -> int:
        """The action itself if it is allowed, else none if that is, else the first allowed one."""
        mask = self.mask()
        if mask[action]:
            return action
        return self.task.actions - 1 if mask[-1] else int(mask.argmax())

    def jct_mean_s(self) -> float:
        """Mean completion time of the jobs that have finished, in seconds."""
        rows = self.simulator.rows.jobs
        return sum(row.finish - row.arrival for row in rows) / (len(rows) * TICKS_PER_S)

    def _advance(self) -> float:
        """Go on to the next round, or to the end; returns the reward on the way."""
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


DEFAULT_REWARD = "jobs-in-system"

SMALL = Scenario(
    racks=1,
    machines_per_rack=4,
    gpus_per_machine=4,
    trace="tiny-poisson",
    arrivals="poisson:30",
)
"""The scenario of an environment that is made without one: 24 jobs, four machines."""

_MADE_ANEW = ("_setup", "episode")
"""Attributes of an environment that are rebuilt from the others and the actions."""


class ClusterEnv(gymnasium.Env[Any, np.int64]):
    """A scenario, run after run. After `reset(seed=S)` it is the run of the scenario with seed S.

    Later resets without a seed use seeds derived from S. An episode ends when all jobs have
    finished. Several actions make a round. Time passes only after the last one of a round, so only
    that one has a reward. (The first action also gets that of the time before it.) An action that
    `action_masks` forbids counts as none, or as the first allowed one if none is forbidden too.

    The `info` of every step has `time_s`, `jobs_waiting` and `gpus_free`, without the starts of the
    round in progress; at the end also `jct_mean_s`.

    `scenario` is a file, a `Scenario` or a mapping of settings; its policy is not used. `reward` is
    a text of `artist.rl.rewards`. `options` are those of `TaskOptions` except `task`. Nothing is
    drawn: `render_mode` is accepted because stable-baselines3 gives one to every environment.

    Pickling and copying save `state`, and repeat the actions of the episode.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    task: ClassVar[TaskName]

    def __init__(
        self,
        scenario: Scenario | Mapping[str, Any] | str | Path | None = None,
        *,
        reward: str = DEFAULT_REWARD,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if options.get("task", self.task) != self.task:
            raise ConfigError(f"task {options['task']!r} has an environment of its own")
        self.scenario = scenario_of(scenario)
        self.options = validate({**options, "task": self.task}, TaskOptions, "environment")
        self._terms = parse_reward(reward)
        self._setup = ScenarioSetup(self.scenario)
        self._first = self.scenario.seed
        self._number = -1
        self.episode = self._opened(self._first)
        self.action_space = spaces.Discrete(self.episode.task.actions)
        self._graph = self.options.observation == "graph"
        self.observation_space = space_of(self.episode, graph=self._graph)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start the next episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._first, self._number = seed, -1
        self._number += 1
        self._start()
        return self._observed(), self._facts()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do an action: observation, reward, whether the episode is over, False, facts."""
        if self.episode.done:
            raise ConfigError("step: the episode is over; call reset() first")
        episode = self.episode
        reward = episode.act(episode.allowed(int(action)))
        if not episode.done:
            return self._observed(), reward, False, False, self._facts()
        facts = {**self._facts(), "jct_mean_s": episode.jct_mean_s()}
        return self._nothing(), reward, True, False, facts

    def action_masks(self) -> Mask:
        """Which actions are allowed; sb3-contrib calls it."""
        if self.episode.done:
            return np.ones(self.episode.task.actions, dtype=bool)
        return self.episode.mask().copy()

    # -- to go on where another process stopped ----------------------------------------

    def state(self) -> tuple[int, int, list[int]]:
        """The whole state: the first seed, the number of the episode and its actions so far."""
        return self._first, self._number, list(self.episode.actions)

    def restore(self, state: tuple[int, int, list[int]]) -> Any:
        """Go to a state by repeating its actions, and return the observation there.

        Raises:
            ConfigError: an action is not allowed.
        """
        self._first, self._number, actions = state
        self._start()
        seen = self._observed()
        for number, action in enumerate(actions):
            if self.episode.done or action not in np.flatnonzero(self.episode.mask()):
                raise ConfigError(f"restore: action {number} cannot be {action!r} here")
            self.episode.act(action)
            # Every state must be observed again: `grid` depends on the slots that it drew before.
            seen = self._nothing() if self.episode.done else self._observed()
        return seen

    def restored(self, state: tuple[int, int, list[int]]) -> Any:
        """As `restore`, but None if it fails: an error would end the process of an environment."""
        try:
            return self.restore(state)
        except (ArtistError, ValueError, OverflowError):
            return None

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _MADE_ANEW}
        return {**kept, "state": self.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        state = kept.pop("state")
        self.__dict__.update(kept)
        self._setup = ScenarioSetup(self.scenario)
        self.restore(state)

    # -- parts -------------------------------------------------------------------

    def _start(self) -> None:
        self.episode = self._opened(episode_seed(self._first, self._number))

    def _opened(self, seed: int) -> Episode:
        return Episode(self._setup, seed, self.options, self._terms)

    def _observed(self) -> Any:
        seen = self.episode.observation.update(self.episode.task)
        return spaces.GraphInstance(*seen) if self._graph else seen.copy()

    def _nothing(self) -> Any:
        """The observation after the end: zeros, or a graph of one empty node."""
        if not self._graph:
            return np.zeros_like(self.episode.observation.values)
        nodes, edges = np.zeros((1, WIDTH), np.float32), np.zeros((0, 1), np.float32)
        return spaces.GraphInstance(nodes, edges, np.zeros((0, 2), np.int32))

    def _facts(self) -> dict[str, Any]:
        simulator = self.episode.simulator
        return {
            "seed": self.episode.seed,
            "jobs": simulator.jobs_total,
            "time_s": simulator.now / TICKS_PER_S,
            "jobs_waiting": simulator.jobs_waiting,
            "gpus_free": simulator.gpus_free,
        }


class ScheduleEnv(ClusterEnv):
    """`artist/Schedule-v0`: which waiting job next, or none."""

    task = "schedule"


class PlaceEnv(ClusterEnv):
    """`artist/Place-v0`: which job on which list of machines, or none."""

    task = "place"


def register() -> None:
    """Register the environments with gymnasium, unless they are registered already."""
    for name, kind in (("artist/Schedule-v0", ScheduleEnv), ("artist/Place-v0", PlaceEnv)):
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=f"{kind.__module__}:{kind.__name__}")


def episode_seed(first: int, number: int) -> int:
    """The seed of the scenario in an episode: `first` in episode 0, then others derived from it."""
    if number <= 0:
        return first
    return int(stream(first, f"episode-{number}").integers(2**63))


def space_of(episode: Episode, *, graph: bool) -> Any:
    """The space of observations: arrays of numbers from -1 to 1, or graphs."""
    if graph:
        node, edge = (WIDTH,), (1,)
        return spaces.Graph(spaces.Box(-1.0, 1.0, node), spaces.Box(0.0, 1.0, edge))
    return spaces.Box(-1.0, 1.0, episode.observation.values.shape, np.float32)


def scenario_of(given: Scenario | Mapping[str, Any] | str | Path | None) -> Scenario:
    """The scenario that a user gives to an environment.

    Raises:
        ConfigError: the file or a setting is wrong.
    """
    if given is None:
        return SMALL
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return validate(given, Scenario, "scenario")
    return load_scenario(Path(given), {}, ())


def in_processes(name: str, count: int, **arguments: Any) -> Any:
    """A gymnasium vector environment: `count` environments `name`, each in a process of its own.

    `arguments` are those of `gymnasium.make`. Reset it with one seed: environment i gets seed + i.
    """
    import gymnasium

    return gymnasium.make_vec(name, num_envs=count, vectorization_mode="async", **arguments)

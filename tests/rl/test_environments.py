"""Are the environments what gymnasium, stable-baselines3 and the engine expect? `make rl-test`."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import FEW, IDS, SMALL, made

from artist.config import Scenario
from artist.engine.rows import Rows
from artist.errors import ConfigError
from artist.run import drive, prepare
from artist.units import TICKS_PER_S

pytestmark = pytest.mark.rl
gymnasium = pytest.importorskip("gymnasium", exc_type=ImportError)


def played(env: Any, seed: int, choose: Any) -> tuple[list[Any], list[float], list[bool]]:
    """An episode: observations, rewards and ends."""
    seen, _ = env.reset(seed=seed)
    observations, rewards, ends = [seen], [], [False]
    rng = np.random.default_rng(seed)
    while not ends[-1]:
        seen, reward, end, cut, _ = env.step(choose(env.action_masks(), rng))
        assert not cut
        observations.append(seen)
        rewards.append(reward)
        ends.append(end)
    return observations, rewards, ends


def at_random(mask: Any, rng: Any) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def the_first(mask: Any, rng: Any) -> int:
    return int(mask.argmax())


def rows_of(env: Any) -> Rows:
    rows: Rows = env.episode.simulator.rows
    return rows


@pytest.mark.parametrize("observation", ["sensitivity", "grid", "graph"])
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_nothing_wrong(name: str, observation: str) -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(made(name, observation=observation))


@pytest.mark.parametrize("observation", ["sensitivity", "grid"])
@pytest.mark.parametrize("name", IDS)
def test_stable_baselines3_finds_nothing_wrong(name: str, observation: str) -> None:
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        # The grid is a matrix, as in the paper. stable-baselines3 flattens it, and says so.
        warnings.filterwarnings("ignore", message=".*unconventional shape")
        check_env(made(name, observation=observation))


def test_both_can_be_made_without_a_scenario() -> None:
    for name in IDS:
        env = made(name, scenario=None)
        assert env.reset(seed=0)[1]["jobs"] == 24


@pytest.mark.parametrize("observation", ["sensitivity", "grid", "graph"])
@pytest.mark.parametrize("name", IDS)
def test_a_seed_repeats_an_episode_to_the_byte(name: str, observation: str) -> None:
    one, other = (made(name, observation=observation) for _ in range(2))
    played(one, 3, at_random)  # what was before does not matter
    first, again = played(one, 7, at_random), played(other, 7, at_random)
    assert first[1] == again[1]
    assert rows_of(one).placements == rows_of(other).placements
    for a, b in zip(first[0], again[0], strict=True):
        arrays = zip(a, b, strict=True) if observation == "graph" else [(a, b)]
        assert all(x.tobytes() == y.tobytes() for x, y in arrays)


@pytest.mark.parametrize("observation", ["sensitivity", "grid", "graph"])
@pytest.mark.parametrize("name", IDS)
def test_every_observation_is_in_its_space(name: str, observation: str) -> None:
    env = made(name, observation=observation)
    assert all(env.observation_space.contains(one) for one in played(env, 1, at_random)[0])


def test_an_observation_that_was_given_does_not_change() -> None:
    env = made()
    seen, _ = env.reset(seed=0)
    before = seen.copy()
    env.step(0)
    assert (seen == before).all()


def test_the_facts_of_every_step_state_time_queue_and_free_gpus() -> None:
    env = made()
    _, facts = env.reset(seed=3)
    told, end = [facts], False
    while not end:
        simulator = env.episode.simulator
        state = (simulator.now / TICKS_PER_S, simulator.jobs_waiting)
        assert (facts["time_s"], facts["jobs_waiting"]) == state
        assert facts["gpus_free"] == sum(simulator.view().free.leaves)
        _, _, end, _, facts = env.step(the_first(env.action_masks(), None))
        told.append(facts)
    assert [one["time_s"] for one in told] == sorted(one["time_s"] for one in told)
    assert len({one["gpus_free"] for one in told}) > 3
    assert (facts["jobs_waiting"], facts["gpus_free"]) == (0, 2 * 2 * 8)


@pytest.mark.parametrize("contention", ["none", "mean"])
@pytest.mark.parametrize("preemption", ["never", "at-once"])
def test_an_episode_is_the_run_that_artist_sim_would_do(preemption: str, contention: str) -> None:
    scenario = SMALL.model_copy(update={"contention": contention})
    env = made(scenario=scenario, preemption=preemption)
    played(env, 9, the_first)
    policy = {"policy": "srsf"} if preemption == "at-once" else {"policy": "sjf"}
    options = {} if preemption == "at-once" else {"order": "area"}
    prepared = prepare(scenario.model_copy(update={**policy, "policy_options": options, "seed": 9}))
    drive(prepared)
    assert rows_of(env).placements == prepared.simulator.rows.placements


def test_later_episodes_have_other_seeds_that_follow_from_the_first() -> None:
    env, other = made(), made()
    env.reset(seed=5)
    seeds = [env.reset()[1]["seed"] for _ in range(3)]
    other.reset(seed=5)
    assert [other.reset()[1]["seed"] for _ in range(3)] == seeds
    assert len({5, *seeds}) == 4


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("reward", ["jobs-in-system", "jct"])
def test_rewards_of_an_episode_sum_up_to_its_completion_times(name: str, reward: str) -> None:
    env = made(name, reward=reward)
    total = sum(played(env, 2, at_random)[1])
    rows = rows_of(env).jobs
    jct_s = sum(row.finish - row.arrival for row in rows) / TICKS_PER_S
    assert total == pytest.approx(-jct_s / sum(row.job.ideal_s for row in rows), rel=1e-9)


@pytest.mark.parametrize("reward", ["jobs-in-system", "jct"])
def test_time_before_the_first_candidate_counts(reward: str, tmp_path: Path) -> None:
    """Of two GPUs one is away for 1000 s. The job of two GPUs waits for it: no agent has a choice.

    It waits for 900 s and runs for 300 s. Its ideal run time is 300 s.
    """
    (tmp_path / "away.yaml").write_text(
        "outages: [{kind: machine, unit: 0, at_s: 0, duration_s: 1000}]\n"
    )
    (tmp_path / "one.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\na,100,2,resnet50,300,1\n"
    )
    changes = {"trace": str(tmp_path / "one.csv"), "failures": str(tmp_path / "away.yaml")}
    env = made(scenario=scenario_of_two().model_copy(update=changes), reward=reward)
    assert env.reset(seed=0)[1]["time_s"] == 1000.0
    _, total, end, _, facts = env.step(0)
    assert end
    assert facts["jct_mean_s"] == 1200.0
    assert total == pytest.approx(-1200.0 / 300.0, rel=1e-9)


def test_equation_2_worked_out_by_hand() -> None:
    """Two jobs of one GPU in a cluster of two, one after the other; nobody meets on a link.

    Util is 1 / 2 for 600 s, two intervals: reward 2 x (1 - W1) / 2 in all.
    """
    env = made(scenario=scenario_of_two(), reward="paper:0.3")
    env.reset(seed=0)
    # None, but for an idle cluster: the first job runs alone, then the second one.
    rewards = [env.step(0)[1], env.step(env.action_space.n - 1)[1], env.step(0)[1]]
    assert env.episode.done
    assert rewards == pytest.approx([0.0, 0.35, 0.35])


def scenario_of_two(**changes: Any) -> Scenario:
    return Scenario(
        tree=[[[1], [1]]],
        fabric="dally2025",  # its levels are those of the tree
        trace=str(Path(__file__).parent / "two_jobs.csv"),
        backend="none",
        **changes,
    )


def test_rewards_are_summed_with_their_weights() -> None:
    def total(reward: str) -> float:
        return sum(played(made(reward=reward), 4, the_first)[1])

    both = total("2*jobs-in-system + 0.5*paper:0.7")
    assert both == pytest.approx(2 * total("jobs-in-system") + 0.5 * total("paper:0.7"))


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        ("jobs-in-sistem", "did you mean 'jobs-in-system'"),
        ("", "expected NAME"),
        ("jct:3", "jct takes no number"),
        ("paper:1.5", "W1 is a share"),
        ("1..5*jct", r"'1\.\.5' is not a number"),
        ("jct+paper", "expected NAME"),
    ],
)
def test_bad_rewards_are_refused(reward: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        made(reward=reward)


def test_bad_settings_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"environment: unknown setting 'candidate'"):
        made(candidate=3)
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read"):
        made(scenario=str(tmp_path / "absent.yaml"))
    with pytest.raises(ConfigError, match="an environment of its own"):
        made(task="place")


def test_a_forbidden_action_counts_as_none_or_as_the_first_allowed_one() -> None:
    env = made()
    env.reset(seed=0)
    none = env.action_space.n - 1
    assert not env.action_masks()[none]  # nobody runs
    assert env.episode.allowed(none) == 0
    env.step(none)
    assert len(env.episode.simulator.view().running) == 1
    env.step(int(env.action_masks().argmax()))
    mask = env.action_masks()
    forbidden = int(np.flatnonzero(~mask)[0])
    assert env.episode.allowed(forbidden) == none


def test_a_step_after_the_end_is_refused() -> None:
    env = made()
    played(env, 0, the_first)
    with pytest.raises(ConfigError, match=r"the episode is over; call reset\(\) first"):
        env.step(0)


def test_a_scenario_in_a_file_is_an_environment(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("racks: 1\nmachines_per_rack: 2\ntrace: tiny-poisson\n")
    env = made(scenario=str(file))
    played(env, 0, the_first)
    assert len(rows_of(env).jobs) == 24


def test_an_environment_is_brought_back_by_its_actions() -> None:
    env, other = made(), made()
    env.reset(seed=8)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(25):
        seen = env.step(at_random(env.action_masks(), rng))[0]
    assert other.restore(env.state()).tobytes() == seen.tobytes()
    assert env.step(0)[1:] == other.step(0)[1:]
    assert env.reset()[1] == other.reset()[1]


@pytest.mark.parametrize("observation", ["sensitivity", "grid", "graph"])
@pytest.mark.parametrize("name", IDS)
def test_copies_of_an_environment_go_on_as_it_does(name: str, observation: str) -> None:
    """At the start of an episode, within it, and at its end."""
    import artist.rl  # noqa: F401 - it registers the names

    env = gymnasium.make(name, scenario=FEW, observation=observation)
    env.reset(seed=8)
    rng = np.random.default_rng(0)
    for steps in (0, 20, 1000):
        while steps and not env.unwrapped.episode.done:
            env.step(at_random(env.unwrapped.action_masks(), rng))
            steps -= 1
        unpickled = pickle.loads(pickle.dumps(env))  # noqa: S301 - our own
        for twin in (copy.deepcopy(env), unpickled):
            inner, other = copy.deepcopy(env).unwrapped, twin.unwrapped
            assert rows_of(other).placements == rows_of(inner).placements
            while not inner.episode.done:
                action = int(inner.action_masks().argmax())
                seen, again = inner.step(action), other.step(action)
                assert again[1:] == seen[1:]
                arrays = (seen[0], again[0]) if observation == "graph" else ([seen[0]], [again[0]])
                assert all((a == b).all() for a, b in zip(*arrays, strict=True))
            assert rows_of(other).placements == rows_of(inner).placements
            assert other.reset()[1] == inner.reset()[1]


def test_the_grid_of_a_copy_has_every_job_on_its_slots() -> None:
    """Which slots are free depends on all that was drawn before."""
    env = made(observation="grid")
    seen, _ = env.reset(seed=3)
    while not env.episode.done:
        assert copy.deepcopy(env)._observed().tobytes() == seen.tobytes()
        seen = env.step(the_first(env.action_masks(), None))[0]


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_a_render_mode_is_accepted_although_nothing_is_drawn(render_mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*render_mode='rgb_array' that is not in")
        assert made(render_mode=render_mode).reset(seed=1)[1]["jobs"] == 20


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines3_makes_vectors_of_environments(name: str) -> None:
    from stable_baselines3.common.env_util import make_vec_env

    from artist.rl import ScheduleEnv

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*render_mode='rgb_array' that is not in")
        vector = make_vec_env(name, n_envs=2, seed=1, env_kwargs={"scenario": FEW})
    # stable-baselines3 calls a class with render_mode=None.
    same = make_vec_env(ScheduleEnv, n_envs=2, seed=1, env_kwargs={"scenario": FEW})
    for one in (vector, same):
        assert one.reset().shape[0] == 2
        assert one.step([0, 0])[1].shape == (2,)


def test_environments_in_processes_are_those_of_one_process() -> None:
    from artist.rl import in_processes

    vector = in_processes(IDS[0], 2, scenario=FEW)
    try:
        seen, _ = vector.reset(seed=3)
        for index in range(2):
            alone = made().reset(seed=3 + index)[0]
            assert seen[index].tobytes() == alone.tobytes()
        seen, rewards, *_ = vector.step(np.zeros(2, dtype=int))
        assert seen.shape[0] == len(rewards) == 2
    finally:
        vector.close()


def test_losses_are_computed_only_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shortcut every observation is the same, and some show losses."""
    from artist.policies.learned.observation_sensitivity import OF_A_CANDIDATE, Sensitivity

    env = made(scenario=SMALL)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    most = 0.0
    while not env.episode.done:
        observation, task = env.episode.observation, env.episode.task
        seen = observation.update(task).copy()
        with monkeypatch.context() as patch:
            patch.setattr(Sensitivity, "_meets_others", lambda *_: True)
            assert observation.update(task).tobytes() == seen.tobytes()
        rows = observation.parts[0]
        losses = rows[: len(task.candidates), OF_A_CANDIDATE.index("own loss beside others")]
        most = max(most, losses.max(initial=0.0))
        env.step(at_random(env.action_masks(), rng))
    assert most > 0.0

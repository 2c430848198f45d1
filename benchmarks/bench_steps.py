"""Times steps of an environment: masks, random actions, observation `sensitivity`.

A benchmark goes on where its environment is warm: estimates and curves of 6,000 steps are known.
`items per CPU s` are steps per second of one core. It needs the extra `rl`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

STEPS = 2000
WARM = 6000


@pytest.mark.parametrize("preemption", ["never", "at-once"])
@pytest.mark.parametrize("contention", ["none", "mean"])
@pytest.mark.parametrize("machines", [4, 64])
def bench_environment_steps(
    machines: int, contention: str, preemption: str, measure: Callable[..., None]
) -> None:
    """256 jobs at load .9, eight candidates."""
    pytest.importorskip("gymnasium")
    go = steps(machines, contention, preemption)
    go(WARM)
    measure(lambda: go(STEPS), rounds=5, items=STEPS)


def steps(machines: int, contention: str, preemption: str) -> Callable[[int], None]:
    """A function that does this many steps, episode after episode."""
    from artist.rl import ScheduleEnv

    trace = f"synth:256:{8 * machines}:0.9"
    settings = {"racks": 1, "machines_per_rack": machines, "trace": trace, "contention": contention}
    env = ScheduleEnv(settings, preemption=preemption)
    draws = np.random.default_rng(0)
    env.reset(seed=0)

    def go(count: int) -> None:
        for _ in range(count):
            allowed = np.flatnonzero(env.action_masks())
            if env.step(draws.choice(allowed))[2]:
                env.reset()

    return go

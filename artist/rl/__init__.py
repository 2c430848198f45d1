"""Environments for reinforcement learning, and training. Importing it registers two of them.

    import gymnasium, artist.rl
    env = gymnasium.make("artist/Schedule-v0", scenario="cluster.yaml")

It needs the extra: `pip install 'artist-sim[rl]'`.
"""

from artist.io.optional_libraries import check_extra

check_extra("artist.rl", "gymnasium")

from artist.rl.environment import (  # noqa: E402 - checked first
    PlaceEnv,
    ScheduleEnv,
    in_processes,
    register,
)

register()

__all__ = ["PlaceEnv", "ScheduleEnv", "in_processes"]

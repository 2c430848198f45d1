"""Several environments at once, in processes of their own."""

from __future__ import annotations

from typing import Any


def in_processes(name: str, count: int, **arguments: Any) -> Any:
    """A gymnasium vector environment: `count` environments `name`, each in a process of its own.

    `arguments` are those of `gymnasium.make`. Reset it with one seed: environment i gets seed + i.
    """
    import gymnasium

    return gymnasium.make_vec(name, num_envs=count, vectorization_mode="async", **arguments)

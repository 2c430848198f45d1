"""Simulate GPU clusters that train many deep-learning jobs at once.

    import artist

    result = artist.simulate(artist.Scenario(racks=2, policy="dally"))
    result.summary["makespan_s"], result.jobs       # a number, a pandas frame
    artist.latency("resnet50", "4+4,8/2").comm_ratio

Importing this package is cheap on purpose: the names below come from `artist.api` when they are
first used, and heavy libraries are imported where they are needed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artist.api import (
        ArtistError,
        BackendError,
        ComparedValues,
        Comparison,
        ConfigError,
        Estimate,
        InvariantError,
        PolicyError,
        Result,
        Scenario,
        TraceError,
        UnknownNameError,
        compare,
        compare_values,
        latency,
        load,
        load_scenario,
        simulate,
    )

__version__ = "0.1.0"

__all__ = [
    "ArtistError", "BackendError", "ComparedValues", "Comparison", "ConfigError", "Estimate",
    "InvariantError", "PolicyError", "Result", "Scenario", "TraceError", "UnknownNameError",
    "compare", "compare_values", "latency", "load", "load_scenario", "simulate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'artist' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("artist.api"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""Runs without a latency backend: `--backend none`."""

from __future__ import annotations

from artist.cluster.placement_shape import Shape
from artist.errors import ConfigError
from artist.estimates.query import Estimate, LatencyBackend

_NO_COMMUNICATION = Estimate(1, 1, "none", (), ())


class NoCommunication:
    """`--backend none`: every iteration takes its compute time, for any model and placement."""

    queries = distinct = store_hits = fallback_uses = 0
    everywhere = _NO_COMMUNICATION

    def estimate(self, model: str, shape: Shape, *, profile: bool = False) -> Estimate:
        """An estimate without communication."""
        return _NO_COMMUNICATION

    def constant_share(self, model: str) -> float:
        """No communication."""
        return 0.0


def no_backend(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """`none` is no backend: a run with it asks nobody (`NoCommunication`).

    Raises:
        ConfigError: always; `none` stands where a backend must answer.
    """
    name = f"none:{argument}" if argument else "none"
    raise ConfigError(
        f"backend {name}: answers no query; use analytical, or --backend none for a whole run"
    )

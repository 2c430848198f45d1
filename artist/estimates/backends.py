"""The table of latency backends: one row each, read by `artist list backends`.

A row names a function with two arguments: the text after the colon of `--backend NAME:ARGUMENT`,
and the fallback backend or None. The function returns a `LatencyBackend`. With `--backend none` a
run has no backend.
"""

from __future__ import annotations

from artist.cluster.placement_shape import Shape
from artist.errors import ConfigError
from artist.estimates.query import Estimate, LatencyBackend
from artist.registry import Entry, Registry

BACKENDS = Registry(
    "backend",
    "artist list backends",
    [
        Entry(
            "analytical",
            "artist.astra.model.analytical:analytical_backend",
            "in process; gives the answers of ASTRA-sim's congestion-unaware analytical backend",
            "Won et al., ASTRA-sim2.0, ISPASS 2023",
        ),
        Entry(
            "astra-binary",
            "artist.astra.programs.binary_backend:binary_backend",
            "astra-binary:PATH runs an ASTRA-sim executable",
            "github.com/astra-sim/astra-sim",
        ),
        Entry(
            "astra-docker",
            "artist.astra.programs.docker_backend:docker_backend",
            "astra-docker[:NAME] runs ASTRA-sim in one container, images in images.yaml; with NAME "
            "local, artist's own model, not ASTRA-sim",
            "github.com/astra-sim/astra-sim-service",
        ),
        Entry(
            "recorded",
            "artist.estimates.recorded:recorded_backend",
            "recorded:FILE replays a table of latencies",
        ),
        Entry(
            "none",
            "artist.estimates.backends:no_backend",
            "no communication: pure queueing, any model",
        ),
    ],
)

_NO_COMMUNICATION = Estimate(1, 1, "none", (), ())


class NoCommunication:
    """`--backend none`: every iteration takes its compute time, for any model and placement."""

    queries = distinct = store_hits = fallback_uses = 0
    everywhere = _NO_COMMUNICATION

    def estimate(self, model: str, shape: Shape, *, profile: bool = False) -> Estimate:
        """An estimate without communication."""
        return _NO_COMMUNICATION

    def constant_share(self, model: str) -> float:
        """0: no model communicates."""
        return 0.0


def no_backend(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """Refuse `none` where a backend must answer. Runs use `NoCommunication` instead.

    Raises:
        ConfigError: always.
    """
    name = f"none:{argument}" if argument else "none"
    raise ConfigError(
        f"backend {name}: answers no query; use analytical, or --backend none for a whole run"
    )

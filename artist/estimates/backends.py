"""The table of latency backends: one row each, read by `artist list backends`.

A row names a function with two arguments: the text after the colon of `--backend NAME:ARGUMENT`,
and the fallback backend or None. The function returns a `LatencyBackend`.
"""

from artist.registry import Entry, Registry

BACKENDS = Registry(
    "backend",
    "artist list backends",
    [
        Entry(
            "analytical",
            "artist.astra.model.analytical:analytical_backend",
            "in process; what ASTRA-sim's congestion-unaware analytical backend answers",
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
            "artist.estimates.no_communication:no_backend",
            "no communication: pure queueing, any model",
        ),
    ],
)

"""The table of latency backends: one row each, read by `artist list backends`."""

from artist.registry import Entry, Registry

BACKENDS = Registry(
    "backend",
    "artist list backends",
    [
        Entry(
            "analytical",
            "artist.latency.analytical:AnalyticalBackend",
            "in process; what ASTRA-sim's congestion-unaware analytical backend answers",
            "Won et al., ASTRA-sim2.0, ISPASS 2023",
        ),
        Entry(
            "none",
            "artist.latency.service:NoCommunication",
            "no communication: pure queueing, any model",
        ),
    ],
)

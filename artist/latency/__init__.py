"""The table of latency backends: one row each, read by `artist list backends`.

`artist.latency("resnet50", "4+4,8/2")` asks one question; it is `artist.api.latency`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from artist.registry import Entry, Registry

BACKENDS = Registry(
    "backend",
    "artist list backends",
    [
        Entry(
            "analytical",
            "artist.latency.factories:analytical",
            "in process; what ASTRA-sim's congestion-unaware analytical backend answers",
            "Won et al., ASTRA-sim2.0, ISPASS 2023",
        ),
        Entry(
            "astra-binary",
            "artist.latency.factories:astra_binary",
            "astra-binary:PATH runs an ASTRA-sim executable",
            "github.com/astra-sim/astra-sim",
        ),
        Entry(
            "astra-docker",
            "artist.latency.factories:astra_docker",
            "astra-docker[:NAME] runs ASTRA-sim in one container, images in images.yaml",
            "github.com/astra-sim/astra-sim-service",
        ),
        Entry(
            "recorded",
            "artist.latency.factories:recorded",
            "recorded:FILE replays a table of latencies",
        ),
        Entry(
            "none",
            "artist.latency.service:NoCommunication",
            "no communication: pure queueing, any model",
        ),
    ],
)


class _Callable(ModuleType):
    """This package bears the name of the library's function, so it answers as that function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # By name: the function stands above this room and must not be imported from here.
        return import_module("artist.api").latency(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

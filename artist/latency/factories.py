"""Backends from the text that names them: `KIND[:ARGUMENT]`, e.g. `recorded:table.csv`."""

from __future__ import annotations

from pathlib import Path

from artist.errors import ConfigError
from artist.latency.base import LatencyBackend


def analytical(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """The in-process backend."""
    from artist.latency.analytical import AnalyticalBackend

    if argument:
        raise ConfigError(f"backend analytical:{argument}: takes no argument")
    return AnalyticalBackend()


def astra_binary(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """An ASTRA-sim executable: `astra-binary:PATH`."""
    from artist.latency.binary import BinaryBackend

    if not argument:
        raise ConfigError("backend astra-binary: name the executable, astra-binary:PATH")
    return BinaryBackend(Path(argument))


def astra_docker(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """An image of `astra_configs/images.yaml`: `astra-docker[:NAME]`, by default the official."""
    from artist.latency.docker import DockerBackend
    from artist.latency.images import DEFAULT_IMAGE, load_image

    return DockerBackend(load_image(argument or DEFAULT_IMAGE))


def recorded(argument: str, fallback: LatencyBackend | None) -> LatencyBackend:
    """A table of latencies: `recorded:FILE`; what it lacks is asked of the fallback, if any."""
    from artist.latency.recorded import RecordedBackend

    if not argument:
        raise ConfigError("backend recorded: name the table, recorded:FILE.csv")
    return RecordedBackend(Path(argument), fallback)

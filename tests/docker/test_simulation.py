"""End to end: a simulation whose latencies come from a container."""

from __future__ import annotations

import pytest

from artist.astra.programs.docker_client import DockerEngine
from artist.astra.programs.images import load_image
from artist.config import Scenario
from artist.errors import BackendError
from artist.run import simulate

pytestmark = pytest.mark.docker


def test_a_simulation_through_a_container_differs_in_nothing_but_the_source() -> None:
    try:
        DockerEngine().image_id(load_image("local"))
    except BackendError as missing:
        pytest.skip(str(missing))
    scenario = Scenario(racks=2)
    inside = simulate(scenario)
    through = simulate(scenario.model_copy(update={"backend": "astra-docker:local"}))
    sources = {source for text in through.tables["jobs"]["source"] for source in text.split("|")}
    assert any(source.startswith("astra-docker@sha256:") for source in sources)
    for name, column in inside.tables["jobs"].items():
        if name != "source":
            assert list(column) == list(through.tables["jobs"][name]), name

"""An image with a stand-in for ASTRA-sim, on the base that `docker/make-base.sh` makes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # rendered_queries

from containers import BASE, HERE, IMAGE, containers, docker, entry

from artist.astra.programs.docker_backend import DockerBackend


@pytest.fixture(scope="session", autouse=True)
def _image(tmp_path_factory: pytest.TempPathFactory) -> None:
    docker("version")
    docker("image", "inspect", BASE)
    context = tmp_path_factory.mktemp("image")
    shutil.copy(HERE / "fake-astra", context)
    lines = (f"FROM {BASE}", "COPY fake-astra /opt/fake-astra")
    (context / "Dockerfile").write_text("\n".join(lines))
    docker("build", "--quiet", "--tag", IMAGE, str(context))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = set(containers())
    yield
    assert set(containers()) <= before


@pytest.fixture
def backend() -> Iterator[Callable[..., DockerBackend]]:
    made: list[DockerBackend] = []

    def make(*mode: str, timeout_s: float = 60) -> DockerBackend:
        made.append(DockerBackend(entry(*mode), timeout_s=timeout_s))
        return made[-1]

    yield make
    for backend in made:
        backend.close()

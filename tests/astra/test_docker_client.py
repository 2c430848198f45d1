"""Is what the Docker engine says understood? A script stands in for the command `docker`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_docker import ENTRY, IMAGE_ID, fake_docker

from artist.astra.programs import docker_client
from artist.astra.programs.docker_backend import DockerBackend
from artist.astra.programs.docker_client import DockerEngine, explain
from artist.errors import BackendError


def test_docker_that_is_not_installed() -> None:
    with pytest.raises(BackendError, match=r"not installed: run 'apt-get install docker\.io'"):
        DockerBackend(ENTRY, docker="no-such-docker")


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is it running?", "no Docker engine"),
        ("error during connect: Get http://x: EOF", "or use --backend analytical"),
        (
            "Got permission denied while trying to connect to the Docker daemon socket at "
            "unix:///var/run/docker.sock: dial unix /var/run/docker.sock",
            "usermod -aG docker",
        ),
        ("Error: No such image: some/astra:1", "run: docker pull some/astra:1"),
        ("Unable to find image 'some/astra:1' locally", "run: docker pull some/astra:1"),
        ("Error: No such image: some/astra:1", "or use --backend analytical"),
        ('exec: "sh": executable file not found in $PATH', "POSIX sh"),
        ("line\nsomething new", "it said: 'something new'"),
        ("", "it said: 'nothing'"),
    ],
)
def test_refusals_come_with_a_remedy(said: str, remedy: str, tmp_path: Path) -> None:
    assert remedy in explain(said, ENTRY)
    docker = fake_docker(tmp_path, f"sys.exit({said!r})")
    with pytest.raises(BackendError):
        DockerBackend(ENTRY, docker=docker)


@pytest.mark.parametrize(
    ("booted", "said", "unsaid"),
    [(True, "sudo systemctl start docker", "dockerd"), (False, "'dockerd &' as root", "systemctl")],
)
def test_an_engine_is_started_by_what_runs_here(
    booted: bool, said: str, unsaid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_client, "SYSTEMD", tmp_path if booted else tmp_path / "none")
    told = explain("Cannot connect to the Docker daemon at unix:///x. Is it running?")
    assert said in told
    assert unsaid not in told


def test_version(tmp_path: Path) -> None:
    assert DockerEngine(fake_docker(tmp_path, "print('20.10')")).version() == "20.10"
    with pytest.raises(BackendError, match="it said: 'no'"):
        DockerEngine(fake_docker(tmp_path, "sys.exit('no')")).version()


@pytest.mark.parametrize("digest", [IMAGE_ID, "sha256:" + "cd" * 32, None])
def test_image_by_id_or_pulled_digest(digest: str | None, tmp_path: Path) -> None:
    docker = fake_docker(tmp_path, f"print('{IMAGE_ID} some/astra@sha256:{'cd' * 32} ')")
    assert DockerEngine(docker).image_id(ENTRY.model_copy(update={"digest": digest})) == IMAGE_ID


def test_another_image_than_expected(tmp_path: Path) -> None:
    docker = fake_docker(tmp_path, f"print('{IMAGE_ID} ')")
    entry = ENTRY.model_copy(update={"digest": "sha256:" + "ef" * 32})
    with pytest.raises(BackendError, match=r"expected sha256:efef.*run: docker pull"):
        DockerEngine(docker).image_id(entry)

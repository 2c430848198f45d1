"""What the engine says and what a dead artist left in it, with a `docker` played by a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from artist.astra.programs.docker_backend import DockerBackend
from artist.astra.programs.docker_client import Engine, explain, is_gone, owner, work_folder
from artist.astra.programs.images import ImageEntry
from artist.errors import BackendError

ENTRY = ImageEntry(
    image="some/astra:1",
    command=("/bin/astra",),
    obtain="docker pull some/astra:1",
    source="test",
)
IMAGE_ID = "sha256:" + "ab" * 32


def fake_docker(folder: Path, body: str) -> str:
    path = folder / "docker"
    path.write_text(f"#!{sys.executable}\nimport sys\narguments = sys.argv[1:]\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_docker_that_is_not_installed() -> None:
    with pytest.raises(BackendError, match=r"not installed: run 'apt-get install docker\.io'"):
        DockerBackend(ENTRY, docker="no-such-docker")


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is it running?", "systemctl start"),
        ("error during connect: Get http://x: EOF", "systemctl start docker"),
        (
            "Got permission denied while trying to connect to the Docker daemon socket at "
            "unix:///var/run/docker.sock: dial unix /var/run/docker.sock",
            "usermod -aG docker",
        ),
        ("Error: No such image: some/astra:1", "run: docker pull some/astra:1"),
        ("Unable to find image 'some/astra:1' locally", "run: docker pull some/astra:1"),
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


def test_version(tmp_path: Path) -> None:
    assert Engine(fake_docker(tmp_path, "print('20.10')")).version() == "20.10"
    with pytest.raises(BackendError, match="it said: 'no'"):
        Engine(fake_docker(tmp_path, "sys.exit('no')")).version()


@pytest.mark.parametrize("digest", [IMAGE_ID, "sha256:" + "cd" * 32, None])
def test_image_by_id_or_pulled_digest(digest: str | None, tmp_path: Path) -> None:
    docker = fake_docker(tmp_path, f"print('{IMAGE_ID} some/astra@sha256:{'cd' * 32} ')")
    assert Engine(docker).image_id(ENTRY.model_copy(update={"digest": digest})) == IMAGE_ID


def test_another_image_than_expected(tmp_path: Path) -> None:
    docker = fake_docker(tmp_path, f"print('{IMAGE_ID} ')")
    entry = ENTRY.model_copy(update={"digest": "sha256:" + "ef" * 32})
    with pytest.raises(BackendError, match=r"expected sha256:efef.*run: docker pull"):
        Engine(docker).image_id(entry)


def dead_owner() -> str:
    """A name that a process had which is gone."""
    code = "from artist.astra.programs.docker_client import owner; print(owner())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_live_process_is_not_gone() -> None:
    assert not is_gone(owner())


def test_a_dead_process_is_gone() -> None:
    assert is_gone(dead_owner())


def test_another_process_with_the_same_number_is_another() -> None:
    space, pid, started = owner().rsplit(":", 2)
    assert int(pid) == os.getpid()
    assert is_gone(f"{space}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("name", ["", "1", "elsewhere:4026531836:999999999:5"])
def test_what_runs_elsewhere_is_left_alone(name: str) -> None:
    assert not is_gone(name)


def test_reaper_removes_what_the_dead_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, dead = tmp_path / "log", dead_owner()
    rows = f"aaa {owner()}\nbbb {dead}\nccc other:1:2:3\nddd"
    docker = fake_docker(
        tmp_path,
        f"print({rows!r}) if arguments[0] == 'ps' else "
        f"open({str(log)!r}, 'a').write(' '.join(arguments) + '\\n')",
    )
    mine = work_folder()
    theirs = tmp_path / f"artist-docker+{dead.replace(':', '+')}+x1"
    (theirs / "query").mkdir(parents=True)
    assert Engine(docker).reap() == 2
    assert log.read_text() == "rm --force --volumes bbb\n"
    assert mine.exists()
    assert not theirs.exists()

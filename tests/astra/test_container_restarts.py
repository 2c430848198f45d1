"""Is a container that dies restarted? Shells of this machine stand in for containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_docker import ENTRY, IMAGE_ID, fake_docker
from rendered_queries import program, tiny

from artist.astra.programs.docker_backend import DockerBackend
from artist.errors import BackendError

# `docker run` and `docker exec` become shells. In what they run, the path of the work folder
# inside the container is replaced by its path on this machine.
DOCKER = f"""
import os, pathlib, re
here = pathlib.Path(__file__).parent
if arguments[0] == "image":
    print("{IMAGE_ID}")
elif arguments[0] == "run":
    mount = arguments[arguments.index("--mount") + 1]
    (here / arguments[2]).write_text(mount)
    os.execvp("sh", ["sh", *arguments[-2:]])
elif arguments[0] == "exec":
    mount = (here / arguments[2]).read_text()
    source, target = re.search("source=(.*),target=(.*)", mount).groups()
    os.execvp("sh", [text.replace(target, source) for text in arguments[3:]])
elif arguments[0] == "rm":
    (here / arguments[-1]).rename(here / ("removed-" + arguments[-1]))
"""

DIES = """
counter = os.path.join(os.path.dirname(__file__), "deaths")
left = int(open(counter).read())
if left:
    open(counter, "w").write(str(left - 1))
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)
for rank in range(NPUS): finished(rank)
"""


def containers(folder: Path) -> list[int]:
    """[number of containers that are there, number of those removed]."""
    return [len(list(folder.glob(names))) for names in ("artist-*", "removed-artist-*")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the engine, and for the work folders."""
    (tmp_path / "work").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "work"))
    return tmp_path


@pytest.fixture
def backend(folder: Path) -> Iterator[DockerBackend]:
    """A backend with a program that kills its container as often as `deaths` says."""
    command = (str(program(folder, DIES)),)
    entry = ENTRY.model_copy(update={"command": command})
    with DockerBackend(entry, docker=fake_docker(folder, DOCKER)) as made:
        yield made


def test_one_container_answers_all_queries(folder: Path, backend: DockerBackend) -> None:
    (folder / "deaths").write_text("0")
    assert [backend.estimate(tiny(npus)).finish_ns for npus in (2, 3)] == [22240, 22240]
    assert containers(folder) == [1, 0]


def test_a_container_that_dies_is_restarted(folder: Path, backend: DockerBackend) -> None:
    (folder / "deaths").write_text("1")
    assert backend.estimate(tiny()).finish_ns == 22240
    assert containers(folder) == [1, 1]


def test_a_container_that_dies_twice_in_one_query(folder: Path, backend: DockerBackend) -> None:
    (folder / "deaths").write_text("2")
    with pytest.raises(BackendError, match="died twice during one query"):
        backend.estimate(tiny())
    assert containers(folder) == [0, 2]
    assert backend.estimate(tiny()).finish_ns == 22240


def test_a_closed_backend_leaves_nothing_and_starts_anew(
    folder: Path, backend: DockerBackend
) -> None:
    (folder / "deaths").write_text("0")
    backend.estimate(tiny())
    backend.close()
    assert containers(folder) == [0, 1]
    assert not list((folder / "work").iterdir())
    assert backend.estimate(tiny()).finish_ns == 22240
    assert containers(folder) == [1, 1]

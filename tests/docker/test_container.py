"""The container's life with a real engine: isolation, faults, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from containers import IMAGE, containers, docker, entry
from rendered_queries import tiny

from artist.astra.model.analytical import AnalyticalBackend
from artist.astra.programs.binary_backend import BinaryBackend
from artist.astra.programs.bounded_run import TimeLimitError
from artist.astra.programs.docker_backend import DockerBackend
from artist.astra.programs.images import load_image
from artist.astra.programs.leftovers import LABEL
from artist.errors import BackendError, BackendSettingError

pytestmark = pytest.mark.docker

Make = Callable[..., DockerBackend]


def wait_until(true: Callable[[], bool], limit_s: float = 20) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_answers_and_their_source(backend: Make) -> None:
    answering = backend("well")
    estimate = answering.estimate(tiny())
    assert (estimate.finish_ns, estimate.compute_ns) == (22240, 20000)
    image_id = docker("image", "inspect", "--format", "{{.Id}}", IMAGE)
    assert estimate.source == f"astra-docker@{image_id[:19]}"


def test_one_container_serves_all(backend: Make) -> None:
    answering = backend("well")
    names = set()
    for size in (2, 3, 4, 5, 6):
        answering.estimate(tiny(size))
        names |= set(containers())
    assert len(names) == 1


def test_isolation(backend: Make) -> None:
    backend("well").estimate(tiny())
    (name,) = containers()
    (inspected,) = json.loads(docker("inspect", name))
    host = inspected["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"]
    assert host["Memory"] == 4 * 2**30
    assert host["PidsLimit"] == 256
    assert host["CapDrop"] == ["ALL"]
    assert host["AutoRemove"]
    assert inspected["Config"]["User"].split(":")[0] not in ("", "0", "root")
    assert f":{os.getpid()}:" in inspected["Config"]["Labels"][LABEL]


@pytest.mark.parametrize("mode", ["writes", "root"])
def test_program_has_no_rights(mode: str, backend: Make) -> None:
    with pytest.raises(BackendError):
        backend(mode).estimate(tiny())


def test_close_leaves_nothing(backend: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    answering = backend("well")
    answering.estimate(tiny())
    folder = answering._container.query_folder().parent
    answering.close()
    assert not containers()
    assert not folder.exists()
    answering.estimate(tiny())  # a closed backend starts again


def test_hanging_query_is_killed_and_the_next_one_answered(backend: Make) -> None:
    answering = backend("hang", timeout_s=1)
    with pytest.raises(TimeLimitError, match="killed after 1 s"):
        answering.estimate(tiny())
    (name,) = containers()
    wait_until(lambda: "sleep 1000" not in docker("top", name))
    with pytest.raises(TimeLimitError):
        answering.estimate(tiny())
    assert containers() == [name]


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("half", "NPUs finished"),
        ("nothing", "no result"),
        ("garbage", "no result|garbled"),
        ("flood", "printed more than"),
        ("abort", "exit code 134.*it broke"),
        ("astra1", "set 'dialect: astra1'"),
        ("other", "exit code 64"),
    ],
)
def test_faults_of_the_program(mode: str, why: str, backend: Make) -> None:
    with pytest.raises(BackendError, match=why) as caught:
        backend(mode).estimate(tiny())
    assert f"in image {IMAGE}: /opt/fake-astra {mode}" in str(caught.value)


def test_program_that_is_not_in_the_image() -> None:
    missing = entry(command=("/opt/nothing",))
    with DockerBackend(missing) as answering, pytest.raises(BackendError, match="no such file"):
        answering.estimate(tiny())


def test_container_killed_mid_query_is_restarted(backend: Make) -> None:
    answering = backend("slow")
    estimates: list[object] = []
    thread = threading.Thread(target=lambda: estimates.append(answering.estimate(tiny())))
    thread.start()
    wait_until(lambda: bool(running("sleep 2")))
    (first,) = containers()
    docker("kill", first)
    thread.join(60)
    assert len(estimates) == 1
    assert containers() != [first]


def test_container_that_dies_twice_is_an_error(backend: Make) -> None:
    answering = backend("hang")
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            answering.estimate(tiny())
        except BackendError as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    killed = set()
    for _ in range(2):
        wait_until(lambda: bool(set(running("sleep 1000")) - killed))
        (name,) = set(running("sleep 1000")) - killed
        docker("kill", name)
        killed.add(name)
    thread.join(60)
    assert "died twice" in str(caught[0])


def running(process: str) -> list[str]:
    """Containers in which a process runs."""
    names = containers()
    tops = {
        name: subprocess.run(["docker", "top", name], capture_output=True, text=True).stdout
        for name in names
    }
    return [name for name, top in tops.items() if process in top]


def test_engine_that_stops_mid_run(backend: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    answering = backend("well")
    answering.estimate(tiny())
    (name,) = containers()
    with monkeypatch.context() as patched:
        docker("kill", name)
        patched.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        with pytest.raises(BackendError, match="no Docker engine answers"):
            answering.estimate(tiny())
    assert answering.estimate(tiny()).finish_ns == 22240


def test_engine_that_never_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        with pytest.raises(BackendError, match="no Docker engine answers"):
            DockerBackend(entry("well"))


def test_missing_image() -> None:
    missing = entry(image="artist/nothing:1", obtain="docker pull artist/nothing:1")
    with pytest.raises(BackendError, match="run: docker pull artist/nothing:1"):
        DockerBackend(missing)


def test_image_without_a_shell(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    docker("build", "--quiet", "--tag", "artist-empty:test", str(tmp_path))
    empty = entry(image="artist-empty:test")
    with DockerBackend(empty) as answering, pytest.raises(BackendError, match="POSIX sh"):
        answering.estimate(tiny())


ARTIST = f"""
import sys, time
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
from containers import entry
from rendered_queries import tiny
from artist.astra.programs.docker_backend import DockerBackend
backend = DockerBackend(entry("hang"))
backend.estimate(tiny())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_artist_that_is_killed_leaves_no_container(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", ARTIST]
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: bool(running("sleep 1000")), 60)
        process.send_signal(how)
        process.wait(60)
    wait_until(lambda: not containers())
    with DockerBackend(entry("well")):  # the next start clears the work folder too
        assert not list(tmp_path.glob("artist-docker+*"))


def test_reaper_removes_containers_of_dead_processes() -> None:
    code = "from artist.io.processes import owner; print(owner())"
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    label = f"{LABEL}={dead.stdout.strip()}"
    docker("run", "-d", "--label", label, "--network", "none", IMAGE, "sleep", "1000")
    assert containers()
    with DockerBackend(entry("well")):
        assert not containers()


def test_two_artists_do_not_disturb_each_other(backend: Make) -> None:
    first = backend("well")
    first.estimate(tiny())
    second = backend("well")
    second.estimate(tiny())
    assert len(containers()) == 2
    assert first.estimate(tiny()) == second.estimate(tiny())


def test_cost_of_the_container(backend: Make, tmp_path: Path) -> None:
    script = tmp_path / "fake-astra"
    script.write_text("#!/bin/sh\nexec " + str(Path(__file__).parent / "fake-astra") + " well\n")
    script.chmod(0o755)
    bare, contained = BinaryBackend(script), backend("well")
    contained.estimate(tiny())
    extra_s = [_seconds(contained) - _seconds(bare) for _ in range(20)]
    assert statistics.median(extra_s) < 0.1


def _seconds(answering: BinaryBackend | DockerBackend) -> float:
    started = time.perf_counter()
    answering.estimate(tiny())
    return time.perf_counter() - started


def test_artist_in_an_image_answers_as_in_process() -> None:
    local = load_image("local")
    if subprocess.run(["docker", "image", "inspect", local.image], capture_output=True).returncode:
        pytest.skip(f"no image {local.image}; run: {local.obtain}")
    queries = [
        replace(tiny(*npus), passes=passes)
        for npus in ((2,), (2, 3), (2, 2, 2))
        for passes in (1, 2)
    ]
    inside = AnalyticalBackend()
    with DockerBackend(local) as contained:
        for query in queries:
            answer, expected = contained.estimate(query), inside.estimate(query)
            times = (answer.finish_ns, answer.compute_ns)
            assert times == (expected.finish_ns, expected.compute_ns)
        with pytest.raises(BackendSettingError):
            contained.estimate(tiny(1))

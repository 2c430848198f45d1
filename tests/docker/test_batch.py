"""Batches in the image itself: alone, resumed after a kill, on Ray, and on ASTRA-sim's image."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # test_sweep

from containers import BASE, docker
from test_sweep import TINY, contents

from artist.experiments.sweep import sweep

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
ASTRA = "/app/astra-sim/build/astra_analytical/build/bin/AstraSim_Analytical_Congestion_Unaware"
CALLER = 1234
EXPERIMENT = """\
name: tiny
version: 1
base: {trace: tiny-batch, backend: none}
grid: {policy: [fifo, las, srtf], racks: [1, 2], policy.placement: [any, pack]}
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A folder that belongs to the caller, with an experiment."""
    for path in (tmp_path, *tmp_path.parents):
        if path.name.startswith("pytest-"):
            path.chmod(0o755)  # the caller passes through
    folder = tmp_path / "here"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "experiment.yaml").write_text(EXPERIMENT)
    (folder / "runs").mkdir()
    if os.getuid() == 0:
        os.chown(folder / "runs", CALLER, CALLER)
    yield folder


def batch(here: Path, *arguments: str) -> subprocess.Popen[str]:
    """`docker/batch.sh` as root for a caller behind sudo, or as whoever runs the tests."""
    behind = {"SUDO_UID": str(CALLER), "SUDO_GID": str(CALLER)} if os.getuid() == 0 else {}
    return subprocess.Popen(
        [str(ROOT / "docker" / "batch.sh"), *arguments],
        cwd=here,
        env=os.environ | behind,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output


def rows(out: Path) -> dict[str, bytes | str]:
    """What does not depend on the Python that is in the image."""
    return {name: data for name, data in contents(out).items() if "manifest" not in name}


def owners(folder: Path) -> set[int]:
    return {path.stat().st_uid for path in folder.rglob("*")}


def test_the_image_is_nobodys_and_looks_after_its_health() -> None:
    (image,) = json.loads(docker("image", "inspect", "artist:local"))
    assert image["Config"]["User"] == "65534:65534"
    check = image["Config"]["Healthcheck"]["Test"][1:]
    answer = docker("run", "--rm", "--network", "none", "--entrypoint", check[0], *_rest(check))
    assert json.loads(answer)
    assert image["Size"] < 420e6


def _rest(check: list[str]) -> list[str]:
    return ["artist:local", *check[1:]]


def test_an_artist_in_the_current_folder_does_not_shadow_that_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "artist").mkdir()
    (tmp_path / "artist" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    tmp_path.chmod(0o755)
    mount = ("--volume", f"{tmp_path}:/here:ro", "--workdir", "/here")
    assert docker("run", "--rm", "--network", "none", *mount, "artist:local", "--version")


def test_a_batch_is_the_callers_and_the_same_as_without_a_container(here: Path) -> None:
    finish(batch(here, "tiny/experiment.yaml"))
    assert owners(here / "runs") == {CALLER if os.getuid() == 0 else os.getuid()}
    sweep(TINY, here / "local", [], workers=1)
    ours, theirs = rows(here / "local"), rows(here / "runs" / "tiny")
    assert {**ours, "experiment.json": ""} == {**theirs, "experiment.json": ""}


def test_a_batch_reaches_nothing_and_resumes_after_a_kill(here: Path) -> None:
    long = EXPERIMENT.replace("racks: [1, 2]", f"racks: {list(range(1, 25))}")
    (here / "tiny" / "experiment.yaml").write_text(long)
    first = batch(here, "tiny/experiment.yaml")
    done = here / "runs" / "tiny" / "runs"
    while len(list(done.glob("[!.]*/manifest.json"))) < 5:
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    ours = ("--filter", "label=com.docker.compose.service=batch", "--filter", f"volume={here}")
    (name,) = docker("ps", "--quiet", *ours).split()
    (container,) = json.loads(docker("inspect", name))
    docker("kill", "--signal", "KILL", name)
    first.communicate(timeout=60)
    assert first.returncode != 0
    host = container["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == (
        "none",
        True,
        False,
    )
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges:true"])
    kept = {path: path.stat().st_mtime_ns for path in done.glob("[!.]*/manifest.json")}
    assert 5 <= len(kept) < 144
    finish(batch(here, "tiny/experiment.yaml"))
    assert len(list(done.glob("[!.]*/manifest.json"))) == 144
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    with (here / "runs" / "tiny" / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 144


def test_an_experiment_elsewhere_is_refused(here: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(EXPERIMENT)
    process = batch(here, "../other.yaml")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no such file in or below" in output


def test_two_ray_containers_give_the_same_rows(here: Path) -> None:
    (here / "mine.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\n"
        + "".join(f"j{i},{i},{1 + i % 4},resnet50,{90 + i},0.5\n" for i in range(8))
    )
    with_file = EXPERIMENT.replace("trace: tiny-batch, backend: none", "trace: mine.csv")
    (here / "tiny" / "experiment.yaml").write_text(with_file)
    finish(batch(here, "tiny/experiment.yaml", "runs/alone"))
    cluster = batch(here, "--ray", "2", "tiny/experiment.yaml", "runs/ray")
    project = f"label=com.docker.compose.project=artist-ray-{cluster.pid}"
    finish(cluster)
    assert owners(here / "runs") == {CALLER if os.getuid() == 0 else os.getuid()}
    assert rows(here / "runs" / "ray") == rows(here / "runs" / "alone")
    assert not docker("ps", "--all", "--quiet", "--filter", project)
    assert not docker("network", "ls", "--quiet", "--filter", project)


def test_on_astra_sims_image_the_program_answers_natively(tmp_path: Path) -> None:
    # The settings of ASTRA-sim's image that could get in the way; artist plays its program.
    (tmp_path / "program").write_text('#!/bin/sh\nexec python3 -P -m artist astra "$@"\n')
    (tmp_path / "program").chmod(0o755)
    lines = (
        f"FROM {BASE}",
        f"COPY program {ASTRA}",
        "WORKDIR /app/astra_server",
        "ENV PYTHONPATH=/app",
        'ENTRYPOINT ["python3", "__main__.py"]',
    )
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    docker("build", "--quiet", "--tag", "artist-astra-base:test", str(tmp_path))
    build = [ROOT / "docker" / "build-image.sh", "artist-on-astra:test", "artist-astra-base:test"]
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(build, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    alone = ("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp")  # noqa: S108  (in the container)
    case = ("--model", "resnet50", "--placement", "4,4", "--format", "json")
    answer, expected = (
        json.loads(docker(*alone, "artist-on-astra:test", "latency", *case, "--backend", backend))
        for backend in (f"astra-binary:{ASTRA}", "analytical")
    )
    assert answer["finish_cycles"] == expected["finish_cycles"]
    assert answer["source"].startswith("astra-binary@sha256:")

"""Does a name lead to its backend? If something is missing, does the message say what to do?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artist.cli.remarks import remarks
from artist.config import Scenario
from artist.engine.compiled_core import core

GOLDEN = Path(__file__).parents[3] / "shared" / "reference" / "golden_astra1.csv"


@pytest.mark.parametrize(
    ("backend", "code", "words"),
    [
        ("analytical:x", 2, ["takes no argument"]),
        ("astra-binary", 2, ["astra-binary:PATH"]),
        ("astra-binary:/nowhere/bin", 4, ["/nowhere/bin", "no such file"]),
        ("astra-docker:nobody", 2, ["'nobody'", "known: official, local", "images.yaml"]),
        ("recorded", 2, ["recorded:FILE"]),
        ("recorded:nowhere.csv", 3, ["nowhere.csv"]),
        ("none:x", 2, ["backend none:x", "answers no query"]),
    ],
)
def test_what_is_missing(artist, backend: str, code: int, words: list[str]) -> None:
    ran = artist("sim", "--backend", backend, code=code)
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


def test_without_docker_the_message_says_how_to_get_it(artist, tmp_path: Path) -> None:
    ran = artist("sim", "--backend", "astra-docker", PATH=str(tmp_path), code=4)
    assert "apt-get install docker.io" in ran.stderr


def test_a_fallback_belongs_to_a_recorded_table(artist) -> None:
    ran = artist("sim", "--set", "fallback=analytical", code=2)
    assert "recorded:FILE" in ran.stderr


@pytest.mark.skipif(not GOLDEN.is_file(), reason="the recorded latencies are not here")
def test_a_recorded_table_names_the_missing_key_or_counts_its_fallback(artist) -> None:
    backend = f"recorded:{GOLDEN}"
    small = ("sim", "--racks", "2", "--fabric", "h100-quantum2-spectrum4", "--backend", backend)
    alone = artist(*small, code=4)
    assert "topologies=" in alone.stderr
    both = artist(*small, "--set", "fallback=analytical", "--format", "json")
    assert json.loads(both.stdout)["latency_fallback_uses"] > 0


def test_doctor_reports_and_changes_nothing(artist) -> None:
    rows = {row["check"]: row for row in json.loads(artist("doctor", "--format", "json").stdout)}
    assert rows["core"]["detail"] == core()
    assert rows["in-process backend"]["ok"]
    assert rows["cache of estimates"]["ok"]
    assert {"Docker engine", "image official"} <= set(rows)


def test_doctor_says_which_image_is_artist_itself(artist, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho sha256:abc\n")
    docker.chmod(0o755)
    ran = artist("doctor", "--format", "json", PATH=str(tmp_path))
    details = {row["check"]: row["detail"] for row in json.loads(ran.stdout)}
    assert details["image official"] == "sha256:abc"
    assert details["image local"] == "sha256:abc: artist's own model, not ASTRA-sim"
    listed = artist("list", "backends").stdout
    assert "local, artist's own model, not ASTRA-sim" in listed


@pytest.mark.parametrize("setting", ["backend", "fallback"])
def test_a_run_says_that_its_container_is_artist_itself(setting: str) -> None:
    told = "astra-docker:local is artist's own model, not ASTRA-sim"
    assert told in remarks(Scenario(**{setting: "astra-docker:local"}))[0]
    assert remarks(Scenario(**{setting: "astra-docker"})) == []
    assert remarks(Scenario()) == []

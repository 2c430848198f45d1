"""Is what a killed artist leaves removed, and what is or may be in use left alone?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_docker import fake_docker

from artist.astra.programs.docker_client import DockerEngine
from artist.astra.programs.leftovers import remove_leftovers, work_folder
from artist.io.processes import is_gone, owner


def dead_owner() -> str:
    """The name of a process that is gone."""
    code = "from artist.io.processes import owner; print(owner())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_live_process_is_not_gone() -> None:
    assert not is_gone(owner())


def test_a_dead_process_is_gone() -> None:
    assert is_gone(dead_owner())


def test_a_process_that_reuses_an_id_is_not_the_owner() -> None:
    space, pid, started = owner().rsplit(":", 2)
    assert int(pid) == os.getpid()
    assert is_gone(f"{space}:{pid}:{int(started) - 1}")


@pytest.mark.parametrize("name", ["", "1", "elsewhere:4026531836:999999999:5"])
def test_leftovers_of_other_machines_are_left_alone(name: str) -> None:
    assert not is_gone(name)


def test_leftovers_of_dead_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert remove_leftovers(DockerEngine(docker)) == 2
    assert log.read_text() == "rm --force --volumes bbb\n"
    assert mine.exists()
    assert not theirs.exists()

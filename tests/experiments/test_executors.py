"""Does a worker that fails, dies or is missing cost only its own run, and get all of its files?"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.executors import WorkerDiedError, run_all
from artist.experiments.ray_cluster import check_ray
from artist.experiments.ray_worker import InputFiles, RemoteTask, fingerprint, run_elsewhere
from artist.experiments.sweep import RunOutcome, RunTask, lost, outcome_of, perform
from artist.results.result import Result


def deadly(task: int) -> int:
    """A task's square; task 2 kills its process."""
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * task


def minus(task: int, why: str) -> int:
    assert "killed" in why
    return -task


def test_a_worker_that_dies_costs_its_own_task_only() -> None:
    outcomes = dict(run_all(deadly, [1, 2, 3], 2, on_death=minus))
    assert outcomes == {0: 1, 1: -2, 2: 9}


def test_a_worker_that_dies_is_an_error_without_on_death() -> None:
    with pytest.raises(WorkerDiedError, match="too little memory"):
        list(run_all(deadly, [1, 2], 2))


# The kernel of Linux would hide that the thread alone is enough, as it must be elsewhere.
FOREVER = """
import os, sys, time
from pathlib import Path
from artist.experiments.executors import run_all

def forever(folder):
    orphans_kernel
    (folder / str(os.getpid())).touch()
    while True:
        busy_or_not

if __name__ == "__main__":
    list(run_all(forever, [Path(sys.argv[1])] * 2, 2))
"""


@pytest.mark.parametrize("waiting", ["time.sleep(60)", "sum(range(10**5))"], ids=["idle", "busy"])
@pytest.mark.parametrize("kernel", ["pass", "prctl(1, 0)"], ids=["both", "thread alone"])
def test_workers_end_when_their_parent_is_killed(tmp_path: Path, waiting: str, kernel: str) -> None:
    if kernel != "pass" and sys.platform != "linux":
        kernel = "pass"
    script = tmp_path / "forever.py"
    undo = "pass" if kernel == "pass" else "__import__('ctypes').CDLL(None)." + kernel
    script.write_text(FOREVER.replace("orphans_kernel", undo).replace("busy_or_not", waiting))
    begun = tmp_path / "begun"
    begun.mkdir()
    parent = subprocess.Popen(
        [sys.executable, script, begun],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        while parent.poll() is None and len(list(begun.iterdir())) < 2:
            time.sleep(0.02)
        parent.kill()
        parent.communicate(timeout=60)  # that is, the workers, who hold the pipe, have ended
    except subprocess.TimeoutExpired:
        os.killpg(parent.pid, signal.SIGKILL)
        raise
    assert len(list(begun.iterdir())) == 2


def blocked_signals(_task: int) -> set[int]:
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def test_no_signal_of_a_terminal_reaches_a_worker_at_any_moment() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    of_a_terminal = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
    assert all(of_a_terminal <= blocked for _, blocked in run_all(blocked_signals, [1, 2], 2))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_mistake_in_artist_costs_its_own_run_only() -> None:
    def mistaken() -> None:
        raise ZeroDivisionError("by policy")

    assert outcome_of("r", mistaken) == RunOutcome("r", "ZeroDivisionError: by policy", 1)
    assert lost(RemoteTask("r", Scenario(), ""), "it died").exit_code == 1


def test_an_orphan_writes_nothing(tmp_path: Path) -> None:
    scenario = Scenario(trace="tiny-batch", racks=1, backend="none")
    perform(RunTask("r", scenario, tmp_path / "run", (), parent=1 if os.getppid() != 1 else 2))
    assert not (tmp_path / "run").exists()
    perform(RunTask("r", scenario, tmp_path / "run", (), parent=os.getpid()))
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_without_ray_there_ends_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artist.io.optional_libraries.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'artist-sim\[ray\]'"):
        check_ray()


def test_a_cluster_that_does_not_answer_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("artist.io.optional_libraries.find_spec", lambda _: object())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # the port is taken, and nobody answers on it
        port = closed.getsockname()[1]
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        with pytest.raises(ConfigError, match=f"RAY_ADDRESS=127.0.0.1:{port}.*ray start --head"):
            check_ray()
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    check_ray()


def test_a_worker_with_another_artist_is_refused_and_named() -> None:
    scenario = Scenario(trace="tiny-batch", racks=1, backend="none")
    other = run_elsewhere(RemoteTask("r", scenario, "another"))
    assert isinstance(other, RunOutcome)
    assert "has another version of artist" in other.error
    assert isinstance(run_elsewhere(RemoteTask("r", scenario, fingerprint())), Result)


def test_the_fingerprint_is_that_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint.__wrapped__()
    assert before == fingerprint.__wrapped__()
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0")
    assert fingerprint.__wrapped__() != before


def test_the_files_of_a_scenario_travel_once_and_errors_name_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "sub").mkdir(parents=True)
    there.mkdir()
    for name in ("sub/jobs.csv", "jobs.csv", "net.yaml", "table.csv", "past.csv"):
        (here / name).write_text(name)
    (here / "astra_configs" / "fabrics").mkdir(parents=True)
    (here / "astra_configs" / "fabrics" / "mine.yaml").write_text("mine")
    monkeypatch.chdir(here)
    files = InputFiles(there)
    base = {
        "fabric": "net.yaml",
        "backend": "recorded:table.csv",
        "fallback": "analytical",
        "policy_options": {"past_service_file": str(here / "past.csv"), "placement": "pack"},
    }
    first = files.copied(Scenario(trace="sub/jobs.csv", **base))
    second = files.copied(Scenario(trace="jobs.csv", **base))
    texts = [
        (there / name).read_text()
        for name in (
            first.trace,
            second.trace,
            first.fabric,
            first.backend.partition(":")[2],
            first.policy_options["past_service_file"],
        )
    ]
    assert texts == ["sub/jobs.csv", "jobs.csv", "net.yaml", "table.csv", "past.csv"]
    assert Path(first.trace).name == "jobs.csv"  # a trace is called by its file's name
    assert (first.fabric, first.backend) == (second.fabric, second.backend)
    assert (first.fallback, first.policy_options["placement"]) == ("analytical", "pack")
    assert (there / "astra_configs" / "fabrics" / "mine.yaml").is_file()
    assert files.with_own_names(f"{first.trace}:3: bad") == "sub/jobs.csv:3: bad"
    assert files.copied(Scenario()) == Scenario()


def test_the_files_of_a_policy_inside_another_travel_too(tmp_path: Path) -> None:
    table = tmp_path / "past.csv"
    table.write_text("past")
    files = InputFiles(tmp_path / "there")
    options = {"lease_s": 5, "host": {"past_service_file": str(table)}}
    copied = files.copied(Scenario(policy_options=options)).policy_options
    assert copied["lease_s"] == 5
    assert (tmp_path / "there" / copied["host"]["past_service_file"]).read_text() == "past"


@pytest.mark.parametrize("setting", ["interference", "speeds", "goodput", "tenants"])
def test_every_file_that_a_setting_names_travels(tmp_path: Path, setting: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text("own")
    copied = InputFiles(tmp_path / "there").copied(Scenario(**{setting: str(file)}))
    assert (tmp_path / "there" / getattr(copied, setting)).read_text() == "own"


def asleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_a_caller_that_stops_reading_leaves_no_worker_and_no_watching_thread() -> None:
    """The thread closes its pipe when it ends. Python's own end, meanwhile, would write to it."""
    before = set(threading.enumerate())
    outcomes = run_all(asleep, [0.0, 60.0], 2)
    assert next(outcomes) == (0, 0.0)
    outcomes.close()  # type: ignore[attr-defined]  # a generator
    assert set(threading.enumerate()) - before == set()
    assert multiprocessing.active_children() == []


def test_policies_in_files_and_the_mapping_beside_a_trace_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "t.csv.columns.yaml", "quota.py", "mine.py"):
        Path(name).write_text(name)
    folder = tmp_path / "copies"
    folder.mkdir()
    policy = "quota.py:Quota(mine.py:Mine)"
    copied = InputFiles(folder).copied(Scenario(trace="t.csv", policy=policy))
    assert copied.policy == "inputs/1/quota.py:Quota(inputs/2/mine.py:Mine)"
    assert (folder / f"{copied.trace}.columns.yaml").read_text() == "t.csv.columns.yaml"
    for name in ("inputs/1/quota.py", "inputs/2/mine.py"):
        assert (folder / name).read_text() == Path(name).name

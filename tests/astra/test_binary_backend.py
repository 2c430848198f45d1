"""Does each way in which a program can fail end in its own error? Small scripts fail so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rendered_queries import program, tiny

from artist.astra.programs import bounded_run
from artist.astra.programs.binary_backend import BinaryBackend
from artist.astra.programs.bounded_run import OutputLimitError, TimeLimitError, run_bounded
from artist.errors import BackendError, BackendSettingError
from artist.estimates.query import Estimate

WELL = "for rank in range(NPUS): finished(rank)"


def test_estimate(tmp_path: Path) -> None:
    backend = BinaryBackend(program(tmp_path, WELL))
    estimate = backend.estimate(tiny())
    assert estimate == Estimate(22240, 20000, backend.source)
    assert estimate.exposed_comm_ns == 2240


@pytest.mark.parametrize(("signal", "code"), [("SIGABRT", 134), ("SIGSEGV", 139)])
def test_a_crash_at_the_end_is_believed_if_every_npu_has_finished(
    tmp_path: Path, signal: str, code: int
) -> None:
    crash = f"sys.stdout.flush(); os.kill(os.getpid(), signal.{signal})"
    backend = BinaryBackend(program(tmp_path, f"{WELL}\n{crash}"))
    assert backend.estimate(tiny()).finish_ns == 22240
    backend = BinaryBackend(program(tmp_path, f"finished(0)\n{crash}"))
    with pytest.raises(BackendError, match=rf"exit code {code}: .*; 1 of 6 NPUs finished"):
        backend.estimate(tiny())
    backend = BinaryBackend(program(tmp_path, f"{WELL}\nsys.exit(1)"))
    with pytest.raises(BackendError, match="exit code 1"):
        backend.estimate(tiny())


def test_source_is_the_programs_content(tmp_path: Path) -> None:
    first = BinaryBackend(program(tmp_path, WELL)).source
    assert first.startswith("astra-binary@sha256:")
    assert len(first.partition(":")[2]) == 12
    assert BinaryBackend(program(tmp_path, WELL)).source == first
    assert BinaryBackend(program(tmp_path, WELL + " ")).source != first


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = BinaryBackend(program(tmp_path, WELL))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    backend.estimate(tiny())
    assert not list(scratch.iterdir())


def test_hanging(tmp_path: Path) -> None:
    backend = BinaryBackend(program(tmp_path, "time.sleep(60)"), timeout_s=0.5)
    started = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"killed after 0\.5 s"):
        backend.estimate(tiny())
    assert time.monotonic() - started < 10


def test_hanging_with_its_output_closed(tmp_path: Path) -> None:
    body = "os.close(1); os.close(2); time.sleep(60)"
    backend = BinaryBackend(program(tmp_path, body), timeout_s=0.5)
    with pytest.raises(TimeLimitError):
        backend.estimate(tiny())


def test_printing_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_run, "OUTPUT_LIMIT_BYTES", 1 << 20)
    backend = BinaryBackend(program(tmp_path, "while True: print('x' * 1000)"))
    with pytest.raises(OutputLimitError):
        backend.estimate(tiny())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "no result"),
        ("print('\\x00garbage' * 100)", "no result"),
        ("sys.stdout.buffer.write(bytes(range(256)) * 10)", "no result"),
        (WELL + "\nfinished(NPUS)", "too many"),
        ("print('[workload] [info] sys[0] finished, soon')", "garbled"),
    ],
)
def test_nonsense(body: str, why: str, tmp_path: Path) -> None:
    backend = BinaryBackend(program(tmp_path, body))
    with pytest.raises(BackendError, match=why) as caught:
        backend.estimate(tiny())
    assert not isinstance(caught.value, BackendSettingError)
    assert "fake-astra --workload-configuration=workload" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "for rank in range(NPUS // 2): finished(rank)",
        "print('[2026] [workload] [info] something else')",
    ],
)
def test_deadlock_ends_well_but_without_all_results(body: str, tmp_path: Path) -> None:
    backend = BinaryBackend(program(tmp_path, body))
    with pytest.raises(BackendSettingError, match="NPUs finished") as caught:
        backend.estimate(tiny())
    assert caught.value.reason == "deadlock"


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        ("sys.exit(255)", 255, "flag is missing"),
        ("sys.exit(1)", 1, "unknown value"),
        ("os.kill(os.getpid(), signal.SIGABRT)", 134, "aborted"),
        ("os.kill(os.getpid(), signal.SIGFPE)", 136, "divided by zero"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "killed"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "segmentation fault"),
        ("sys.exit(77)", 77, "undocumented"),
    ],
)
def test_exit_codes(body: str, code: int, why: str, tmp_path: Path) -> None:
    say = "print('first', file=sys.stderr); print('the last word', file=sys.stderr, flush=True)"
    backend = BinaryBackend(program(tmp_path, f"import resource\n{NO_CORE}\n{say}\n{body}"))
    with pytest.raises(BackendError, match=why) as caught:
        backend.estimate(tiny())
    message = str(caught.value)
    assert f"exit code {code}" in message
    assert "'the last word'" in message
    assert "artist render" in message


NO_CORE = "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"


@pytest.mark.parametrize(
    ("spoken", "says", "other"),
    [
        ("astra2", "[Analytical, main] unrecognised option", "astra1"),
        ("astra1", "[Error] (AstraSim/analytical/common) no value", "astra2"),
    ],
)
def test_wrong_dialect(spoken: str, says: str, other: str, tmp_path: Path) -> None:
    path = program(tmp_path, f"print({says!r}); sys.exit(255)")
    with pytest.raises(BackendError, match=f"set 'dialect: {other}'"):
        BinaryBackend(path, dialect=spoken).estimate(tiny())


def test_astra1_is_read_from_its_csv(tmp_path: Path) -> None:
    text = "workload finished at,total comp,total exposed comm\\n3.5,2.5,1.0\\n"
    path = program(tmp_path, f"open('result/EndToEnd.csv', 'w').write('{text}')")
    estimate = BinaryBackend(path, dialect="astra1").estimate(tiny())
    assert (estimate.finish_ns, estimate.compute_ns) == (3500, 2500)


def test_astra1_without_a_result(tmp_path: Path) -> None:
    backend = BinaryBackend(program(tmp_path, ""), dialect="astra1")
    with pytest.raises(BackendError, match=r"no readable EndToEnd\.csv"):
        backend.estimate(tiny())


def test_missing_program(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="no such file"):
        BinaryBackend(tmp_path / "nothing")


def test_program_that_is_not_executable(tmp_path: Path) -> None:
    path = program(tmp_path, WELL)
    path.chmod(0o644)
    with pytest.raises(BackendError, match=r"chmod \+x"):
        BinaryBackend(path)


def test_program_of_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    with pytest.raises(BackendError, match="cannot be run"):
        BinaryBackend(path).estimate(tiny())


def test_stdin_is_closed(tmp_path: Path) -> None:
    assert run_bounded(("cat",), 10).stdout == ""


def test_bad_query_never_reaches_the_program(tmp_path: Path) -> None:
    path = program(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(BackendSettingError):
        BinaryBackend(path).estimate(tiny(1))
    assert not (tmp_path / "ran").exists()

"""Does a converted trace keep everything that the other format can express?"""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from foreign_samples import FILES, printed_and_peak_mib, sample
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from artist.cli.commands.trace import app
from artist.errors import ConfigError
from artist.trace.native.choices import Rules
from artist.trace.native.time_units import UNIX_TIMES_S
from artist.trace.native.trace import Trace
from artist.trace.native.writer import OUTPUTS, digest, write_csv, write_parquet, write_trace
from artist.trace.read import read_trace
from artist.trace.synthetic.generate import synth, synth_jobs
from artist.workload.job import Job

KEEP = Rules(model="keep")

numbers = st.floats(1e-6, 1e6)
names = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=6)
texts = st.text(min_size=1, max_size=8).filter(
    lambda x: x == x.strip() and "\0" not in x and x.isprintable()
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any jobs, in order of arrival; hints are texts, as CSV has nothing else."""
    jobs = []
    hints = sorted(draw(st.sets(st.sampled_from(["hint_a", "hint_b c"]))))
    for job_id in draw(st.lists(texts, min_size=1, max_size=5, unique=True)):
        gpus = draw(st.integers(1, 100))
        jobs.append(
            Job(
                id=job_id,
                arrival_s=draw(st.floats(0, UNIX_TIMES_S, exclude_max=True)),
                gpus=gpus,
                model=draw(texts),
                iterations=draw(st.integers(1, 1000)),
                compute_s=draw(numbers),
                user=draw(st.just("") | texts),
                gpus_min=draw(st.integers(1, gpus)),
                gpus_max=draw(st.integers(gpus, 200)),
                restart_s=draw(numbers),
                hints={name: draw(texts) for name in hints},
                tenant=draw(st.none() | names),
                priority=draw(st.none() | st.integers(1, 7)),
                tables=draw(st.sampled_from([(), ("ads",), ("ads", "user/2024-06-01")])),
            )
        )
    jobs.sort(key=lambda job: job.arrival_s)
    return Trace("t", "native", tuple(jobs), "", range(len(jobs)), "job")


def back(trace: Trace, folder: Path, name: str, to: str | None = None) -> tuple[Job, ...]:
    write_trace(trace, folder / name, to)
    return read_trace(folder / name, rules=KEEP).jobs


@given(trace=traces())
def test_native_loses_nothing(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    folder = tmp_path_factory.mktemp("native")
    assert back(trace, folder, "t.csv") == trace.jobs
    assert read_trace(folder / "t.csv").digest == digest(trace.jobs)
    assert back(trace, folder, "t.parquet") == trace.jobs


@given(trace=traces())
def test_simple_keeps_all_but_the_last_bit_of_a_step(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    jobs = back(trace, tmp_path_factory.mktemp("simple"), "t.csv", "simple")
    for before, after in zip(trace.jobs, jobs, strict=True):
        assert math.isclose(after.compute_s, before.compute_s, rel_tol=1e-15)
        assert replace(after, compute_s=before.compute_s) == before


@given(trace=traces())
def test_swf_keeps_arrivals_demands_and_run_times(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    jobs = back(trace, tmp_path_factory.mktemp("swf"), "t.swf")
    assert [job.id for job in jobs] == [str(n + 1) for n in range(len(jobs))]
    pairs = list(zip(trace.jobs, jobs, strict=True))
    for before, after in pairs:
        assert (after.arrival_s, after.gpus) == (before.arrival_s, before.gpus)
        assert math.isclose(after.ideal_s, before.ideal_s, rel_tol=1e-15)
        assert (after.user == "") == (before.user == "")
    for name in ("user", "model"):  # numbered, but equal where they were equal
        pairs_of = {(getattr(a, name), getattr(b, name)) for a, b in pairs}
        assert len(pairs_of) == len({a for a, _ in pairs_of}) == len({b for _, b in pairs_of})


@pytest.mark.parametrize("format_", FILES)
def test_every_format_becomes_native_and_stays(tmp_path: Path, format_: str) -> None:
    trace = read_trace(sample(tmp_path, format_))
    for to in ("t.csv", "t.parquet"):
        jobs = back(trace, tmp_path, to)
        assert [(j.id, j.arrival_s, j.iterations, j.compute_s) for j in jobs] == [
            (j.id, j.arrival_s, j.iterations, j.compute_s) for j in trace.jobs
        ]


def test_parquet_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artist.trace.native.writer._ROWS_PER_GROUP", 7)
    jobs = synth(50, 0.9, 16, seed=1).jobs
    write_parquet(iter(jobs), tmp_path / "t.parquet")
    assert read_trace(tmp_path / "t.parquet").jobs == jobs
    write_parquet(iter(()), tmp_path / "none.parquet")


def test_a_failed_parquet_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write_parquet(synth(5, 0.9, 16, seed=1).jobs, tmp_path / "absent" / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    trace = synth(5, 0.9, 16, seed=1)
    with pytest.raises(ConfigError, match="unknown output format 'sfw': did you mean 'swf'"):
        write_trace(trace, tmp_path / "t.csv", "sfw")
    for to in set(OUTPUTS) - {"native"}:
        with pytest.raises(ConfigError, match="is written as text"):
            write_trace(trace, tmp_path / "t.parquet", to)


def test_losses_are_counted(tmp_path: Path) -> None:
    trace = read_trace(sample(tmp_path, "native"))
    lost = write_trace(trace, tmp_path / "t.swf")
    assert lost == (
        "ids (jobs are numbered): 2 jobs",
        "names of models (numbered): 2 jobs",
        "names of users (numbered): 1 job",
        "iterations and compute_s (their product is the run time): 2 jobs",
        "gpus_min, gpus_max: 1 job",
        "restart_s: 1 job",
        "hints: 2 jobs",
    )
    assert write_trace(trace, tmp_path / "u.csv") == ()


def test_the_command_reports_what_it_did(tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    arguments = ["convert", str(sample(tmp_path, "helios")), "--out", str(out), "--seed", "3"]
    ran = CliRunner().invoke(app, [*arguments, "--model-rule", "mix", "--format", "json"])
    facts = json.loads(ran.stdout)
    assert (facts["from"], facts["to"], facts["jobs"]) == ("helios", "native", 2)
    assert facts["filled"][1].endswith("number of GPUs, seed 3): 2 jobs")
    assert sum(facts["dropped"].values()) == 5
    assert len(read_trace(out).jobs) == 2
    assert CliRunner().invoke(app, ["validate", str(out)]).exit_code == 0
    assert isinstance(CliRunner().invoke(app, [*arguments, "--to", "x"]).exception, ConfigError)


@pytest.mark.slow
def test_a_million_native_jobs_are_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    write_csv(synth_jobs(1_000_000, 0.9, 1024, seed=0), path)
    code = (
        "from artist.trace.read import read_trace; print(len(read_trace(Path(sys.argv[1])).jobs)); "
    )
    printed, mib = printed_and_peak_mib(code, path)
    assert printed == "1000000"
    # 668 measured, 656 before each job kept its demand. A mapping per job would take 60 more.
    assert mib < 680

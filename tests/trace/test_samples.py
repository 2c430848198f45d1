"""The sample traces that ship: their content, and the script in README that makes them."""

import re
from pathlib import Path
from typing import Any

import pytest

from artist.config import Scenario
from artist.errors import ConfigError, TraceError
from artist.io.shipped import resource
from artist.run import simulate
from artist.trace.named import DEFAULT_TRACE, builtin, builtin_traces, open_trace
from artist.trace.native.trace import UNKNOWN_MODEL, check_models, check_sizes, head
from artist.trace.read import read_trace

SAMPLES = ["tiny-batch.csv", "tiny-poisson.csv", "simple-durations.csv", "tiny-elastic.parquet"]


def test_the_readme_lists_every_sample() -> None:
    files = {path.name for path in resource("traces").iterdir()} - {"README.md"}
    assert files == set(SAMPLES)
    readme = resource("traces", "README.md").read_text()
    assert all(f"`{name}`" in readme for name in SAMPLES)


@pytest.mark.parametrize(("name", "jobs"), [("tiny-batch", 20), ("tiny-poisson", 24)])
def test_tiny_traces_have_known_models_and_fit_on_16_gpus(name: str, jobs: int) -> None:
    trace = builtin(name)
    check_models(trace)
    check_sizes(trace, 16, "")
    assert len(trace.jobs) == jobs
    assert {job.id for job in trace.jobs} == {str(i) for i in range(jobs)}
    assert (trace.jobs[-1].arrival_s > 0) == (name == "tiny-poisson")


def test_simple_durations() -> None:
    trace = read_trace(resource("traces", "simple-durations.csv"))
    assert trace.format == "simple"
    assert {job.model for job in trace.jobs} == {UNKNOWN_MODEL}
    assert trace.jobs[0].ideal_s == 40589
    assert trace.warnings == (
        "16 jobs without iterations: steps of at most 1 s "
        "(the share of communication is the model's, whatever the step)",
        "16 jobs without a model: give --backend none or --model-rule",
    )
    with pytest.raises(
        TraceError, match=r"simple-durations\.csv:2.*'0' has no model.*--backend none"
    ):
        check_models(trace)


def test_tiny_elastic() -> None:
    trace = read_trace(resource("traces", "tiny-elastic.parquet"))
    check_models(trace)
    for number, job in enumerate(trace.jobs):
        assert job.gpus_min <= job.gpus <= job.gpus_max == 2 * job.gpus
        assert job.restart_s == 30.0
        assert dict(job.hints) == {"hint_priority": number % 3}
    assert trace.place(3).endswith("tiny-elastic.parquet: row 4")


def test_every_registered_trace_loads() -> None:
    assert DEFAULT_TRACE in [entry.id for entry in builtin_traces]
    for entry in builtin_traces:
        assert entry.summary
        assert builtin(entry.id, seed=5).jobs


def test_open_trace_takes_a_name_or_a_file(tmp_path: Path) -> None:
    assert open_trace("tiny-batch").jobs == builtin("tiny-batch").jobs
    assert open_trace(str(resource("traces", "tiny-batch.csv"))).jobs == builtin("tiny-batch").jobs
    assert len(open_trace(DEFAULT_TRACE, seed=3).jobs) == 500
    with pytest.raises(ConfigError, match=r"unknown trace 'tiny-bacth': did you mean 'tiny-batch'"):
        open_trace("tiny-bacth")
    with pytest.raises(TraceError, match=r"absent\.csv: cannot be read \(No such file"):
        open_trace(str(tmp_path / "absent.csv"))


def test_head_keeps_the_first_arrivals_and_their_places() -> None:
    trace = builtin("tiny-poisson")
    short = head(trace, 5)
    assert short.jobs == trace.jobs[:5]
    assert short.place(4) == trace.place(4)
    for jobs in (0, 25):
        with pytest.raises(ConfigError, match=rf"--jobs is {jobs}, .*24 jobs.*1 to 24"):
            head(trace, jobs)


def test_a_job_larger_than_the_cluster_is_named() -> None:
    with pytest.raises(TraceError, match=r"tiny-batch\.csv:2: job '0' demands 16 .*has 8"):
        check_sizes(builtin("tiny-batch"), 8, "")


@pytest.mark.parametrize(
    ("settings", "larger"),
    [
        ({"racks": 1, "machines_per_rack": 1}, "--racks, --machines-per-rack"),
        ({"tree": [[8]]}, "tree"),
        ({"cluster": "one.yaml"}, "one.yaml"),
    ],
)
def test_what_makes_a_cluster_larger_depends_on_how_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], larger: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "{name: one, summary: x, levels: [machine], tree: {gpus: 8}}"
    (tmp_path / "one.yaml").write_text(text)
    with pytest.raises(TraceError, match=re.escape(f"enlarge the cluster ({larger}) or drop")):
        simulate(Scenario(trace="tiny-batch", policy="fifo", **settings))

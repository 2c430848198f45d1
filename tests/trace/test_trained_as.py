"""Does `trained_as` give its settings to all models of a trace, and refuse bad ones?"""

from pathlib import Path

import pytest

import artist
from artist.errors import ConfigError, TraceError
from artist.run.prepare import prepare
from artist.trace.divided import trained_as
from artist.trace.native.trace import Trace
from artist.workload.job import Job

SMALL = {"trace": "tiny-batch", "racks": 1, "policy": "fifo", "fabric": "t4"}


def models(settings: str, *names: str) -> list[str]:
    jobs = tuple(Job(name, 0.0, 1, name, iterations=1, compute_s=1.0) for name in names)
    trace = Trace("t", "native", jobs, "", range(len(jobs)), "job")
    return [job.model for job in trained_as(trace, settings).jobs]


def test_what_a_name_states_stands() -> None:
    named = models("gpu=h100,precision=bf16", "resnet50", "vgg11@gpu=v100", "gpt2@precision=tf32")
    assert named == [
        "resnet50@gpu=h100,precision=bf16",
        "vgg11@gpu=v100,precision=bf16",
        "gpt2@gpu=h100",
    ]


def test_the_fabrics_gpu_is_the_same_as_its_name() -> None:
    own, named, other = (
        artist.simulate(artist.Scenario(**SMALL, trained_as=settings)).jobs
        for settings in (None, "gpu=t4", "gpu=a100")
    )
    assert own.drop(columns="model").equals(named.drop(columns="model"))
    # A T4 computes longer, so more of the communication is hidden behind it.
    assert (own.comm_s <= other.comm_s).all() and own.comm_s.sum() < other.comm_s.sum()


@pytest.mark.parametrize(
    ("other", "words"),
    [({"backend": "none"}, "backend none asks"), ({"goodput": "g.yaml"}, "goodput 'g.yaml' says")],
)
def test_trained_as_is_refused_where_it_would_be_ignored(other: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=f"trained_as 'gpu=h100': {words}"):
        artist.simulate(artist.Scenario(**SMALL, trained_as="gpu=h100", **other))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("gpu=k80", "csv:2: job '0': trained_as 'gpu=k80': .*gpu is 'k80', expected one of t4"),
        ("sequence=64", "this model has no sequence"),
    ],
)
def test_impossible_values_are_refused(settings: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        artist.simulate(artist.Scenario(**SMALL, trained_as=settings))


def test_fitted_times_are_refused_before_the_run_on_gpus_they_do_not_know(tmp_path: Path) -> None:
    rows = "late,1e9,8,gpt3-xl@timing=fitted,1,1\n"
    path = tmp_path / "t.csv"
    path.write_text(f"job_id,arrival_s,gpus,model,iterations,compute_s\n{rows}", encoding="utf-8")
    ran = {"trace": str(path), "policy": "fifo", "racks": 1}
    with pytest.raises(TraceError, match=r"t\.csv:2: job 'late': .* not t4"):
        prepare(artist.Scenario(**ran, fabric="t4"))
    prepare(artist.Scenario(**ran, fabric="a100"))
    prepare(artist.Scenario(**ran, fabric="t4", backend="none"))

"""`trace synth --elastic --gpu-kinds`: are the shares right, and is nothing else of a job drawn?"""

import pytest

from artist.errors import ConfigError
from artist.trace.read import read_trace
from artist.trace.synthetic.generate import shares_of_kinds, synth_jobs, with_traits

GPUS = 64


def test_shares_are_those_asked_for_and_nothing_else_changes() -> None:
    plain = list(synth_jobs(4000, 0.9, GPUS, seed=3))
    made = list(with_traits(plain, elastic=0.4, kinds={"a": 0.3, "b": 0.1}, gpus=GPUS, seed=3))
    elastic = [job for job in made if job.gpus_min < job.gpus or job.gpus_max > job.gpus]
    assert len(elastic) / 4000 == pytest.approx(0.4, abs=0.03)
    assert all(x.gpus_min == 1 and x.gpus_max == min(2 * x.gpus, GPUS) for x in elastic)
    for kind, share in (("a", 0.3), ("b", 0.1)):
        assert sum(x.gpu_kinds == (kind,) for x in made) / 4000 == pytest.approx(share, abs=0.03)
    same = ("id", "arrival_s", "gpus", "model", "iterations", "compute_s", "user")
    for before, after in zip(plain, made, strict=True):
        assert [getattr(before, x) for x in same] == [getattr(after, x) for x in same]
    assert made == list(
        with_traits(plain, elastic=0.4, kinds={"a": 0.3, "b": 0.1}, gpus=GPUS, seed=3)
    )


@pytest.mark.parametrize("text", ["a", "a=2", "a=.5,a=.1", "a=.7,b=.7", "=1", "a=nan"])
def test_bad_shares_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--gpu-kinds .*expected"):
        shares_of_kinds(text)


def test_the_command_writes_what_runs_read(artist, tmp_path) -> None:
    traits = ("--elastic", "0.5", "--gpu-kinds", "v100=0.5")
    size = ("--jobs", "40", "--gpus", "64", "--load", "0.5")
    done = artist("trace", "synth", *size, *traits, "--out", "t.csv", code=0)
    jobs = read_trace(tmp_path / "t.csv").jobs
    assert {job.gpu_kinds for job in jobs} == {(), ("v100",)}
    assert {job.gpus_min == job.gpus_max for job in jobs} == {True, False}
    done = artist(
        "trace", "synth", *size, *traits, "--shape", "mast-synth", "--out", "u.csv", code=2
    )
    assert "--shape mast-synth takes neither" in done.stderr


CLUSTER = """name: two
summary: few new GPUs
levels: [rack, machine]
tree: {machine: [{count: 8, gpus: 8, kind: old}, {gpus: 4, kind: new}]}
"""


def test_no_job_requires_more_of_a_kind_than_the_cluster_has(artist, tmp_path) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    command = ("trace", "synth", "--jobs", "200", "--gpus", "64", "--load", "0.5")
    kinds = ("--gpu-kinds", "new=0.5", "--cluster", "c.yaml")
    artist(*command, *kinds, "--out", "t.csv", code=0)
    jobs = read_trace(tmp_path / "t.csv").jobs
    assert max(job.gpus for job in jobs if job.gpu_kinds) <= 4 < max(job.gpus for job in jobs)
    sim = ("sim", "--cluster", "c.yaml", "--trace", "t.csv", "--backend", "none", "--check")
    artist(*sim, "--policy", "fifo-backfill", "--quiet", code=0)
    wrong = artist(*command, "--gpu-kinds", "newer=0.5", *kinds[2:], "--out", "u.csv", code=2)
    assert "no GPUs of kind 'newer' (did you mean 'new'?)" in wrong.stderr
    alone = artist(*command, *kinds[2:], "--out", "u.csv", code=2)
    assert "--cluster needs --gpu-kinds" in alone.stderr

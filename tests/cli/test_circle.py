"""Does `artist circle` say and draw how jobs interleave on a link?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from artist.cli.link_jobs import jobs_of, link_of
from artist.errors import ArtistError, ConfigError
from artist.network.demand.curves import down_and_up
from artist.run import open_backend
from artist.units import BANDWIDTH_UNITS, in_base_unit, quantity
from artist.workload.models import parameters, workload

FIG_2 = ("--pattern", "348:118:40", "--pattern", "348:118:40")


def circle(artist, *arguments: str) -> dict[str, Any]:
    ran = artist("circle", *arguments, "--format", "json", code=0)
    data: dict[str, Any] = json.loads(ran.stdout)
    return data


def test_two_patterns(artist) -> None:
    said = circle(artist, *FIG_2, "--link", "50Gbps")
    assert said["score"] == 1.0
    assert said["period_ms"] == 348.0
    assert said["shifts_ms"] == [0.0, 120.833333]
    assert said["first_shift_ms"] == 120.833333
    assert said["plateau_ms"] == [120.833333, 227.166667]


def test_another_choice_keeps_the_first_shift(artist) -> None:
    said = circle(artist, *FIG_2, "--choose", "centre")
    assert said["shifts_ms"][1] == 174.0
    assert said["first_shift_ms"] == 120.833333
    assert said["plateau_ms"] == [120.833333, 227.166667]


def test_the_perimeter_is_the_common_multiple(artist) -> None:
    said = circle(artist, "--pattern", "40:10:50", "--pattern", "60:10:50")
    assert (said["period_ms"], said["shifts_ms"]) == (120.0, [0.0, 10.0])


def test_models_on_a_link(artist) -> None:
    said = circle(artist, "--jobs", "vgg16:2,vgg19:3", "--link", "50Gbps")
    assert [job["job"] for job in said["jobs"]] == ["vgg16:2", "vgg19:3"]
    assert said["score_at_random"] <= said["score"] < 1


def test_a_job_of_one_worker_sends_nothing(artist) -> None:
    said = circle(artist, "--jobs", "vgg16:1")
    assert (said["score"], said["jobs"][0]["up_ms"], said["plateau_ms"]) == (1.0, 0.0, [0.0, 0.0])


def test_a_job_off_the_circle_has_no_plateau(artist) -> None:
    said = circle(artist, "--pattern", "10:1:10", "--pattern", "300:1:20")
    assert said["jobs"][1]["on_circle_ms"] is None
    assert said["plateau_ms"] is None


def test_the_table(artist) -> None:
    printed = artist("circle", *FIG_2).stdout
    assert "120.833 to 227.167" in printed
    assert "score\t1.000" in printed


@pytest.mark.slow
def test_the_plot(artist, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert artist("circle", *FIG_2, "--plot", name).returncode == 0
    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn.startswith(b"<?xml")
    assert drawn == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give --jobs"),
        (("--pattern", "3:4"), "expected PERIOD_MS:UP_MS:GBPS"),
        (("--pattern", "3:4:5"), "expected 0 up to the period"),
        (("--pattern", "0:0:5"), "a period of 0.001 to 1e+07 ms"),
        (("--pattern", "inf:1:5"), "a period of 0.001 to 1e+07 ms"),
        (("--pattern", "3:1:1e300"), "at most 1e+06 Gbit/s"),
        (("--pattern", "3:1:-1"), "demand -1"),
        (("--jobs", "vgg16"), "expected MODEL:WORKERS"),
        (("--jobs", "vgg16:0"), "1 to 1024 workers"),
        (("--jobs", "vgg166:2"), "did you mean 'vgg16'"),
        (("--jobs", "vgg16:2", "--link", "50"), "with its unit"),
        (("--jobs", "vgg16:2", "--link", "0Gbps"), "above 0"),
        (("--jobs", "vgg16:2", "--link", "1e-20Gbps"), "0.001 up to 1e+06 Gbit/s"),
        (("--pattern", "3:1:1", "--angle", "7"), "divisor of 360"),
        (("--pattern", "3:1:1") * 65, "at most 64"),
        (("--pattern", "3:1:1", "--plot", "x.xyz"), "cannot be written"),
    ],
)
def test_bad_input_ends_in_one_sentence(artist, arguments: tuple[str, ...], words: str) -> None:
    ran = artist("circle", *arguments, code=2)
    assert ran.stdout == ""
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_settings_of_a_model_may_hold_commas() -> None:
    jobs = jobs_of("vgg16@batch=64,gpu=h100:2,resnet50:1", [], 50.0, "analytical")
    assert [job.name for job in jobs] == ["vgg16@batch=64,gpu=h100:2", "resnet50:1"]


def test_bits_and_bytes_of_a_link() -> None:
    assert link_of("50Gbps") == link_of("50Gbit/s") == link_of("6.25GB/s") == 50.0
    with pytest.raises(ConfigError):
        link_of("fast")


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_up_is_a_ring_at_the_rate_of_the_link(workers: int) -> None:
    number = quantity("50Gbps", BANDWIDTH_UNITS)
    assert number is not None
    link = in_base_unit(*number, BANDWIDTH_UNITS)
    alone = down_and_up(workload("vgg16"), workers, link, open_backend("analytical"))
    sent_bytes = 4 * parameters("vgg16") * 2 * (workers - 1) / workers
    assert alone.up_s * alone.bytes_per_s == pytest.approx(sent_bytes, rel=0.001)
    assert alone.bytes_per_s * 8 / 1e9 == pytest.approx(50, rel=0.01)
    assert alone.up_s < alone.iteration_s


def test_a_refusal_of_the_backend_is_reported() -> None:
    with pytest.raises(ArtistError):
        jobs_of("vgg16:2", [], 50.0, "nonsense")


def test_the_paper_s_traces(artist, tmp_path: Path) -> None:
    shape = ("--shape", "cassini", "--jobs", "6", "--gpus", "24", "--out", "trace.csv")
    artist("trace", "synth", *shape, "--arrivals", "dynamic", code=0)
    assert len((tmp_path / "trace.csv").read_text().splitlines()) == 7
    assert artist("trace", "validate", "trace.csv").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--shape", "cassini"), "give --load"),
        (("--shape", "cassini", "--arrivals", "snapshot", "--load", "1"), "leave it out"),
        (("--arrivals", "snapshot"), "belong to --shape cassini, not sensetime"),
        ((), "give --load"),
    ],
)
def test_a_load_belongs_to_poisson_arrivals(
    artist, arguments: tuple[str, ...], remedy: str
) -> None:
    ran = artist("trace", "synth", "--jobs", "6", "--gpus", "24", "--out", "x.csv", *arguments)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert ran.stderr.endswith(f"{remedy}\n")

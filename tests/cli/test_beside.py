"""Does `artist latency --beside` say what a job loses beside others?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

# Racks whose one uplink has the rate of a GPU. Nothing has latency.
ONE_UPLINK = """\
name: one-uplink
summary: racks with one uplink of the rate of a GPU
levels:
  - {name: machine, topology: Ring, bandwidth_gib_per_s: 100, latency_ns: 0, source: test}
  - name: rack
    topology: Ring
    bandwidth_gib_per_s: 1
    latency_ns: 0
    uplink: {rate_gib_per_s: 1, count: 1, source: test}
    source: test
  - {name: network, topology: Ring, bandwidth_gib_per_s: 1, latency_ns: 0, source: test}
system:
  {preferred_dataset_splits: 1, endpoint_delay_ns: 1, collective_optimization: baseline, source: a}
"""
# Compute, then an all-reduce of 1/50 GiB: in a ring of two, each sends 1/50 GiB, in 20 ms.
LAYER = "DATA\n1\nlayer -1 10000 NONE 0 10000 NONE 0 10000 ALLREDUCE 21474836 0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one-uplink.yaml").write_text(ONE_UPLINK)
    (tmp_path / "layer.txt").write_text(LAYER)
    return tmp_path


def asked(artist: Any, *more: str) -> dict[str, Any]:
    command = ("latency", "--workload", "layer.txt", "--fabric", "one-uplink.yaml")
    done = artist(*command, *more, "--format", "json", code=0)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("delta_ms", [0, 5, 10, 15])
def test_two_equal_jobs_take_d_plus_2u_less_delta(artist, folder: Path, delta_ms: int) -> None:
    answer = asked(
        artist, "--placement", "1/1", "--beside", "layer.txt:1/1", "--contention", "fluid",
        "--offset", f"{delta_ms}ms",
    )  # fmt: skip
    # Down for d, Up for u = 20 ms at the line rate: alone d + u.
    u_ms = 20.0
    d_ms = answer["iteration_alone_ms"] - u_ms
    assert answer["iteration_beside_ms"] == pytest.approx(d_ms + 2 * u_ms - delta_ms, rel=1e-3)
    slowdown = answer["iteration_beside_ms"] / answer["iteration_alone_ms"]
    assert answer["slowdown"] == pytest.approx(slowdown, rel=1e-12)
    assert [link["link"] for link in answer["links"]] == [
        "rack 0 up", "rack 0 down", "rack 1 up", "rack 1 down",
    ]  # fmt: skip
    for link in answer["links"]:
        # 20 ms of an iteration at the line rate, of both jobs.
        assert link["jobs"] == [0, 1]
        assert link["utilisation_alone"] == pytest.approx(
            u_ms / answer["iteration_alone_ms"], rel=1e-3
        )
        assert link["utilisation"] == pytest.approx(
            2 * u_ms / answer["iteration_beside_ms"], rel=1e-3
        )


@pytest.mark.parametrize("contention", ["mean", "phase"])
def test_other_models_name_themselves(artist, folder: Path, contention: str) -> None:
    answer = asked(
        artist, "--placement", "1/1", "--beside", "layer.txt:1/1", "--contention", contention
    )
    assert answer["source"] == f"analytical, contention {contention}"
    assert {link["eta"] for link in answer["links"]} == {0.976}  # where the fabric states none
    assert 1.2 < answer["slowdown"] < 1.6


def test_jobs_that_share_no_link_lose_nothing(artist, folder: Path) -> None:
    one = ("--placement", "1/1@0,8", "--beside", "layer.txt:1/1@16,24")
    answer = asked(artist, *one)
    assert answer["iteration_beside_ms"] == answer["iteration_alone_ms"]
    assert (answer["slowdown"], answer["links"]) == (1.0, [])
    shown = artist("latency", "--workload", "layer.txt", "--fabric", "one-uplink.yaml", *one)
    assert "It shares no link with them, so it loses nothing." in shown.stdout


def test_alone_is_what_latency_says_without_a_neighbour(artist, folder: Path) -> None:
    answer = asked(artist, "--placement", "1/1", "--beside", "layer.txt:1/1")
    alone = asked(artist, "--placement", "1/1")
    assert answer["iteration_alone_ms"] == pytest.approx(alone["iteration_ms"], rel=1e-12)


def test_three_jobs_on_one_link_lose_more_than_two(artist, folder: Path) -> None:
    other = ("--beside", "layer.txt:1/1")
    answers = [
        asked(artist, "--placement", "1/1", *other * count, "--contention", "fluid")
        for count in (1, 2)
    ]
    # In step: d + 2u and d + 3u.
    lost_ms = [one["iteration_beside_ms"] - one["iteration_alone_ms"] for one in answers]
    assert lost_ms == pytest.approx([20, 40], rel=2e-3)
    assert [job["placement"] for job in answers[1]["jobs"]] == ["1/1"] * 3


def test_a_job_that_overfills_its_own_uplink_is_slower_alone_too(artist, folder: Path) -> None:
    # Two GPUs in each rack send at once over an uplink of the rate of one: 20 ms become 40.
    own = ("--placement", "2/2", "--contention", "fluid")
    unlimited_ms = asked(artist, "--placement", "2/2")["iteration_ms"]
    answer = asked(artist, *own, "--beside", "layer.txt:1/1@16,24")
    assert answer["own_share"] == pytest.approx(0.5, rel=1e-3)
    assert answer["iteration_alone_ms"] == pytest.approx(unlimited_ms + 20, rel=1e-3)
    assert answer["iteration_beside_ms"] == answer["iteration_alone_ms"]
    assert answer["source"] == "analytical, own uplinks, contention fluid"
    # A neighbour on the same uplink comes on top, and only that is the slowdown.
    beside = asked(artist, *own, "--beside", "layer.txt:1/1")
    assert beside["iteration_alone_ms"] == answer["iteration_alone_ms"]
    assert beside["slowdown"] > 1.1


# CASSINI, section 2.2 and figure 2: two data-parallel VGG19, each on two servers, share a link of
# 50 Gbit/s. Its axes give iterations of 348 ms, of which each sends for 118: the gradients of VGG19
# (143,667,240 numbers of four bytes, once in a ring of two) at 39 Gbit/s.
VGG19 = "DATA\n1\nall -1 230000 NONE 0 0 NONE 0 0 ALLREDUCE 574668960 0\n"
TESTBED = (
    "latency", "--workload", "vgg19.txt", "--placement", "1/1", "--beside", "vgg19.txt:1/1",
    "--fabric", "cassini-testbed", "--racks", "6", "--machines-per-rack", "4",
    "--gpus-per-machine", "1", "--set", "fabric.network.bandwidth=39Gbit/s",
    # One link of 50 Gbit/s for four servers that send at 39.
    "--set", "fabric.rack.oversubscription=3.12", "--format", "json",
)  # fmt: skip


@pytest.mark.parametrize("contention", ["fluid", "phase"])
def test_two_vgg19_on_one_link_as_cassini_measured(artist, tmp_path: Path, contention: str) -> None:
    (tmp_path / "vgg19.txt").write_text(VGG19)
    answer = json.loads(artist(*TESTBED, "--contention", contention).stdout)
    assert answer["links"][0]["capacity_gib_per_s"] == pytest.approx(50e9 / 8 / 2**30)
    assert {link["eta"] for link in answer["links"]} == {0.88}
    for job in answer["jobs"]:
        assert job["iteration_alone_ms"] == pytest.approx(348, abs=1)
        assert 1.2 <= job["slowdown"] <= 1.35  # the paper: 1.26
    # Each sends its gradients in what the iteration now takes, less 230 ms of computation.
    sends_ms = answer["iteration_beside_ms"] - 230
    gbit_per_s = 574_668_960 * 8 / 1e6 / sends_ms
    assert gbit_per_s == pytest.approx(22.0, abs=0.5)


def test_a_shift_of_120_ms_interleaves_them_as_cassini_measured(artist, tmp_path: Path) -> None:
    (tmp_path / "vgg19.txt").write_text(VGG19)
    shifted = ("--contention", "fluid", "--offset", "120ms")
    assert json.loads(artist(*TESTBED, *shifted).stdout)["slowdown"] == 1.0


def test_two_jobs_on_other_links_of_an_uplink_cost_each_other_nothing(artist, tmp_path) -> None:
    (tmp_path / "vgg19.txt").write_text(VGG19)
    two = [x.replace("oversubscription=3.12", "oversubscription=1.56") for x in TESTBED]
    routed = [*two, "--contention", "mean", "--set", "fabric.rack.links=2"]
    of = {
        routing: json.loads(artist(*routed, "--set", f"fabric.rack.routing={routing}").stdout)
        for routing in ("pooled", "static")
    }
    # Two links of 50 Gbit/s, and each of two jobs sends at 39.
    assert of["static"]["links"] == []
    assert of["static"]["slowdown"] == 1.0
    assert [link["link"] for link in of["pooled"]["links"]][:2] == ["rack 0 up", "rack 0 down"]
    assert of["pooled"]["slowdown"] == 1.0


MISTAKES = [
    (["--beside", "layer.txt"], "expected MODEL:PLACEMENT or MODEL:PLACEMENT@LEAVES"),
    (["--beside", "vgg:8/8@1,9"], "GPUs, of which"),
    (["--beside", "vggg:1/1"], "unknown model 'vggg': did you mean 'vgg"),
    (["--beside", "none.txt:1/1"], "none.txt"),
    (["--beside", "vgg11:1/1@0,999"], "machine 999 is outside the cluster of 16x8x8"),
    (["--beside", "vgg11:1/1@0,64", "--racks", "2"], "machine 64 is outside the cluster of 2x8x8"),
    (["--beside", "vgg11:1/1", "--offset", "3"], "a time with a unit, such as 20ms"),
    (["--beside", "vgg11:1/1", "--sweep", "fabric.rack.latency=1us..2us"], "give --placement once"),
    (["--beside", "vgg11:1/1", "--placement", "1"], "give --placement once"),
    (["--racks", "2"], "--racks: only --beside MODEL:PLACEMENT needs it"),
    (["--beside", "vgg11:1/1", "--contention", "fast"], "fast"),
]


@pytest.mark.parametrize(("more", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_each_mistake_has_its_own_message(
    artist, folder: Path, more: list[str], words: str
) -> None:
    own = ("latency", "--model", "vgg11", "--placement", "8/8@1,9", "--fabric", "one-uplink.yaml")
    done = artist(*own, *more)
    # A file that cannot be read is data, anything else usage.
    assert (done.returncode, done.stdout) == (3 if "none.txt" in words else 2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr

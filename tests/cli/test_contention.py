"""Does `artist sim --contention` report what contention costs, and refuse mistakes?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artist.config import Scenario
from artist.experiments.experiment import load_experiment, runs
from artist.results.terms.number_text import percent

FABRIC = """name: narrow
summary: half of what the GPUs of a rack can send
levels:
  - {name: machine, topology: Switch, bandwidth_gib_per_s: 400, latency_ns: 1000, source: a test}
  - name: rack
    topology: Switch
    bandwidth_gib_per_s: 40
    latency_ns: 1000
    uplink: {rate_gib_per_s: UPLINK, count: 8, source: a test}
    source: a test
  - {name: network, topology: Switch, bandwidth_gib_per_s: 1, latency_ns: 1000, source: a test}
"""
TRACE = "job_id,arrival_s,gpus,model,iterations,compute_s\n" + "".join(
    f"job-{i},{10 * (i // 3)},{gpus},{model},300,0.05\n"
    for i, (gpus, model) in enumerate([(24, "vgg11"), (24, "bert-large"), (4, "resnet50")] * 4)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "narrow.yaml").write_text(FABRIC.replace("UPLINK", "1"))
    (tmp_path / "trace.csv").write_text(TRACE)
    return tmp_path


def arguments(*more: str) -> list[str]:
    cluster = ("--racks", "4", "--machines-per-rack", "2", "--policy", "fifo")
    fabric = () if "--fabric" in more else ("--fabric", "narrow.yaml")
    return ["sim", *fabric, "--trace", "trace.csv", *cluster, *more, "--quiet"]


def test_a_run_reports_the_cost_of_contention(artist, folder: Path) -> None:
    ran = artist(*arguments("--contention", "mean", "--out", "run", "--links")[:-1], code=0)
    summary = json.loads((folder / "run" / "summary.json").read_text())
    longer = f"each ran {100 * summary['contention_slowdown_mean']:.2f} % longer on average, "
    told = " ".join((ran.stdout + ran.stderr).split())
    own = percent(summary["contention_own_job_h"] / summary["contention_lost_job_h"])
    links = f"other jobs on links or to their own full uplinks ({own} % to their own)"
    assert f" s in all to {links}; {longer}" in told
    assert summary["contention"] == "mean"
    assert "Its own uplinks carry less" in artist("why", "run", "job-0", code=0).stdout
    # It stays inside a machine.
    assert "own uplinks" not in artist("why", "run", "job-2", code=0).stdout
    assert summary["contention_slowdown_mean"] > 0.01
    assert summary["contention_slowdown_p95"] >= summary["contention_slowdown_mean"]
    assert (folder / "run" / "links.parquet").is_file()
    assert json.loads((folder / "run" / "manifest.json").read_text())["scenario"]["contention"]


def test_a_lone_job_is_not_said_to_lose_time_to_others(artist, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\nx,0,12,vgg16,1000,0.005\n"
    )
    cluster = ("--racks", "4", "--machines-per-rack", "2", "--gpus-per-machine", "4")
    narrow = ("--fabric", "leaf-spine", "--set", "fabric.rack.oversubscription=8")
    slow = ("--set", "communication=absolute", "--contention", "mean")
    asked = ("sim", "--trace", "t.csv", "--policy", "fifo", *cluster, *narrow, *slow)
    ran = artist(*asked, "--out", "run", code=0)
    told = " ".join(ran.stdout.split())
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["contention_lost_job_h"] > 0
    longer = f"{100 * summary['contention_slowdown_mean']:.2f} %"
    assert summary["contention_own_job_h"] == pytest.approx(summary["contention_lost_job_h"])
    links = "other jobs on links or to their own full uplinks (100 % to their own)"
    assert f"{links}; each ran {longer} longer" in told
    assert "each other" not in told
    told = artist("why", "run", "x", code=0).stdout
    assert "Its own uplinks carry less than it sends, which would cost it " in told
    assert " even in isolation. Other jobs on its links cost 0 " in told
    artist("report", "run", "--out", "page.html", code=0)
    page = (tmp_path / "page.html").read_text()
    assert "job-hours to each other" not in page
    assert "to other jobs on links or to their own full uplinks" in page
    for word in ("contention_lost_s", "contention_slowdown", "contention_slowdown_mean"):
        assert "own full uplinks" in artist("explain", word, code=0).stdout


def test_without_contention_the_output_is_unchanged(artist, folder: Path) -> None:
    for out, more in (("one", ()), ("two", ("--contention", "none"))):
        assert artist(*arguments("--out", out, *more)).returncode == 0
    for file in ("jobs.parquet", "placements.parquet", "timeline.parquet", "waits.parquet"):
        assert (folder / "one" / file).read_bytes() == (folder / "two" / file).read_bytes()
    scenario = json.loads((folder / "two" / "manifest.json").read_text())["scenario"]
    assert "contention" not in scenario
    assert "contention_options" not in scenario
    summary = json.loads((folder / "two" / "summary.json").read_text())
    assert not [key for key in summary if key.startswith("contention")]
    assert not (folder / "two" / "links.parquet").exists()


@pytest.mark.parametrize("model", ["mean", "phase"])
def test_the_same_bytes_whatever_the_hash_seed(artist, folder: Path, model: str) -> None:
    for seed in ("0", "1"):
        asked = arguments("--contention", model, "--out", seed, "--links", "--no-cache")
        assert artist(*asked, PYTHONHASHSEED=seed).returncode == 0
    for file in ("jobs.parquet", "placements.parquet", "links.parquet"):
        assert (folder / "0" / file).read_bytes() == (folder / "1" / file).read_bytes()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--contention", "fase"), 2, "unknown model of contention 'fase': did you mean 'phase'?"),
        (("--contention", "mean", "--set", "contention.eta=0"), 2, "more than 0"),
        (("--contention", "mean", "--set", "contention.eta=1.5"), 2, "at most 1"),
        (("--contention", "mean", "--backend", "none"), 2, "backend none has no communication"),
        (("--contention", "table:absent.csv"), 3, "absent.csv"),
        (("--contention", "table:pairs.csv"), 2, "pairs.csv lacks the slowdown of"),
        (
            ("--contention", "mean", "--fabric", "tight.yaml"),
            2,
            "its uplink carries 0.8 GiB/s, but level network gives one flow 1",
        ),
        (("--contention", "mean", "--fabric", "open.yaml"), 2, "states no uplink"),
        (("--links", "--backend", "none"), 2, "--links: backend none has no communication"),
    ],
)
def test_mistakes_about_contention_are_refused_in_a_sentence(
    artist, folder: Path, more: tuple[str, ...], code: int, said: str
) -> None:
    (folder / "pairs.csv").write_text("model,beside,slowdown\nvgg11,vgg11,1.2\n")
    (folder / "tight.yaml").write_text(FABRIC.replace("UPLINK", "0.1"))
    text = "".join(line for line in FABRIC.splitlines(True) if "uplink" not in line)
    (folder / "open.yaml").write_text(text)
    ran = artist(*arguments(*more, "--out", "run"), code=code)
    assert said in " ".join((ran.stdout + ran.stderr).split())
    assert "Traceback" not in (ran.stdout + ran.stderr)
    assert not (folder / "run").exists()


def test_links_need_a_run_directory(artist, folder: Path) -> None:
    ran = artist(*arguments("--links"), code=2)
    assert "add --out DIR" in " ".join((ran.stdout + ran.stderr).split())


def test_contention_is_swept_like_any_key(folder: Path) -> None:
    (folder / "grid.yaml").write_text(
        "name: grid\nversion: 1\nbase: {trace: tiny-poisson}\ngrid: {contention: [none, mean]}\n"
    )
    swept = runs(load_experiment(folder / "grid.yaml"))
    assert [run.scenario.contention for run in swept] == ["none", "mean"]


def test_a_scenario_without_contention_is_written_as_before() -> None:
    assert not [key for key in Scenario().model_dump() if key.startswith("contention")]
    asked = Scenario(contention="mean", contention_options={"eta": 0.9}).model_dump()
    assert (asked["contention"], asked["contention_options"]) == ("mean", {"eta": 0.9})

"""Does `artist sim` keep its promises: table or JSON, run directory, same bytes every time?"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from recordings import TRACES, needs_traces

from artist.engine.compiled_core import core
from artist.results.terms.glossary import METRICS

SUMMARY_KEYS = {
    "policy", "trace", "gpus", "jobs_total", "jobs_finished", "makespan_s", "jct_mean_s",
    "jct_p50_s", "jct_p95_s", "jct_p99_s", "queue_delay_mean_s", "queue_delay_p95_s",
    "queue_delay_p99_s", "comm_time_mean_s", "compute_time_mean_s", "gpu_computing_share",
    "preemptions", "migrations", "placements_machine", "placements_rack", "placements_network",
    "events", "latency_queries", "latency_backend_calls", "wall_s", "seed", "artist_version",
}  # fmt: skip
OF_FAILURES = {"outages", "failures", "lost_gpu_s", "checkpoint_gpu_s", "withdrawn_gpu_s",
               "checkpoint_interval_min_s", "checkpoint_interval_max_s",
               "training_time_ratio_mean", "slowed_gpu_s", "checkpoint_time_mean_s"}  # fmt: skip
OF_TENANTS = {"tenants", "tenants_jain_index", "queue_delay_urgent_mean_s",
              "queue_delay_urgent_p95_s", "late_share"}  # fmt: skip
SMALL = ("--racks", "1", "--jobs", "200")


def test_steps_that_the_trace_does_not_state_are_no_measurements(artist, tmp_path: Path) -> None:
    rows = ("job_id,submit_time,num_gpus,duration,model{}", "a,0,8,600,resnet50{}")
    told = []
    for more in (("", ""), (",iterations", ",500")):
        lines = (row.format(one) for row, one in zip(rows, more, strict=True))
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        told.append(artist("sim", "--trace", "t.csv", "--racks", "1").stdout)
    words = "The trace states no iterations, so steps of at most 1 s are assumed; iteration times"
    assert [words in text for text in told] == [True, False]


def test_summary_has_every_key_of_the_contract(artist) -> None:
    summary = json.loads(artist("sim", "--policy", "fifo", "--format", "json", "--check").stdout)
    assert set(summary) >= SUMMARY_KEYS
    assert set(summary) - {"policy", "trace", "calibration", "models_not_calibrated", "cluster",
                         "gpus", "jobs_total", "jobs_finished", "seed", "artist_version"} == {
        term.name for term in METRICS
        if not term.name.startswith(("contention_", "data_", "gpu_shared_", "first_start_",
                                     "gpu_cost"))
        and term.name not in OF_FAILURES | OF_TENANTS
    }  # fmt: skip
    assert summary["jobs_finished"] == summary["jobs_total"] == 500


def test_table_goes_to_stdout_without_colours_and_hints_to_stderr(artist) -> None:
    ran = artist("sim", "--trace", "tiny-batch", "--racks", "1")
    assert "\nmakespan\t" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert "--out DIR" in ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("sim", "--trace", "tiny-batch", "--racks", "1"),
        ("compare", "--trace", "tiny-batch", "--racks", "1", "--policies", "fifo,las"),
    ],
)
def test_quiet_takes_all_of_stderr_and_nothing_of_stdout(artist, command: tuple[str, ...]) -> None:
    loud, quiet = artist(*command), artist(*command, "--quiet")
    assert quiet.stderr == ""
    told = [
        [line for line in ran.stdout.splitlines() if not line.startswith("wall")]
        for ran in (loud, quiet)
    ]
    assert told[0] == told[1]
    assert told[0][0].startswith("# fabric a100")  # in which world that is true


def test_run_directory_holds_rows_that_agree_with_the_summary(artist, tmp_path: Path) -> None:
    ran = artist("sim", *SMALL, "--out", "runs/one", "--format", "json")
    out = tmp_path / "runs" / "one"
    summary = json.loads((out / "summary.json").read_text())
    jobs = pd.read_parquet(out / "jobs.parquet")
    placements = pd.read_parquet(out / "placements.parquet")

    assert summary == json.loads(ran.stdout)
    assert summary["jct_mean_s"] == pytest.approx(jobs["jct_s"].mean())
    assert summary["makespan_s"] == pytest.approx(jobs["finish_s"].max() - jobs["arrival_s"].min())
    assert (jobs["run_s"] + jobs["queue_delay_s"] - jobs["jct_s"]).abs().max() < 1e-6
    held = (placements["end_s"] - placements["start_s"]).groupby(placements["job_id"]).sum()
    assert held.loc[jobs["job_id"]].to_numpy() == pytest.approx(jobs["run_s"].to_numpy())
    done = placements.groupby("job_id")["iterations"].sum()
    assert (done.loc[jobs["job_id"]].to_numpy() == jobs["iterations"].to_numpy()).all()
    assert set(placements["source"]) <= {"analytical", "single-gpu"}
    assert {"timeline.parquet", "autotuner.parquet", "manifest.json"} <= {
        path.name for path in out.iterdir()
    }
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


def test_manifest_says_where_the_result_came_from(artist, tmp_path: Path) -> None:
    artist(
        "sim",
        "--trace",
        "tiny-batch",
        "--fabric",
        "dally2025",
        "--racks",
        "1",
        "--seed",
        "3",
        "--out",
        "run",
    )
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["scenario"]["trace"] == "tiny-batch"
    assert manifest["seed"] == 3
    assert set(manifest["inputs"]) == {"trace", "fabric", "calibration"}
    assert manifest["versions"]["artist"]
    assert "sim" in manifest["command"]
    assert manifest["volatile"]["core"] == core()


def _bytes(out: Path) -> dict[str, object]:
    contents: dict[str, object] = {path.name: path.read_bytes() for path in out.glob("*.parquet")}
    summary = json.loads((out / "summary.json").read_text())
    summary.pop("wall_s")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest.pop("volatile")
    manifest.pop("command")
    return contents | {"summary": json.dumps(summary), "manifest": json.dumps(manifest)}


def test_same_scenario_gives_the_same_bytes_in_any_process(artist, tmp_path: Path) -> None:
    for name, hash_seed in (("a", "0"), ("b", "1"), ("c", "4242")):
        artist("sim", *SMALL, "--out", name, PYTHONHASHSEED=hash_seed, code=0)
    first = _bytes(tmp_path / "a")
    assert first == _bytes(tmp_path / "b") == _bytes(tmp_path / "c")


def test_a_warm_cache_changes_nothing_but_the_manifests_count_of_hits(artist, tmp_path) -> None:
    for name in ("cold", "warm"):
        artist("sim", *SMALL, "--out", name)
    assert _bytes(tmp_path / "cold") == _bytes(tmp_path / "warm")
    hits = [
        json.loads((tmp_path / name / "manifest.json").read_text())["volatile"]
        for name in ("cold", "warm")
    ]
    assert hits[0]["estimates_from_disk_cache"] == 0 < hits[1]["estimates_from_disk_cache"]


def test_nothing_but_a_run_is_ever_replaced(artist, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    small = ("sim", "--trace", "tiny-batch", "--racks", "1", "--out")
    refused = artist(*small, "mine", "--overwrite", code=2)
    assert "not a run directory" in refused.stderr
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_scenario_file_is_read_and_flags_override_it(artist, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "racks: 1\npolicy: las\ntrace: tiny-batch\npolicy_options: {lease_s: 600}\n"
    )
    summary = json.loads(artist("sim", "s.yaml", "--format", "json").stdout)
    assert (summary["policy"], summary["gpus"]) == ("las", 64)
    summary = json.loads(artist("sim", "s.yaml", "--racks", "2", "--format", "json").stdout)
    assert summary["gpus"] == 128


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("policy: fifoo", "s.yaml:2: unknown policy 'fifoo': did you mean 'fifo'?"),
        ("fabric: t44", "s.yaml:2: unknown fabric 't44': did you mean 't4'?"),
        ("speeds: gavell", "s.yaml:2: unknown table of speeds 'gavell'"),
        ("interference: h101", "s.yaml:2: interference 'h101': expected one of"),
        ("policy_options: {lease_ss: 9}", "s.yaml:2: policy dally: unknown setting 'lease_ss'"),
    ],
)
def test_a_wrong_name_in_a_scenario_file_is_reported_with_its_line(
    artist, tmp_path: Path, line: str, words: str
) -> None:
    (tmp_path / "s.yaml").write_text(f"racks: 1\n{line}\n")
    assert words in artist("sim", "s.yaml", code=2).stderr
    flag = artist("sim", "s.yaml", "--fabric", "t45", code=2).stderr
    assert "unknown fabric 't45'" in flag
    assert "s.yaml" not in flag


def test_an_irregular_cluster_is_given_as_nested_lists(artist, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("tree: [[8, 4], [12]]\ntrace: tiny-batch\npolicy: fifo\n")
    ran = artist("sim", "s.yaml", "--format", "json", "--check", "--jobs", "5", "--out", "run")
    summary = json.loads(ran.stdout)
    assert (summary["cluster"], summary["gpus"]) == ("[[8, 4], 1x12]", 24), ran.stderr
    scenario = json.loads((tmp_path / "run" / "manifest.json").read_text())["scenario"]
    assert scenario["tree"] == [[8, 4], [12]]
    assert not {"racks", "machines_per_rack", "gpus_per_machine"} & set(scenario)


@pytest.mark.parametrize("flag", ["--racks", "--machines-per-rack", "--gpus-per-machine"])
def test_a_flag_that_contradicts_the_tree_is_refused(artist, tmp_path: Path, flag: str) -> None:
    """Even the default value is refused: the cluster must not be described twice."""
    (tmp_path / "s.yaml").write_text("tree: [[[4, 4]]]\ntrace: tiny-batch\n")
    ran = artist("sim", "s.yaml", flag, "8", code=2)
    assert f"{flag[2:].replace('-', '_')}=8; leave one of the two out" in ran.stderr


@pytest.mark.parametrize("policy", ["dally", "dally-manual", "dally-no-wait"])
def test_restart_cost_is_charged_only_after_a_preemption(artist, tmp_path, policy) -> None:
    artist("sim", *SMALL, "--policy", policy, "--set", "restart_s=60", "--out", "run")
    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet")
    restarts = jobs["preemptions"] + jobs["migrations"]
    assert (jobs["stalled_s"] == 60 * restarts).all()
    assert restarts.sum() > 0


def test_the_command_says_what_the_reader_filled_in_and_dropped(artist, tmp_path: Path) -> None:
    (tmp_path / "helios.csv").write_text(
        "job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "a,u,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 01:00:00,3600,0\n"
        "b,u,0,4,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:10,2020-04-01 00:01:10,60,0\n"
    )
    ran = artist("sim", "--trace", "helios.csv", "--racks", "1", "--policy", "fifo", "--out", "run")
    assert "trace helios: filled in " in ran.stderr
    assert "iterations and compute_s" in ran.stderr
    assert "trace helios: dropped 1 row (" in ran.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert sum(manifest["trace"]["dropped"].values()) == 1
    assert manifest["trace"]["filled"]
    quiet = artist("sim", "--trace", "helios.csv", "--racks", "1", "--policy", "fifo", "--quiet")
    assert quiet.stderr.startswith("trace helios: models are drawn at random: model (uniform over")
    assert quiet.stderr.count("\n") == 1
    own = artist("sim", "--trace", "tiny-batch", "--racks", "1", "--policy", "fifo")
    assert "filled in" not in own.stderr


@pytest.mark.slow
@needs_traces
@pytest.mark.parametrize("trace", ["sensetime_500_batch.json", "sensetime_411_poisson_week.json"])
@pytest.mark.parametrize("policy", ["dally", "dally-fully-consolidated", "fifo", "las", "srtf"])
def test_the_papers_traces_run_clean(artist, trace: str, policy: str) -> None:
    ran = artist(
        "sim", "--trace", TRACES / trace, "--racks", "4", "--policy", policy, "--check",
        "--format", "json",
    )  # fmt: skip
    summary = json.loads(ran.stdout)
    assert summary["jobs_finished"] == summary["jobs_total"]


@needs_traces
def test_strict_fifo_agrees_with_an_independent_simulator(artist) -> None:
    # Tiresias' simulator, FIFO over a count of GPUs: mean JCT 189,649 s.
    ran = artist(
        "sim", "--trace", TRACES / "common480_64gpu.csv", "--racks", "1", "--policy", "fifo",
        "--backend", "none", "--format", "json",
    )  # fmt: skip
    assert round(json.loads(ran.stdout)["jct_mean_s"]) == 189_649


def test_jobs_that_can_be_over_at_once_have_no_bound_to_compare_with(artist, tmp_path) -> None:
    header = "job_id,arrival_s,gpus,model,iterations,compute_s,gpus_min,gpus_max\n"
    (tmp_path / "t.csv").write_text(header + "a,0,1,resnet50,1,0.000000001,1,16\n")
    ran = artist("sim", "--trace", "t.csv", "--racks", "1", "--backend", "none")
    assert (ran.returncode, ran.stderr.count("Traceback")) == (0, 0), ran.stderr
    assert "lower bound" not in ran.stdout


def test_reads_from_other_regions_are_reported_without_a_network(artist, tmp_path) -> None:
    (tmp_path / "regions.yaml").write_text(
        "name: two\nsummary: two regions\nfabric: hgx-h100\nlevels: [region, machine]\n"
        "wide_area: {bandwidth: 8Gbit/s, latency: 0ns, source: a test}\ntree:\n"
        "- {name: east, storage: 1TB, machine: {gpus: 4}}\n"
        "- {name: west, storage: 1TB, machine: {gpus: 4}}\n"
    )
    (tmp_path / "data.csv").write_text("table,partition,size,regions\nads,,40GB,east\n")
    (tmp_path / "t.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,tables\n"
        "a,0,4,any,1000,1.0,\nb,1,4,any,20,1.0,ads\n"
    )
    told = artist(
        "sim", "--trace", "t.csv", "--cluster", "regions.yaml", "--data", "data.csv",
        "--set", "data.remote=slow", "--policy", "fifo", "--backend", "none",
    ).stdout  # fmt: skip
    assert told.splitlines()[0] == "# no network: communication takes no time"
    assert "between them, and reading tables from other regions. Of" in told

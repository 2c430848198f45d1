"""Are jobs that Slurm cancels reported, and left out of the right figures?

In each run under `slurm`, `urgent` cancels `victim` after 12 of its 300 s.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from support import cluster, run
from test_slurm_preemption import SETTINGS, qos, victim_and_urgent
from typer.testing import CliRunner

import artist
from artist.cli.main import application
from artist.engine.rows import Rows
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.costs import PriceFile, priced
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.policy import Slurm
from artist.results.failure_tables import failure_summary, job_costs
from artist.results.run_directory import write_run
from artist.rng import Draws
from artist.run import simulate
from artist.settings import load_scenario

TRACE = """\
job_id,arrival_s,gpus,model,iterations,compute_s,tenant,priority,hint_qos,hint_time_limit_s
victim,0,8,any,300,1,ads,1,low,600
waits,1,8,any,10,1,ads,1,low,600
urgent,12,8,any,10,1,web,2,high,600
"""
CANCELLED = "1 job was cancelled (jobs_cancelled): completion times and makespan leave them out"


def scenario(folder: Path, mode: str = "CANCEL", **more: object) -> artist.Scenario:
    """Three jobs of 8 GPUs on a machine of 8."""
    document = {
        "name": "mine",
        "summary": "one machine",
        "levels": ["rack", "machine"],
        "tree": [{"name": "r1", "machine": [{"name": "n1", "gpus": 8}]}],
        "slurm": {"settings": {**SETTINGS, "PreemptMode": mode}, "qos": qos()},
    }
    files = {f"{mode}.yaml": yaml.safe_dump(document), "trace.csv": TRACE}
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = {
        "cluster": str(folder / f"{mode}.yaml"), "trace": str(folder / "trace.csv"),
        "backend": "none", "policy": "slurm", **more,
    }  # fmt: skip
    return load_scenario(None, settings, ())


def command(*arguments: str) -> str:
    done = CliRunner().invoke(application([arguments[0], "doctor"]), [*arguments])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def options(folder: Path) -> list[str]:
    one = scenario(folder)
    return ["--cluster", str(one.cluster), "--trace", str(one.trace), "--backend", "none"]


def test_sim_says_how_many_jobs_were_cancelled(tmp_path: Path) -> None:
    assert CANCELLED in command("sim", *options(tmp_path), "--policy", "slurm")
    assert "cancelled" not in command("sim", *options(tmp_path), "--policy", "fifo")


def test_compare_gives_no_verdict_and_says_how_many_each_cancelled(tmp_path: Path) -> None:
    told = command("compare", *options(tmp_path), "--policies", "slurm,fifo", "--quiet")
    counts = "(1 a run under slurm and none under the other)"
    assert f"8 permutations No verdict: jobs were cancelled {counts}, so the figures are" in told
    assert "those that may not be requeued: --no-requeue, salloc, srun, or JobRequeue=0." in told
    assert "nothing is judged" in told
    assert not {"lowest", "surely", "exact"} & {*told.replace(",", " ").split()}


def test_no_metric_of_runs_that_cancelled_jobs_is_judged(tmp_path: Path) -> None:
    found = compare(scenario(tmp_path), ["fifo", "slurm"])
    assert found.cancelled == {"fifo": 0.0, "slurm": 1.0}
    assert {one.verdict for one in found.differences["slurm"].values()} == {"other jobs"}
    assert all(np.isnan(one.low) for one in found.differences["slurm"].values())
    assert (found.best_variants(), found.family, len(found.replicates)) == ([], 0, 8)
    assert np.isnan(priced(found, PriceFile(gpu_hour=1.0))[1].saved.mean)


def test_runs_that_cancel_nothing_are_judged(tmp_path: Path) -> None:
    found = compare(scenario(tmp_path, "REQUEUE"), ["fifo", "slurm"])
    assert found.cancelled == {}
    assert "other jobs" not in {one.verdict for one in found.differences["slurm"].values()}
    assert found.best_variants()


def test_a_report_counts_cancelled_jobs_and_judges_nothing(tmp_path: Path) -> None:
    for policy in ("slurm", "fifo"):
        write_run(simulate(scenario(tmp_path, policy=policy)), tmp_path / policy, [])
    pages = {}
    for name, runs in {"one": ["slurm"], "both": ["slurm", "fifo"]}.items():
        folders, page = [str(tmp_path / one) for one in runs], str(tmp_path / f"{name}.html")
        command("report", *folders, "--out", page)
        pages[name] = " ".join((tmp_path / f"{name}.html").read_text().split())
    assert all(CANCELLED in page for page in pages.values())
    assert "slurm finished 2 jobs in" in pages["one"]
    assert "Some runs cancelled jobs, so their figures cover different jobs" in pages["both"]
    assert "has the lowest" not in pages["both"]


def test_waits_of_tenants_and_priorities_leave_out_cancelled_jobs(tmp_path: Path) -> None:
    found = simulate(scenario(tmp_path))
    waits = dict(zip(found.tables["jobs"]["job_id"], found.jobs.queue_delay_s, strict=True))
    assert waits["waits"] > waits["victim"] + 20
    tenants, priorities = found.tables["tenants"], found.tables["priorities"]
    assert list(tenants["jobs"]) == list(priorities["jobs"]) == [2, 1]
    own = [waits["waits"], waits["urgent"]]
    for table in (tenants, priorities):
        assert list(table["queue_delay_mean_s"]) == list(table["queue_delay_p95_s"]) == own
    assert found.summary["queue_delay_urgent_mean_s"] == pytest.approx(np.mean(own))


def test_a_tenant_whose_jobs_were_all_cancelled_has_no_mean_wait(tmp_path: Path) -> None:
    one, chosen = scenario(tmp_path), options(tmp_path)
    (tmp_path / "trace.csv").write_text(TRACE.replace("any,10,1,ads,1", "any,10,1,lab,3"))
    write_run(simulate(one), tmp_path / "run", [])
    for table, names in (("tenants", ["ads", "lab", "web"]), ("priorities", [1, 2, 3])):
        rows = pq.read_table(tmp_path / "run" / f"{table}.parquet")
        assert rows.column(0).to_pylist() == names
        assert rows.column("jobs").to_pylist() == [1, 1, 1]
        for column in ("queue_delay_mean_s", "queue_delay_p95_s"):
            cancelled, *others = rows.column(column).to_pylist()
            assert cancelled is None
            assert None not in others
    assert "by tenant: lab 22.5 s, web 0.5 s." in command("sim", *chosen, "--policy", "slurm")
    page = tmp_path / "one.html"
    command("report", str(tmp_path / "run"), "--out", str(page))
    assert "NaN" not in page.read_text()


def test_curves_of_completion_times_leave_out_cancelled_jobs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (line,) = simulate(scenario(tmp_path)).plot.jct_cdf().lines
    assert len(line.get_xdata()) == 2


def test_the_mean_training_time_ratio_leaves_out_cancelled_jobs() -> None:
    facts = {"settings": SETTINGS, "qos": qos()}
    rows: Rows = run(cluster([8]), victim_and_urgent(), Slurm(SlurmOptions(facts=facts), Draws()))
    costs = job_costs(rows, lambda _: 0.0)
    costs.productive_s[0] /= 2  # of the victim
    assert failure_summary(rows, costs)["training_time_ratio_mean"] == 1.0

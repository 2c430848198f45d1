"""Is the communication that the report draws of elastic jobs their own, whatever their batch?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_making import make_run

from artist.report.grouping import group
from artist.report.page import figures
from artist.report.reader import read_runs

GOODPUT = """\
name: ours
summary: a model
source: made up
models:
  resnet18:
    {batch: 64, batch_max: 256, per_gpu_min: 16, per_gpu_max: 64, alpha_c: 0.1, beta_c: 0.01,
     alpha_r: 0.02, alpha_n: 0.5, noise: {0: 1.0e+6}}
"""
JOBS = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,4,resnet18,2000,1\n"


@pytest.fixture
def elastic(tmp_path: Path) -> Path:
    (tmp_path / "ours.yaml").write_text(GOODPUT)
    (tmp_path / "jobs.csv").write_text(JOBS)
    files = {"trace": str(tmp_path / "jobs.csv"), "goodput": str(tmp_path / "ours.yaml")}
    return make_run(tmp_path / "run", policy="pollux", machines_per_rack=1, **files)


def test_one_gpu_communicates_nothing_and_several_what_their_step_adds(elastic: Path) -> None:
    (drawn,) = (
        figure
        for figure in figures(group(read_runs([elastic])))
        if figure.name.startswith("communication-timeline")
    )
    assert drawn.source.startswith("placements.parquet: iteration_s - compute_iteration_s")
    # Of gamma 1, a step is the pass and 20 ms; on one GPU, 10 ns, the authors' stand-in for none.
    (series,) = drawn.series
    assert series.y[0] == pytest.approx(1e-5)
    assert series.y[2:] == pytest.approx([20.0] * len(series.y[2:]))
    rows = pd.read_parquet(elastic / "placements.parquet")
    passes = np.ceil(rows["batch"] / rows["gpus"] / 64)
    computes = passes * 0.1 + rows["batch"] / rows["gpus"] * 0.01
    assert rows["compute_iteration_s"].to_numpy() == pytest.approx(computes.to_numpy())
    jobs = pd.read_parquet(elastic / "jobs.parquet")
    running = rows["end_s"] - rows["start_s"] - rows["stalled_s"]
    assert jobs["compute_s"].sum() == pytest.approx(
        (running * rows["compute_iteration_s"] / rows["iteration_s"]).sum()
    )


def test_a_job_whose_communication_differs_by_rounding_alone_is_not_drawn(tmp_path: Path) -> None:
    """On two GPUs and on four, and with each batch, a step communicates as long."""
    row = "alpha_c: 0.0137, beta_c: 0.00317, alpha_r: 0.0217, noise: {0: 10, 0.3: 300, 0.6: 1.0e+6}"
    old = "alpha_c: 0.1, beta_c: 0.01,\n     alpha_r: 0.02, alpha_n: 0.5, noise: {0: 1.0e+6}"
    assert old in GOODPUT
    (tmp_path / "ours.yaml").write_text(GOODPUT.replace(old, f"{row}, alpha_n: 0.5"))
    own = "job_id,arrival_s,gpus,model,iterations,compute_s,gpus_min,gpus_max\n"
    (tmp_path / "jobs.csv").write_text(f"{own}a,0,4,resnet18,20000,1,2,4\n")
    files = {"trace": str(tmp_path / "jobs.csv"), "goodput": str(tmp_path / "ours.yaml")}
    run = make_run(tmp_path / "run", policy="pollux", machines_per_rack=1, **files)
    rows = pd.read_parquet(run / "placements.parquet")
    assert len(set(rows["batch"])) > 1
    waits_s = rows["iteration_s"] - rows["compute_iteration_s"]
    assert len(set(waits_s)) > 1
    assert waits_s.to_numpy() == pytest.approx(0.0217)
    names = [figure.name for figure in figures(group(read_runs([run])))]
    assert not [name for name in names if name.startswith("communication-timeline")]


def test_where_all_compute_as_the_trace_says_the_column_is_left_out(tmp_path: Path) -> None:
    rows = pd.read_parquet(make_run(tmp_path / "run", policy="fifo") / "placements.parquet")
    assert "compute_iteration_s" not in rows

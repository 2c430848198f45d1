"""The rows of `results.csv`: one per run, with its place in the plan and its results."""

from __future__ import annotations

import tempfile
from pathlib import Path

import artist
from artist.config import Scenario
from studies.common.rows import RowsFile, Runs
from studies.llm.study.plan import LAYOUTS, Planned, planned
from studies.llm.study.workloads import trace

HERE = Path(__file__).resolve().parent.parent

# Neither was published for such clusters: what Megatron-like jobs take, by order of magnitude.
CHECKPOINT_S, RESTART_S = 30.0, 600.0

PLACE = ("policy", "oversubscription", "failures", "order", "layout", "seed")
METRICS = (
    "jct_mean_s", "makespan_s", "queue_delay_mean_s", "comm_time_share", "gpu_computing_share",
    "training_time_ratio_mean", "preemptions",
)  # fmt: skip


def row_of(run: Planned) -> dict[str, str]:
    """Do a run."""
    racks, machines, gpus = LAYOUTS[run.layout]
    with tempfile.TemporaryDirectory() as folder:
        jobs = Path(folder) / "jobs.csv"
        jobs.write_text(trace(run.seed, run.order), encoding="utf-8")
        settings = {
            "trace": str(jobs),
            "racks": racks,
            "machines_per_rack": machines,
            "gpus_per_machine": gpus,
            "policy": run.policy,
            "fabric": "leaf-spine",
            "fabric_options": {
                "machine": {"oversubscription": 1},  # a card for every GPU, of a block too
                "rack": {"oversubscription": run.oversubscription},
            },
            "contention": "mean",
            "failures": run.failures,
            "checkpoint": {"interval_s": "auto", "cost_s": CHECKPOINT_S},
            "restart_s": RESTART_S,
            "seed": run.seed,
        }
        scenario = Scenario.model_validate(settings)
        summary = artist.simulate(scenario, cache=False).summary
    return dict(zip(PLACE, run.place, strict=True)) | {x: f"{summary[x]:.10g}" for x in METRICS}


ROWS = RowsFile(HERE / "results.csv", (*PLACE, *METRICS), "llm")
RUNS = Runs(ROWS, PLACE, planned, row_of)

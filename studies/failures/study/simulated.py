"""The runs of the study, and what is kept of them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import artist
from artist.config import Scenario
from artist.failures.checkpoints import daly_ratio
from artist.failures.model_file import load_failures
from studies.common.rows import Row, RowsFile, Runs

HERE = Path(__file__).parents[1]
CASES = HERE / "cases.yaml"

GPUS = 8
"""GPUs of a machine."""
SPARES = 0.02
"""Machines that no job needs, as a share of those that jobs need."""
HOUR_S, DAY_S = 3600.0, 86400.0

COLUMNS = (
    "case", "outages", "per_1000_node_days", "failures", "mttf_h", "expected_mttf_h",
    "ratio", "daly_ratio", "paper_ratio",
)  # fmt: skip
Values = dict[str, Any]
"""A row with numbers."""


class Planned(NamedTuple):
    """A run: one of the cases."""

    case: Mapping[str, Any]

    @property
    def place(self) -> tuple[str, ...]:
        """The column that names the run."""
        return (self.case["name"],)


def planned() -> list[Planned]:
    """All runs."""
    return [Planned(case) for case in cases()]


def cases() -> Sequence[Mapping[str, Any]]:
    """The cases of the study."""
    read: Sequence[Mapping[str, Any]] = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    return read


def simulated(case: Mapping[str, Any]) -> Values:
    """Run a case and keep what is compared with the paper."""
    run = case["run"]
    needed = run["jobs"] * run["gpus"] // GPUS
    machines = needed + max(2, math.ceil(SPARES * needed))
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch, "jobs.csv")
        trace.write_text(_trace(run), encoding="utf-8")
        scenario = Scenario(
            trace=str(trace),
            policy="fifo",
            backend="none",
            fabric="a100",
            racks=-(-machines // 2),  # the paper: two machines in a rack
            machines_per_rack=2,
            gpus_per_machine=GPUS,
            failures=run["failures"],
            checkpoint={"interval_s": run["interval_s"], "cost_s": 0},  # type: ignore[arg-type]
            restart_s=run["restart_s"],
            seed=case["seed"],
        )
        result = artist.simulate(scenario, cache=False)
    summary, sizes = result.summary, result.tables["failure_sizes"]
    in_service_s = summary["gpus"] * summary["makespan_s"] - summary["withdrawn_gpu_s"]
    mttf_s = _mtbf_s(run) * GPUS / run["gpus"]
    return {
        "case": case["name"],
        "outages": summary["outages"],
        "per_1000_node_days": 1000 * summary["outages"] / (in_service_s / GPUS / DAY_S),
        "failures": summary["failures"],
        "mttf_h": sizes["mttf_s"][0] / HOUR_S,
        "expected_mttf_h": mttf_s / HOUR_S,
        "ratio": float(sizes["training_time_ratio"][0]),
        "daly_ratio": daly_ratio(run["interval_s"], 0.0, run["restart_s"], mttf_s),
        "paper_ratio": 1 - (run["restart_s"] + run["interval_s"] / 2) / mttf_s,
    }


def _mtbf_s(run: Mapping[str, Any]) -> float:
    machine = load_failures(run["failures"]).model.machine
    assert machine is not None  # both models of the study have one
    return machine.mtbf_s


def _trace(run: Mapping[str, Any]) -> str:
    """Jobs of iterations of one second, all at once."""
    head = "job_id,arrival_s,gpus,model,iterations,compute_s"
    iterations = round(run["work_h"] * HOUR_S)
    rows = [f"{n},0,{run['gpus']},any,{iterations},1.0" for n in range(run["jobs"])]
    return "\n".join([head, *rows]) + "\n"


def read() -> list[Values]:
    """The kept rows."""
    return [{key: text if key == "case" else float(text) for key, text in row.items()}
            for row in ROWS.read()]  # fmt: skip


def row_of(run: Planned) -> Row:
    """Do a run. Floats keep their last bit."""
    return {key: str(value) for key, value in simulated(run.case).items()}


ROWS = RowsFile(HERE / "results.csv", COLUMNS, "failures")
RUNS = Runs(ROWS, COLUMNS[:1], planned, row_of)

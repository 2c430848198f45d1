"""Tab-separated traces of Gavel (Narayanan et al., OSDI'20) and Shockwave (Zheng et al., NSDI'23).

Source: https://github.com/stanford-futuredata/gavel, scheduler/traces and utils.py. There are
three versions, with 7, 9 and 10 columns and no header. Columns that are read:

- job_type: the model with its batch size per GPU (`model_names.py` reads it);
- total_steps: mini-batches of all GPUs together;
- scale_factor: number of GPUs (0 and 1 both mean one);
- arrival_time, in seconds.

There are neither ids nor users. Line numbers serve as ids.

Rule for the run time, which the format lacks: total_steps over the speed of the job type on so
many V100s (`V100_STEPS_PER_S`). If that number of V100s was not measured, the speed is the one on
the next smaller measured number, times the ratio of the two numbers. Job types that Gavel never
measured are dropped.

Shockwave's traces (https://github.com/uw-mad-dash/shockwave, scheduler/traces) have 12 columns. One
of them is duration, in seconds: the run time at the batch size with which the job starts. Changes
of the batch size during the run (column mode) are not followed.
"""

from __future__ import annotations

from artist.trace.foreign.rows import ForeignJob, JobOrReason, TraceRow

SHOCKWAVE_COLUMNS = (
    "job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps",
    "scale_factor", "mode", "priority_weight", "slo", "duration", "arrival_time",
)  # fmt: skip
REQUIRED = ("job_type", "total_steps", "scale_factor", "arrival_time", "num_steps_arg")

_HEAD = ("job_type", "command")
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_TAIL = ("scale_factor", "priority_weight", "slo", "arrival_time")

LAYOUTS = (
    (*_HEAD, *_STEPS, "arrival_time", "scale_factor"),
    (*_HEAD, *_STEPS, *_TAIL),
    (*_HEAD, "working_directory", *_STEPS, *_TAIL),
)

UNKNOWN_TYPE = "a job type that Gavel never measured"

V100_STEPS_PER_S: dict[str, dict[int, float]] = {
    "ResNet-18 (batch size 16)": {1: 32.35, 2: 100.1, 4: 123.9, 8: 382.6},
    "ResNet-18 (batch size 32)": {1: 29.95, 2: 94.25, 4: 114.7, 8: 340.0},
    "ResNet-18 (batch size 64)": {1: 24.09, 2: 74.14, 4: 95.59, 8: 255.8},
    "ResNet-18 (batch size 128)": {1: 17.99, 2: 23.99, 4: 69.95, 8: 162.1},
    "ResNet-18 (batch size 256)": {1: 10.3, 2: 15.88, 4: 27.78, 8: 81.51},
    "ResNet-50 (batch size 16)": {1: 11.4, 2: 13.86, 4: 23.2, 8: 27.8},
    "ResNet-50 (batch size 32)": {1: 7.787, 2: 10.83, 4: 13.76, 8: 24.07},
    "ResNet-50 (batch size 64)": {1: 4.395, 2: 7.922, 4: 9.452, 8: 17.3},
    "ResNet-50 (batch size 128)": {1: 2.497, 2: 4.223, 4: 7.029, 8: 10.29},
    "Transformer (batch size 16)": {1: 11.06, 2: 14.15, 4: 20.08, 8: 71.65},
    "Transformer (batch size 32)": {1: 10.62, 2: 13.33, 4: 22.82, 8: 63.98},
    "Transformer (batch size 64)": {1: 8.618, 2: 15.88, 4: 19.66, 8: 49.65},
    "Transformer (batch size 128)": {1: 5.446, 2: 10.07, 4: 14.17, 8: 30.88},
    "Transformer (batch size 256)": {1: 1.595, 2: 2.885, 4: 4.763, 8: 9.717},
    "A3C": {1: 7.176},
    "LM (batch size 5)": {1: 109.2, 2: 185.7, 4: 126.7, 8: 698.8},
    "LM (batch size 10)": {1: 81.65, 2: 163.1, 4: 121.5, 8: 615.1},
    "LM (batch size 20)": {1: 64.74, 2: 132.2, 4: 111.0, 8: 497.3},
    "LM (batch size 40)": {1: 45.24, 2: 91.59, 4: 96.03, 8: 359.3},
    "LM (batch size 80)": {1: 28.24, 2: 58.09, 4: 74.81, 8: 231.2},
    "Recommendation (batch size 512)": {1: 23.32},
    "Recommendation (batch size 1024)": {1: 13.28},
    "Recommendation (batch size 2048)": {1: 7.47},
    "Recommendation (batch size 4096)": {1: 3.906},
    "Recommendation (batch size 8192)": {1: 2.842},
    "CycleGAN": {1: 4.426},
}
"""Speeds of Gavel's job types on 1, 2, 4 and 8 V100s, in steps per second of all GPUs together.

Measured by Narayanan et al., OSDI'20. Source: scheduler/simulation_throughputs.json of the
repository, MIT licence, rounded to four digits. The values are those of worker type v100 for a job
that shares its GPUs with no other. Types with a single value were not measured on several GPUs.
"""


def fits(cells: list[str]) -> bool:
    """Whether a line with the right number of cells can be a job: it has a job type."""
    return bool(cells[0].strip())


def job(row: TraceRow) -> JobOrReason:
    """The job in a row of Gavel's, or why the row is dropped."""
    speed = _steps_per_s(row.text("job_type"), _gpus(row))
    steps = row.count("total_steps", 1)
    return _job(row, steps / speed) if speed else UNKNOWN_TYPE


def shockwave_job(row: TraceRow) -> ForeignJob:
    """The job in a row of Shockwave's; no row is dropped."""
    return _job(row, row.seconds("duration"))


def _job(row: TraceRow, run_s: float) -> ForeignJob:
    """The job in a row, with its run time. Each GPU runs its share of the steps, rounded up."""
    gpus = _gpus(row)
    return ForeignJob(
        row=row.index,
        id=str(row.table.numbers[row.index]),
        submit_s=row.seconds("arrival_time"),
        gpus=gpus,
        run_s=run_s,
        iterations=-(-row.count("total_steps", 1) // gpus),
        model=row.text("job_type"),
    )


def _gpus(row: TraceRow) -> int:
    return max(1, row.gpus("scale_factor"))


def _steps_per_s(job_type: str, gpus: int) -> float:
    """Steps per second of a job type on `gpus` V100s together; 0 if it was never measured."""
    speeds = V100_STEPS_PER_S.get(job_type)
    if speeds is None:
        return 0.0
    measured = max(n for n in speeds if n <= gpus)
    return speeds[measured] * gpus / measured

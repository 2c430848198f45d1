"""Workload CSVs of Pollux (Qiao et al., OSDI'21) and Sia (Jayaram Subramanya et al., SOSP'23).

Source: https://github.com/siasosp23/artifacts, sia-simulator/workloads. Columns: name,
time (s), application, num_replicas (GPUs), batch_size (not read). There is no run time: the jobs
are elastic, and their run times follow from profiles that artist does not have.

Rule for the run time: Pollux, section 5.1, puts each application in a class by its total GPU
time: small (up to 1 GPU-hour), medium (up to 10), large (up to 100), extra large (up to 1000).
The GPU-hours of a job are drawn log-uniformly from its class, and divided by its GPUs. The small
class begins at 0.1 GPU-hours. An application that the paper does not list counts as medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.rng import stream
from artist.trace.foreign.rows import CPU_ONLY, ForeignJob, JobOrReason, rows
from artist.trace.native.choices import Rules
from artist.trace.native.table import Table

COLUMNS = ("name", "time", "application", "num_replicas")

# The lower end of each application's class, in GPU-hours. Each class spans a factor of ten.
_MEDIUM = 1.0
_GPU_HOURS_FROM = {
    "cifar10": 0.1,
    "ncf": 0.1,
    "bert": _MEDIUM,
    "deepspeech2": _MEDIUM,
    "yolov3": 10.0,
    "imagenet": 100.0,
}

# The models of Pollux' table 1 that artist's catalogue has.
_MODELS = {"cifar10": "resnet18", "imagenet": "resnet50", "bert": "bert-large"}

_S_PER_HOUR = 3600


def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
    """Jobs, and reasons why rows are dropped."""
    # One draw for every row, dropped or not: so a job's run time does not depend on other rows.
    decades = stream(rules.seed, "trace.sia").random(len(table)).tolist()
    for row, decade in zip(rows(table), decades, strict=True):
        gpus = row.gpus("num_replicas")
        if not gpus:
            yield CPU_ONLY
            continue
        application = row.text("application")
        gpu_hours = _GPU_HOURS_FROM.get(application, _MEDIUM) * 10**decade
        yield ForeignJob(
            row=row.index,
            id=row.text("name"),
            submit_s=row.seconds("time"),
            gpus=gpus,
            run_s=gpu_hours * _S_PER_HOUR / gpus,
            model=_MODELS.get(application, application),
        )

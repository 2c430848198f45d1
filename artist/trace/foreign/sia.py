"""Workload CSVs of Pollux (Qiao et al., OSDI'21) and Sia (Jayaram Subramanya et al., SOSP'23).

Source: https://github.com/siasosp23/artifacts, sia-simulator/workloads. Columns: name,
time (s), application, num_replicas (GPUs), batch_size (not read). No run time: their
jobs are elastic, so it follows from profiles.

Rule for the run time: Pollux, section 5.1, gives each application a class of total
GPU time, small below 1 GPU-hour, medium to 10, large to 100, extra large to 1000;
the job's GPU-hours are drawn log-uniformly from its class (small from 0.1) and shared
by its GPUs. Applications outside the table count as medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.rng import stream
from artist.trace.foreign.records import CPU_ONLY, Foreign, Found, records
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import Table

COLUMNS = ("name", "time", "application", "num_replicas")

# Lower end in GPU-hours of a class that spans a factor of ten.
_MEDIUM = 1.0
_GPU_HOURS_FROM = {
    "cifar10": 0.1,
    "ncf": 0.1,
    "bert": _MEDIUM,
    "deepspeech2": _MEDIUM,
    "yolov3": 10.0,
    "imagenet": 100.0,
}

# The models of Pollux' table 1 that the catalogue has.
_MODELS = {"cifar10": "resnet18", "imagenet": "resnet50", "bert": "bert-large"}

_S_PER_HOUR = 3600


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons; one number is drawn for every row, so that rows keep theirs."""
    decades = stream(rules.seed, "trace.sia").random(len(table)).tolist()
    for record, decade in zip(records(table), decades, strict=True):
        gpus = record.gpus("num_replicas")
        if not gpus:
            yield CPU_ONLY
            continue
        application = record.text("application")
        gpu_hours = _GPU_HOURS_FROM.get(application, _MEDIUM) * 10**decade
        yield Foreign(
            row=record.row,
            id=record.text("name"),
            submit_s=record.seconds("time"),
            gpus=gpus,
            run_s=gpu_hours * _S_PER_HOUR / gpus,
            model=_MODELS.get(application, application),
        )

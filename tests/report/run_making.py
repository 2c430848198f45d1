"""Small runs of the real simulator, and ways to damage them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from artist.config import Scenario
from artist.report.grouping import Replicate, Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import FileColumns, RecordedRun
from artist.results.run_directory import write_run
from artist.results.terms.number_text import DisplayUnit
from artist.run import simulate

EVIL = "<script>document.title='broken in'</script>\"'&"

_TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s
a,0,24,vgg11,2000,0.05
b,0,24,bert-large,2000,0.05
c,0,8,resnet50,2000,0.05
"""
# `bounded`: under `wider`, job a counts as 8,8/8,8, which overloads its uplink even when alone.
_FABRIC = """name: narrow
summary: racks of 16 GPUs, and half of what they can send out of a rack
levels:
- {name: machine, topology: Switch, bandwidth: 400GiB/s, latency: 1us, source: an example}
- {name: rack, topology: Switch, bandwidth: 40GiB/s, latency: 1us, source: an example,
   uplink: {rate: 1GiB/s, count: 8, source: an example}}
- {name: network, topology: Switch, bandwidth: 1GiB/s, latency: 1us, source: an example}
system: {uneven: bounded}
"""


def make_run(out: Path, *, links: bool = False, **settings: Any) -> Path:
    """Simulate and write a run directory."""
    sizes = {} if "tree" in settings else {"racks": 1, "machines_per_rack": 2}
    base = {**sizes, "trace": "tiny-poisson"}
    write_run(simulate(Scenario(**{**base, **settings}), links=links), out, ["artist", "sim", EVIL])
    return out


def make_competing(folder: Path, name: str, **settings: Any) -> Path:
    """The worked example of docs/contention.md, with what links carried; inputs are beside it."""
    trace, fabric = folder / "jobs.csv", folder / "narrow.yaml"
    trace.write_text(_TRACE)
    fabric.write_text(_FABRIC)
    base = {"racks": 4, "policy": "fifo", "contention": "mean"}
    files = {"trace": str(trace), "fabric": str(fabric)}
    return make_run(folder / name, links=True, **{**base, **files, **settings})


def rows_of(
    text: dict[str, list[str]], numbers: dict[str, list[float]], **lists: Any
) -> FileColumns:
    """Rows of a file, by hand."""
    count = len(next(iter(text.values())))
    return FileColumns(text, {k: np.array(v, np.float64) for k, v in numbers.items()}, count, lists)


def study_of(*settings: Mapping[str, Mapping[Replicate, RecordedRun]]) -> Study:
    """A study of settings: policy -> replicate -> run. All times are in seconds."""
    made = tuple(
        Setting(number, f"setting {number}", f"setting-{number}", {}, runs)
        for number, runs in enumerate(settings)
    )
    policies = tuple(dict.fromkeys(policy for runs in settings for policy in runs))
    every = [run for runs in settings for some in runs.values() for run in some.values()]
    return Study(every, policies, made, policies, dict.fromkeys(Quantity, DisplayUnit(1.0, "s")))


def damage(run: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite one of a run's tables."""
    path = run / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def replace(
    column: str, values: Callable[[list[Any]], list[Any]]
) -> Callable[[pa.Table], pa.Table]:
    """A change of one column."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        return table.set_column(index, column, [values(table[column].to_pylist())])

    return change


def edit_json(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


_TURNS = """job_id,arrival_s,gpus,model,iterations,compute_s
a,0,3,vgg16@batch=64,1000,0.2
b,0,3,vgg16@batch=64,1000,0.2
"""


def make_taking_turns(folder: Path, name: str, policy: str) -> Path:
    """The worked example of docs/cassini.md: two jobs that meet on the uplink of a rack."""
    trace = folder / "pair.csv"
    trace.write_text(_TURNS)
    around = policy.startswith("cassini(")
    options = {"host": {"placement": "any"}} if around else {"placement": "any"}
    return make_run(
        folder / name,
        trace=str(trace), policy=policy, policy_options=options, fabric="cassini-testbed", racks=3,
        machines_per_rack=2, gpus_per_machine=1, contention="phase",
    )  # fmt: skip

"""Runs on two regions and a third, with tables, whose times can be worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import artist
from artist.results.result import Result

# 8 Gbit/s are a gigabyte per second.
CLUSTER = """\
name: mine
summary: a region per machine, or two machines
levels: [region, machine]
wide_area: {bandwidth: 8Gbit/s, latency: 0ns, source: a test}
fabric: hgx-h100
tree:
- {name: east, storage: 1TB, machine: {gpus: 4}}
- {name: west, storage: 200GB, machine: {count: 2, gpus: 4}}
- {name: north, storage: 1TB, machine: {gpus: 2}}
"""
DATA = "table,partition,size,regions\nads,,10GB,east\nuser,,10GB,east\nlogs,1,10GB,north\n"
HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,tables\n"


def scenario(
    folder: Path,
    *rows: str,
    data: str = DATA,
    cluster: str = CLUSTER,
    without: tuple[str, ...] = (),
    **more: Any,
) -> artist.Scenario:
    """Rows of a trace, with FIFO and without communication unless `more` says otherwise.

    The settings in `without` are left out.
    """
    settings = {"backend": "none", "policy": "fifo", **more}
    trace = HEADER + "\n".join(rows) + "\n"
    for name, file, text in (
        ("cluster", "mine.yaml", cluster),
        ("data", "data.csv", data),
        ("trace", "trace.csv", trace),
    ):
        (folder / file).write_text(text)
        if name not in without:
            settings[name] = str(folder / file)
    return artist.Scenario(**settings)


def simulate(folder: Path, *rows: str, **settings: Any) -> Result:
    """Simulate what `scenario` describes."""
    return artist.simulate(scenario(folder, *rows, **settings), check=True)


def times(result: Result, column: str) -> dict[str, float]:
    """A time of each job, by its name."""
    jobs = result.tables["jobs"]
    return dict(zip(jobs["job_id"], jobs[column], strict=True))

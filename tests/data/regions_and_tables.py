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


def simulate(
    folder: Path,
    *rows: str,
    data: str = DATA,
    cluster: str = CLUSTER,
    without: tuple[str, ...] = (),
    **more: Any,
) -> Result:
    """Simulate rows of a trace, with FIFO and without communication unless `more` says otherwise.

    The settings in `without` are left out.
    """
    for name, text in (
        ("mine.yaml", cluster),
        ("data.csv", data),
        ("trace.csv", HEADER + "\n".join(rows) + "\n"),
    ):
        (folder / name).write_text(text)
    settings = {
        "cluster": str(folder / "mine.yaml"),
        "data": str(folder / "data.csv"),
        "trace": str(folder / "trace.csv"),
        "backend": "none",
        "policy": "fifo",
        **more,
    }
    given = {key: value for key, value in settings.items() if key not in without}
    return artist.simulate(artist.Scenario(**given), check=True)


def times(result: Result, column: str) -> dict[str, float]:
    """A time of each job, by its name."""
    jobs = result.tables["jobs"]
    return dict(zip(jobs["job_id"], jobs[column], strict=True))

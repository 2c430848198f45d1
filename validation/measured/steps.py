"""A file of measured step times: reading it, and writing it back with predictions.

CSV with the columns hardware, task, batch_per_gpu, placement, step_s and any others. A row is one
data-parallel training step (PyTorch DistributedDataParallel over NCCL) of a job on a placement
such as `4,3,1`: GPUs per machine. The row with placement `1` gives the compute time of its
hardware, task and batch.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from artist.errors import ConfigError, TraceError
from artist.io.reading import as_float, read_bytes
from artist.io.writing import write_whole
from artist.registry import UnknownNameError
from artist.trace.native.read_table import read_csv
from artist.workload.models import canonical

COLUMNS = ("hardware", "task", "batch_per_gpu", "placement", "step_s")
PREDICTED = "predicted_s"

_PLACEMENT = re.compile(r"[1-9][0-9]{0,3}(,[1-9][0-9]{0,3})*")

TASKS: Mapping[str, str] = {"bert": "bert-base"}
"""Tasks whose name means another model here than in the catalogue: `bert` is BERT-base on SQuAD."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row. `compute_s` is the step on one GPU at this batch; None if the file has none."""

    line: int
    hardware: str
    task: str
    batch: int
    placement: str
    step_s: float
    compute_s: float | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return sum(self.shares)

    @property
    def machines(self) -> int:
        """Machines of the job."""
        return len(self.shares)

    @property
    def shares(self) -> tuple[int, ...]:
        """GPUs per machine."""
        return tuple(int(share) for share in self.placement.split(","))

    @property
    def model(self) -> str | None:
        """The model of the catalogue that this task trains; None if there is none."""
        try:
            return canonical(f"{TASKS.get(self.task.lower(), self.task)}@batch={self.batch}")
        except UnknownNameError:
            return None


def read_steps(path: Path) -> list[Step]:
    """The rows of a file, in its order.

    Raises:
        TraceError: an unreadable file or a bad value; names file and line.
    """
    table = read_csv(path, read_bytes(path))
    lacking = [name for name in COLUMNS if name not in table.columns]
    if lacking:
        raise TraceError(f"{path}:1: no column {', '.join(lacking)}; expected {', '.join(COLUMNS)}")
    cells = zip(*(table.columns[name] for name in COLUMNS), strict=True)
    rows = [_step(path, line, *row) for line, row in zip(table.numbers, cells, strict=True)]
    single: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        if row.gpus == 1:
            single.setdefault((row.hardware, row.task, row.batch), []).append(row.step_s)
    return [_with_compute(row, single) for row in rows]


def write_steps(path: Path, out: Path, predicted_s: Sequence[float | None]) -> None:
    """Write the rows of a file with the column `predicted_s` at the end."""
    columns = read_csv(path, read_bytes(path)).columns
    kept = {name: cells for name, cells in columns.items() if name != PREDICTED}
    predicted = ["" if value is None else f"{value:.9g}" for value in predicted_s]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*kept, PREDICTED])
    writer.writerows(zip(*kept.values(), predicted, strict=True))
    write_whole(out, text.getvalue())


def _with_compute(row: Step, single: Mapping[tuple[str, str, int], Sequence[float]]) -> Step:
    times_s = single.get((row.hardware, row.task, row.batch))
    compute_s = median(times_s) if times_s else None
    return replace(row, compute_s=compute_s)


def _step(
    path: Path, line: int, hardware: str, task: str, batch: str, placement: str, step_s: str
) -> Step:
    """A row, its cells in the order of `COLUMNS`."""
    hardware, placement = hardware.strip(), placement.strip()
    step = as_float(step_s)
    good = 0 < step < math.inf and re.fullmatch(r" *0*[1-9][0-9]* *", batch)
    if not good or not _PLACEMENT.fullmatch(placement):
        raise TraceError(
            f"{path}:{line}: placement {placement!r}, batch {batch!r}, step_s {step_s!r}; expected "
            "GPUs per machine such as 4,3,1, a whole number and seconds above 0"
        )
    if not hardware or "/" in hardware:
        raise ConfigError(f"{path}:{line}: hardware {hardware!r}; name a fabric")
    return Step(line, hardware, task.strip(), int(batch), placement, step)

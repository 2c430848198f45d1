"""Reads measured step times of data-parallel jobs, CSV.

    hardware,task,batch_per_gpu,placement,step_s
    t4,resnet50,32,1,0.230
    t4,resnet50,32,"4,3,1",0.410

A row is one training step (PyTorch DistributedDataParallel over NCCL) of a job on a placement such
as `4,3,1`: GPUs per machine. `task` is a model of the catalogue. The rows with placement `1` give
the compute time of their hardware, task and batch. Other columns are ignored, and so are lines at
the top that begin with #, such as `# source: ...`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median

from artist.errors import ConfigError, TraceError
from artist.io.reading import as_float, read_bytes
from artist.registry import UnknownNameError
from artist.trace.native.read_table import read_csv
from artist.workload.models import canonical

COLUMNS = ("hardware", "task", "batch_per_gpu", "placement", "step_s")

_PLACEMENT = re.compile(r"[1-9][0-9]{0,3}(,[1-9][0-9]{0,3})*")

Work = tuple[str, str, int]
"""Hardware, task and batch."""


@dataclass(frozen=True, slots=True)
class PlacedStep:
    """One row of the file.

    `model` is the catalogue's name of the task; None if the catalogue lacks it. `compute_s` is the
    time of the step on one GPU; None if the file has no such row.
    """

    line: int
    hardware: str
    task: str
    batch: int
    placement: str
    step_s: float
    model: str | None = None
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
    def is_predictable(self) -> bool:
        """Whether the model and its compute time are known."""
        return self.model is not None and self.compute_s is not None

    @property
    def work(self) -> Work:
        """The hardware, task and batch, which determine the compute time."""
        return self.hardware, self.task, self.batch


_COMMENTS = re.compile(rb"\A(\xef\xbb\xbf)?(#[^\n]*\n)+")
"""The comments at the top of a file, perhaps after a byte order mark."""


def read_steps(path: Path, models: Mapping[str, str] | None = None) -> list[PlacedStep]:
    """The rows of a file, in its order. `models` maps tasks to other names in the catalogue.

    Raises:
        TraceError: the file cannot be read or has a bad value; names file and line.
    """
    # Comments become blank lines, so that errors name the right line.
    data = _COMMENTS.sub(lambda found: b"\n" * found[0].count(b"\n"), read_bytes(path))
    table = read_csv(path, data)
    lacking = [name for name in COLUMNS if name not in table.columns]
    if lacking:
        raise TraceError(f"{path}:1: no column {', '.join(lacking)}; expected {', '.join(COLUMNS)}")
    cells = zip(*(table.columns[name] for name in COLUMNS), strict=True)
    rows = [_step(path, line, *row) for line, row in zip(table.numbers, cells, strict=True)]
    compute_s = _compute_times(rows)
    return [
        replace(row, model=_model(row, models or {}), compute_s=compute_s.get(row.work))
        for row in rows
    ]


def steps_of(steps: Sequence[PlacedStep], hardware: str | None, where: str) -> list[PlacedStep]:
    """The steps of one kind of hardware; None: the only one.

    Raises:
        ConfigError: there is no such hardware, or there are several.
    """
    kinds = list(dict.fromkeys(step.hardware for step in steps))
    if hardware is None and len(kinds) == 1:
        return list(steps)
    if hardware not in kinds:
        raise ConfigError(f"{where} has steps of {', '.join(kinds)}: choose one with --hardware")
    return [step for step in steps if step.hardware == hardware]


def _compute_times(rows: Iterable[PlacedStep]) -> Mapping[Work, float]:
    """By work, the time of a step on one GPU: the median of its rows, free of disturbances.

    Disturbances only make steps longer, and so do larger batches. So a step that takes longer than
    one of a larger batch was disturbed, and the time of the latter is taken.
    """
    single = sorted((row.work, row.step_s) for row in rows if row.gpus == 1)
    medians = {
        work: median(step_s for _, step_s in times_s)
        for work, times_s in groupby(single, key=lambda pair: pair[0])
    }
    return dict(_rising(medians))


def _rising(medians: Mapping[Work, float]) -> Iterator[tuple[Work, float]]:
    """Cut each time to at most that of the next larger batch of the same task."""
    least, task = math.inf, ("", "")
    for hardware, name, batch in sorted(medians, reverse=True):
        if (hardware, name) != task:
            least, task = math.inf, (hardware, name)
        least = min(least, medians[hardware, name, batch])
        yield (hardware, name, batch), least


def _model(row: PlacedStep, models: Mapping[str, str]) -> str | None:
    try:
        return canonical(f"{models.get(row.task.lower(), row.task)}@batch={row.batch}")
    except UnknownNameError:
        return None


def _step(
    path: Path, line: int, hardware: str, task: str, batch: str, placement: str, step_s: str
) -> PlacedStep:
    """A row, from its cells in the order of `COLUMNS`."""
    hardware, placement = hardware.strip(), placement.strip()
    step = as_float(step_s)
    good = 0 < step < math.inf and re.fullmatch(r" *0*[1-9][0-9]* *", batch)
    if not good or not _PLACEMENT.fullmatch(placement):
        raise TraceError(
            f"{path}:{line}: placement {placement!r}, batch {batch!r}, step_s {step_s!r}; expected "
            "GPUs per machine such as 4,3,1, a whole number and seconds above 0"
        )
    if not hardware or "/" in hardware:
        raise TraceError(f"{path}:{line}: hardware {hardware!r}; give a name such as t4")
    return PlacedStep(line, hardware, task.strip(), int(batch), placement, step)

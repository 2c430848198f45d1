"""When Slurm itself expects jobs to start, as `squeue` prints it.

The text has a header (`squeue -a --start -o %all`, or any format with JOBID and START_TIME), or is
a series of `squeue -h -o "%i|%j|%P|%a|%u|%T|%Q|%r|%S|%e|%D|%N|%b"` with the time before each line.
Source: squeue(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from artist.errors import ConfigError, shortened
from artist.io.reading import is_file, read_text
from artist.slurm.texts import MOST_BYTES, NOTHING, cells_of, unpacked

_SAMPLE = ("TIME", "JOBID", "NAME", "PARTITION", "ACCOUNT", "USER", "STATE", "PRIORITY", "REASON",
           "START_TIME", "END_TIME", "NODES", "NODELIST", "TRES_PER_NODE")  # fmt: skip
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Expected:
    """When Slurm expected a job to start. `said_at` is when it said so; empty if unknown."""

    job_id: str
    starts_at: str
    said_at: str


def expected_starts(folder: Path) -> list[Expected]:
    """The expected starts in `squeue.txt` (or `squeue.txt.gz`); none without the file.

    Raises:
        ConfigError: a line is broken; names file and line.
    """
    plain, packed = folder / "squeue.txt", folder / "squeue.txt.gz"
    if is_file(plain):
        return _read(plain, read_text(plain, most_bytes=MOST_BYTES))
    return _read(packed, unpacked(packed)) if is_file(packed) else []


def _read(path: Path, text: str) -> list[Expected]:
    """The expected starts of one text of `squeue`."""
    lines = text.splitlines()
    if not lines:
        return []
    names: tuple[str, ...] = _SAMPLE
    first = 1
    if not _MOMENT.match(lines[0]):
        names, first = tuple(name.strip() for name in lines[0].split("|")), 2
        for name in ("JOBID", "START_TIME"):
            if name not in names:
                raise ConfigError(f"{path}:1: no column {name}; print it with squeue -a -o %all")
    found = []
    for number, line in enumerate(lines[first - 1 :], start=first):
        cells = cells_of(line, len(names), f"{path}:{number}")
        row = dict(zip(reversed(names), reversed(cells), strict=True))  # the first of two counts
        starts_at = row["START_TIME"]
        if starts_at in NOTHING or row.get("STATE", row.get("ST", "PD"))[:1] != "P":
            continue
        if not _MOMENT.fullmatch(starts_at):
            raise ConfigError(
                f"{path}:{number}: START_TIME is {shortened(starts_at)}, expected a time as in "
                "2026-11-23T16:09:35"
            )
        found.append(Expected(row["JOBID"], starts_at, row.get("TIME", "")))
    return found

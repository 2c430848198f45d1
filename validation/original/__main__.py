"""`make reference`: compare with the original simulator's recorded runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.errors import ArtistError, ConfigError
from artist.workload.models import canonical
from validation.original.report import Inputs, Without, report, write
from validation.original.runs import Latencies
from validation.original.tables import as_text, refresh

NAMES: Mapping[str, str] = {
    "trace_batch_effective": "sensetime_500_batch",
    "trace_poisson_week_effective": "sensetime_411_poisson_week",
}
"""Names of the reference's traces in its results."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparisons, print tables, write JSON."""
    asked = _parser().parse_args(arguments)
    started = time.perf_counter()
    try:
        if not asked.out.resolve().parent.is_dir():
            raise ConfigError(f"--out {asked.out}: there is no folder {asked.out.parent}")
        document = _document(asked)
        write(document, asked.out)
        if asked.page:
            refresh(Path(asked.page), document)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return 3
    sys.stdout.write(f"{as_text(document)}\n\n{asked.out}\n")
    sys.stderr.write(f"{time.perf_counter() - started:.0f} s\n")
    return 0


def _document(asked: argparse.Namespace) -> dict[str, Any]:
    if not asked.again:
        return report(_inputs(asked), _tell)
    try:
        found = json.loads(Path(asked.again).read_text(encoding="utf-8"))
    except ValueError as cause:
        raise ConfigError(f"--again {asked.again}: not a document of this command") from cause
    return {**found}


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _inputs(asked: argparse.Namespace) -> Inputs:
    home: Path = asked.reference
    if asked.seeds < 1:
        raise ConfigError(f"--seeds {asked.seeds}: at least one machine order is needed")
    runs = sorted((home / "allocations").glob("fix_*.csv*"))
    return Inputs(
        allocations=_paths(asked.allocations) or runs,
        traces=_traces(home, _paths(asked.trace), _words(asked.trace_name)),
        results=Path(asked.results or home / "results.csv"),
        jobs=_paths(asked.jobs) or sorted((home / "jobs").glob("*.csv*")),
        latencies=Latencies(asked.latencies or home / "golden_astra1.csv", asked.workloads),
        job_files=sorted(asked.job_files.glob("sensetime_*.json")),
        witnesses=runs,
        seeds=asked.seeds,
        workers=asked.workers,
        without=_without(asked.without),
    )


def _without(text: str) -> Without | None:
    if not text:
        return None
    model, _, gpus = text.partition(":")
    if not gpus.isdecimal():
        raise ConfigError(f"--without {text}: expected MODEL:GPUS, as mobilenetv3:8")
    return Without(canonical(model), int(gpus))


def _traces(home: Path, paths: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Names in the results to files: the folder's, unless files or names choose."""
    if paths and names:
        if len(names) != len(paths):
            raise ConfigError(f"{len(paths)} traces but {len(names)} names: {' '.join(names)}")
        return dict(zip(names, paths, strict=True))
    paths = paths or sorted(home.glob("trace_*_effective.csv"))
    found = {NAMES.get(path.stem, path.stem): path for path in paths}
    if unknown := [name for name in names if name not in found]:
        raise ConfigError(
            f"--trace-name {unknown[0]}: without --trace it chooses among {', '.join(found)}"
        )
    return {name: found[name] for name in names or found}


def _words(text: str) -> list[str]:
    """Separated by blanks or commas."""
    return text.replace(",", " ").split()


def _paths(text: str) -> list[Path]:
    return [Path(name) for name in _words(text)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make reference", description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of recorded runs")
    parser.add_argument("--workloads", type=Path, required=True, help="the original's workloads")
    parser.add_argument("--job-files", type=Path, required=True, help="folder of its job files")
    parser.add_argument("--allocations", default="", help="files, if not the folder's")
    parser.add_argument("--trace", default="", help="files, if not the folder's")
    parser.add_argument("--trace-name", default="", help="their names in the results")
    parser.add_argument("--results", default="", help="file, if not the folder's")
    parser.add_argument("--jobs", default="", help="files of results per job, if not the folder's")
    parser.add_argument("--latencies", type=Path, default=None, help="file, if not the folder's")
    parser.add_argument("--seeds", type=int, default=20, help="machine orders per cell")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("ref.json"))
    parser.add_argument(
        "--without", default="", help="MODEL:GPUS: see whether medians stray without such jobs"
    )
    parser.add_argument("--again", default="", help="a document of before, to run nothing anew")
    parser.add_argument("--page", default="", help="page whose tables are written anew")
    return parser


if __name__ == "__main__":
    sys.exit(main())

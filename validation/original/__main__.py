"""`make reference`: compare with recorded runs of the original simulator."""

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
from artist.io.writing import check_file
from artist.workload.models import canonical
from validation.original.report import Inputs, Without, report, write
from validation.original.runs import Latencies
from validation.original.tables import as_text

NAMES: Mapping[str, str] = {
    "trace_batch_effective": "sensetime_500_batch",
    "trace_poisson_week_effective": "sensetime_411_poisson_week",
}
"""File of a trace -> the name of the trace in the recorded results."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparisons, print tables, write JSON."""
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    try:
        check_file(options.out, "--out")
        document = _document(options)
        write(document, options.out)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return 3
    sys.stdout.write(f"{as_text(document)}\n\n{options.out}\n")
    sys.stderr.write(f"{time.perf_counter() - started:.0f} s\n")
    return 0


def _document(options: argparse.Namespace) -> dict[str, Any]:
    """The comparisons: run now, or read from an earlier document (`--again`)."""
    if not options.again:
        return report(_inputs(options), _tell)
    try:
        document = json.loads(Path(options.again).read_text(encoding="utf-8"))
    except ValueError as cause:
        raise ConfigError(f"--again {options.again}: not a document of this command") from cause
    return {**document}


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _inputs(options: argparse.Namespace) -> Inputs:
    """The files that the command line names, or else those of the folders."""
    home: Path = options.reference
    if options.seeds < 1:
        raise ConfigError(f"--seeds {options.seeds}: at least one machine order is needed")
    runs = sorted((home / "allocations").glob("fix_*.csv*"))
    return Inputs(
        allocations=_paths(options.allocations) or runs,
        traces=_traces(home, _paths(options.trace), _words(options.trace_name)),
        results=Path(options.results or home / "results.csv"),
        jobs=_paths(options.jobs) or sorted((home / "jobs").glob("*.csv*")),
        latencies=Latencies(options.latencies or home / "golden_astra1.csv", options.workloads),
        job_files=sorted(options.job_files.glob("sensetime_*.json")),
        witnesses=runs,
        seeds=options.seeds,
        workers=options.workers,
        without=_without(options.without),
    )


def _without(text: str) -> Without | None:
    if not text:
        return None
    model, _, gpus = text.partition(":")
    if not gpus.isdecimal():
        raise ConfigError(f"--without {text}: expected MODEL:GPUS, as mobilenetv3:8")
    return Without(canonical(model), int(gpus))


def _traces(home: Path, paths: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Name in the results -> file. By default all traces of the folder; files or names choose."""
    if paths and names:
        if len(names) != len(paths):
            raise ConfigError(f"{len(paths)} traces but {len(names)} names: {' '.join(names)}")
        return dict(zip(names, paths, strict=True))
    paths = paths or sorted(home.glob("trace_*_effective.csv"))
    traces = {NAMES.get(path.stem, path.stem): path for path in paths}
    if unknown := [name for name in names if name not in traces]:
        raise ConfigError(
            f"--trace-name {unknown[0]}: without --trace it chooses among {', '.join(traces)}"
        )
    return {name: traces[name] for name in names or traces}


def _words(text: str) -> list[str]:
    """The words of a text; blanks or commas separate them."""
    return text.replace(",", " ").split()


def _paths(text: str) -> list[Path]:
    return [Path(name) for name in _words(text)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make reference", description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of recorded runs")
    parser.add_argument(
        "--workloads", type=Path, required=True, help="the original's workload files"
    )
    parser.add_argument(
        "--job-files", type=Path, required=True, help="folder of the original's job files"
    )
    parser.add_argument("--allocations", default="", help="files instead of the folder's")
    parser.add_argument("--trace", default="", help="files instead of the folder's")
    parser.add_argument("--trace-name", default="", help="names of the traces in the results")
    parser.add_argument("--results", default="", help="file instead of the folder's")
    parser.add_argument("--jobs", default="", help="results per job instead of the folder's")
    parser.add_argument("--latencies", type=Path, default=None, help="file instead of the folder's")
    parser.add_argument("--seeds", type=int, default=20, help="orders of machines per cell")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("ref.json"))
    parser.add_argument(
        "--without", default="", help="MODEL:GPUS: compare medians again without such jobs"
    )
    parser.add_argument("--again", default="", help="take the results from an earlier document")
    return parser


if __name__ == "__main__":
    sys.exit(main())

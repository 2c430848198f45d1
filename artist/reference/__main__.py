"""`make reference`: compare with the original simulator's recorded runs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from artist.errors import ArtistError, ConfigError
from artist.reference.aggregates import Latencies
from artist.reference.report import Inputs, as_table, report, write

NAMES: Mapping[str, str] = {
    "trace_batch_effective": "sensetime_500_batch",
    "trace_poisson_week_effective": "sensetime_411_poisson_week",
}
"""Names of the reference's traces in its results."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both comparisons, print a table, write JSON."""
    asked = _parser().parse_args(arguments)
    started = time.perf_counter()
    try:
        document = report(_inputs(asked))
        write(document, asked.out)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return 3
    sys.stdout.write(f"{as_table(document)}\n\n{asked.out}\n")
    sys.stderr.write(f"{time.perf_counter() - started:.0f} s\n")
    return 0


def _inputs(asked: argparse.Namespace) -> Inputs:
    home: Path = asked.reference
    paths = _paths(asked.trace) or sorted(home.glob("trace_*_effective.csv"))
    names = asked.trace_name.split() or [NAMES.get(path.stem, path.stem) for path in paths]
    if len(names) != len(paths):
        raise ConfigError(f"{len(paths)} traces but {len(names)} names: {' '.join(names)}")
    if asked.seeds < 1:
        raise ConfigError(f"--seeds {asked.seeds}: at least one machine order is needed")
    return Inputs(
        _paths(asked.allocations) or sorted((home / "allocations").glob("fix_*.csv*")),
        dict(zip(names, paths, strict=True)),
        Path(asked.results or home / "results.csv"),
        Latencies(asked.latencies or home / "golden_astra1.csv", asked.workloads),
        asked.seeds,
        asked.workers,
    )


def _paths(text: str) -> list[Path]:
    """Files separated by blanks or commas."""
    return [Path(name) for name in text.replace(",", " ").split()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make reference", description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of recorded runs")
    parser.add_argument("--workloads", type=Path, required=True, help="the original's workloads")
    parser.add_argument("--allocations", default="", help="files, if not the folder's")
    parser.add_argument("--trace", default="", help="files, if not the folder's")
    parser.add_argument("--trace-name", default="", help="their names in the results")
    parser.add_argument("--results", default="", help="file, if not the folder's")
    parser.add_argument("--latencies", type=Path, default=None, help="file, if not the folder's")
    parser.add_argument("--seeds", type=int, default=20, help="machine orders per cell")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("ref.json"))
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`make contention`: run cases of jobs that share links, and compare with other simulators."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from artist.errors import ArtistError
from artist.io.writing import check_file, write_whole
from validation.contention.answers import MODELS
from validation.contention.cases import Case, Truth, read_cases, read_truth
from validation.contention.report import Row, csv_text, errors_table

# A fluid is compared with the fluid simulator, everything else with packets.
TRUTHS = {"fluid": "simgrid_results.csv", "phase": "ns3_results.csv", "mean": "ns3_results.csv"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write, print."""
    options = _parser().parse_args(arguments)
    truth = options.truth or options.cases.parent / TRUTHS[options.model]
    absent = [path for path in (options.cases, truth) if not path.is_file()]
    if absent:
        sys.stdout.write(f"skipped: {absent[0]} is not here; give CASES=FILE and TRUTH=FILE\n")
        return 0
    try:
        check_file(options.out, "OUT")
        rows = compared(read_cases(options.cases), read_truth(truth), options.model)
        write_whole(options.out, csv_text(rows))
        table = errors_table(rows)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return cause.exit_code if isinstance(cause, ArtistError) else 3
    without = sum(row.truth is None for row in rows)
    sys.stdout.write(f"Slowdowns by `{options.model}` against {truth.name}\n\n{table}")
    sys.stdout.write(f"\n{options.out}: {len(rows)} rows, {without} without a truth\n")
    return 0


def compared(
    cases: Sequence[Case], truth: Mapping[tuple[str, int], Truth], model: str
) -> list[Row]:
    """Each job of each case, as a model answers it, beside the truth."""
    return [
        Row(case.id, case.family, job.id, ours, truth.get((case.id, job.id)))
        for case in cases
        for job, ours in zip(case.jobs, MODELS[model](case), strict=True)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make contention", description=__doc__)
    parser.add_argument("--cases", type=Path, required=True, help="cases, a JSON object a line")
    parser.add_argument("--truth", type=_path, help="answers of another simulator, CSV")
    parser.add_argument("--model", choices=sorted(MODELS), required=True, help="who answers")
    parser.add_argument("--out", type=Path, required=True, help="slowdowns: ours and theirs, CSV")
    return parser


def _path(text: str) -> Path | None:
    return Path(text) if text else None


if __name__ == "__main__":
    sys.exit(main())

"""`make pollux`: replay the published workloads, and count the jobs that end when theirs do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from artist.errors import ArtistError
from validation.pollux.applications import applications
from validation.pollux.replay import PERIOD_S, POLICIES, replay


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, compare, print a line for each policy, load and workload."""
    options = _parser().parse_args(arguments)
    folder: Path = options.simulator
    try:
        known = applications(folder / "traces")
        sys.stdout.write("policy\tload\tworkload\tjobs\twithin_round\tequal\tmean_jct_s\ttheirs\n")
        for policy in options.policies or POLICIES:
            for load in options.loads:
                results = folder / "results-jobload" / f"{policy}-{load}" / "summary.json"
                published = json.loads(results.read_text(encoding="utf-8"))["jcts"]
                workloads = folder / ("workloads" if load == "1.0" else f"workloads-{load}")
                for name in options.workloads or sorted(published):
                    ours = replay(workloads / f"{name}.csv", policy, known)
                    theirs: dict[str, float] = published[name]
                    off = [abs(ours[job] - jct_s) for job, jct_s in theirs.items()]
                    cells = (
                        policy, load, name, len(off), sum(x <= PERIOD_S for x in off),
                        sum(round(x) == 0 for x in off), f"{sum(ours.values()) / len(ours):.1f}",
                        f"{sum(theirs.values()) / len(theirs):.1f}",
                    )  # fmt: skip
                    sys.stdout.write("\t".join(map(str, cells)) + "\n")
                    sys.stdout.flush()
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return cause.exit_code if isinstance(cause, ArtistError) else 3
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make pollux", description=__doc__)
    parser.add_argument("--simulator", type=Path, required=True, help="simulator/ of its authors")
    parser.add_argument("--policies", nargs="*", choices=[*POLICIES], help="all by default")
    parser.add_argument("--loads", nargs="*", default=["0.5", "1.0", "1.5", "2.0"])
    parser.add_argument("--workloads", nargs="*", help="all of them by default")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""A job's colour: the same in every chart of a page, under every policy.

It follows from the job's row in `jobs.parquet`, which is its place in the trace. So the runs of a
setting agree, and neighbours in the trace differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from artist.report.reader import Rows

TONES = 10
_STRIDE = 7  # without a common factor with TONES, so that ten neighbours have ten colours


def job_tones(jobs: Rows) -> Mapping[str, str]:
    """The name of the colour of each job: `j0` to `j9`."""
    return {name: f"j{row * _STRIDE % TONES}" for row, name in enumerate(jobs.text["job_id"])}

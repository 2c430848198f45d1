"""Tab-separated traces of Shockwave (Zheng et al., NSDI'23), which extend Gavel's.

Source: https://github.com/uw-mad-dash/shockwave, scheduler/traces: 12 columns without a header.
`gavel.py` explains the columns that both have.

Shockwave adds duration, in seconds: the run time at the batch size with which the job starts.
Changes of the batch size during the run (column mode) are not followed.
"""

from __future__ import annotations

from artist.trace.foreign.gavel import job_of
from artist.trace.foreign.rows import ForeignJob, TraceRow

COLUMNS = (
    "job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps",
    "scale_factor", "mode", "priority_weight", "slo", "duration", "arrival_time",
)  # fmt: skip


def job(row: TraceRow) -> ForeignJob:
    """The job in a row; no row is dropped."""
    return job_of(row, row.seconds("duration"))

"""Which column of a file most likely holds what a format calls by another name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

# Names of one column, without signs, after published traces and schedulers' logs.
_SAME = (
    {
        "arrivals", "arrival", "arrivaltime", "arrived", "submit", "submits", "submitted",
        "submittime", "submittedat", "submittedtime", "submissiontime", "queuedat", "createdat",
        "creationtime",
    },
    {
        "gpu", "gpus", "ngpu", "ngpus", "numgpu", "numgpus", "gpunum", "gpucount", "reqgpus",
        "gpusrequested", "worldsize", "scalefactor", "numreplicas", "maxparallelism",
    },
    {"id", "job", "jobid", "jobname", "jobnumber", "name", "uuid"},
    {
        "duration", "durations", "durationh", "durationhours", "runtime", "elapsed", "elapsedtime",
        "length", "hours", "minutes", "runhours", "runs", "walltime", "servicetime",
    },
    {"model", "modelname", "network", "application", "jobtype", "workload", "arch"},
    {
        "iterations", "iters", "steps", "numsteps", "totalsteps", "numiterations",
        "totaliterations",
    },
    {"computes", "compute", "computetime", "steptime", "iterationtime", "timeperiteration"},
    {"user", "username", "userid", "owner", "tenant"},
)  # fmt: skip

_UNITS = {
    "us": {"us", "micros", "microseconds"},
    "ms": {"ms", "msec", "millis", "milliseconds"},
    "min": {"min", "mins", "minute", "minutes"},
    "h": {"h", "hr", "hrs", "hour", "hours"},
    "d": {"d", "day", "days"},
}

# Comparing texts takes a time that grows with the product of their lengths.
_LONGEST = 60


def alike(
    wanted: Sequence[str], columns: Sequence[str], *, spelled: bool = False
) -> dict[str, str]:
    """For each wanted column the one of the file that looks alike; each serves once.

    `spelled`: only where a column has another usual name.

    >>> alike(["num_gpus", "submit_time", "duration"], ["n_gpus", "submitted", "colour"])
    {'num_gpus': 'n_gpus', 'submit_time': 'submitted'}
    """
    left = {name: _plain(name) for name in columns if len(name) <= _LONGEST}
    pairs: dict[str, str] = {}
    for target in wanted:
        own = _plain(target)
        names = next((group for group in _SAME if own in group), {own})
        same = next((name for name, plain in left.items() if plain in names), None)
        if same is not None:
            pairs[target] = same
            del left[same]
    for target in () if spelled else wanted:
        near = difflib.get_close_matches(_plain(target), left.values(), n=1, cutoff=0.6)
        if target not in pairs and near:
            pairs[target] = next(name for name, plain in left.items() if plain == near[0])
            del left[pairs[target]]
    return {target: pairs[target] for target in wanted if target in pairs}


def unit_in(column: str) -> str | None:
    """The unit that a column's name ends in: `run_hours` is in `h`; None if it says none."""
    words = re.split(r"[^a-z]+", column[:_LONGEST].casefold())
    return next((unit for unit, names in _UNITS.items() if words[-1] in names), None)


def _plain(name: str) -> str:
    """A name without signs and in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())

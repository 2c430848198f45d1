"""Which column of a file most likely holds what a format calls by another name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

# Each group has names of one column, without signs: first those in published traces and schedulers'
# logs, then German ones.
_SAME = (
    {
        "arrivals", "arrival", "arrivaltime", "arrived", "submit", "submits", "submitted",
        "submittime", "submittedat", "submittedtime", "submissiontime", "queuedat", "createdat",
        "creationtime",
        "ankunft", "ankunftszeit", "eingang", "eingereicht",
    },
    {
        "card", "cards", "ncards", "numcards",
        "gpu", "gpus", "ngpu", "ngpus", "numgpu", "numgpus", "gpunum", "gpucount", "reqgpus",
        "gpusrequested", "worldsize", "scalefactor", "numreplicas", "maxparallelism",
        "anzahlgpus", "gpuanzahl",
    },
    {
        "id", "job", "jobid", "jobname", "jobnumber", "name", "uuid", "auftrag", "auftragsid",
        "auftragsnummer",
    },
    {
        "duration", "durations", "durationh", "durationhours", "runtime", "elapsed", "elapsedtime",
        "length", "hours", "minutes", "seconds", "runhours", "runs", "walltime", "wallclock",
        "servicetime", "jobduration", "jobruntime", "executiontime",
        "dauer", "laufzeit",
    },
    {
        "model", "modelname", "modeltype", "net", "network", "networkname", "nn", "dnn",
        "application", "jobtype", "workload", "arch", "architecture",
        "modell", "netz", "netzwerk",
    },
    {
        "iterations", "iters", "steps", "numsteps", "totalsteps", "numiterations",
        "totaliterations", "iterationen", "schritte",
    },
    {
        "computes", "compute", "computetime", "steptime", "iterationtime", "timeperiteration",
        "timeperstep", "secondsperiteration", "secondsperstep",
    },
    {"user", "username", "userid", "owner", "benutzer", "nutzer", "gruppe"},
    {
        "tenant", "team", "group", "groupname", "account", "project", "department",
        "mandant", "projekt", "abteilung",
    },
    {"gpukinds", "gpukind", "gputypes", "gputype", "gpumodels", "gpumodel"},
    {"parallelism", "parallelization", "parallelisation", "axes"},
)  # fmt: skip

# Without a column of arrivals, the times when jobs started are used.
_STARTS = {"start", "starts", "started", "starttime", "startedat", "beginn"}

# Beginnings of words for a wait, a moment or a limit, which no column of run times has.
_NO_RUN_TIMES = (
    "wait", "queu", "pend", "delay", "start", "begin", "end", "finish", "complet", "submit",
    "arriv", "creat", "limit", "timelimit", "deadline", "clock", "wart",
)  # fmt: skip

_UNITS = {
    "s": {"s", "sec", "secs", "second", "seconds"},
    "us": {"us", "micros", "microseconds"},
    "ms": {"ms", "msec", "millis", "milliseconds"},
    "min": {"min", "mins", "minute", "minutes"},
    "h": {"h", "hr", "hrs", "hour", "hours"},
    "d": {"d", "day", "days"},
}

# Columns of times, without signs. Their names may end in a unit.
_TIMES = {"submittime", "arrivals", "duration", "computes"}

# Words before the unit in such a name, as in `step_ms`.
_STEPS = ("step", "iteration", "iter")

_ARRIVALS = ("arrival_s", "submit_time")

# Most letters of a name to compare: the time grows with the product of the lengths.
_LONGEST = 60


def alike(
    wanted: Sequence[str], columns: Sequence[str], *, spelled: bool = False
) -> dict[str, str]:
    """Wanted column -> the column of the file with a similar name. Each column is used once.

    `spelled`: accept only other usual names, no similar spellings.

    >>> alike(["num_gpus", "submit_time", "duration"], ["n_gpus", "submitted", "colour"])
    {'num_gpus': 'n_gpus', 'submit_time': 'submitted'}
    """
    left = {name: _plain(name) for name in columns if len(name) <= _LONGEST}
    pairs: dict[str, str] = {}
    for target in wanted:
        own = _plain(target)
        names = next((group for group in _SAME if own in group), {own})
        same = next((name for name, plain in left.items() if plain in names), None)
        if same is None and own in _TIMES:
            stems = {*names, *(_STEPS if own == "computes" else ())}
            same = next((name for name in left if _without_unit(name) in stems), None)
        if same is not None:
            pairs[target] = same
            del left[same]
    for target in () if spelled else wanted:
        started = next((name for name in left if is_start(name)), None)
        if target in _ARRIVALS and target not in pairs and started:
            pairs[target] = started
            del left[started]
        near = difflib.get_close_matches(_plain(target), left.values(), n=1, cutoff=0.6)
        if target not in pairs and near:
            pairs[target] = next(name for name, plain in left.items() if plain == near[0])
            del left[pairs[target]]
    return {target: pairs[target] for target in wanted if target in pairs}


def is_start(column: str) -> bool:
    """Whether a column's name says that it holds the times when jobs started."""
    return _plain(column) in _STARTS


def is_end(column: str) -> bool:
    """Whether a column's name says that it holds the times when jobs ended."""
    return any(word.startswith(("end", "finish", "complet")) for word in _words(column))


def is_no_run_time(column: str) -> bool:
    """Whether a column's name says that it holds something other than how long jobs run.

    >>> [is_no_run_time(name) for name in ("waited", "started_clock", "timeLimit", "took")]
    [True, True, True, False]
    """
    return any(word.startswith(_NO_RUN_TIMES) for word in _words(column))


def unit_in(column: str) -> str | None:
    """The unit that a column's name ends in, unless it is seconds; None if it has none.

    >>> unit_in("run_hours"), unit_in("runtimeMs"), unit_in("Runtime [h]"), unit_in("length_s")
    ('h', 'ms', 'h', None)
    """
    unit = unit_called(_words(column)[-1])
    return None if unit == "s" else unit


def unit_called(word: str) -> str | None:
    """The unit of a usual name of it; None if there is none.

    >>> unit_called("hours"), unit_called("fortnights")
    ('h', None)
    """
    word = word.strip().casefold()
    return next((unit for unit, names in _UNITS.items() if word in names), None)


def _without_unit(column: str) -> str:
    """A name without signs and without the unit at its end: `runtime` of `runtime_h`."""
    *stem, last = _words(column)
    return "".join(stem) if any(last in names for names in _UNITS.values()) else ""


def _words(column: str) -> list[str]:
    """The words of a name in lower case: of `runtime_h` and of `runtimeH` the same two."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column[:_LONGEST])
    return re.findall(r"[a-z]+", apart.casefold()) or [""]


def _plain(name: str) -> str:
    """A name without signs and in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())

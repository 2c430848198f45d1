"""`artist why`: why a job waited, and how it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, print_json, print_table, print_text
from artist.errors import ConfigError
from artist.results.terms.number_text import (
    HOUR,
    NO_DAYS,
    DisplayUnit,
    column_unit,
    in_unit,
    time_text,
    time_unit,
)

_HOURS, _SECONDS = DisplayUnit(HOUR, "h"), DisplayUnit(1.0, "s")


class By(StrEnum):
    """Value of `why --by`."""

    TOTAL = "total"
    WAIT = "wait"
    SLOWDOWN = "slowdown"


_LISTS = {
    By.TOTAL: "the jobs that waited longest in all, each with its longest wait",
    By.WAIT: "the longest waits",
    By.SLOWDOWN: "waits of the jobs with the largest slowdown",
}


def why(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="A job_id.")] = None,
    by: Annotated[
        By,
        typer.Option(
            help="Without JOB: what to rank the worst ten by; total adds up the waits of a job."
        ),
    ] = By.TOTAL,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Say why a job waited and how it ran; without JOB, list the ten that waited longest."""
    from artist.report.reader import find_runs
    from artist.results.waiting.job_story import job_story, worst_waits

    runs = find_runs(run)
    if runs != [run]:
        raise ConfigError(f"{run}: holds {len(runs)} runs; name one of them, e.g. {runs[0]}")
    if job is None:
        _print_waits(run, worst_waits(run, by), by, format_)
    elif format_ is Format.JSON:
        print_json(job_story(run, job))
    else:
        _print_story(job_story(run, job))


def _print_waits(run: Path, waits: list[dict[str, Any]], by: By, format_: Format) -> None:
    """Print the longest waits: as a table with totals, or as JSON."""

    from artist.results.waiting.job_story import cause_words, causes_text, waited_by_cause

    if format_ is Format.JSON:
        print_json(waits)
        return
    unit = _clock(max((wait["end_s"] for wait in waits), default=0.0))
    lengths_s = (wait[name] for wait in waits for name in ("wait_s", "queue_delay_s"))
    length = column_unit(lengths_s, days=NO_DAYS)
    start = f"from {unit.name}"
    columns = ("job", "waited", start, "wait", "slowdown", "GPUs", "cause", "reason")
    rows = [
        (
            wait["job_id"],
            _in_all(wait, length),
            _at(wait["start_s"], unit),
            in_unit(wait["wait_s"], length),
            wait["slowdown"],
            wait["gpus"],
            cause_words(wait["cause"]),
            wait["reason"],
        )
        for wait in waits
    ]
    print_table(f"{run}: {_LISTS[by]}", columns, rows)
    if not rows:
        print_text("No job waited: each got its GPUs the instant it arrived.")
        return
    print_text(f"All waits of the run: {causes_text(waited_by_cause(run))}.")
    for other, lists in _LISTS.items():
        if other is not by:
            print_text(f"artist why {run} --by {other.value} lists {lists}.")
    print_text(f"artist why {run} JOB tells the whole story of a job.")


def _in_all(wait: dict[str, Any], unit: DisplayUnit) -> str:
    """How long the job waited in all, and in how many waits if there are several."""
    number = f" in {wait['waits']} waits" if wait["waits"] > 1 else ""
    return f"{in_unit(wait['queue_delay_s'], unit)}{number}"


def _print_story(story: dict[str, Any]) -> None:
    """Print a job's waits and stays in chronological order, and their totals."""
    gpus = "1 GPU" if story["gpus"] == 1 else f"{story['gpus']} GPUs"
    title = f"job {story['job_id']}: {story['model']} on {gpus}"
    unit = _clock(story["finish_s"])
    waits = zip(story["waits"], _wait_texts(story["waits"], unit), strict=True)
    events = [(wait["start_s"], wait["end_s"], "waits", text) for wait, text in waits]
    events += [
        (stay["start_s"], stay["end_s"], *_stay_line(stay, story["gpus"]))
        for stay in story["stays"]
    ]
    events.sort(key=lambda event: event[0])
    took = column_unit((end_s - start_s for start_s, end_s, *_ in events), days=NO_DAYS)
    columns = (f"from {unit.name}", f"to {unit.name}", "took", "what", "why, where")
    rows = [
        (_at(start_s, unit), _at(end_s, unit), in_unit(end_s - start_s, took), *texts)
        for start_s, end_s, *texts in events
    ]
    print_table(f"{title}, arrived at {time_text(story['arrival_s'], unit)}", columns, rows)
    for text in _totals(story):
        print_text(text)


def _clock(latest_s: float) -> DisplayUnit:
    """The unit of instants up to `latest_s`: hours, or seconds if that is before three hours."""
    return _HOURS if latest_s >= 3 * HOUR else _SECONDS


def _at(instant_s: float, unit: DisplayUnit) -> str:
    return f"{instant_s / unit.seconds:,.3f}"


def _wait_texts(waits: Sequence[dict[str, Any]], unit: DisplayUnit) -> Iterator[str]:
    """A text for each wait. If it equals that of an earlier wait, it refers to that one."""

    from artist.results.waiting.job_story import cause_words, ended_words

    told: dict[str, float] = {}
    for wait in waits:
        began = "" if wait["began"] == "arrived" else f"({ended_words(wait['began'])}) "
        text = _wait_text(wait)
        if text in told:
            text = f"as in the wait from {_at(told[text], unit)} {unit.name}"
        else:
            told[text] = wait["start_s"]
        yield f"{began}{cause_words(wait['cause'])}: {text}"


def _wait_text(wait: dict[str, Any]) -> str:
    """Why a job waited, and which jobs were served."""
    texts = [wait["reason"]]
    if wait["waited_for"]:
        texts.append(f"most GPU time was held by {_jobs(wait['waited_for'])}")
    if wait["overtaken_by"]:
        more = wait["overtakers"] - len(wait["overtaken_by"])
        texts.append(
            f"overtaken by {_jobs(wait['overtaken_by'])}" + (f" and {more} more" * (more > 0))
        )
    return "; ".join(texts)


def _stay_line(stay: dict[str, Any], submitted_gpus: int) -> tuple[str, str]:
    """What a job did in a stay, and where and how fast it ran."""

    from artist.results.waiting.job_story import ended_words

    slowdown = stay["slowdown"]
    speed = "" if slowdown is None else f", {slowdown:.3f} x its isolated time"
    if speed and stay["gpus"] != submitted_gpus:
        speed += " as submitted"
    if slow := stay.get("slow_unit"):
        speed += f" on {slow}"
    kind = f" of {stay['gpu_kind']}" if "gpu_kind" in stay else ""
    if stay.get("beside"):
        kind += f" beside {_jobs(stay['beside'])}"
    if stay.get("batch"):
        kind += f" with a batch of {stay['batch']:,}"
    where = f"{stay['signature']}{kind}, tier {stay['level']}{speed}; {ended_words(stay['ended'])}"
    return f"runs on {stay.get('gpu_share', 1) * stay['gpus']:g}", where


_HAND_OVER_S = 1e-6
"""GPUs pass from one job to the next in less; `waits.parquet` does not count that as a wait."""


def _totals(story: dict[str, Any]) -> list[str]:
    """Sentences about the job as a whole: where its time went."""
    from artist.results.waiting.job_story import causes_text

    jct_s = story["jct_s"]
    unit = time_unit(jct_s, days=NO_DAYS)

    def told(time_s: float) -> str:
        return time_text(time_s if time_s >= _HAND_OVER_S else 0.0, unit)

    compared = ""
    if story["slowdown"] is not None:
        compared = f", {story['slowdown']:.3f} x the {told(story['alone_s'])} of its isolated run"
        batch = " and batch" if any(stay.get("batch") for stay in story["stays"]) else ""
        if batch or any(stay["gpus"] != story["gpus"] for stay in story["stays"]):
            compared += f" with its submitted GPUs{batch}"
    start_s = story.get("first_start_s")
    first = f" ({told(start_s)} for its first start)" if start_s else ""
    ended = "was cancelled" if story.get("cancelled") else "finished"
    parts = [("waited", "queue_delay_s"), ("ran", "run_s")]
    spent = " and ".join(
        f"{word} {told(story[key])} ({100 * story[key] / jct_s if jct_s else 0:.1f} %)"
        for word, key in parts
    )
    saving_s = story.get("checkpoint_s")
    saved = f", {told(saving_s)} went into checkpoints" if saving_s else ""
    return [
        f"It {ended} {told(jct_s)} after its arrival{compared}.",
        f"It {spent}; of this run time {told(story['compute_s'])} was computing, "
        f"{told(story['comm_s'])} was exposed communication"
        f"{saved} and {told(story['stalled_s'])} stood still{first}; "
        f"{told(story['lost_s'])} of it was lost work.",
        *_lost_on_links(story, told),
        *([f"Why it waited: {causes_text(story['causes'])}."] if story["causes"] else []),
    ]


def _lost_on_links(story: dict[str, Any], told: Callable[[float], str]) -> Iterator[str]:
    """What its own full uplinks cost the job, and what other jobs did; nothing without own loss."""
    if own_s := story.get("contention_own_s"):
        # The two sums differ by rounding even if no other job was on the links.
        others_s = max(story["contention_lost_s"] - own_s, 0.0)
        yield (
            "Its own uplinks carry less than it sends, which would cost it "
            f"{told(own_s)} even in isolation. Other jobs on its links cost {told(others_s)}."
        )


def _jobs(names: list[str]) -> str:
    return ("job " if len(names) == 1 else "jobs ") + ", ".join(names)

"""`artist forecast`: when will my job start?"""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options, slurm_options
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.cli.progress_bar import bar_of_runs
from artist.errors import ConfigError, shortened
from artist.results.terms.number_text import DisplayUnit, column_unit, in_unit, percent, time_text
from artist.units import counted, seconds_of

if TYPE_CHECKING:
    from artist.experiments.recorded.forecast import Forecast, StartForecast

_COLUMNS = ("job", "GPUs", "median", "80 % from", "to", "never", "Slurm says", "did")

_FLAGS = {
    "correct gpus or": "correct --gpus or",
    "gpu_kinds": "--gpu-kind",
    "hint_nodes": "--nodes",
    "hint_partition": "--partition",
    "hint_qos": "--qos",
}
"""What errors about the job that `--gpus` asks about call its flags."""
_MOST_NAMED = 3
_EARLIER = 10
"""Default of `--calibrate`. So many moments double the time of a forecast."""


def forecast(
    folder: slurm_options.SlurmFolder,
    job: Annotated[str | None, typer.Option(help="A waiting job (default: all).")] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs of a job that is not yet submitted.")
    ] = None,
    gpu_kind: Annotated[str, typer.Option(help="The kind of its GPUs, e.g. a100.")] = "",
    limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="Its time limit, e.g. 4h.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Its number of machines.")] = None,
    partition: Annotated[str, typer.Option(help="Its partition.")] = "",
    account: Annotated[str, typer.Option(help="Its account.")] = "",
    user: Annotated[str, typer.Option(help="Its user.")] = "",
    qos: Annotated[str, typer.Option(help="Its QOS.")] = "",
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time to forecast from (default: the log's last)."),
    ] = None,
    futures: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of simulated futures.")
    ] = 100,
    horizon: Annotated[
        str | None, typer.Option(metavar="TIME", help="How far ahead to look, e.g. 2d.")
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            metavar="MOMENTS",
            min=1,
            help="Forecast from this many moments of the log, and say how often the "
            "intervals held.",
        ),
    ] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(
            metavar="MOMENTS",
            min=0,
            help="Correct intervals by the errors at this many earlier moments (default 10).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    keep_names: slurm_options.KeepNames = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.NoHints = False,
) -> None:
    """Forecast when the waiting jobs of a Slurm log will start, and how certain that is."""
    from artist.experiments.recorded.forecast import calibration
    from artist.experiments.recorded.forecast import forecast as forecast_of
    from artist.experiments.recorded.futures import Asked

    if job is not None and gpus is not None:
        raise ConfigError("--job and --gpus name two jobs; leave one out")
    named = {"--limit": limit, "--nodes": nodes, "--partition": partition, "--account": account,
             "--user": user, "--qos": qos, "--gpu-kind": gpu_kind}  # fmt: skip
    if gpus is None and (given := [name for name, value in named.items() if value]):
        raise ConfigError(f"{given[0]} describes a job that is not submitted yet; add --gpus")
    one = {"--job": job, "--gpus": gpus, "--at": at, "--calibrate": calibrate}
    if check is not None and (unread := [x for x, value in one.items() if value is not None]):
        raise ConfigError(f"--check forecasts all of the log without {unread[0]}; leave one out")
    horizon_s = None if horizon is None else _seconds("--horizon", horizon, seconds_of)
    with TemporaryDirectory() as inputs:
        if check is not None:
            with (
                slurm_options.in_columns_of_sacct(),
                bar_of_runs(quiet=quiet, what="futures") as show,
            ):
                facts = calibration(
                    folder,
                    Path(inputs),
                    moments=check,
                    futures=futures,
                    horizon_s=horizon_s,
                    seed=seed,
                    show=show,
                )
            print_facts(f"forecasts of the past of {folder}", facts, format_)
            return
        asked = None
        if gpus is not None:
            hints = {"hint_nodes": nodes, "hint_partition": partition, "hint_qos": qos}
            asked = Asked(
                gpus,
                None if limit is None else _seconds("--limit", limit, seconds_of),
                tuple((name, str(value)) for name, value in hints.items() if value),
                account,
                user,
                gpu_kind,
            )
        with (
            slurm_options.in_columns_of_sacct(_FLAGS),
            bar_of_runs(quiet=quiet, what="futures") as show,
        ):
            found = forecast_of(
                folder,
                Path(inputs),
                at=at,
                job=job,
                asked=asked,
                futures=futures,
                horizon_s=horizon_s,
                seed=seed,
                keep_names=keep_names,
                earlier=_EARLIER if calibrate is None else calibrate,
                show=show,
            )
    if format_ is Format.JSON:
        print_json(_as_json(found))
        return
    if not found.jobs:
        moment = "give --at" if at is None else "another --at"
        print_text(
            f"No job is waiting at {_clock(found.at_s)}; ask about one with --gpus, or {moment}."
        )
        return
    if len(found.jobs) == 1:
        for sentence in _sentences(found, found.jobs[0]):
            print_text(sentence)
    else:
        title = f"starts, from {_clock(found.at_s)} on"
        print_table(title, _COLUMNS, _rows(found))
    if not quiet:
        for sentence in _basis(found):
            note(sentence)


def _seconds(option: str, text: str, read: Any) -> float:
    found = read(text)
    if found is None or not 0 < found < math.inf:
        raise ConfigError(f"{option} {shortened(text)}: expected a time such as 30min, 4h or 2d")
    return float(found)


def _clock(at_s: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(round(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _when(found: Forecast, after_s: float | None, unit: DisplayUnit | None = None) -> str:
    if after_s is None:
        return ""
    if math.isinf(after_s):
        return f"after {time_text(found.horizon_s)}"
    left_s = float(max(0, round(after_s)))
    length = time_text(left_s) if unit is None else in_unit(left_s, unit)
    return f"{_clock(found.at_s + after_s)} (in {length})"


def _sentences(found: Forecast, one: StartForecast) -> list[str]:
    """When it starts, how sure that is, and what Slurm says."""
    low, median, high = one.interval_s
    name = "Such a job" if one.job_id == "asked" else f"Job {one.job_id}"
    start = _when(found, median) if math.isinf(median) else f"at {_when(found, median)}"
    futures = counted(found.futures, "future")
    end = _clock(found.at_s + found.horizon_s)
    never = f"; in {percent(one.never)} % it has not started by {end}" if one.never else ""
    within = f"In 80 % of them it starts between {_when(found, low)} and {_when(found, high)}"
    if _when(found, low) == _when(found, high):
        within = f"In 80 % of them it starts at {_when(found, low)}"
    if math.isinf(high):
        within = f"In 90 % of them it starts at {_when(found, low)} or later"
    who = f"{name} ({counted(one.gpus, 'GPU')})"
    sentences = [f"{who} starts {start}, as the median of {futures}.", f"{within}{never}."]
    if math.isinf(low):
        sentences = [f"{who} has not started by {end} in {percent(one.never)} % of {futures}."]
    if one.slurm_s is not None:
        sentences.append(f"Slurm expects {_when(found, one.slurm_s)}.")
    if one.recorded_s is not None:
        sentences.append(f"According to the log, it started at {_when(found, one.recorded_s)}.")
    return sentences


def _rows(found: Forecast) -> list[tuple[object, ...]]:
    times = [(*one.interval_s, one.slurm_s, one.recorded_s) for one in found.jobs]
    told_s = (x for row in times for x in row if x is not None and math.isfinite(x))
    unit = column_unit(max(0.0, x) for x in told_s)
    rows = []
    for one, row in zip(found.jobs, times, strict=True):
        low, median, high, *others = (_when(found, x, unit) for x in row)
        never = f"{100 * one.never:.0f} %"
        rows.append((one.job_id, one.gpus, median, low, high, never, *others))
    return rows


def _basis(found: Forecast) -> list[str]:
    """What the forecast rests on, in sentences."""
    named, left = found.not_modelled[:_MOST_NAMED], len(found.not_modelled) - _MOST_NAMED
    more = f" and {left} more" if left > 0 else ""
    moved = "Earlier intervals held too few starts, so these are corrected by their errors."
    return [
        *([moved] if any(found.moved) else []),
        f"At {_clock(found.at_s)}, running jobs: {found.running:,}; waiting: {found.waiting:,}. "
        f"Run times are drawn from {counted(found.seen, 'job')} of the log, later arrivals from "
        "its own past.",
        *([f"Not modelled: {'; '.join(named)}{more}."] if named else []),
        "artist forecast DIR --check 20 says how often such intervals held on this log.",
    ]


def _as_json(found: Forecast) -> dict[str, Any]:
    """The forecast as JSON; None is later than the horizon."""

    def finite(value: float | None) -> float | None:
        return None if value is None or math.isinf(value) else value

    return {
        "at_s": found.at_s,
        "horizon_s": found.horizon_s,
        "futures": found.futures,
        "not_modelled": list(found.not_modelled),
        "moved_shares": [finite(x) for x in found.moved],
        "jobs": [
            {
                "job_id": x.job_id,
                "gpus": x.gpus,
                "waited_s": x.waited_s,
                "low_s": finite(x.interval_s[0]),
                "median_s": finite(x.interval_s[1]),
                "high_s": finite(x.interval_s[2]),
                "never": x.never,
                "slurm_s": x.slurm_s,
                "recorded_s": x.recorded_s,
                "run_time_from": x.group,
                "starts_s": [finite(start) for start in x.starts_s],
            }
            for x in found.jobs
        ],
    }

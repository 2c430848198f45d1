"""Writes what was measured.

measured.csv     for `artist calibrate --measured`
layers.csv       forward and backward times and gradient bytes by layer
all_reduce.log   for `artist calibrate fabric`, unless there was only one process
beside.csv       instead of these three: speeds of models that shared a device, for `interference`
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path

from artist.errors import ConfigError
from artist.io.writing import write_whole
from artist.measure.all_reduces import log_text
from artist.measure.beside import SharedSpeeds
from artist.measure.processes import MeasuredMachine, MeasurementPlan
from artist.measure.step import LayerTimes

FILES = ("measured.csv", "layers.csv", "all_reduce.log")
BESIDE = "beside.csv"


def check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse to replace an earlier measurement unasked, before anything is measured.

    Raises:
        ConfigError: one of the files exists.
    """
    there = [name for name in (*FILES, BESIDE) if (out / name).exists()]
    if there and not overwrite:
        raise ConfigError(
            f"--out {out}: holds {there[0]} already; choose another folder, or replace it with "
            "--overwrite"
        )


def write_measured(chosen: MeasurementPlan, measured: MeasuredMachine) -> list[Path]:
    """Write the files to the plan's folder and return their paths.

    Raises:
        ConfigError: the folder cannot be written.
    """
    texts = {
        FILES[0]: _measured_csv(chosen, measured),
        FILES[1]: _layers_csv(measured.step.layers),
    }
    if measured.points:
        texts[FILES[2]] = log_text(
            measured.points, measured.hosts, chosen.backend, measured.hardware
        )
    return _write(chosen.out, texts)


def write_shared(out: Path, pairs: Sequence[SharedSpeeds], hardware: str) -> Path:
    """Write the speeds of pairs to a folder and return the path.

    Raises:
        ConfigError: the folder cannot be written.
    """
    import torch

    text = io.StringIO()
    text.write(
        f"# source: artist measure --beside, torch {torch.__version__}\n"
        f"# hardware: 1 x {hardware}\n"
        f"# when: {datetime.now(UTC):%Y-%m-%d}\n"
    )
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("model_a", "model_b", "speed_a", "speed_b"))
    for pair in pairs:
        rows.writerow((*pair.models, *(f"{speed:.3f}" for speed in pair.speeds)))
    return _write(out, {BESIDE: text.getvalue()})[0]


def _write(out: Path, texts: Mapping[str, str]) -> list[Path]:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigError(f"--out {out}: cannot be written ({cause})") from cause
    for name, text in texts.items():
        write_whole(out / name, text)
    return [out / name for name in texts]


def _measured_csv(chosen: MeasurementPlan, measured: MeasuredMachine) -> str:
    """The text of `measured.csv`: one row, as `artist.calibrate.measurements` reads it."""
    import torch

    text = io.StringIO()
    text.write(
        f"# source: artist measure {chosen.model}, {chosen.steps} steps, "
        f"torch {torch.__version__}, {chosen.backend}\n"
        f"# hardware: {len(measured.hosts)} x {measured.hardware}\n"
        f"# when: {datetime.now(UTC):%Y-%m-%d}\n"
    )
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("model", "placement", "compute_ms", "exposed_comm_ms"))
    step = measured.step
    times = (f"{step.compute_ms:.6g}", f"{step.exposed_comm_ms:.6g}")
    rows.writerow((chosen.model, _placement(measured.hosts), *times))
    return text.getvalue()


def _placement(hosts: list[str]) -> str:
    """The processes on each host as a placement: two hosts with 8 processes are `8,8`."""
    return ",".join(str(count) for count in Counter(hosts).values())


def _layers_csv(layers: tuple[LayerTimes, ...]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("layer", "forward_ms", "backward_ms", "gradient_bytes"))
    rows.writerows(astuple(layer) for layer in layers)
    return text.getvalue()

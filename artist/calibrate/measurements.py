"""Reads measured communication shares from a small CSV file.

    # source: where the figures come from (required)
    # hardware: 8 x NVIDIA A100, NVSwitch
    # who: names
    # when: 2025
    # kind: measured (default), or paper: a paper's table, which was not measured here
    model,placement,comm_percent,use,note
    resnet50,4+4,12,fit,
    resnet50,4/4,38,compare,why the simulation may differ

`comm_percent` is the exposed communication of one iteration as a percentage of its compute. The
columns `compute_ms` and `exposed_comm_ms` may replace it; `artist measure` writes those. `use` is
`fit` (default) or `compare`: the scales are fitted to a row, or the simulation is only compared
with it. `note` is free text. `placement` is written as for `artist latency`. A row on one GPU (`1`)
has only `compute_ms`: the model gets this compute time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from artist.errors import ConfigError, TraceError
from artist.io.digests import sha256
from artist.io.reading import as_float, decode, read_bytes
from artist.io.shipped import resource
from artist.trace.native.read_table import read_csv
from artist.workload.models import canonical

DEFAULT = "dally2025-table1"
"""The name of the shipped measurements: Table I of the Dally paper."""

ONE_GPU = "1"
"""The placement whose row gives a compute time."""

SHORTEST_MS, LONGEST_MS = 1e-3, 1e7
"""Bounds of an iteration on one GPU, to catch wrong units. A kernel takes microseconds."""

_HEADER = ("source", "hardware", "who", "when", "kind")
_KINDS = ("measured", "paper")
_COLUMNS = ("model", "placement", "comm_percent", "compute_ms", "exposed_comm_ms", "use", "note")
_USES = ("fit", "compare")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured iteration. `share` is exposed communication over compute.

    `compute_ms` is the iteration's time on one GPU; None for a placement of several GPUs.
    """

    model: str
    placement: str
    share: float
    fitted: bool = True
    note: str = ""
    compute_ms: float | None = None


@dataclass(frozen=True, slots=True)
class MeasurementSet:
    """A file of measurements with its provenance.

    `kind` is `measured`, or `paper` for a table of a paper, whose figures may be simulated.
    """

    name: str
    digest: str
    source: str
    hardware: str
    who: str
    when: str
    rows: tuple[Measurement, ...]
    kind: str = "measured"

    def models(self) -> list[str]:
        """The models with a row to fit to, in the order of the file."""
        return list(dict.fromkeys(row.model for row in self.rows if row.fitted))

    def of(self, model: str) -> tuple[Measurement, ...]:
        """The rows of a model. If `resnet50@batch=64` has none, these are the rows of `resnet50`.

        Raises:
            ConfigError: there is nothing to fit this model to.
        """
        own = {row.model for row in self.rows}
        name = model if model in own else model.partition("@")[0]
        rows = tuple(row for row in self.rows if row.model == name)
        if not any(row.fitted for row in rows):
            known = ", ".join(self.models())
            raise ConfigError(
                f"measurements {self.name!r} have no row to fit model {model!r} to; add one, "
                f"or choose one of {known}"
            )
        return rows


def from_trace(path: Path, digest: str, model: str, placement: str, share: float) -> MeasurementSet:
    """One measurement from a trace of PyTorch's profiler.

    Raises:
        ConfigError: the model is unknown.
        TraceError: the trace has no exposed communication.
    """
    if share <= 0:
        raise TraceError(
            f"{path}: no communication is exposed, so there is nothing to fit to; profile a "
            "distributed step with its collectives"
        )
    row = Measurement(canonical(model), placement, share)
    source = f"PyTorch profiler trace {path.name}"
    return MeasurementSet(path.name.partition(".")[0], digest, source, "", "", "", (row,))


def default_measurements() -> MeasurementSet:
    """Table I of the Dally paper. Models are fitted to its machine column.

    Its rack and network columns were not measured (docs/calibration.md, section 4).
    """
    table = read_measurements(resource("astra_configs", "calibrations", f"{DEFAULT}.csv"))
    return replace(table, kind="paper")


def read_measurements(path: Path) -> MeasurementSet:
    """Read a file of measurements.

    Raises:
        TraceError: the file is unreadable or malformed; names file, line and what to do.
    """
    data = read_bytes(path)
    lines = decode(path, data).splitlines()
    header = dict(_header(lines))
    if not header.get("source"):
        raise TraceError(
            f"{path}:1: no '# source:' line; say there where the measurements come from"
        )
    kind = header.get("kind", "measured")
    if kind not in _KINDS:
        raise TraceError(f"{path}:1: kind is {kind!r}, expected measured or paper")
    rows = tuple(_rows(path, lines))
    if not any(row.fitted for row in rows):
        raise TraceError(f"{path}:{len(lines)}: no row to fit to; add one with use 'fit'")
    return MeasurementSet(
        name=path.stem,
        digest=sha256(data),
        source=header["source"],
        hardware=header.get("hardware", ""),
        who=header.get("who", ""),
        when=header.get("when", ""),
        rows=rows,
        kind=kind,
    )


def _header(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = re.fullmatch(r"#\s*(\w+)\s*:\s*(.*)", line)
        if match and match[1].lower() in _HEADER:
            yield match[1].lower(), match[2].strip()


def _rows(path: Path, lines: list[str]) -> Iterator[Measurement]:
    """The measurements; comments become blank lines, so that errors name the right line."""
    rows = "\n".join("" if line.startswith("#") else line for line in lines)
    table = read_csv(path, rows.encode())
    names = list(table.columns)
    if not names:
        raise TraceError(f"{path}:{len(lines)}: no column names; expected {','.join(_COLUMNS)}")
    if not {"model", "placement"} <= set(names) <= set(_COLUMNS):
        number = next(n for n, line in enumerate(lines, 1) if line.strip() and line[0] != "#")
        raise TraceError(
            f"{path}:{number}: columns are {','.join(names)[:80]!r}, expected model, placement, "
            "comm_percent (or compute_ms and exposed_comm_ms) and optionally use, note"
        )
    seen: set[tuple[str, str]] = set()
    for index, cells in enumerate(zip(*table.columns.values(), strict=True)):
        texts = (cell.strip() for cell in cells)
        row = _row(table.place(index), dict(zip(names, texts, strict=True)))
        if (row.model, row.placement) in seen:
            raise TraceError(
                f"{table.place(index)}: {row.model} on {row.placement} has a row already; keep one"
            )
        seen.add((row.model, row.placement))
        placements = {on for model, on in seen if model == row.model}
        if ONE_GPU in placements and len(placements) > 1:
            raise TraceError(
                f"{table.place(index)}: {row.model} has rows on one GPU and on several, and "
                "either kind gives its compute time; keep one of the two"
            )
        yield row


def _row(where: str, cells: dict[str, str]) -> Measurement:
    """The measurement in a row, checked."""
    try:
        model = canonical(cells["model"])
    except ConfigError as cause:
        raise TraceError(f"{where}: {cause}") from cause
    use = cells.get("use") or "fit"
    if use not in _USES:
        raise TraceError(f"{where}: use is {use!r}, expected fit or compare")
    note = cells.get("note", "")
    placement = cells["placement"]
    if placement.isdecimal() and int(placement) == 1:
        return Measurement(model, ONE_GPU, 0.0, note=note, compute_ms=_compute_ms(where, cells))
    share = _share(where, cells)
    if use == "fit" and share <= 0:
        raise TraceError(
            f"{where}: no exposed communication was measured; the last collective of an iteration "
            "is never hidden, so nothing can be fitted to 0: measure longer or use 'compare'"
        )
    return Measurement(model, placement, share, use == "fit", note)


def _compute_ms(where: str, cells: dict[str, str]) -> float:
    """The time of an iteration on one GPU, which must be the only measured value of its row."""
    exposed = [cells.get("comm_percent"), cells.get("exposed_comm_ms")]
    exposes = any(cell and as_float(cell) != 0 for cell in exposed)
    if cells.get("use") == "compare" or not cells.get("compute_ms") or exposes:
        raise TraceError(
            f"{where}: placement 1 is one GPU, which does not communicate; give compute_ms alone, "
            "or a placement of several GPUs"
        )
    compute_ms = _number(where, "compute_ms", cells["compute_ms"], above=0.0)
    if not SHORTEST_MS <= compute_ms <= LONGEST_MS:
        raise TraceError(
            f"{where}: compute_ms is {cells['compute_ms']!r}, expected milliseconds from "
            f"{SHORTEST_MS:g} to {LONGEST_MS:g} for one iteration"
        )
    return compute_ms


def _share(where: str, cells: dict[str, str]) -> float:
    percent = cells.get("comm_percent", "")
    times = (cells.get("compute_ms", ""), cells.get("exposed_comm_ms", ""))
    if percent:
        return _number(where, "comm_percent", percent, above=None) / 100
    if not all(times):
        raise TraceError(f"{where}: give comm_percent, or compute_ms and exposed_comm_ms")
    compute_ms = _number(where, "compute_ms", times[0], above=0.0)
    return _number(where, "exposed_comm_ms", times[1], above=None) / compute_ms


def _number(where: str, column: str, text: str, above: float | None) -> float:
    value = as_float(text)
    if not 0 <= value < math.inf or value == above:
        wanted = "zero or more" if above is None else f"above {above:g}"
        raise TraceError(f"{where}: {column} is {text!r}, expected a number {wanted}")
    return value

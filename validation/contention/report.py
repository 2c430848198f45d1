"""How far a model is from the truth, family by family."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from validation.contention.cases import Truth
from validation.page import markdown_table

NEAR = 0.01

FAMILIES = {
    "A": "two equal jobs, one uplink",
    "B": "two unequal jobs",
    "C": "three and four jobs",
    "D": "a chain of uplinks",
    "E": "shared NICs",
    "F": "rings over 2 to 3 racks",
    "G": "computation jitters",
    "H": "2 to 3 flows against one",
    "R": "2 to 10 jobs over 2 to 8 racks",
    "L": "2 to 8 jobs over 2 to 4 links of each rack",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A job of a case: what a model answers, and the truth if it is known."""

    case: str
    family: str
    job: int
    ours: Truth
    truth: Truth | None


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of slowdowns over some rows."""

    rows: int
    ours: float
    """Mean slowdown."""
    truth: float
    mean: float
    absolute: float
    """Mean absolute error."""
    rms: float
    largest: float
    near: float
    """Share of the rows whose slowdown is right within 1 %."""
    p99: float | None
    """Mean absolute error of the P99 iteration's slowdown; None if it is not known."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Errors:
        """The errors of some rows with a truth, at least one."""
        ours = np.array([row.ours.slowdown for row in rows])
        truth = np.array([row.truth.slowdown for row in rows if row.truth])
        errors = ours - truth
        tails = [
            abs(row.ours.p99 - row.truth.p99)
            for row in rows
            if row.truth and row.ours.p99 is not None and row.truth.p99 is not None
        ]
        return cls(
            len(rows),
            float(ours.mean()),
            float(truth.mean()),
            float(errors.mean()),
            float(np.abs(errors).mean()),
            float(np.sqrt(np.square(errors).mean())),
            float(np.abs(errors).max()),
            float((np.abs(errors) <= NEAR * truth).mean()),
            float(np.mean(tails)) if tails else None,
        )


def by_family(rows: Iterable[Row]) -> dict[str, Errors]:
    """The errors of each family, and of `all`."""
    known = [row for row in rows if row.truth is not None]
    families = sorted({row.family for row in known})
    groups = {family: [row for row in known if row.family == family] for family in families}
    return {name: Errors.of(group) for name, group in {**groups, "all": known}.items() if group}


def errors_table(rows: Iterable[Row]) -> str:
    """The errors as a table in Markdown."""
    header = (
        "family", "rows", "truth", "ours", "mean error", "mean absolute error", "rms",
        "largest", "within 1 %", "P99: mean absolute error",
    )  # fmt: skip
    return markdown_table(header, (_cells(name, x) for name, x in by_family(rows).items()))


def _cells(name: str, errors: Errors) -> list[str]:
    title = f"{name} {FAMILIES[name]}" if name in FAMILIES else name
    return [
        title,
        str(errors.rows),
        f"{errors.truth:.3f}",
        f"{errors.ours:.3f}",
        f"{errors.mean:+.3f}",
        f"{errors.absolute:.3f}",
        f"{errors.rms:.3f}",
        f"{errors.largest:.3f}",
        f"{100 * errors.near:.0f} %",
        "-" if errors.p99 is None else f"{errors.p99:.3f}",
    ]


def csv_text(rows: Iterable[Row]) -> str:
    """CSV with a line per row: case, job and the mean slowdowns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "job", "ours", "truth"])
    for row in rows:
        truth = "" if row.truth is None else f"{row.truth.slowdown:.6f}"
        writer.writerow([row.case, row.job, f"{row.ours.slowdown:.6f}", truth])
    return text.getvalue()

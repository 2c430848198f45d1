"""The page of a study and its pictures: made from the kept rows, compared by a test."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from artist.io.templates import environment
from artist.results.statistics.students_t import t_quantile
from artist.results.terms.number_text import listed


class Interval(NamedTuple):
    """A mean, and half the width of its interval."""

    mean: float
    half: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval contains 0."""
        return abs(self.mean) <= self.half

    def text(self, digits: int = 2, sign: str = "") -> str:
        """`1.25 ± 0.10`; with the sign `+`, `+1.25 ± 0.10`."""
        return f"{self.mean:{sign}.{digits}f} ± {self.half:.{digits}f}"


def interval_of(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's interval of the mean of independent values."""
    array = np.array(values)
    half = t_quantile(level, len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(float(array.mean()), half)


def rendered(folder: Path, **values: object) -> str:
    """`page.md.j2` of a folder with values. It holds the words; a number asks for its value.

    Raises:
        jinja2.UndefinedError: the template asks for something that does not exist.
    """
    layout = {"keep_trailing_newline": True, "trim_blocks": True, "lstrip_blocks": True}
    templates = environment(folder, autoescape=False, **layout)
    templates.filters |= {"listed": listed, "holds": _holds}
    return templates.get_template("page.md.j2").render(**values)


def _holds(claim: bool) -> str:
    return "holds" if claim else "does not hold"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table. The first columns are text, the others numbers."""
    rules = ["---" if index < left else "---:" for index in range(len(columns))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rules, *rows))


def differing(write: Callable[[Path], None], folder: Path) -> list[str]:
    """The files of the folder that are not what `write` writes into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch))
        pairs = [(path, folder / path.name) for path in sorted(Path(scratch).iterdir())]
        return [
            str(kept)
            for made, kept in pairs
            if not kept.is_file() or kept.read_bytes() != made.read_bytes()
        ]

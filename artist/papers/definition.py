"""What a paper shows: its figures and tables, the runs that each needs, and the paper's numbers.

A paper is a file `artist/papers/NAME.yaml`, so all papers are part of an installed artist.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from artist.errors import ConfigError
from artist.io.documents import Document, load_yaml
from artist.registry import UnknownNameError

_FOLDER = Path(__file__).parent

SUBJECT = "dally"
"""The policy that a claim is about."""


class Claim(Document):
    """The paper's policy has less (or more) of a metric than a rival on these clusters.

    `low`, `high` and `mean` are the paper's numbers, as differences in percent; `low` is the most
    negative. They are None if the paper gives no number.
    """

    metric: str
    rival: str
    less: bool = True
    racks: tuple[int, ...] | None = Field(default=None, description="None: all of the figure's")
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    paper: str = Field(description="what the paper says, in words")


class Item(Document):
    """A figure or a table. `reason` says why it cannot be reproduced."""

    id: str = Field(pattern=r"^(figure|table) \d+[ab]?$")
    shows: str
    section: str = ""
    reason: str = ""
    note: str = ""
    trace: str = ""
    racks: tuple[int, ...] = ()
    policies: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    drawn: tuple[str, ...] = Field(default=(), description="figures of `artist report`, by prefix")
    claims: tuple[Claim, ...] = ()
    values: dict[str, tuple[float, ...]] = Field(
        default_factory=dict, description="policy -> the paper's number for each metric"
    )
    latencies: dict[str, tuple[float, float, float]] = Field(
        default_factory=dict,
        description="model -> communication in percent of compute on machine, rack and network",
    )

    @property
    def runs(self) -> int:
        """Runs per replicate."""
        return len(self.racks) * len(self.policies)

    @property
    def slug(self) -> str:
        """The id as part of a file name."""
        return self.id.replace(" ", "-")


class Paper(Document):
    """A paper and its items."""

    name: str
    title: str
    source: str
    base: dict[str, Any]
    seconds_per_run: float
    items: tuple[Item, ...]

    def items_of(self, kind: str, number: str) -> list[Item]:
        """The items with a number: `13` means 13a and 13b.

        Raises:
            ConfigError: the paper has none with this number, or one cannot be reproduced.
        """
        wanted = f"{kind} {number.strip().lower()}"
        chosen = [item for item in self.items if re.fullmatch(f"{re.escape(wanted)}[ab]?", item.id)]
        if not chosen:
            known = [item.id.split()[1] for item in self.items if item.id.startswith(kind)]
            raise UnknownNameError(
                f"{kind} of paper {self.name}", number, known, f"known: {', '.join(known)}"
            )
        for item in chosen:
            if item.reason:
                raise ConfigError(
                    f"--{kind} {number}: cannot be reproduced: it is {item.reason} ({item.shows}); "
                    f"artist reproduce {self.name} lists the others"
                )
        return chosen


def paper_names() -> list[str]:
    """The papers that artist knows."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load_paper(name: str) -> Paper:
    """A paper by name.

    Raises:
        UnknownNameError: no such paper.
    """
    if name not in paper_names():
        known = ", ".join(paper_names())
        raise UnknownNameError("paper", name, paper_names(), f"known: {known}")
    return load_yaml(_FOLDER / f"{name}.yaml", Paper)

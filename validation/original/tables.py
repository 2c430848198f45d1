"""Shows the document as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEAR = 0.1
"""A median ratio that differs from 1 by more is outside."""

SAME = 1e-5
"""Ratios that differ by less are the same: recorded totals have one decimal place."""

RATIOS: Mapping[str, str] = {"jct_mean_ratio": "mean JCT", "makespan_ratio": "makespan"}


def outside(row: Mapping[str, Any]) -> list[str]:
    """The ratios of a cell whose median is not near 1."""
    return [name for name in RATIOS if abs(row[name] - 1) > NEAR]


def as_text(document: Mapping[str, Any]) -> str:
    """The text that `make reference` prints at its end."""
    lines = ["file                                decisions  agree  ties  also same GPUs"]
    lines += [
        f"{row['file']:36}{row['decisions']:9}{row['agree']:7}{row['ties']:6}{row['same_gpus']:9}"
        for row in document["replay"]
    ]
    lines += ["", "file                                     jobs  same start and finish"]
    lines += [f"{row['file']:36}{row['jobs']:9}{row['agree']:7}" for row in document["jobs"]]
    lines += [
        "",
        "ours / theirs: median (min .. max) over seeded machine orders, how many of these are "
        "smaller than theirs, [in its own order]; * more than 10 % off",
        *map(cell_line, document["aggregates"]),
    ]
    if experiment := document.get("without"):
        lines += ["", "seeded orders / own order, without some jobs", *map(cell_line, experiment)]
    if document["left_out"]:
        lines += ["", f"not compared: {', '.join(document['left_out'])}"]
    return "\n".join(lines)


def cell_line(row: Mapping[str, Any]) -> str:
    """The line of one cell of the aggregates."""
    parts = [f"{row['scheme']:16}{row['racks']:3} {row['trace']:28}"]
    for name, title in RATIOS.items():
        mark = "*" if name in outside(row) else " "
        spread = f"{row[name]:.3f}{mark}({row[f'{name}_min']:.2f} .. {row[f'{name}_max']:.2f})"
        own = f"{row[f'{name}_own_order']:.4f}"
        parts.append(f"{title} {spread} {row[f'{name}_smaller']:3} [{own}]")
    return "  ".join(parts)


def cause(row: Mapping[str, Any], name: str) -> str:
    """Why a median is outside: machine numbers, if our run in the original's order is the same."""
    own = row[f"{name}_own_order"]
    if abs(own - 1) < SAME:
        return "machine numbers"
    return f"rules or rounding: {own:.4f} in the own order"

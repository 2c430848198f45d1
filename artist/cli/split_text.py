"""Where the time of an iteration goes, as `artist latency` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artist.cli.output import print_table, print_text
from artist.estimates.iteration_split import IterationSplit

TITLES: Mapping[str, str] = {
    "compute": "compute",
    "imbalance": "uneven stages",
    "bubble": "pipeline bubble",
    "tensor": "tensor groups",
    "context": "context groups",
    "expert": "expert all-to-alls",
    "pipeline": "stage to stage",
    "data": "data parallel",
    "communication": "communication",
    "constant": "constant of the calibration",
}


def split_facts(split: IterationSplit) -> dict[str, Any]:
    """The split for JSON, in nanoseconds; `split_ns` adds up to the iteration."""
    sent = split.sent_ns
    return {
        "split_ns": {part.value: ns for part, ns in split.parts_ns.items()},
        "sent_ns": None if sent is None else {part.value: ns for part, ns in sent.items()},
        "hidden_comm_ns": split.hidden_ns,
    }


def print_split(split: IterationSplit, source: str) -> None:
    """Print the parts as a table, and what is hidden."""
    sent, total_ns = split.sent_ns, split.iteration_ns
    rows: list[list[str | float]] = []
    for part in dict.fromkeys([*split.parts_ns, *(sent or ())]):
        ns = split.parts_ns.get(part, 0)
        sends = "" if sent is None or part not in sent else f"{sent[part] / 1e6:,.3f}"
        rows.append([TITLES[part], ns / 1e6, f"{100 * ns / max(total_ns, 1):.1f} %", sends])
    print_table("where the iteration goes", ("", "adds, ms", "share", "sends for, ms"), rows)
    if sent is None:
        print_text(
            f"{source} gives no time of this communication alone: what is hidden is not known."
        )
    elif split.hidden_ns:
        print_text(f"Computing hides {split.hidden_ns / 1e6:,.3f} ms of communication.")


def print_splits(points: Sequence[tuple[int, IterationSplit]]) -> None:
    """Print the parts of iterations on several numbers of GPUs, a column for each part."""
    parts = [x for x in TITLES if any(x in split.parts_ns for _, split in points)]
    rows: list[list[str | float]] = []
    for gpus, split in points:
        values = {part.value: ns / 1e6 for part, ns in split.parts_ns.items()}
        hidden = "" if split.hidden_ns is None else f"{split.hidden_ns / 1e6:,.3f}"
        rows.append([str(gpus), *(values.get(part, 0.0) for part in parts), hidden])
    columns = ("GPUs", *(TITLES[part] for part in parts), "hidden behind computing")
    print_table("where the iterations go, ms", columns, rows)


def flat_splits(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with `split_facts` as CSV has them: a column for each part, `split_ns.tensor`."""
    parts = dict.fromkeys(part for row in rows for part in row["split_ns"])
    return [
        {key: value for key, value in row.items() if not isinstance(value, Mapping)}
        | {f"split_ns.{part}": row["split_ns"].get(part, 0) for part in parts}
        for row in rows
    ]

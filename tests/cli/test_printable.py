"""Are control characters shown as text, and are names with a colon not taken for addresses?"""

from __future__ import annotations

from pathlib import Path

import pytest

ODD = "\u202ea\x1b[31mb"


@pytest.mark.parametrize(
    "arguments",
    [
        (ODD,), ("sim", ODD), ("sim", f"--{ODD}"), ("trace", ODD), ("trace", f"--{ODD}"),
        ("sim", "--jobs", ODD), ("list", ODD), ("sim", "--trace", ODD), ("why", ODD),
    ],
)  # fmt: skip
def test_what_was_typed_is_shown_as_text(artist, arguments: tuple[str, ...]) -> None:
    ran = artist(*arguments, code=2)
    assert all(one.isprintable() or one == "\n" for one in ran.stdout + ran.stderr)
    assert "\\u202ea" in ran.stderr and "\\x1b[31mb" in ran.stderr


def test_names_of_a_trace_are_shown_as_text(artist, tmp_path: Path) -> None:
    rows = f"job_id,arrival_s,gpus,model,iterations,compute_s\n{ODD},0,4,resnet18,10,1\n"
    (tmp_path / "t.csv").write_text(rows + f"{ODD}2,0,64,resnet18,10,1\n")
    for command in (
        ("trace", "validate", "t.csv"), ("trace", "stats", "t.csv"),
        ("sim", "--trace", "t.csv", "--racks", "1", "--out", ODD), ("why", ODD),
        ("why", ODD, f"{ODD}2"), ("report", ODD), ("export", ODD),
    ):  # fmt: skip
        ran = artist(*command)
        assert all(one.isprintable() or one in "\n\t" for one in ran.stdout + ran.stderr), command


def test_a_folder_may_have_a_colon(artist) -> None:
    """Arrow takes a relative name with a colon for the address of another file system."""
    small = ("--trace", "tiny-batch", "--racks", "1", "--jobs", "4", "--policies", "fifo,las")
    for command in (
        ("compare", *small, "--permutations", "2", "--out", "a:b", "--values", "c:d.parquet"),
        ("sim", *small[:-2], "--out", "s:1"),
        ("why", "s:1"), ("report", "s:1"), ("report", "a:b", "--out", "e:f.html"),
        ("trace", "synth", "--jobs", "9", "--load", "1", "--gpus", "8", "--out", "t:1.parquet"),
        ("trace", "validate", "t:1.parquet"),
        ("sim", "--trace", "t:1.parquet", "--racks", "1"),
    ):  # fmt: skip
        ran = artist(*command)
        assert ran.returncode == 0, (command, ran.stderr)


def test_a_figure_is_no_folder(artist) -> None:
    for name in (".", ".."):
        ran = artist("circle", "--pattern", "100:40:50", "--plot", name)
        assert (ran.returncode, "is a folder" in ran.stderr) == (2, True), ran.stderr

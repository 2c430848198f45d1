"""Is help found where people look for it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from artist.cli.main import COMMANDS, application


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


PATHS = list(_paths(get_command(application())))


def test_there_are_commands_and_commands_of_commands() -> None:
    assert {0, 1, 2} <= {len(path) for path in PATHS}


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_h_is_help(path: tuple[str, ...]) -> None:
    app = application(path[:1] or COMMANDS)
    short, long = (CliRunner().invoke(app, [*path, flag]) for flag in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.output == long.output
    assert "Usage: " in short.output


def test_help_of_calibrate_shows_how_to_name_a_model() -> None:
    shown = CliRunner().invoke(application(["calibrate"]), ["calibrate", "--help"]).output
    assert "artist calibrate --model resnet50" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["permutation"], "another arbitrary order in which machines"),
        (["within", "noise"], "artist compare calls it undecided"),
        (["within noise"], "artist compare calls it undecided"),
        (["within-noise"], "artist compare calls it undecided"),
        (["cycle"], "1 cycle = 1 ns"),
        (["slowdown"], "jct_s / alone_s"),
        (["replicate"], "a seed and a permutation on which all policies"),
        (["undecided"], "does not mean that two policies are equal"),
        (["exposed"], "while the GPUs of a job wait for it"),
        (["family"], "(Holm)"),
        (["core"], "artist doctor says which one runs"),
        (["pure"], "that Python interprets"),
        (["compiled"], "ARTIST_COMPILE=1 pip install ."),
        (["date"], "cells are dates, such as 2020-06-09 18:41:01"),
        (["day-first"], "in 6/7/2020 the day comes first"),
        (["month-first"], "see day-first"),
        (["jct"], "finish_s - arrival_s"),
        (["oversubscription"], "uplink"),
        (["uplink"], "uplink"),
        (["circle"], "perimeter"),
        (["compatibility", "score"], "1 - mean over angles"),
        (["affinity-graph"], "Theorem 1"),
        (["time-shift"], "delayed"),
    ],
)
def test_topics_of_help(words: list[str], meant: str) -> None:
    shown = CliRunner().invoke(application(["explain", "sim"]), ["explain", *words])
    assert meant in shown.output

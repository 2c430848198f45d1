"""Is docs/traces.md true? This test writes its files, runs its commands and compares the output."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import forked

from artist.trace.detect import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
BLOCKS = re.findall(r"```(\w+) ?([\w.]*)\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_work_as_written(tmp_path: Path) -> None:
    printed = ""
    commands = 0
    for kind, name, text in BLOCKS:
        if kind == "csv":
            (tmp_path / name).write_text(text)
        elif kind == "text":
            for line in text.splitlines():
                assert line in printed
        for command in text.splitlines() if kind == "sh" else []:
            program, *arguments = shlex.split(command)
            assert program == "artist"
            env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
            ran = forked.run(*arguments, cwd=tmp_path, env=env)
            assert ran.returncode == 0, ran.stderr
            printed = "\n".join(" ".join(line.split()) for line in ran.stdout.splitlines())
            commands += 1
    assert commands >= 7


def test_every_format_is_listed() -> None:
    for name in FORMATS:
        assert f"| `{name}` |" in PAGE

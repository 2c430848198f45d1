"""Is docs/how-to/slurm.md true? This test runs its commands on a small folder of Slurm's texts."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import forked
from test_slurm_replay import folder

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "slurm.md").read_text()
COMMANDS = [
    line
    for block in PAGE.split("```sh\n")[1:]
    for line in block.partition("```")[0].replace("\\\n", " ").splitlines()
]


def test_the_commands_here_work_as_written(tmp_path: Path) -> None:
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    folder(slurm)
    (slurm / "qos.txt").write_text("Name|Priority|Preempt\nhigh|100|\n")
    ran = 0
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        if program == "artist":
            env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
            done = forked.run(*arguments, cwd=tmp_path, env=env)
            assert done.returncode == 0, done.stderr
            ran += 1
    assert ran == 4


def test_the_login_node_writes_every_text() -> None:
    written = " ".join(command for command in COMMANDS if not command.startswith("artist"))
    texts = ("nodes", "topology", "partitions", "qos", "assoc", "config", "reservations", "sacct")
    for name in texts:
        assert name in written

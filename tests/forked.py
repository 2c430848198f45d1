"""Runs commands in processes that need not import artist: a tenth of the time of a short command.

A server imports every command once, then forks for each that is asked for. The fork has the
folder, environment, streams and arguments asked for, and calls the entry point. Tests about the
start itself start Python: `test_startup.py`, `test_signals.py`, and whoever sets PYTHONHASHSEED.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

_LIMIT_S = 300
_IMPORTED_LATE = (
    "artist.astra.model.analytical",
    "artist.cli.comparison_details",
    "artist.experiments.comparison.compare",
    "artist.experiments.sweep",
    "artist.policies.classic",
    "artist.policies.dally",
    "artist.report.page",
    "artist.report.paper_figures",
    "artist.run",
    "artist.trace.synthetic",
    "artist.workload.models",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.parquet",
)
"""What most commands import, but not before they run."""


def run(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str], code: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as `python -m artist` would; check its exit code if `code` is given.

    After five minutes it dies by SIGALRM.
    """
    words = list(map(str, arguments))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        if "PYTHONHASHSEED" in env:  # is read when Python starts
            command = [sys.executable, "-m", "artist", *words]
            ended = subprocess.call(
                command, cwd=cwd, env=env, stdout=out, stderr=err, timeout=_LIMIT_S
            )
        else:
            ended = _fork(words, cwd, env, (out, err))
        texts = [(file.seek(0), file.read())[1] for file in (out, err)]
    assert code in (None, ended), texts[1]
    return subprocess.CompletedProcess(words, ended, *texts)


def _fork(words: list[str], cwd: Path, env: Mapping[str, str], streams: Sequence[IO[str]]) -> int:
    """The exit code of a command; minus the signal that ended it."""
    server = _server(os.getpid())
    assert server.stdin
    assert server.stdout
    files = [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in streams]
    asked = {"words": words, "cwd": str(cwd), "env": dict(env), "streams": files}
    server.stdin.write(f"{json.dumps(asked)}\n")
    server.stdin.flush()
    return int(server.stdout.readline())


@cache
def _server(owner: int) -> subprocess.Popen[str]:
    """The server of this process. It ends when its stdin does."""
    del owner
    command = [sys.executable, "-W", "ignore::DeprecationWarning:__main__", __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    # `artist.cli.main.main` sets these too, but here NumPy and pydantic are imported before it.
    os.environ.update(PYDANTIC_DISABLE_PLUGINS="1", OPENBLAS_NUM_THREADS="1")
    from artist.cli.main import application

    application()
    for name in _IMPORTED_LATE:
        with suppress(ModuleNotFoundError):  # some need extras
            import_module(name)
    gc.freeze()  # searches for cycles would copy the pages of all that
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return _become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201
    return None


def _become(words: list[str], cwd: str, env: dict[str, str], streams: list[str]) -> None:
    """Be the command from here on."""
    from artist.cli.main import main

    for number, path in enumerate((os.devnull, *streams)):
        os.dup2(os.open(path, os.O_RDWR), number)
    signal.alarm(_LIMIT_S)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["artist", *words]
    sys.path[0] = cwd  # as `python -m` does
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        _leave(ended.code or 0)


def _leave(code: int) -> None:
    """End as Python does, but destroy nothing: that would copy every page that the fork shares."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()

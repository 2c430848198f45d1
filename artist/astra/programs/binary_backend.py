"""The backend `astra-binary`: ASTRA-sim as an executable on this machine, one run per query.

For each query, the files are rendered to a temporary folder, the executable runs there within
limits (`bounded_run`), and its output becomes an estimate or an error (`ended_run`).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from artist.astra.files import dialects
from artist.astra.files.render import render
from artist.astra.programs.bounded_run import run_bounded
from artist.astra.programs.ended_run import estimate_of
from artist.errors import BackendError, ConfigError
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery
from artist.io.digests import PREFIX, sha256

# The largest query measured (1,024 NPUs) takes a minute.
TIMEOUT_S = 600.0


class BinaryBackend:
    """Runs `binary` for every query, without a shell."""

    def __init__(
        self, binary: Path, *, dialect: str = "astra2", timeout_s: float = TIMEOUT_S
    ) -> None:
        """Raises BackendError where the file is missing or cannot be executed."""
        self._binary = _executable(binary)
        self._dialect = dialects.dialect(dialect).name
        self._timeout_s = timeout_s
        # Twelve digits of the digest distinguish executables and stay readable in a table.
        self.source = f"astra-binary@{sha256(self._binary.read_bytes())[: len(PREFIX) + 12]}"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query. ASTRA-sim prints no traffic, so `profile` changes nothing.

        Raises:
            BackendSettingError: ASTRA-sim would crash, hang or deadlock on it.
            BackendError: the program failed, took too long or printed nonsense.
        """
        with tempfile.TemporaryDirectory(prefix="artist-astra-") as folder:
            rendered = render(query, Path(folder), self._dialect)
            command = (str(self._binary), *rendered.arguments)
            done = run_bounded(command, self._timeout_s, cwd=rendered.directory)
            return estimate_of(done, rendered, self.source)


def _executable(binary: Path) -> Path:
    path = binary.absolute()
    if not path.is_file():
        raise BackendError(f"{binary}: no such file; give the path of an ASTRA-sim executable")
    if not os.access(path, os.X_OK):
        raise BackendError(f"{binary}: not executable; run: chmod +x {shlex.quote(str(binary))}")
    return path


def binary_backend(argument: str, fallback: LatencyBackend | None) -> BinaryBackend:
    """The backend that `--backend astra-binary:PATH` names.

    Raises:
        ConfigError: no path is given.
        BackendError: there is no such executable.
    """
    if not argument:
        raise ConfigError("backend astra-binary: name the executable, astra-binary:PATH")
    return BinaryBackend(Path(argument))

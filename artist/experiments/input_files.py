"""The files that scenarios name (traces, fabrics, tables), copied for workers on other machines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artist.config import Scenario
from artist.io.reading import is_file
from artist.results.named_files import POLICY_FILE, names_a_file
from artist.trace.native.mapping import mapping_path


class InputFiles:
    """A folder with one copy of every file that scenarios name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[str, str] = {}
        """Of each file, by the user's name: the copy's path below the folder."""
        # A name such as `dally2025` means a file of `./astra_configs` before a shipped one.
        if Path("astra_configs").is_dir():
            shutil.copytree("astra_configs", folder / "astra_configs")

    def copied(self, scenario: Scenario) -> Scenario:
        """Copy the files of a scenario; the scenario that names the copies."""
        changes = {
            "cluster": self._file(scenario.cluster),
            "data": self._file(scenario.data),
            "trace": self._trace(scenario),
            "columns": self._file(scenario.columns),
            "fabric": self._file(scenario.fabric),
            "calibration": self._file(scenario.calibration),
            "backend": self._backend(scenario.backend),
            "fallback": self._backend(scenario.fallback),
            "contention": self._contention(scenario.contention),
            "failures": self._file(scenario.failures),
            "policy": POLICY_FILE.sub(self._policy_file, scenario.policy),
            "policy_options": self._options(scenario.policy_options),
        }
        return scenario.model_copy(update=changes)

    def with_own_names(self, message: str) -> str:
        """A worker's message with the user's names of the files."""
        for name, copy in self._copies.items():
            message = message.replace(copy, name)
        return message

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the files that a policy's options name, also those of a policy inside a wrapper."""
        return {
            key: self._options(value)
            if isinstance(value, Mapping)
            else self._file(value)
            if names_a_file(key)
            else value
            for key, value in options.items()
        }

    def _backend(self, name: str | None) -> str | None:
        """Copy a recorded table. A program or an image must already be on the worker's machine."""
        kind, colon, argument = (name or "").partition(":")
        return f"{kind}{colon}{self._file(argument)}" if kind == "recorded" else name

    def _contention(self, name: str) -> str:
        """Copy a table of slowdowns."""
        kind, colon, argument = name.partition(":")
        return f"{kind}{colon}{self._file(argument)}" if kind == "table" else name

    def _trace(self, scenario: Scenario) -> str:
        """Copy a trace and, into the same folder, the mapping file that stands beside it."""
        copy: str = self._file(scenario.trace)
        mapping = mapping_path(scenario.trace)
        if copy != scenario.trace and is_file(mapping):
            shutil.copyfile(mapping, mapping_path(self._folder / copy))
        return copy

    def _policy_file(self, match: re.Match[str]) -> str:
        return f"{self._file(match[1].strip())}:"

    def _file(self, name: Any) -> Any:
        """Copy a file, once; the copy's path. A value that names no file is returned as it is."""
        if not isinstance(name, str) or not name or not Path(name).is_file():
            return name
        if name not in self._copies:
            # A folder per copy, because a trace is called by its file's name: that stays.
            copy = Path("inputs", str(len(self._copies)), Path(name).name)
            (self._folder / copy).parent.mkdir(parents=True)
            try:
                shutil.copyfile(name, self._folder / copy)
            except PermissionError:  # each run that reads the file fails with its own message
                return name
            self._copies[name] = str(copy)
        return self._copies[name]

"""The files that a scenario names besides trace, fabric and calibration, and their digests.

These are the mapping of a trace's columns, the recorded tables of backends, tables of slowdowns
(`--contention table:FILE`) and of speeds of jobs that share GPUs, cluster and data files, models of
failures, policies in files (`FILE.py:CLASS`) and the options `..._file` and `weights` of policies
and of models of contention. A run's manifest has their digests, to distinguish runs that read
different files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from artist.config import Scenario
from artist.io.digests import sha256
from artist.io.reading import is_file, read_bytes
from artist.io.shipped import document_path
from artist.trace.named import is_trace_file
from artist.trace.native.mapping import mapping_path

POLICY_FILE = re.compile(r"([^()]+\.py):")
"""The files in a policy's name: `FILE.py:CLASS`, and such names inside a wrapper's brackets."""

MAPPING = "mapping"
"""The input that is a trace's mapping file."""

_RECORDED = "recorded:"


def file_digests(scenario: Scenario) -> Mapping[str, str]:
    """SHA-256 of each file, by the setting that names it.

    A name without a file has no digest. The code that opens the file reports that it is missing.

    Raises:
        TraceError: a file cannot be read.
    """
    return {
        setting: sha256(read_bytes(Path(name)))
        for setting, name in named_files(scenario)
        if is_file(Path(name))
    }


def names_a_file(option: str) -> bool:
    """Whether an option of a policy is the name of a file."""
    return option == "weights" or str(option).endswith("_file")


def mapping_file(scenario: Scenario) -> str | None:
    """The file with the mapping of the scenario's trace; None if the trace has none."""
    if isinstance(scenario.columns, str):
        return scenario.columns
    file = str(mapping_path(scenario.trace))
    return file if is_trace_file(scenario.trace) and is_file(Path(file)) else None


def named_files(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Each setting that names a file, and the file's name."""
    for setting in ("backend", "fallback"):
        name = getattr(scenario, setting) or ""
        if name.startswith(_RECORDED):
            yield setting, name.removeprefix(_RECORDED)
    kind, _, file = scenario.contention.partition(":")
    if kind == "table" and file:
        yield "contention", file
    if scenario.interference != "time-slicing":
        table = document_path("interference", scenario.interference, ".csv")
        yield "interference", str(table or scenario.interference)
    if scenario.failures != "none":
        yield "failures", str(document_path("failures", scenario.failures) or scenario.failures)
    if isinstance(scenario.tenants, str):
        yield "tenants", scenario.tenants
    if scenario.cluster is not None:
        yield "cluster", str(document_path("clusters", scenario.cluster) or scenario.cluster)
    if scenario.speeds is not None:
        yield "speeds", str(document_path("speeds", scenario.speeds) or scenario.speeds)
    if scenario.goodput is not None:
        yield "goodput", scenario.goodput
    if scenario.data is not None:
        yield "data", scenario.data
    for number, match in enumerate(POLICY_FILE.finditer(scenario.policy)):
        yield f"policy.{number}" if number else "policy", match[1].strip()
    if (mapping := mapping_file(scenario)) is not None:
        yield MAPPING, mapping
    yield from _in_options("policy", scenario.policy_options)
    yield from _in_options("contention", scenario.contention_options)


def _in_options(prefix: str, options: Any) -> Iterator[tuple[str, str]]:
    """Files of a policy's options, and of the policy inside a wrapper (`host`)."""
    if not isinstance(options, Mapping):
        return
    for key, value in options.items():
        yield from _in_options(f"{prefix}.{key}", value)
        if names_a_file(key) and isinstance(value, str):
            yield f"{prefix}.{key}", value

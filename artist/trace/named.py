"""Traces by name: the built-in ones (generated, or samples that ship), and `open_trace`.

`open_trace` is what `--trace` means: the name of a built-in trace or of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from artist.errors import ConfigError, shortened
from artist.io.reading import exists
from artist.io.shipped import resource
from artist.registry import Entry, Registry
from artist.trace.native.choices import Rules
from artist.trace.native.mapping import mapping_for
from artist.trace.native.read_table import read_data
from artist.trace.native.trace import Trace, content_digest
from artist.trace.read import read_trace

DEFAULT_TRACE = "sensetime-batch-500"
SYNTH = "synth"
"""The trace that takes an argument, as in `synth:256:32:0.9`."""

builtin_traces = Registry(
    "trace",
    "artist list traces, or give a file",
    [
        Entry(
            DEFAULT_TRACE,
            "artist.trace.named:generated",
            "500 jobs at time 0, shaped like Dally's batch workload (the default), with the steps "
            "of its simulator, which are shorter than the catalogue's",
            "Dally, section V-A",
            preset={"family": "BATCH"},
        ),
        Entry(
            "sensetime-poisson-week",
            "artist.trace.named:generated",
            "411 Poisson arrivals in a week, shaped like Dally's Poisson workload",
            "Dally, section V-A",
            preset={"family": "WEEK"},
        ),
        Entry(
            "synth",
            "artist.trace.named:drawn",
            "synth:JOBS:GPUS:LOAD draws other jobs for every seed; synth alone is synth:256:32:0.9",
            "Dally, section V-A",
        ),
        Entry(
            "tiny-batch",
            "artist.trace.named:sample",
            "20 jobs at time 0, a file",
            preset={"file": "tiny-batch.csv"},
        ),
        Entry(
            "tiny-poisson",
            "artist.trace.named:sample",
            "24 Poisson arrivals for 16 GPUs, a file",
            preset={"file": "tiny-poisson.csv"},
        ),
    ],
)


def builtin(name: str, seed: int = 0) -> Trace:
    """The built-in trace of this name, or `synth:...`. Samples do not depend on the seed.

    Raises:
        UnknownNameError: no trace has this name.
    """
    kind, colon, argument = name.partition(":")
    entry = builtin_traces[kind if kind == SYNTH else name]
    given = {"argument": argument} if colon else {}
    trace: Trace = entry.load()(seed=seed, **entry.preset, **given)
    return trace


class Given(NamedTuple):
    """What a user states about the columns and models of a trace, apart from its mapping file.

    `columns` maps artist's columns to those of the file, or is the name of a mapping file.
    """

    columns: Mapping[str, str] | str | None = None
    units: Mapping[str, str] | None = None
    models: Mapping[str, str] | None = None
    model_rule: str | None = None


NOTHING_GIVEN = Given()


def open_trace(
    name_or_file: str,
    seed: int = 0,
    *,
    format_: str | None = None,
    rules: Rules | None = None,
    given: Given = NOTHING_GIVEN,
) -> Trace:
    """The trace in a file if there is one of this name, else the built-in trace of this name.

    A file may have any format that `read_trace` knows. `rules` fill in what a foreign format
    lacks; without them the default rules apply, with this seed. A mapping file beside the trace is
    read, but `given` takes precedence (`native/mapping.py`).

    Raises:
        UnknownNameError: neither exists, or the format is unknown.
        TraceError: the file is malformed.
        ConfigError: a bad mapping or rule, or a mapping for a built-in trace.
    """
    if is_trace_file(name_or_file):
        mapping, place = mapping_for(name_or_file, **given._asdict())
        rules = rules or Rules(seed=seed)
        return read_trace(
            Path(name_or_file),
            format_=format_,
            # A mapping file may serve several traces, so it may name models that this one lacks.
            rules=replace(rules, required=frozenset(given.models or ())),
            mapping=mapping if place else None,
            mapping_place=place,
        )
    if given.columns or given.units or given.models:
        raise ConfigError(
            f"trace {shortened(name_or_file)} is not a file, so it needs no --columns, --units or "
            "--models; give a file or leave them out"
        )
    trace = builtin(name_or_file, seed)
    if given.model_rule is None:
        return trace
    from artist.trace.foreign.fill import check_rules, no_effect

    check_rules(Rules(model=given.model_rule))
    return replace(trace, filled=(*trace.filled, no_effect(given.model_rule)))


def trace_digest(name_or_file: str, seed: int = 0) -> str:
    """The `digest` of the trace that `open_trace` would return now; a file is not parsed.

    Raises:
        UnknownNameError: there is no such trace.
        TraceError: the file cannot be read.
    """
    if is_trace_file(name_or_file):
        return content_digest(read_data(Path(name_or_file)))
    return builtin(name_or_file, seed).digest


def is_trace_file(name: str) -> bool:
    """Whether a trace's name means a file, not a built-in trace."""
    path = Path(name)
    if name.partition(":")[0] == SYNTH:
        return exists(path)
    return exists(path) or bool(path.suffix) or len(path.parts) > 1


def generated(*, seed: int, family: str) -> Trace:
    """A trace with the shape of a family of jobs, `BATCH` or `WEEK`."""
    from artist.trace.synthetic import families
    from artist.trace.synthetic.generate import family_trace

    return family_trace(getattr(families, family), seed)


def drawn(*, seed: int, argument: str = "256:32:0.9") -> Trace:
    """`synth:JOBS:GPUS:LOAD`: independent jobs for a cluster of that size, at this load.

    Raises:
        ConfigError: not three numbers, or some that no trace has.
    """
    from artist.trace.synthetic.generate import synth

    try:
        jobs, gpus, load = argument.split(":")
        numbers = int(jobs), float(load), int(gpus)
    except ValueError:
        raise ConfigError(
            f"trace {shortened(f'{SYNTH}:{argument}')}: expected synth:JOBS:GPUS:LOAD, three "
            "numbers, e.g. synth:256:32:0.9"
        ) from None
    return synth(*numbers, seed)


def sample(*, seed: int, file: str) -> Trace:
    """A shipped file; the seed has no effect."""
    del seed
    return read_trace(resource("traces", file))

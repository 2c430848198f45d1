"""The jobs of a trace with settings of their models that the scenario gives for all of them."""

from __future__ import annotations

from functools import cache

from artist.errors import ConfigError, shortened
from artist.trace.divided import with_models
from artist.trace.native.trace import Trace
from artist.workload.models import is_graph, with_settings


def trained_as(trace: Trace, settings: str) -> Trace:
    """The trace whose models have these settings, `gpu=v100,precision=bf16`, if they say no other.

    Models must be known. Folders of execution traces stay as they are. So do the compute times of
    the trace: what follows the settings is the share that communication adds to them.

    Raises:
        TraceError: a model of the trace has no such setting, or none of this value.
    """

    @cache
    def named(model: str) -> str | None:
        try:
            return None if is_graph(model) else with_settings(model, settings)
        except ConfigError as cause:
            raise ConfigError(f"trained_as {shortened(settings)}: {cause}") from cause

    return with_models(trace, lambda job: named(job.model))[0]

"""Sentences below the results of runs, about settings that are easily taken for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artist.config import Scenario


def remarks(scenario: Scenario) -> list[str]:
    """What a reader of the results should know about a scenario; mostly nothing.

    Raises:
        ConfigError: the scenario names a fabric or an image that is not there.
    """
    return [text for text in (_own_model(scenario),) if text]


def _own_model(scenario: Scenario) -> str:
    """That a container holds artist itself, if it does."""
    from artist.astra.programs.images import DEFAULT_IMAGE, OWN_MODEL, load_image

    for backend in (scenario.backend, scenario.fallback or ""):
        kind, _, image = backend.partition(":")
        if kind == "astra-docker" and load_image(image or DEFAULT_IMAGE).is_artist:
            return f"Backend {backend} is {OWN_MODEL}: the answers are those of analytical."
    return ""

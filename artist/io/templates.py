"""Fills templates: the one door to Jinja, which most commands do not need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


def environment(folder: Path, *, autoescape: bool, **options: Any) -> jinja2.Environment:
    """The templates of a folder. Filling a template that uses an unknown name raises an error.

    `autoescape` is for web pages, where text must not become markup.
    """
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=autoescape,  # noqa: S701  # callers decide: not all make web pages
        **options,
    )

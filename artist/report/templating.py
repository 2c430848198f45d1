"""Fills the templates of the page, which hold its markup and its sentences."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.io.templates import environment
from artist.results.terms.number_text import job_text, listed, percent, plain, short
from artist.units import counted, size_text

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


def document(name: str, **values: Any) -> str:
    """A filled template with its line breaks."""
    return _environment().get_template(f"{name}.j2").render(values)


def section(name: str, **values: Any) -> Markup:
    """A filled template as a part of the page. A line break next to a tag is layout, not text."""
    from markupsafe import Markup

    text = re.sub(r"(?<=>)\s*\n\s*|\s*\n\s*(?=<)", "", document(name, **values))
    return Markup(re.sub(r"\s*\n\s*", " ", text).strip())  # noqa: S704  # templates escape


def _headings(markup: str) -> list[tuple[str, str]]:
    """The sections of a page: id, and name as markup."""
    return re.findall(r'<h2 id="([a-z-]+)">([^<]*)</h2>', markup)


@cache
def _environment() -> jinja2.Environment:
    folder = Path(__file__).parent / "templates"
    layout = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    made = environment(folder, autoescape=True, **layout)
    made.filters |= {
        "counted": counted, "headings": _headings, "job_text": job_text, "listed": listed,
        "percent": percent, "plain": plain, "short": short, "size": size_text,
    }  # fmt: skip
    return made

"""Builds HTML. Every text is escaped unless it has the type `Html`.

Example: `tag("p", "a < b", Html("<br>"))` is `<p>a &lt; b<br></p>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Markup that goes into the page without escaping."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element with its children.

    Attributes are named like Python arguments: `class_` is `class`, `data_x` is `data-x`.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{shown}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """The parts one after the other; those that are not `Html` are escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Html:
    """A table. Its first column names the row. A wide table scrolls inside the page."""
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    top = (
        [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    )
    element = tag("table", *top, tag("tbody", *body), class_=class_ or "data")
    return tag("div", element, class_="scroll", tabindex="0", role="group", aria_label="Table")

"""HTML in which every text is escaped, because only `Html` is taken as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Markup that may stand in the page as it is."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element; `class_` is class, `data_x` is data-x. Text children are escaped."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{shown}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Several parts in a row."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Html:
    """A table whose first column names the row; it scrolls sideways on its own."""
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    top = (
        [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    )
    found = tag("table", *top, tag("tbody", *body), class_=class_ or "data")
    return tag("div", found, class_="scroll", tabindex="0", role="group", aria_label="Table")

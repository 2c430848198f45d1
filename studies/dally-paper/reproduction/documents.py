"""The two pages: findings and tables, each made from a template in `templates/`.

The templates hold the words. They ask for a table by its name (`{{ table("leak") }}`, tables.py),
and for a number in a sentence by its meaning (quotes.py). So no number differs from `results.csv`.
"""

from __future__ import annotations

from pathlib import Path

from evidence import Evidence
from quotes import Quotes
from sources import HERE, Original
from tables import tables

from artist.io.templates import environment

TEMPLATES = HERE / "templates"
DOCUMENTS = {
    Path("studies", "dally-paper", "README.md"): "findings.md.j2",
    Path("studies", "dally-paper", "tables.md"): "tables.md.j2",
}
"""Pages, from the repository's root, and their templates."""


def documents(evidence: Evidence, original: Original) -> dict[Path, str]:
    """Every page and its text.

    Raises:
        KeyError: a template names a table, a claim or a run that does not exist.
    """
    templates = environment(TEMPLATES, autoescape=False, keep_trailing_newline=True)
    made = tables(evidence, original)
    templates.globals.update(Quotes(evidence, original).functions())
    # A table ends with a newline, and so does its line in the template.
    templates.globals["table"] = lambda name: made[name]().removesuffix("\n")
    return {page: templates.get_template(name).render() for page, name in DOCUMENTS.items()}

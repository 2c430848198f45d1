"""Do the targets of the pages exist: make targets, links and pictures? Is the citation valid?"""

from __future__ import annotations

import re
import subprocess

import yaml
from pages import ROOT, blocks, pages

import artist


def test_make_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in pages():
        for block in blocks(page):
            for command in block.commands:
                if command.startswith("make "):
                    assert command.split()[1] in targets, f"{page}:{block.line}: {command}"


def test_make_help_lists_every_target() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    # Below `make test`, make would say which folder it enters.
    command = ["make", "--no-print-directory", "help"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert targets is not None
    assert {line.split()[0] for line in listed.stdout.splitlines()} == {*targets[1].split()}


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in pages():
        path = ROOT / page
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{page}: {target}"


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in pages():
        if page.startswith("docs/") and not page.startswith(("docs/decisions/", "docs/index.md")):
            assert f"({page.removeprefix('docs/')}" in index, page


def test_the_citation_is_of_this_version_and_has_what_the_format_requires() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert str(cited["version"]) == artist.__version__
    assert f"## {artist.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    for authors in (cited["authors"], *(one["authors"] for one in cited["references"])):
        assert all(set(a) in ({"name"}, {"given-names", "family-names"}) for a in authors)

"""Reads the Markdown pages of the repository as blocks that a reader writes, runs or compares.

| fence | what it is |
|---|---|
| `sh`, `bash` | commands |
| `KIND NAME`, or `python` beginning with `# NAME.py` | a file that the reader writes |
| `python` | a script to run |
| `text` | lines that a command or script above printed |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = ("sh", "bash")
KNOWN = {*COMMANDS, "python", "text", "csv", "yaml", "json"}
_SKIPPED = {".venv", ".git", "build", "runs", "node_modules"}
_FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `name` is the file that the reader writes it to, if any."""

    line: int
    language: str
    name: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Each command on one line."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def pages() -> list[str]:
    """All pages, relative to the repository."""
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.md")]
    return sorted(
        str(path) for path in paths if not any(p in _SKIPPED or p[0] == "." for p in path.parts)
    )


def blocks(page: str) -> list[Block]:
    """A page's blocks, from top to bottom."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = []
    for match in _FENCE.finditer(text):
        language, _, name = match[1].partition(" ")
        first = re.match(r"# (\w+\.py)\n", match[2])
        if language == "python" and first:
            name = first[1]
        line = text.count("\n", 0, match.start()) + 1
        fenced.append(Block(line, language, name, match[2]))
    return fenced

"""Parses YAML text into plain data. Refuses text that would exhaust time, stack or memory.

A few lines of YAML can stand for billions of values, because an alias repeats all that its anchor
holds. So size and depth are counted before any data is built.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from artist.errors import ConfigError, one_line, shortened

# Scenarios nest five levels deep. PyYAML and libyaml recurse, so deep nesting ends the process.
MAX_DEPTH = 100
# Counted with aliases expanded. A document that lists a million machines has two million values.
MAX_VALUES = 2_000_000

# No count or size needs more digits, even in base two. Python refuses to print 5000 of them.
MAX_DIGITS = 100

_INTEGER = "tag:yaml.org,2002:int"
_NUMBERS = (_INTEGER, "tag:yaml.org,2002:float")
_TEXT = "tag:yaml.org,2002:str"
# YAML 1.1 reads 1:30 as ninety and 010 as eight, which nobody means.
_MISREAD = re.compile(r"[-+]?(0[0-9_]+|.*:.*)")
_MERGE = "tag:yaml.org,2002:merge"

# libyaml, if PyYAML was built with it: ten times faster, with the same results.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str, where: str, *, typed: bool = True) -> tuple[yaml.Node | None, Any]:
    """The node tree of a YAML text and the plain data in it. Messages start with `where`.

    Without `typed`, every scalar stays a text. YAML 1.1 reads 1e-05 as a text anyway.

    Raises:
        ConfigError: the text is not YAML, gives a key twice, or exceeds a limit above; names the
            line.
    """
    try:
        _check_depth(text, where)
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        if node is None:
            return None, None
        _Census(where, typed=typed).count(node)
        construct = yaml.SafeLoader if typed else yaml.BaseLoader
        return node, construct("").construct_document(node)
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause)
        if mark and _at(text, mark) == "\t":
            problem = "a tab; indent with spaces"
        raise ConfigError(f"{where}{line}: not valid YAML ({one_line(problem)})") from cause
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as cause:
        # PyYAML's constructors raise these for `!!int ""`, `2001-99-99` and the like.
        raise ConfigError(f"{where}: not valid YAML ({one_line(str(cause))})") from cause


def _at(text: str, mark: Any) -> str:
    """The character of a text at a mark; empty at its end."""
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return line[mark.column : mark.column + 1]


def _check_depth(text: str, where: str) -> None:
    """Refuse nesting that would exhaust the stack. Events are parsed without recursion."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            line = f":{event.start_mark.line + 1}" if event.start_mark else ""
            raise ConfigError(f"{where}{line}: nested more than {MAX_DEPTH} deep; flatten it")


class _Census:
    """Counts the values of a document with its aliases expanded, and finds keys given twice."""

    def __init__(self, where: str, *, typed: bool) -> None:
        self._where = where
        self._typed = typed
        self._counted: dict[int, tuple[int, int]] = {}
        """Size and depth by the identity of a node, so that a node with aliases is visited once."""
        self._open: list[int] = []
        """The identities of the nodes from the root to the current one."""

    def count(self, node: yaml.Node) -> tuple[int, int]:
        """Size (nodes below and including this one) and depth of a node.

        Raises:
            ConfigError: a key is given twice, or a limit is exceeded; names the line.
        """
        if not isinstance(node, yaml.CollectionNode):
            if node.tag == _INTEGER and len(node.value) > MAX_DIGITS:
                raise self._error(node, f"a number of {len(node.value)} digits; correct it")
            if self._typed and node.tag in _NUMBERS and _MISREAD.fullmatch(node.value):
                value = shortened(node.value)
                remedy = "a time with its unit (10min)" if ":" in value else "it as one"
                raise self._error(
                    node,
                    f"{value} is not a decimal number; write {remedy}, or quote it if it is text",
                )
            if self._typed and node.tag in _NUMBERS and node.value.startswith("+"):
                node.tag = _TEXT  # where values may be relative, +2 means two more
            return 1, 1
        if id(node) in self._counted:
            return self._counted[id(node)]
        if id(node) in self._open:
            raise self._error(node, "an alias inside its own value; write it out")
        self._open.append(id(node))
        children = [self.count(child) for child in self._children(node)]
        self._open.pop()
        size = 1 + sum(child_size for child_size, _ in children)
        depth = 1 + max((child_depth for _, child_depth in children), default=0)
        if size > MAX_VALUES:
            raise self._error(node, f"more than {MAX_VALUES} values; list less")
        if depth > MAX_DEPTH:
            raise self._error(node, f"aliases nest more than {MAX_DEPTH} deep; write them out")
        self._counted[id(node)] = size, depth
        return size, depth

    def _children(self, node: yaml.CollectionNode) -> list[yaml.Node]:
        """The nodes of a sequence, or the keys and values of a mapping."""
        if not isinstance(node, yaml.MappingNode):
            return list(node.value)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise self._error(key, f"{shortened(key.value)} is given twice; keep one")
                seen.add(key.value)
        return [child for pair in node.value for child in pair]

    def _error(self, node: yaml.Node, problem: str) -> ConfigError:
        return ConfigError(f"{self._where}:{node.start_mark.line + 1}: {problem}")

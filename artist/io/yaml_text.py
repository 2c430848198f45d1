"""YAML text into plain data, refused before it can exhaust time, stack or memory."""

from __future__ import annotations

from typing import Any

import yaml

from artist.errors import ConfigError, one_line, shortened

# Scenarios nest five deep. PyYAML's composer recurses, libyaml's in C.
MAX_DEPTH = 100
# Values with aliases written out; a cluster of a million machines, each listed, has two million.
MAX_VALUES = 2_000_000

# No count or size needs more, in base two either; Python does not even print 5000 of them.
MAX_DIGITS = 100

_INTEGER = "tag:yaml.org,2002:int"
_MERGE = "tag:yaml.org,2002:merge"

# libyaml where PyYAML has it: ten times faster, the same documents.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str, where: str) -> tuple[yaml.Node | None, Any]:
    """The node tree of a YAML text and the plain data in it; `where` starts messages.

    Raises:
        ConfigError: not YAML, a key given twice, or absurdly large or deep; names the line.
    """
    try:
        _check_depth(text, where)
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        if node is None:
            return None, None
        _Census(where).count(node)
        return node, yaml.SafeLoader("").construct_document(node)
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause)
        raise ConfigError(f"{where}{line}: not valid YAML ({one_line(problem)})") from cause
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as cause:
        # What PyYAML's constructors raise for `!!int ""`, `2001-99-99` and their like.
        raise ConfigError(f"{where}: not valid YAML ({one_line(str(cause))})") from cause


def _check_depth(text: str, where: str) -> None:
    """Refuse nesting that would exhaust the stack, before anything is built."""
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
    """Counts what a document holds with its aliases written out, and finds keys given twice."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._sizes: dict[int, tuple[int, int]] = {}
        self._open: list[int] = []

    def count(self, node: yaml.Node) -> tuple[int, int]:
        """Nodes below and including this one, and how deep they nest."""
        if not isinstance(node, yaml.CollectionNode):
            if node.tag == _INTEGER and len(node.value) > MAX_DIGITS:
                raise self._error(node, f"a number of {len(node.value)} digits; correct it")
            return 1, 1
        known = self._sizes.get(id(node))
        if known is None:
            if id(node) in self._open:
                raise self._error(node, "an alias inside what it stands for; write it out")
            self._open.append(id(node))
            found = [self.count(inner) for inner in self._inside(node)]
            self._open.pop()
            known = 1 + sum(size for size, _ in found), 1 + max((d for _, d in found), default=0)
            self._sizes[id(node)] = known
        if known[0] > MAX_VALUES:
            raise self._error(node, f"more than {MAX_VALUES} values; list less")
        if known[1] > MAX_DEPTH:
            raise self._error(node, f"aliases nest more than {MAX_DEPTH} deep; write them out")
        return known

    def _inside(self, node: yaml.CollectionNode) -> list[yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            return list(node.value)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise self._error(key, f"{shortened(key.value)} is given twice; keep one")
                seen.add(key.value)
        return [inner for pair in node.value for inner in pair]

    def _error(self, node: yaml.Node, problem: str) -> ConfigError:
        return ConfigError(f"{self._where}:{node.start_mark.line + 1}: {problem}")

"""Does the package stay in order: small rooms, and imports that point one way?"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import artist

HOUSE = Path(artist.__file__).parent
MODULES = sorted(path for path in HOUSE.rglob("*.py") if path.name != "__init__.py")
# A module a command, and a module a kind of figure: nobody looks for anything else there.
WIDE = {"artist.cli", "artist.cli.commands", "artist.report"}


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(HOUSE.parent).parts)


def imported(path: Path) -> set[str]:
    """The packages of artist that a module imports from, also for types and inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("artist"):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("artist.")}
    packages = set()
    for name in names:
        file = HOUSE.parent / Path(*name.split(".")).with_suffix(".py")
        if file.is_file():
            packages.add(package_of(file))
    return packages


def test_no_package_has_more_modules_than_a_reader_can_keep_in_mind() -> None:
    count: dict[str, int] = defaultdict(int)
    for path in MODULES:
        count[package_of(path)] += 1
    assert count["artist"] <= 12
    assert {name: n for name, n in count.items() if n > 16 and name not in WIDE} == {}


def test_no_two_packages_import_each_other() -> None:
    imports: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        imports[package_of(path)] |= imported(path)
    # The root is surface and ground floor at once (docs/architecture.md).
    both = {
        frozenset((one, other))
        for one, others in imports.items()
        for other in others
        if one != other and one in imports[other] and "artist" not in (one, other)
    }
    assert both == set()


def test_no_two_classes_have_one_name() -> None:
    defined: dict[str, list[str]] = defaultdict(list)
    for path in HOUSE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(path.relative_to(HOUSE).as_posix())
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}

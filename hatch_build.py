"""Compiles the core with mypyc where `ARTIST_COMPILE=1` asks for it.

    ARTIST_COMPILE=1 pip install .                a wheel for this Python and machine
    python hatch_build.py build/compiled          the package with its compiled core in a folder

Without it the wheel is pure Python, and nothing here does anything. Which modules are compiled is
data in `pyproject.toml`.

The sources are compiled as they are. Only their copies get mypyc's attributes, on blank lines, so
that line numbers in tracebacks stay those of the sources.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
PACKAGE = "artist"
# The library that all compiled modules share. It lies inside the package, as all of it does.
LIBRARY = "artist._core"
DATA = ("templates", "astra_configs", "traces")
# mypyc changes from version to version, and the rows must not: raise these after the tests pass.
TOOLS = ("mypy==2.4.1", "setuptools>=75")
# Classes of these kinds stay Python classes in a compiled module.
PYTHON_CLASSES = {"NamedTuple", "Protocol", "IntEnum", "StrEnum"}
# Types of other packages are not read, so that the core is the same wherever it is built.
TYPES = ("--config-file=", "--no-site-packages", "--ignore-missing-imports",
         "--follow-imports=silent")  # fmt: skip
IMPORT = "if _t.TYPE_CHECKING: from mypy_extensions import mypyc_attr"
MARK = "@mypyc_attr(serializable=True, allow_interpreted_subclasses=True)"


def compiled_modules() -> list[str]:
    """The modules that are compiled."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        modules: list[str] = tomllib.load(file)["tool"]["compiled-core"]["modules"]
    return modules


def compile_into(folder: Path) -> list[Path]:
    """Put a copy of the package with its compiled core into an empty folder.

    Returns the libraries, relative to the folder. Takes half a minute.
    """
    shutil.copytree(
        ROOT / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    with tempfile.TemporaryDirectory() as scratch:
        marked_tree = Path(scratch, "marked")
        shutil.copytree(folder / PACKAGE, marked_tree / PACKAGE)
        files = [f"{module.replace('.', '/')}.py" for module in compiled_modules()]
        for name in files:
            path = marked_tree / name
            path.write_text(marked(path.read_text("utf-8"), name), "utf-8")
        done = subprocess.run(
            [sys.executable, Path(__file__).resolve(), "--compile", *files],
            cwd=marked_tree, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"mypyc failed:\n{done.stdout[-5000:]}{done.stderr[-5000:]}")
        _refuse_rounding(marked_tree)
        libraries = sorted(path.relative_to(marked_tree) for path in marked_tree.rglob("*.so")
                           if "build" not in path.relative_to(marked_tree).parts)  # fmt: skip
        for library in libraries:
            shutil.copy(marked_tree / library, folder / library)
    return libraries


def marked(source: str, name: str) -> str:
    """The source with mypyc's attributes on the blank lines before its classes.

    Every class can be copied, pickled and extended in Python, as without mypyc. It costs nothing
    that could be measured, and mypyc calls no constructor of a class that has the first two alone.
    """
    lines = source.splitlines()
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    native = [node for node in classes if not _bases(node) & PYTHON_CLASSES]
    if not native:
        return source
    _fill(lines, lines.index("from __future__ import annotations") + 1, "import typing as _t", name)
    for number, node in enumerate(native):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        if not number:
            _fill(lines, first - 2, IMPORT, name)
        _fill(lines, first - 1, MARK, name)
    return "\n".join(lines) + "\n"


def _refuse_rounding(tree: Path) -> None:
    """mypyc rounds whole numbers before it divides them, Python only after that."""
    for path in tree.rglob("__native*.c"):
        if "= CPyTagged_TrueDivide(" in path.read_text("utf-8"):
            raise RuntimeError(
                "a compiled module divides whole numbers by '/': above 2**53 the compiled core "
                "would round twice; let a module divide that stays Python, such as artist.units"
            )


def _fill(lines: list[str], index: int, text: str, name: str) -> None:
    if lines[index]:
        raise RuntimeError(f"{name}:{index + 1}: expected a blank line before a class")
    lines[index] = text


def _bases(node: ast.ClassDef) -> set[str]:
    return {base.id for base in node.bases if isinstance(base, ast.Name)}


def _compile(files: list[str]) -> None:
    """Compile modules of the package in the working folder."""
    from mypyc.build import mypycify
    from setuptools import setup

    modules = mypycify(
        [*TYPES, *files], opt_level="3", debug_level="0", strip_asserts=False, group_name=LIBRARY
    )
    setup(name=PACKAGE, ext_modules=modules, script_args=["--quiet", "build_ext", "--inplace"])


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # not called by hatchling
    pass
else:

    class CompiledCore(BuildHookInterface[Any]):
        """Adds the compiled core to the wheel."""

        def _asked(self) -> bool:
            return self.target_name == "wheel" and os.environ.get("ARTIST_COMPILE", "0") == "1"

        def dependencies(self) -> list[str]:
            """What the build needs."""
            return list(TOOLS) if self._asked() else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile before the wheel is written; an editable installation stays pure."""
            if not self._asked() or version == "editable":
                return
            self._folder = tempfile.TemporaryDirectory()
            folder = Path(self._folder.name)
            for library in compile_into(folder):
                build_data["force_include"][str(folder / library)] = str(library)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


if __name__ == "__main__":
    if sys.argv[1] == "--compile":
        _compile(sys.argv[2:])
    else:
        target = Path(sys.argv[1])
        shutil.rmtree(target / PACKAGE, ignore_errors=True)
        compile_into(target)
        for name in DATA:
            shutil.copytree(ROOT / name, target / PACKAGE / "_data" / name)

"""Do wheel and sdist hold what they should, and work where nothing else is installed?"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path, PurePosixPath

import pytest
from environments import ROOT, VERSIONS, Environment, build, environment, interpreter

from artist import __version__

pytestmark = pytest.mark.slow

DATA = ("templates", "astra_configs", "traces")
# Rooms whose tests need nothing but artist, pytest and hypothesis.
ROOMS = ("cluster", "io", "engine", "results", "workload", "trace/test_formats.py",
         "report/test_report_page.py", "cli/test_sim.py", "cli/test_bad_input.py")  # fmt: skip


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest,
    packages: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Environment:
    """The wheel in an environment of its own, without any extra."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} here")
    made = environment(python, tmp_path_factory.mktemp(f"python{request.param}"))
    made.pip(packages[1])
    return made


def files(folder: str) -> set[str]:
    """What a folder of the repository ships."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_its_data_alone(packages: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(packages[1]) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        metadata = message_from_bytes(
            wheel.read(next(name for name in names if name.endswith("dist-info/METADATA")))
        )
    assert {PurePosixPath(name).parts[0] for name in names} == {
        "artist",
        f"artist_sim-{__version__}.dist-info",
    }
    # The test that `artist policy new` writes is a template, test_policy.py.txt.
    modules = [PurePosixPath(name).name for name in names if name.endswith((".py", ".pyc"))]
    assert not [x for x in modules if x.startswith(("test_", "conftest")) or x.endswith(".pyc")]
    assert "artist/py.typed" in names
    for folder in DATA:
        assert {f"artist/_data/{name}" for name in files(folder)} <= names
    assert files("artist") <= names
    assert (metadata["Name"], metadata["Version"]) == ("artist-sim", __version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_sdist_holds_no_strays(packages: tuple[Path, Path]) -> None:
    with tarfile.open(packages[0]) as source:
        members = source.getmembers()
    names = {str(PurePosixPath(*PurePosixPath(m.name).parts[1:])) for m in members if m.isfile()}
    tops = {PurePosixPath(name).parts[0] for name in names}
    assert tops == {
        "artist", *DATA, "LICENSE", "README.md", "PKG-INFO", "pyproject.toml", ".gitignore",
        "hatch_build.py",
    }  # fmt: skip
    assert all(m.isfile() and not m.mode & 0o022 for m in members)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".so", ".pyc"))]


def test_installed_alone_it_does_its_work(installed: Environment) -> None:
    def artist(*arguments: str) -> str:
        ran = installed.run("artist", *arguments)
        assert ran.returncode == 0, ran.stderr
        assert "Warning" not in ran.stderr
        return ran.stdout

    assert artist("--version") == f"artist {__version__}\n"
    assert "dally" in artist("list", "policies")
    assert "dally2025" in artist("list", "fabrics")
    assert "tiny-batch" in artist("list", "traces")
    sim = ("sim", "--trace", "tiny-batch", "--racks", "1", "--format", "json")
    summary = json.loads(artist(*sim, "--out", "run", "--calibration", "dally2025-table1"))
    assert summary["jobs_finished"] == 20
    artist("report", "run", "--out", "report.html")
    assert (installed.home / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    artist("render", "--model", "resnet18", "--placement", "4,4", "--out", "files")
    assert any((installed.home / "files").rglob("*.yml"))
    artist("trace", "convert", "tiny-batch", "--out", "t.parquet")
    (installed.home / "e.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: tiny-batch, racks: 1}\ngrid: {policy: [fifo, las]}\n"
    )
    artist("sweep", "e.yaml", "--out", "sweep", "--workers", "2")
    assert (installed.home / "sweep" / "results.csv").read_text().count("\n") == 3
    shutil.rmtree(installed.home / "run")


def test_extras_that_are_missing_are_named(installed: Environment) -> None:
    installed.run("artist", "sim", "--trace", "tiny-batch", "--racks", "1", "--out", "run")
    for arguments, extra in (
        (("report", "run", "--figures", "figures"), "artist-sim[plot]"),
        (("sweep", "e.yaml", "--engine", "ray", "--out", "ray"), "artist-sim[ray]"),
        (("train", "s.yaml", "--out", "training"), "artist-sim[rl]"),
    ):
        ran = installed.run("artist", *arguments)
        assert ran.returncode == 2
        assert extra in ran.stderr
        assert "Traceback" not in ran.stderr


def test_the_tests_pass_without_extras(installed: Environment) -> None:
    installed.pip("pytest", "hypothesis")
    run_tests(installed, ROOMS)


def test_the_tests_pass_with_the_oldest_libraries(
    packages: tuple[Path, Path], tmp_path: Path
) -> None:
    """Those of `pyproject.toml`, and the oldest that these need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["exact"]]
    made = environment(sys.executable, tmp_path)
    made.pip_runs("install", packages[1], *(one.replace(">=", "==") for one in needed))
    made.pip_runs("install", "pytest", "hypothesis")
    run_tests(made, (*ROOMS, "cli/test_printable.py", "cli/test_startup.py", "policies/sia",
                     "policies/gavel/test_allocation.py"))  # fmt: skip


def run_tests(installed: Environment, rooms: tuple[str, ...]) -> None:
    """Run the tests of some rooms in a copy of what they read."""
    tree = installed.home / "tree"
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (*DATA, "docs", "examples"):
        shutil.copytree(ROOT / folder, tree / folder)
    shutil.copy(ROOT / "pyproject.toml", tree)
    ran = installed.run(
        "python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--rootdir={tree}",
        f"--config-file={tree / 'pyproject.toml'}", *(tree / "tests" / room for room in rooms),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]

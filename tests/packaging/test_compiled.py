"""Does the compiled core build, say what it is, and do exactly what the sources do?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from environments import ROOT, Environment, environment

from tests.mutations.mutate import mutated, read

pytestmark = pytest.mark.slow

# Golden runs, the policy contract, copies and pickles, tracebacks, invariants after every event.
ROOMS = ("cluster", "engine", "policies", "theory", "results/test_waits.py",
         "results/test_wait_causes.py", "cli/test_sim.py", "cli/test_policy.py")  # fmt: skip
NOT_COMPILED = (
    "policies/cassini",
    "policies/elastic",
    "policies/gavel",
    "policies/test_backfill.py",
)
POLICIES = ("fifo", "las", "srtf", "tiresias", "dally", "themis", "gandiva", "mast",
            "quota(fifo)")  # fmt: skip
# Each is one of `mutations.yaml`, in a module that is compiled.
MISTAKES = (
    "lease end, at an iteration that ends when it is due",
    "contest, among equals the job that arrived first",
)
BROKEN = """
from artist.contract import BasePolicy, Start
from artist.cluster.placement import Placement

class Broken(BasePolicy):
    def decide(self, view):
        return [Start(1.5, Placement((0,), (1,)))]

class Raises(BasePolicy):
    def decide(self, view):
        return view.free.no_such_thing
"""


def modules() -> list[str]:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return tables["tool"]["compiled-core"]["modules"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` makes, in an environment of its own."""
    folder = tmp_path_factory.mktemp("compiled")
    tools = environment(sys.executable, folder)
    tree = folder / "tree"
    _copy_sources(tree)
    tools.pip("wheel")
    command = ("wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", tree)
    tools.pip_runs(*command, ARTIST_COMPILE="1")
    (made,) = (folder / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = environment(sys.executable, tmp_path_factory.mktemp("installed"))
    # The linter checks what `artist policy new` writes.
    made.pip(wheel, "pytest", "hypothesis", "scipy", "ruff")
    return made


def test_the_wheel_is_of_this_python_and_holds_a_library_for_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    libraries = {name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    named = {module.replace(".", "/") for module in modules()}
    assert libraries == named | {"artist/_core__mypyc"}
    assert {f"{name}.py" for name in named} <= set(names)  # tracebacks show their lines
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{tag}-{tag}-" in wheel.name
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"artist"}


def test_both_cores_write_the_same_bytes(installed: Environment, tmp_path: Path) -> None:
    pure = Environment(Path(sys.prefix), tmp_path)
    for policy in POLICIES:
        command = ("sim", "--racks", "2", "--policy", policy, "--no-cache", "--out", policy)
        for environment_, core in ((installed, "compiled"), (pure, "pure")):
            ran = environment_.run("artist", *command)
            assert ran.returncode == 0, ran.stderr
            manifest = json.loads((environment_.home / policy / "manifest.json").read_text())
            assert manifest["volatile"]["core"] == core
        tables = sorted((pure.home / policy).glob("*.parquet"))
        assert tables
        for table in tables:
            assert (installed.home / policy / table.name).read_bytes() == table.read_bytes()


def test_broken_policies_are_reported_as_by_the_sources(
    installed: Environment, tmp_path: Path
) -> None:
    pure = Environment(Path(sys.prefix), tmp_path)
    for name in ("Broken", "Raises"):
        reports = []
        for environment_ in (installed, pure):
            (environment_.home / "broken.py").write_text(BROKEN)
            ran = environment_.run(
                "artist", "sim", "--trace", "tiny-batch", "--racks", "1", "--backend", "none",
                "--policy", f"broken.py:{name}",
            )  # fmt: skip
            reports.append((ran.returncode, ran.stderr.replace(str(environment_.home), "")))
        assert reports[0] == reports[1]
        assert reports[0][0] != 0
    assert "broken.py" in reports[0][1]
    assert "no_such_thing" in reports[0][1]


def test_the_tests_pass_on_the_compiled_core(installed: Environment) -> None:
    tree = _tests(installed.home / "tree")
    ran = installed.run(
        "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tree}",
        f"--config-file={tree / 'pyproject.toml'}", *(tree / "tests" / room for room in ROOMS),
        *(f"--ignore={tree / 'tests' / room}" for room in NOT_COMPILED), cwd=tree,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]


def test_mistakes_in_compiled_modules_make_their_tests_fail(tmp_path: Path) -> None:
    chosen = [x for x in read(ROOT / "tests/mutations/mutations.yaml") if x.mistake in MISTAKES]
    assert len(chosen) == len(MISTAKES)
    source, tree = tmp_path / "source", tmp_path / "tree"
    _copy_sources(source)
    for mutation in chosen:
        assert mutation.file.removesuffix(".py").replace("/", ".") in modules()
        path = source / mutation.file
        path.write_text(mutated(source, mutation))
        # The build puts attributes on blank lines, which a syntax tree does not keep.
        for tool in (("check", "--select", "I", "--fix"), ("format",)):
            subprocess.run([sys.executable, "-m", "ruff", *tool, "-q", path], check=True)
    _tests(tree)
    built = subprocess.run(
        [sys.executable, source / "hatch_build.py", tree],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    for mutation in chosen:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", mutation.test],
            cwd=tree, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tree)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 1, mutation.mistake + ran.stdout[-2000:]


def _copy_sources(tree: Path) -> None:
    """Copy what the wheel is built from."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("artist", "templates", "astra_configs", "traces"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)


def _tests(tree: Path) -> Path:
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("docs", "examples", "validation"):
        shutil.copytree(ROOT / folder, tree / folder)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree

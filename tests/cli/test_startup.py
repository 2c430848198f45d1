"""Does a command load only what it needs?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CODE = """
import json, os, sys
from artist.cli.main import main
try:
    main()
finally:
    json.dump({"modules": sorted(sys.modules), **os.environ}, sys.stderr)
"""


def after(*arguments: str, home: Path, **environment: str) -> dict:
    """The modules that are loaded, and the environment, when a command has ended well."""
    command = [sys.executable, "-c", CODE, *arguments]
    paths = {"HOME": str(home), "ARTIST_CACHE_DIR": str(home / "cache"), "PYTHONPATH": str(ROOT)}
    env = {**paths, **environment}
    ran = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stderr)


# dally writes a table of its own, with empty cells. Unlike fifo, it reads the catalogue of models.
@pytest.mark.parametrize(
    ("policy", "idle"), [("fifo", {"artist.workload.models"}), ("dally", set())]
)
def test_a_run_without_network_loads_nothing_that_it_does_not_need(tmp_path, policy, idle) -> None:
    command = ["sim", "--trace", "tiny-batch", "--racks", "1", "--policy", policy, "--quiet"]
    told = after(*command, "--backend", "none", "--format", "json", "--out", "run", home=tmp_path)
    assert (tmp_path / "run" / "manifest.json").is_file()
    idle = idle | {"pandas", "jinja2", "matplotlib", "rich", "torch", "diskcache"}
    idle = idle | {"artist.trace.foreign.assemble", "artist.estimates.divided.layer_wise"}
    idle = idle | {"artist.network.demand.traffic", "artist.network.models.patterns"}
    idle = idle | {"artist.estimates.cache", "artist.cluster.cluster_file"}
    # NumPy imports it for `np.unique` and `np.percentile` (`results/statistics/sorted_values.py`).
    idle = idle | {"numpy.ma"}
    assert sorted(idle.intersection(told["modules"])) == []


def test_a_named_command_loads_no_other(tmp_path) -> None:
    told = after("explain", "jct_mean_s", home=tmp_path)
    loaded = {name for name in told["modules"] if name.startswith("artist.cli.")}
    names = ("main", "interruption", "output")
    inner = ("commands", "commands.explain")
    assert loaded == {f"artist.cli.{name}" for name in names + inner}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_loads_all_commands_loads_nothing_heavy(tmp_path, option) -> None:
    loaded = after(option, home=tmp_path)["modules"]
    assert sorted({"numpy", "pydantic", "yaml"}.intersection(loaded)) == []


# pydantic would look for plugins in all packages, and BLAS would start idle threads.
@pytest.mark.parametrize(
    ("variable", "other"), [("PYDANTIC_DISABLE_PLUGINS", "0"), ("OPENBLAS_NUM_THREADS", "3")]
)
def test_libraries_are_told_to_start_fast_unless_the_user_chose(tmp_path, variable, other) -> None:
    command = ("explain", "jct_mean_s")
    assert after(*command, home=tmp_path)[variable] == "1"
    assert after(*command, home=tmp_path, **{variable: other})[variable] == other

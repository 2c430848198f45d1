"""Does `import artist` do the work of the commands, with types, and import quickly?"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import artist

ROOT = Path(__file__).parents[2]
SETTINGS = {"trace": "tiny-poisson", "racks": 1, "policy": "dally", "seed": 3}


def python(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "MYPYPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=home,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def result() -> artist.Result:
    return artist.simulate(artist.Scenario(**SETTINGS), cache=False)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    flags = [f"--{key}={value}" for key, value in SETTINGS.items()]
    ran = python("-m", "artist", "sim", *flags, "--out", "run", "--quiet", home=home)
    assert ran.returncode == 0, ran.stderr
    return home / "run"


def test_a_saved_result_has_the_bytes_of_the_command(
    result: artist.Result, by_command: Path, tmp_path: Path
) -> None:
    result.save(tmp_path / "run")
    names = sorted(path.name for path in by_command.glob("*.parquet"))
    assert names == [
        f"{name}.parquet" for name in ("autotuner", "jobs", "placements", "timeline", "waits")
    ]
    for name in names:
        assert (tmp_path / "run" / name).read_bytes() == (by_command / name).read_bytes()
    theirs = json.loads((by_command / "summary.json").read_text())
    assert {**result.summary, "wall_s": 0} == {**theirs, "wall_s": 0}


def test_frames_equal_the_files(result: artist.Result, by_command: Path) -> None:
    for name in ("jobs", "placements", "timeline", "waits"):
        expected = pd.read_parquet(by_command / f"{name}.parquet")
        pd.testing.assert_frame_equal(getattr(result, name), expected)
        assert getattr(result, name) is getattr(result, name)
    tuned = pd.read_parquet(by_command / "autotuner.parquet")
    pd.testing.assert_frame_equal(result.table("autotuner"), tuned)
    with pytest.raises(artist.ConfigError, match="did you mean 'jobs'"):
        result.table("job")


def test_waits_are_computed_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []

    def counted(facts: object) -> dict[str, list[str]]:
        computed.append(facts)
        return {"job_id": ["a"]}

    monkeypatch.setattr("artist.results.waiting.waits.wait_table", counted)
    result = artist.simulate(artist.Scenario(**SETTINGS), cache=False)  # type: ignore[arg-type]
    assert result.table("wait_causes").columns.tolist()[:2] == ["job_id", "start_s"]
    assert "waits" in result.tables
    assert list(result.tables) == [
        "jobs", "placements", "timeline", "autotuner", "wait_causes", "waits",
    ]  # fmt: skip
    assert computed == []
    assert result.waits["job_id"].tolist() == result.table("waits")["job_id"].tolist() == ["a"]
    assert len(computed) == 1


def test_a_result_survives_pickling(result: artist.Result) -> None:
    other = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    pd.testing.assert_frame_equal(other.waits, result.waits)


def test_a_changed_frame_does_not_change_what_is_saved(result: artist.Result) -> None:
    before, changed = result.table("jobs"), result.table("jobs")
    changed["jct_s"] = 0.0
    pd.testing.assert_frame_equal(result.table("jobs"), before)


def test_a_scenario_file_with_changes(tmp_path: Path) -> None:
    path = ROOT / "examples" / "quickstart" / "scenario.yaml"
    scenario = artist.load_scenario(path, racks=3, policy_options={"lease_s": 60})
    assert (scenario.racks, scenario.trace) == (3, "sensetime-batch-500")
    assert scenario.policy_options == {"lease_s": 60}
    with pytest.raises(artist.ConfigError, match="did you mean 'racks'"):
        artist.load_scenario(path, rack=2)
    (tmp_path / "bad.yaml").write_text("seed: 0\nracks: none\n")
    with pytest.raises(artist.ConfigError, match=r"bad\.yaml:2: 'racks'"):
        artist.load_scenario(tmp_path / "bad.yaml")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"rack": 2}, artist.ConfigError),
        ({"racks": 0}, artist.ConfigError),
        ({"policy": "daly"}, artist.UnknownNameError),
        ({"fabric": "nowhere"}, artist.UnknownNameError),
        ({"trace": "nowhere.csv"}, artist.TraceError),
        ({"backend": "astra-binary:/nowhere", "trace": "tiny-batch"}, artist.BackendError),
        ({"racks": 1, "machines_per_rack": 1, "gpus_per_machine": 1}, artist.TraceError),
    ],
)
def test_errors_match_those_of_the_command(
    settings: dict[str, object], error: type[artist.ArtistError], tmp_path: Path
) -> None:
    """The exception has the same class, hence the same exit code, and the same sentence."""
    from artist.settings import load_scenario

    with pytest.raises(error) as raised:
        artist.simulate(artist.Scenario(**settings), cache=False)  # type: ignore[arg-type]
    if "rack" in settings:
        return  # a flag of the command, misspelt, never gets as far as a scenario
    with pytest.raises(error) as expected:
        artist.simulate(load_scenario(None, settings, ()), cache=False)
    assert str(raised.value) == str(expected.value)
    assert raised.value.exit_code == expected.value.exit_code


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: artist.simulate("x"), r"scenario='x': expected artist\.Scenario"),
        (lambda: artist.compare("x", ["las", "fifo"]), r"scenario='x': expected artist\.Scenario"),
        (lambda: artist.compare(artist.Scenario(), "las"), "policies='las': expected a list"),
        (lambda: artist.compare(artist.Scenario(), ["las"]), "^policies las: .* vary= in Python"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_a_sentence(
    call: Callable[[], object], words: str
) -> None:
    with pytest.raises(artist.ConfigError, match=words):
        call()


def test_latency_matches_the_command(tmp_path: Path) -> None:
    command = ["latency", "--model", "resnet50", "--placement", "8,8/2", "--format", "json"]
    ran = python("-m", "artist", *command, "--system", "scheduling_policy=FIFO", home=tmp_path)
    theirs = json.loads(ran.stdout)
    ours = artist.latency("resnet50", "8,8/2", system={"scheduling_policy": "FIFO"})
    assert ours.finish_ns == theirs["finish_cycles"]
    assert ours.exposed_comm_ns == theirs["exposed_comm_cycles"]
    assert (ours.comm_ratio, ours.source) == (theirs["comm_ratio"], theirs["source"])
    assert ours.split is None
    split = artist.latency("resnet50", "8,8/2", system={"scheduling_policy": "FIFO"}, split=True)
    assert split.split is not None and split.split.parts_ns == theirs["split_ns"]
    with pytest.raises(artist.ConfigError):
        artist.latency("resnet50", "8,8", system={"scheduling": "FIFO"})


def test_the_import_is_cheap_and_every_name_is_there(tmp_path: Path) -> None:
    code = """
import sys, artist
heavy = {"numpy", "pandas", "pyarrow", "pydantic", "rich", "typer", "yaml", "jinja2"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert artist.latency("resnet50", "8,8").finish_ns == artist.latency("resnet50", "8,8").finish_ns
from artist import latency
assert latency("resnet50", "8").comm_ratio > 0
from artist import api
assert artist.__all__ == api.__all__
assert all(getattr(artist, name) for name in artist.__all__)
assert set(artist.__all__) <= set(dir(artist))
assert "pandas" not in sys.modules
try:
    artist.simulat
except AttributeError as error:
    assert "simulat" in str(error)
else:
    raise AssertionError
"""
    ran = python("-c", code, home=tmp_path)
    assert ran.returncode == 0, ran.stderr


SCRIPT = """
import artist
from artist import Estimate, Result, Scenario, compare, latency, load_scenario, simulate

scenario: Scenario = Scenario(racks=2, policy="fifo", policy_options={"lease_s": 60.0})
result: Result = simulate(scenario, check=True)
mean_s: float = float(result.jobs["jct_s"].mean())
makespan_s: float = result.summary["makespan_s"]
estimate: Estimate = artist.latency("resnet50", "4+4", system={"endpoint_delay_ns": 5})
finish_ns: int = latency("resnet50", "8").finish_ns
comparison = compare(scenario, ["las", "fifo"], seeds=1, permutations=2)
for metric, difference in comparison.differences["fifo"].items():
    print(metric, difference.low, difference.verdict)
result.save("run")
"""
WRONG = """
from artist import Scenario, latency

Scenario(rack=2)
Scenario(racks="two")
finish: str = latency("resnet50", "8").finish_ns
"""


@pytest.mark.slow
def test_a_users_script_and_policy_pass_the_strictest_type_check(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    python("-m", "artist", "policy", "new", "new", home=tmp_path)
    ran = python("-m", "mypy", "--strict", "right.py", "wrong.py", "new.py", home=tmp_path)
    assert "right.py" not in ran.stdout
    assert "new.py" not in ran.stdout
    assert (tmp_path / "new.py").is_file()
    assert ran.stdout.count("wrong.py") >= 3
    for line in (4, 5, 6):
        assert f"wrong.py:{line}: error" in ran.stdout, ran.stdout

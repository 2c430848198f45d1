"""Is a folder replaced only if one command wrote everything in it?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.experiment import Experiment
from artist.experiments.sweep import sweep
from artist.io.own_folders import OwnFolder, json_with
from artist.results.run_directory import check_target, write_run
from artist.run import simulate
from artist.warehouse.files import PLAN, WAREHOUSE

KIND = OwnFolder(
    "album", re.compile(r"[a-z]+\.jpg|album\.json"), "album.json", json_with("title"),
    {"small": re.compile(r"[a-z]+\.jpg")},
)  # fmt: skip


@pytest.fixture
def album(tmp_path: Path) -> Path:
    out = tmp_path / "album"
    (out / "small").mkdir(parents=True)
    (out / "album.json").write_text('{"title": "x", "more": 1}')
    for name in ("a.jpg", "small/a.jpg"):
        (out / name).write_text("picture")
    return out


def test_what_the_command_wrote_is_its_own(album: Path) -> None:
    assert KIND.foreign(album) is None


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (lambda out: (out / "thesis.tex").write_text("mine"), "thesis.tex"),
        (lambda out: (out / "small" / "thesis.tex").write_text("mine"), "small/thesis.tex"),
        (lambda out: (out / "large").mkdir(), "large"),
        (lambda out: (out / "small" / "b.jpg").mkdir(), "small/b.jpg"),
        (lambda out: (out / "b.jpg").symlink_to(out / "a.jpg"), "b.jpg"),
        (lambda out: (out / "small" / "b.jpg").symlink_to(out / "a.jpg"), "small/b.jpg"),
        (lambda out: (out / "album.json").unlink(), "album.json"),
        (lambda out: (out / "album.json").write_text("{"), "album.json"),
        (lambda out: (out / "album.json").write_text("[" * 100_000), "album.json"),
        (lambda out: (out / "album.json").write_bytes(b"\xff"), "album.json"),
        (lambda out: (out / "album.json").write_text('["title"]'), "album.json"),
        (lambda out: (out / "album.json").write_text('{"name": "an extension"}'), "album.json"),
    ],
)
def test_foreign_files_are_found(album: Path, change: Callable[[Path], None], first: str) -> None:
    change(album)
    assert KIND.foreign(album) == album / first


def test_a_linked_folder_counts_as_foreign(album: Path, tmp_path: Path) -> None:
    (album / "small").rename(tmp_path / "elsewhere")
    (album / "small").symlink_to(tmp_path / "elsewhere")
    assert KIND.foreign(album) == album / "small"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [("manifest.json", '{"name": "a browser extension", "manifest_version": 3}'),
     ("manifest.json", "not JSON"), ("thesis.tex", "years of work"), ("mine/notes.txt", "mine")],
)  # fmt: skip
def test_a_folder_with_a_file_of_the_user_is_not_a_run_directory(
    tmp_path: Path, name: str, content: str
) -> None:
    out = tmp_path / "run"
    result = simulate(Scenario(trace="tiny-batch", racks=1, policy="fifo", backend="none"))
    write_run(result, out, ["artist"])
    check_target(out, overwrite=True)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text(content)
    before = files(out)
    first = name.partition("/")[0]
    with pytest.raises(ConfigError, match=rf"not a run directory \(artist did not write {first}\)"):
        write_run(result, out, ["artist"], overwrite=True)
    assert files(out) == before


def test_a_manifest_alone_is_not_a_run_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match="artist did not write manifest"):
        check_target(tmp_path / "run", overwrite=True)


EXPERIMENT = Experiment(
    name="e", version=1, base={"trace": "tiny-batch", "backend": "none"}, grid={"racks": [1, 2]}
)


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_experiment_of_another_program_is_left_alone(tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "experiment.json").write_text('{"thesis": 1}')
    with pytest.raises(ConfigError, match=r"experiment\.json"):
        sweep(EXPERIMENT, out, [], workers=1, overwrite=overwrite)
    assert [path.name for path in out.iterdir()] == ["experiment.json"]
    assert (out / "experiment.json").read_text() == '{"thesis": 1}'


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (lambda out: (out / "experiment.json").write_text('{"of": "mine"}'), "experiment.json"),
        (lambda out: (next((out / "runs").iterdir()) / "mine.txt").write_text("mine"), "mine.txt"),
        (lambda out: link(out / "runs"), "runs"),
        (lambda out: link(next((out / "runs").iterdir())), "runs/"),
    ],
)
def test_a_sweep_removes_no_file_of_the_user(
    tmp_path: Path, change: Callable[[Path], None], first: str
) -> None:
    out = tmp_path / "out"
    sweep(EXPERIMENT, out, [], workers=1)
    change(out)
    before = files(tmp_path)
    with pytest.raises(ConfigError, match=f"would remove .*{first}.* which artist did not write"):
        sweep(EXPERIMENT, out, [], workers=1, overwrite=True)
    assert files(tmp_path) == before


def test_a_sweep_is_replaced_and_other_files_beside_its_own_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(EXPERIMENT, out, [], workers=1)
    (out / "notes.txt").write_text("mine")
    assert sweep(EXPERIMENT, out, [], workers=1, overwrite=True).done == 2
    assert (out / "notes.txt").read_text() == "mine"


def link(folder: Path) -> None:
    elsewhere = folder.parents[1] / f"elsewhere-{folder.name}"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def test_two_parquet_files_are_not_a_warehouse_and_two_files_not_a_plan(tmp_path: Path) -> None:
    for name in ("tables.parquet", "demand.parquet"):
        (tmp_path / name).write_bytes(b"PAR1 of a thesis")
    assert WAREHOUSE.foreign(tmp_path) == tmp_path / "tables.parquet"
    plan = tmp_path / "plan"
    plan.mkdir()
    (plan / "tables.csv").write_text("mine")
    (plan / "plan.json").write_text(json.dumps({"plan": "of a house"}))
    assert PLAN.foreign(plan) == plan / "plan.json"

"""`artist calibrate` as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def artist(tmp_path: Path) -> Run:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        cache = str(tmp_path / "cache")
        return subprocess.run(
            [sys.executable, "-m", "artist", *map(str, arguments)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARTIST_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_all_models_as_json(artist: Run, tmp_path: Path) -> None:
    done = artist("calibrate", "--all", "--format", "json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert list(printed) == ["models"]
    models = {row["model"]: row for row in printed["models"]}
    assert len(models) == 6
    assert all(row["error"] <= 0.01 for row in models.values())
    assert {level["role"] for level in models["vgg11"]["levels"]} == {"fitted", "predicted"}
    written = yaml.safe_load(
        (tmp_path / "astra_configs/calibrations/dally2025-table1.yaml").read_text()
    )
    assert set(written["models"]) == set(models)
    assert "Table I" in written["source"]


def test_a_calibration_is_used_and_named_in_the_manifest(artist: Run, tmp_path: Path) -> None:
    done = artist("calibrate", "--model", "ResNet50", "--name", "mine")
    assert done.returncode == 0, done.stderr
    assert "4+4" in done.stdout
    assert "--calibration mine" in done.stderr
    options = ("--racks", "2", "--jobs", "5", "--calibration", "mine", "--out", "run", "--quiet")
    done = artist("sim", *options)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["scenario"]["calibration"] == "mine"
    assert manifest["inputs"]["calibration"].startswith("sha256:")


def test_a_fabric_from_a_log(artist: Run, write_log: Callable[..., Path]) -> None:
    log = write_log(alpha_us=60.0, beta_us_per_byte=4e-5, hosts=(8, 8))
    new = ("calibrate", "--fabric", "ours", "--level", "rack", "--nccl-tests", log)
    done = artist(*new)
    assert done.returncode == 2
    assert "say with --base" in done.stderr
    done = artist(*new, "--base", "h100-quantum2-spectrum4", "--format", "json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["placement"] == "8,8"
    assert facts["bandwidth_low_gib_per_s"] < facts["bandwidth_gib_per_s"]
    done = artist("latency", "--model", "vgg11", "--fabric", "ours", "--placement", "8,8")
    assert done.returncode == 0, done.stderr


def test_a_calibration_is_replaced_only_when_asked(artist: Run, tmp_path: Path) -> None:
    path = tmp_path / "astra_configs/calibrations/mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    asked = ("calibrate", "--model", "ResNet50", "--name", "mine")
    done = artist(*asked)
    assert done.returncode == 2
    assert "mine.yaml: exists already" in done.stderr
    assert path.read_text() == "mine"
    assert artist(*asked, "--overwrite").returncode == 0
    assert path.read_text() != "mine"


def test_a_fabric_gets_another_level_unasked_but_no_other_base(
    artist: Run, write_log: Callable[..., Path]
) -> None:
    log = write_log(alpha_us=60.0, beta_us_per_byte=4e-5, hosts=(8, 8))
    new = ("calibrate", "--fabric", "ours", "--level", "rack", "--nccl-tests", log)
    based = (*new, "--base", "h100-quantum2-spectrum4")
    assert artist(*based).returncode == 0
    assert artist(*new).returncode == 0
    done = artist(*based)
    assert done.returncode == 2
    assert "ours.yaml: exists already" in done.stderr
    assert artist(*based, "--overwrite").returncode == 0


def test_a_bad_log_ends_with_exit_code_3(artist: Run, write_log: Callable[..., Path]) -> None:
    log = write_log(lambda text: text[:3000])
    done = artist("calibrate", "--fabric", "dally2025", "--level", "machine", "--nccl-tests", log)
    assert done.returncode == 3
    assert done.stderr.startswith("artist: error: ")
    assert "run.log:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --model NAME or --all"),
        (("--all", "--model", "vgg11"), "give either --model NAME or --all"),
        (("--model", "vgg11", "--level", "rack"), "--level does not go with"),
        (("--all", "--nccl-tests", "x.log"), "--all does not go with"),
        (("--nccl-tests", "x.log"), "needs --fabric NAME"),
        (("--model", "vgg11", "--kineto", "x.json"), "goes with --model and --placement"),
        (("--all", "--name", "../x"), "give a plain file name"),
        (("--model", "vgg12"), "unknown model 'vgg12'"),
    ],
)
def test_options_that_contradict_each_other(
    artist: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = artist("calibrate", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""

"""Does `artist calibrate` fit, print, write and refuse what it should?"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml


@pytest.mark.slow
def test_all_models_as_json(artist, tmp_path: Path) -> None:
    done = artist("calibrate", "--all", "--format", "json", code=0)
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


def test_a_calibration_is_used_and_named_in_the_manifest(artist, tmp_path: Path) -> None:
    done = artist("calibrate", "--model", "ResNet50", "--name", "mine", code=0)
    assert "4+4" in done.stdout
    assert "--calibration mine" in done.stderr
    options = ("--racks", "2", "--jobs", "5", "--calibration", "mine", "--out", "run", "--quiet")
    done = artist("sim", *options, code=0)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["scenario"]["calibration"] == "mine"
    assert manifest["inputs"]["calibration"].startswith("sha256:")


def test_a_fabric_from_a_log(artist, write_log: Callable[..., Path]) -> None:
    log = write_log(alpha_us=60.0, beta_us_per_byte=4e-5, hosts=(8, 8))
    new = ("calibrate", "fabric", "ours", "--level", "rack", "--nccl-tests", log)
    done = artist(*new, code=2)
    assert "say with --base" in done.stderr
    done = artist(*new, "--base", "h100-quantum2-spectrum4", "--format", "json", code=0)
    facts = json.loads(done.stdout)
    assert facts["placement"] == "8,8"
    assert facts["bandwidth_low_gib_per_s"] < facts["bandwidth_gib_per_s"]
    done = artist("latency", "--model", "vgg11", "--fabric", "ours", "--placement", "8,8", code=0)


def test_a_machine_from_measured_steps(artist, tmp_path: Path) -> None:
    rows = {"1": 0.2, "2": 0.21, "4": 0.22, "1,1": 0.6, "2,2": 0.8, "4,4": 0.9, "2,2,2": 0.7}
    lines = [f't4,{task},32,"{p}",{s}' for task in ("resnet50", "vgg11") for p, s in rows.items()]
    header = "hardware,task,batch_per_gpu,placement,step_s"
    (tmp_path / "steps.csv").write_text("\n".join([header, *lines, "a100,resnet50,32,1,0.1"]))
    new = ("calibrate", "machine", "ours", "--base", "t4", "--steps", "steps.csv")
    done = artist(*new, "--model", "resnet50", code=2)
    assert "steps.csv has steps of t4, a100: choose one with --hardware" in done.stderr
    done = artist(*new, "--hardware", "t4", "--model", "bert", code=2)
    assert (
        "--model 'bert': steps.csv has no steps of it; choose one of resnet50, vgg11" in done.stderr
    )
    done = artist(*new, "--hardware", "t4", "--model", "resnet50", "--format", "json", code=0)
    facts = json.loads(done.stdout)
    assert facts["errors"]["resnet50"]["steps"] == 6
    assert facts["errors"]["resnet50"]["median"] < 0.1 < facts["errors"]["vgg11"]["median"]
    written = yaml.safe_load((tmp_path / "astra_configs/fabrics/ours.yaml").read_text())
    assert written["system"]["hidden_share"] == facts["hidden_share"]
    done = artist("latency", "--model", "vgg11", "--fabric", "ours", "--placement", "2,2", code=0)


@pytest.mark.slow
def test_a_fit_prints_each_step_and_is_refused_where_it_misses_them(artist, tmp_path: Path) -> None:
    rows = {"1": 0.21, "4": 0.22, "2,2": 0.47, "4,4,4": 0.45}
    header = "hardware,task,batch_per_gpu,placement,step_s"
    columns = "placement	batch per GPU	measured, s	predicted, s	error %"

    def written(name: str, placed: dict[str, float]) -> tuple[str, ...]:
        lines = [f'ours,resnet50,32,"{placement}",{step_s}' for placement, step_s in placed.items()]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]))
        return ("calibrate", "machine", name, "--base", "t4", "--steps", f"{name}.csv",
                "--model", "resnet50")  # fmt: skip

    done = artist(*written("good", rows), code=0)
    title, head, *table = done.stdout.splitlines()[:5]
    assert (title, head) == ("# steps of resnet50, the worst first", columns)
    assert sorted(line.split("\t")[0] for line in table) == ["2,2", "4", "4,4,4"]
    errors = [abs(float(line.split("\t")[-1])) for line in table]
    assert errors == sorted(errors, reverse=True)
    fabric = yaml.safe_load((tmp_path / "astra_configs/fabrics/good.yaml").read_text())
    assert fabric["origin"]["error"].startswith("error of 3 steps: median ")
    assert fabric["origin"]["error"].endswith(f"at most {errors[0]:.1f} %")

    bad = written("bad", {**rows, "4,4": 185})
    done = artist(*bad, code=3)
    assert "% (P90), those of measured machines by at most 26 % (docs/fidelity.md)" in done.stderr
    assert "with --misfit" in done.stderr
    assert "the worst first" in done.stdout
    assert not (tmp_path / "astra_configs/fabrics/bad.yaml").exists()
    assert artist(*bad, "--misfit").returncode == 0


@pytest.mark.slow
def test_a_step_that_contradicts_the_worst_one_is_named_beside_it(artist, tmp_path: Path) -> None:
    """The fit goes through the wrong one, 0.9 s on four GPUs, and misses the right one."""
    rows = "lab,resnet50,32,1,0.150\nlab,resnet50,32,2,0.158\nlab,resnet50,32,4,0.9\n"
    rows += 'lab,resnet50,32,"4,4,4",0.335\n'
    (tmp_path / "s.csv").write_text(f"hardware,task,batch_per_gpu,placement,step_s\n{rows}")
    ran = artist(
        "calibrate", "machine", "lab", "--steps", "s.csv", "--model", "resnet50", "--base", "a100",
        code=3,
    )  # fmt: skip
    assert "s.csv:3: the step on 2 takes 0.158 s" in ran.stderr
    assert "no fit meets it and line 4 (0.9 s on 4) at once, so one of the two" in ran.stderr


def test_runs_on_a_fitted_machine_take_as_long_as_its_steps(artist, tmp_path: Path) -> None:
    """The step on one GPU takes three times the catalogue's: so does what its share is of."""
    rows = {"1": 0.21, "4": 0.22, "4,4": 0.31}
    lines = [f'ours,resnet50,64,"{placement}",{step_s}' for placement, step_s in rows.items()]
    header = "hardware,task,batch_per_gpu,placement,step_s"
    (tmp_path / "steps.csv").write_text("\n".join([header, *lines]))
    new = ("calibrate", "machine", "ours", "--base", "t4", "--steps", "steps.csv")
    assert artist(*new, "--model", "resnet50").returncode == 0
    jobs = ["a,0,4,resnet50@batch=64,1000,0.21", "b,0,8,resnet50@batch=64,1000,0.21"]
    trace = "\n".join(["job_id,arrival_s,gpus,model,iterations,compute_s", *jobs])
    (tmp_path / "trace.csv").write_text(trace)
    cluster = ("--racks", "1", "--machines-per-rack", "4", "--gpus-per-machine", "4")
    artist("sim", "--trace", "trace.csv", "--fabric", "ours", *cluster, "--out", "run", code=0)
    run_s = pd.read_parquet(tmp_path / "run" / "jobs.parquet")["run_s"]
    assert list(run_s / 1000) == pytest.approx([0.22, 0.31], rel=0.01)


def test_a_step_on_one_gpu_gives_its_compute_time(artist, tmp_path: Path) -> None:
    """A quarter of the catalogue's compute time: communication is a larger share of it."""
    asked = ("latency", "--model", "vgg16", "--placement", "8", "--format", "json")
    catalogued = json.loads(artist(*asked).stdout)
    compute_ms = catalogued["compute_cycles"] / 4e6
    lines = ["# source: a test", "model,placement,compute_ms,exposed_comm_ms"]
    (tmp_path / "m.csv").write_text("\n".join([*lines, f"vgg16,1,{compute_ms},0"]))
    fitted = artist("calibrate", "--all", "--measured", "m.csv", "--name", "mine")
    assert fitted.returncode == 0, fitted.stderr
    assert "\nvgg16\t0.25" in fitted.stdout
    answer = json.loads(artist(*asked, "--calibration", "mine").stdout)
    assert answer["compute_cycles"] == pytest.approx(catalogued["compute_cycles"] / 4, rel=1e-4)
    assert answer["exposed_comm_cycles"] == pytest.approx(
        catalogued["exposed_comm_cycles"], rel=0.05
    )


@pytest.mark.slow
def test_a_calibration_is_replaced_only_when_asked(artist, tmp_path: Path) -> None:
    path = tmp_path / "astra_configs/calibrations/mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    asked = ("calibrate", "--model", "ResNet50", "--name", "mine")
    done = artist(*asked, code=2)
    assert "mine.yaml: exists already" in done.stderr
    assert path.read_text() == "mine"
    assert artist(*asked, "--overwrite").returncode == 0
    assert path.read_text() != "mine"


def test_a_fabric_gets_another_level_unasked_but_no_other_base(
    artist, write_log: Callable[..., Path]
) -> None:
    log = write_log(alpha_us=60.0, beta_us_per_byte=4e-5, hosts=(8, 8))
    new = ("calibrate", "fabric", "ours", "--level", "rack", "--nccl-tests", log)
    based = (*new, "--base", "h100-quantum2-spectrum4")
    assert artist(*based).returncode == 0
    assert artist(*new).returncode == 0
    done = artist(*based, code=2)
    assert "ours.yaml: exists already" in done.stderr
    assert artist(*based, "--overwrite").returncode == 0


def test_a_bad_log_ends_with_exit_code_3(artist, write_log: Callable[..., Path]) -> None:
    log = write_log(lambda text: text[:3000])
    done = artist(
        "calibrate", "fabric", "dally2025", "--level", "machine", "--nccl-tests", log, code=3
    )
    assert done.stderr.startswith("artist: error: ")
    assert "run.log:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --model NAME or --all"),
        (("--all", "--model", "vgg11"), "give either --model NAME or --all"),
        (("models", "--all", "--model", "vgg11"), "give either --model NAME or --all"),
        (("profile", "x.json", "--model", "vgg11"), "--model and --placement belong together"),
        (("--all", "--name", "../x"), "give a plain file name"),
        (("--model", "vgg12"), "unknown model 'vgg12'"),
    ],
)
def test_options_that_contradict_each_other(
    artist, arguments: tuple[str, ...], message: str
) -> None:
    done = artist("calibrate", *arguments, code=2)
    assert message in done.stderr
    assert done.stdout == ""


def written(folder: Path, *rows: str, kind: str = "") -> Path:
    """A file of measurements on machines of eight GPUs without sockets."""
    path = folder / "mine.csv"
    lines = ["# source: here", *([f"# kind: {kind}"] if kind else [])]
    path.write_text("\n".join([*lines, "model,placement,comm_percent,use,note", *rows]) + "\n")
    return path


@pytest.mark.parametrize(("kind", "heading"), [("", "measured"), ("paper", "paper")])
def test_a_column_is_called_measured_only_if_somebody_measured(
    artist, tmp_path: Path, kind: str, heading: str
) -> None:
    path = written(tmp_path, "resnet50,8,4.5,fit,", kind=kind)
    done = artist("calibrate", "--all", "--measured", path, "--fabric", "a100", code=0)
    assert f"\nmodel\tplacement\trole\t{heading}\t" in done.stdout
    assert " No row tests this fit: all were fitted.\n" in done.stdout
    assert "percentage" not in done.stderr
    assert "only compared" not in done.stderr
    assert "compute times are scaled more than 10-fold (resnet50 x 0.0" in done.stderr


def test_the_table_of_the_paper_is_called_paper(artist) -> None:
    shown = artist("calibrate", "--model", "resnet18").stdout
    assert "\nmodel\tplacement\trole\tpaper\t" in shown
    assert " Predicted rows test the fit.\n" in shown
    assert "measured" not in shown


def test_an_unknown_kind_of_measurements_is_refused(artist, tmp_path: Path) -> None:
    done = artist("calibrate", "--all", "--measured", written(tmp_path, kind="guessed"), code=3)
    assert "kind is 'guessed', expected measured or paper" in done.stderr


def test_a_fraction_in_place_of_a_percentage_gives_a_warning(artist, tmp_path: Path) -> None:
    path = written(tmp_path, "resnet50,8,0.045,fit,", "resnet18,8,0.1,fit,")
    done = artist("calibrate", "--all", "--measured", path, "--fabric", "a100", code=0)
    assert "resnet50 on 8 communicates 0.045 % of its compute time, below 0.1 %" in done.stderr
    assert "resnet18 on 8" not in done.stderr


def test_a_compared_row_that_is_missed_is_named_unless_it_has_a_note(
    artist, tmp_path: Path
) -> None:
    rows = ["bert-large,8,6,fit,", 'bert-large,"8,8",15,compare,']
    done = artist(
        "calibrate", "--all", "--measured", written(tmp_path, *rows), "--fabric", "a100", code=0
    )
    deviation = re.search(r"bert-large\t8,8\tpredicted\t.*\t([-+]\d+)\.\d", done.stdout)
    assert abs(int(deviation[1])) > 20
    assert "missed by more than 20 %: bert-large on 8,8 (" in done.stderr
    rows[1] += "another network"
    path = written(tmp_path, *rows)
    done = artist("calibrate", "--all", "--measured", path, "--fabric", "a100", "--overwrite")
    assert "only compared" not in done.stderr


def test_the_table_of_the_paper_needs_sockets(artist) -> None:
    done = artist("calibrate", "--model", "resnet50", "--fabric", "a100", code=2)
    assert "'a100' has no socket level" in done.stderr
    assert "--measured FILE.csv, or a fabric with sockets (dally2025)" in done.stderr

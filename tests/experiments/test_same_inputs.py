"""Does a sweep keep runs of different inputs out of one table?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_sweep import contents

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.experiment import Experiment
from artist.experiments.resume import Inputs
from artist.experiments.sweep import sweep
from artist.io.shipped import resource

FABRIC = resource("astra_configs", "fabrics", "dally2025.yaml").read_text()
CALIBRATION = "name: mine\nsource: a test\nmodels: {resnet18: {compute_scale: 1.5}}\n"
FAILS = "machine: {distribution: exponential, mtbf_s: 100000, repair_s: 600}\n"
JOBS = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,4,resnet18,10,1\nb,0,8,vgg11,20,1\n"
COLUMNS = "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us\n"
OWN = JOBS.replace("gpus", "cards")
POLICY = """\
from artist.policies.classic import Classic, ClassicOptions
class Mine(Classic):
    Options = ClassicOptions
    def __init__(self, options):
        super().__init__(options.model_copy(update={"order": "arrival"}))
"""
SERVICES = "service_gpu_s\n10\n20\n"
GITTINS = {"policy": "tiresias", "policy_options": {"index": "gittins"}}

# What changes: the settings that name the file, its text, and another text.
CHANGES: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "trace": ({"trace": "FILE.csv"}, JOBS, JOBS.replace(",20,", ",21,")),
    "failures": ({"failures": "FILE.yaml"}, FAILS, FAILS.replace("600", "601")),
    "fabric": (
        {"fabric": "FILE.yaml"}, FABRIC,
        FABRIC.replace("bandwidth_gib_per_s: 200", "bandwidth_gib_per_s: 100"),
    ),
    "calibration": (
        {"calibration": "FILE.yaml", "backend": "analytical"}, CALIBRATION,
        CALIBRATION.replace("1.5", "2.5"),
    ),
    "backend": (
        {"backend": "recorded:FILE.csv", "fallback": "analytical"}, COLUMNS, f"note,{COLUMNS}",
    ),
    "policy.past_service_file": (
        {**GITTINS, "policy_options": {"index": "gittins", "past_service_file": "FILE.csv"}},
        SERVICES, SERVICES.replace("20", "30"),
    ),
    "mapping": (
        {"trace": "OWN", "columns": "FILE.yaml"},
        "columns: {gpus: cards}\n", "columns: {gpus: cards}\nunits: {compute_s: min}\n",
    ),
    "policy": (
        {"policy": "FILE.py:Mine"}, POLICY, POLICY.replace('"arrival"', '"length"'),
    ),
}  # fmt: skip


def experiment(settings: Mapping[str, Any]) -> Experiment:
    base = {"trace": "tiny-batch", "backend": "none", "racks": 1, **settings}
    return Experiment(name="e", version=1, base=base, grid={"machines_per_rack": [2, 4, 8]})


def named(settings: Any, file: Path) -> Any:
    """The settings with the file's path for `FILE`."""
    stem = str(file.with_suffix(""))
    return json.loads(json.dumps(settings).replace("FILE", stem))


def remove_a_run(out: Path) -> str:
    victim = sorted((out / "runs").iterdir())[0]
    for file in victim.iterdir():
        file.unlink()
    victim.rmdir()
    return victim.name


@pytest.fixture(params=CHANGES)
def changed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[str, Experiment, Callable[[int], None]]:
    settings, *texts = CHANGES[request.param]
    suffix = re.search(r"FILE(\.\w+)", json.dumps(settings))
    assert suffix
    file = tmp_path / f"input{suffix[1]}"
    own = tmp_path / "own.csv"
    own.write_text(OWN)
    settings = {**settings, "trace": str(own)} if settings.get("trace") == "OWN" else settings
    return request.param, experiment(named(settings, file)), lambda i: file.write_text(texts[i])


def test_a_changed_input_is_refused_and_the_former_one_goes_on(tmp_path: Path, changed) -> None:
    what, chosen, write = changed
    out = tmp_path / "out"
    write(0)
    assert sweep(chosen, out, [], workers=1).failures == []
    before = contents(out)
    missing = remove_a_run(out)
    write(1)
    with pytest.raises(ConfigError) as caught:
        sweep(chosen, out, [], workers=1, resume=True)
    assert f"read another {what}" in str(caught.value)
    assert "and so with 1 more" in str(caught.value)
    assert "--overwrite" in str(caught.value)
    named_run = re.search(r"run (\S+) read", str(caught.value))
    assert named_run and (out / "runs" / named_run[1]).is_dir()
    assert not (out / "runs" / missing).exists()
    write(0)
    assert sweep(chosen, out, [], workers=1, resume=True).done == 1
    assert contents(out) == before


def test_overwriting_runs_everything_on_the_new_input(tmp_path: Path, changed) -> None:
    _, chosen, write = changed
    for number in (0, 1):
        write(number)
        result = sweep(chosen, tmp_path / "out", [], workers=1, overwrite=True)
        assert (result.skipped, result.done) == (0, 3)
    sweep(chosen, tmp_path / "fresh", [], workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")


def test_an_input_that_changes_during_the_sweep_gives_no_table(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS)

    def change(so_far) -> None:
        if so_far.done == 1:
            file.write_text(JOBS.replace(",20,", ",21,"))

    chosen = experiment({"trace": str(file)})
    with pytest.raises(ConfigError, match=r"read another trace .*jobs\.csv than there is now"):
        sweep(chosen, tmp_path / "out", [], workers=1, on_done=change)
    assert not (tmp_path / "out" / "results.csv").exists()


def test_an_input_that_goes_after_the_last_run_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS)

    def remove(so_far) -> None:
        if so_far.done == 3:
            file.unlink()

    out = tmp_path / "out"
    assert sweep(experiment({"trace": str(file)}), out, [], workers=1, on_done=remove).done == 3
    assert (out / "results.csv").read_text().count("\n") == 4


@pytest.mark.parametrize("setting", ["interference", "speeds", "goodput", "tenants"])
def test_runs_that_read_different_files_have_different_digests(tmp_path: Path, setting) -> None:
    files = [tmp_path / name for name in ("one.csv", "other.csv")]
    for file in files:
        file.write_text(file.name)
    inputs = Inputs()
    one, other = (inputs.of(Scenario(**{setting: str(file)})) for file in files)
    assert one[setting] != other[setting]


def test_runs_with_different_options_of_contention_have_different_digests(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.csv", "other.csv")]
    for file in files:
        file.write_text(file.name)
    inputs = Inputs()
    made = [inputs.of(Scenario(contention_options={"own_file": str(file)})) for file in files]
    assert len({one["contention.own_file"] for one in made}) == 2


def test_a_change_that_no_run_sees_does_not_count(tmp_path: Path) -> None:
    """A comment in a fabric, or the same file under the same name, moves nothing."""
    fabric = tmp_path / "mine.yaml"
    fabric.write_text(FABRIC)
    chosen = experiment({"fabric": str(fabric)})
    sweep(chosen, tmp_path / "out", [], workers=1)
    fabric.write_text(f"# a comment\n{FABRIC}")
    assert sweep(chosen, tmp_path / "out", [], workers=1, resume=True).skipped == 3


def test_a_missing_input_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS)
    chosen = experiment({"trace": str(file)})
    sweep(chosen, tmp_path / "out", [], workers=1)
    file.unlink()
    with pytest.raises(ConfigError, match="cannot be compared with its inputs as they are now"):
        sweep(chosen, tmp_path / "out", [], workers=1, resume=True)


def test_a_damaged_manifest_is_named_with_the_remedy(tmp_path: Path) -> None:
    chosen, out = experiment({}), tmp_path / "out"
    sweep(chosen, out, [], workers=1)
    victim = sorted((out / "runs").iterdir())[0]
    for text in ("{", "[]", "{}", '{"inputs": 3}'):
        (victim / "manifest.json").write_text(text)
        with pytest.raises(ConfigError, match=f"remove .*{victim.name}, and --resume"):
            sweep(chosen, out, [], workers=1, resume=True)


def test_overwriting_keeps_what_a_sweep_did_not_write(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(experiment({}), out, [], workers=1)
    (out / "notes.md").write_text("mine")
    (out / "runs" / "mine").mkdir()
    (out / "runs" / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="give only one"):
        sweep(experiment({}), out, [], workers=1, resume=True, overwrite=True)
    other = experiment({"seed": 3}).model_copy(update={"name": "other"})
    with pytest.raises(ConfigError, match="replace it with --overwrite"):
        sweep(other, out, [], workers=1)
    assert sweep(other, out, [], workers=1, overwrite=True).done == 3
    assert (out / "notes.md").exists() and (out / "runs" / "mine" / "thesis.tex").exists()
    assert len(list((out / "runs").iterdir())) == 4


def test_a_mapping_file_that_appears_beside_the_trace_is_noticed(tmp_path: Path) -> None:
    trace, mapping = tmp_path / "jobs.csv", tmp_path / "jobs.csv.columns.yaml"
    trace.write_text(JOBS)
    chosen, out = experiment({"trace": str(trace)}), tmp_path / "out"
    sweep(chosen, out, [], workers=1)
    remove_a_run(out)
    mapping.write_text("units: {compute_s: min}\n")
    with pytest.raises(ConfigError, match=r"read another mapping .*jobs\.csv\.columns\.yaml"):
        sweep(chosen, out, [], workers=1, resume=True)
    mapping.unlink()
    assert sweep(chosen, out, [], workers=1, resume=True).done == 1


def test_each_trace_file_is_reported_once_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    (tmp_path / "good.csv").write_text(JOBS)
    grid = {"trace": [str(tmp_path / "bad.csv"), str(tmp_path / "good.csv"), "tiny-batch"]}
    base = {"backend": "none", "racks": 1}
    chosen = Experiment(name="e", version=1, base=base, grid={**grid, "seed": [0, 1]})
    told: list[tuple[str, int]] = []
    done = [0]

    def on_done(so_far) -> None:
        done[0] = so_far.done

    result = sweep(
        chosen, tmp_path / "out", [], workers=1, on_done=on_done,
        on_trace=lambda trace, _: told.append((trace.name, done[0])),
    )  # fmt: skip
    assert told == [("good", 0)]
    assert (result.done, len(result.failures)) == (4, 2)


def test_runs_of_another_version_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep(experiment({}), out, [], workers=1)
    remove_a_run(out)
    manifest = sorted((out / "runs").glob("*/manifest.json"))[0]
    earlier = json.loads(manifest.read_text())
    earlier["versions"]["artist"] = "0.0.9"
    manifest.write_text(json.dumps(earlier))
    with pytest.raises(ConfigError, match=r"was made by artist 0\.0\.9, and this is"):
        sweep(experiment({}), out, [], workers=1, resume=True)


def test_a_module_that_a_policy_imports_is_not_noticed_as_the_page_on_trust_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    helper = tmp_path / "helper_of_mine.py"
    helper.write_text("ORDER = 'arrival'\n")
    text = "import sys\nsys.path.insert(0, '.')\nfrom helper_of_mine import ORDER\n" + POLICY
    Path("mine.py").write_text(text)
    scenario = Scenario(policy="mine.py:Mine")
    before = Inputs().of(scenario)
    helper.write_text("ORDER = 'length'\n")
    assert Inputs().of(scenario) == before
    page = Path(__file__).parents[2] / "docs" / "trust.md"
    assert "a module that a policy file imports" in page.read_text(encoding="utf-8")

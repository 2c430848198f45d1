"""Do wrong failure files give one clear sentence, and do right ones run?"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from support import cluster, job, on

import artist
from artist.config import Scenario
from artist.contract import NO_CHECKPOINT
from artist.errors import ConfigError
from artist.experiments.comparison.variants import parse_vary
from artist.failures.checkpoints import CheckpointOptions
from artist.failures.failures_of_run import open_failures
from artist.failures.model_file import UnitFailures, failure_names, load_failures
from artist.policies.dally.options import DallyOptions
from artist.results.terms.chief_metrics import parts_of
from artist.settings import load_scenario
from artist.trace.native.writer import write_csv, write_parquet, write_simple
from artist.trace.read import read_trace
from artist.units import seconds_of

MACHINE = "machine: {distribution: exponential, mtbf_s: 5.0e5, repair_s: 600}\n"
OUT = "  - {kind: machine, unit: 3, at_s: 100, duration_s: 50}\n"


def simulated(**settings: object) -> artist.Result:
    small = {"racks": 1, "trace": "tiny-poisson", "policy": "fifo"}
    return artist.simulate(Scenario(**{**small, **settings}), cache=False, check=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "machine: {distribution: exponential, mtbf_s: -5, repair_s: 1}",
            ":1: 'machine.mtbf_s' is -5, expected at least 1.0",
        ),
        (
            "machine:\n  distribution: exponential\n  mtbf_s: 3 weeks\n  repair_s: 1",
            ":3: 'machine.mtbf_s': expected seconds, or a time such as 10min (ms, s, min, h, d), g",
        ),
        (
            "machine:\n  distribution: normal\n  mtbf_s: 5\n  repair_s: 1",
            ":2: 'machine.distribution' is 'normal', expected 'exponential' or 'weibull'",
        ),
        (f"{MACHINE}machnie: 3", ":2: unknown setting 'machnie': did you mean 'machine'?"),
        (
            "rack:\n  mtbf: 5",
            ":2: unknown setting 'rack.mtbf': did you mean 'mtbf_s'?",
        ),
        ("rack: {distribution: exponential, mtbf_s: 5}", ":1: setting 'rack.repair_s' is missing"),
        (
            "gpu: {distribution: weibull, mtbf_s: 5, repair_s: 1}",
            ":1: 'gpu': give a shape with distribution weibull, and with no other",
        ),
        (
            f"{MACHINE}outages:\n  - {{kind: machine, unit: 8, at_s: 1, duration_s: 1}}",
            ":3: an outage of machine 8, but the cluster has 8 (numbered from 0); correct unit",
        ),
        (
            "outages:\n  - {kind: gpu, unit: 64, at_s: 1, duration_s: 1}",
            ":2: an outage of gpu 64, but the cluster has 64 (numbered from 0); correct unit",
        ),
        (
            "outages:\n  - {kind: machnie, unit: 8, at_s: 1, duration_s: 1}",
            ":2: no 'machnie' in this cluster (did you mean 'machine'?)",
        ),
        (
            "levels:\n  region: {distribution: exponential, mtbf_s: 5, repair_s: 1}",
            ":2: no 'region' in this cluster",
        ),
        (
            f"outages:\n{OUT}  - {{kind: machine, unit: 3, at_s: 149, duration_s: 9}}",
            ":3: machine 3 leaves service at 149 s, but is away from 100 s to 150 s; join the two "
            "outages or move one",
        ),
        (
            f"outages:\n{OUT}maintenance:\n{OUT.replace('100', '60')}",
            ":2: machine 3 leaves service at 100 s, but is away from 60 s to 110 s",
        ),
    ],
)
def test_a_bad_file_ends_in_one_sentence_with_line_value_and_remedy(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        simulated(failures=str(file), fabric="a100")
    assert f"{file}{words}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "mtbf_s"),
    [
        ("3d", 259200), ("1.5 h", 5400), ("1e3 s", 1000), (".5h", 1800), (" 2.h ", 7200),
        ("5E+3ms", 5), ("1.5.2h", None), ("1e h", None), ("3", None), ("h", None),
        ("3 weeks", None), ("-1h", None), ("1\u00a0h", None), ("\u0663h", None),
    ],
)  # fmt: skip
def test_files_and_their_schema_take_the_same_times_with_a_unit(
    text: str, mtbf_s: float | None
) -> None:
    pattern = UnitFailures.model_json_schema()["properties"]["mtbf_s"]["anyOf"][1]["pattern"]
    assert bool(re.search(pattern, text)) == (seconds_of(text) is not None)
    assert seconds_of(text) == mtbf_s
    if mtbf_s is not None:
        kind = {"distribution": "exponential", "mtbf_s": text, "repair_s": 1}
        assert UnitFailures.model_validate(kind).mtbf_s == mtbf_s


def test_lists_of_times_may_have_units_and_so_says_their_schema() -> None:
    given = load_scenario(None, {"policy": "dally"}, ["policy.floors_s=[10min,1h]"])
    assert given.policy_options["floors_s"] == [600, 3600]
    assert DallyOptions.model_validate({"floors_s": ("10min", 3600)}).floors_s == (600, 3600)
    floors, nothing = DallyOptions.model_json_schema()["properties"]["floors_s"]["anyOf"]
    kinds = [[one["type"] for one in each["anyOf"]] for each in floors["prefixItems"]]
    assert (kinds, nothing) == ([["number", "string"]] * 2, {"type": "null"})


def test_times_of_a_file_may_have_a_unit(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    models = []
    for mtbf, repair in (("3d", "10min"), ("259200", "600")):
        text = f"machine: {{distribution: exponential, mtbf_s: {mtbf}, repair_s: {repair}}}\n"
        file.write_text(f"{text}checkpoint: {{interval_s: 1h, cost_s: 1.5min}}\n")
        models.append(load_failures(str(file)).model)
    assert models[0] == models[1]
    schema = UnitFailures.model_json_schema()["properties"]["mtbf_s"]["anyOf"]
    assert [one["type"] for one in schema] == ["number", "string"]
    assert models[0].machine is not None and models[0].machine.mtbf_s == 259200
    assert models[0].checkpoint is not None
    assert (models[0].checkpoint.interval_s, models[0].checkpoint.cost_s) == (3600, 90)


def test_outages_that_touch_do_not_overlap(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    more = OUT.replace("100", "150") + OUT.replace("machine", "link")
    file.write_text(f"outages:\n{OUT}{more}")
    assert len(load_failures(str(file)).model.outages) == 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"failures": "meta"}, "unknown failure model 'meta': did you mean 'meta-rsc'?"),
        (
            {"failures": "mtbf=3d"},
            "a FILE.yaml with machine: {distribution: exponential, mtbf_s: 3d, repair_s: 10min})",
        ),
        ({"failures": "nowhere.yaml"}, "nowhere.yaml: cannot be read"),
        (
            {"checkpoint": {"interval_s": -3}},
            "'checkpoint.interval_s': expected seconds above 0, auto, daly, young or none, got -3",
        ),
        (
            {"checkpoint": {"interval_s": "often"}},
            "expected seconds above 0, auto, daly, young or none, got 'often'",
        ),
        ({"checkpoint": {"interval": 3}}, "unknown setting 'checkpoint.interval'"),
        ({"checkpoint": {"interval_s": 3, "cost_s": -1}}, "'checkpoint.cost_s' is -1"),
    ],
)
def test_a_bad_setting_is_named(settings: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^[^\n]*$") as caught:
        simulated(**settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("word", ["none", "off"])
def test_no_checkpoints_are_a_value_beside_which_a_cost_means_nothing(word: str) -> None:
    scenario = load_scenario(None, {}, [f"checkpoint.interval_s={word}", "checkpoint.cost_s=60"])
    assert scenario.checkpoint is not None
    assert scenario.checkpoint.interval_s == "none"
    failures = open_failures("none", scenario.checkpoint, cluster([8]))
    assert (failures.chooses, failures.checkpoint) == (False, scenario.checkpoint)
    assert failures.checkpoints(job("a"), on({0: 1})) == NO_CHECKPOINT
    from_file = CheckpointOptions(interval_s=60.0, cost_s=5.0)
    assert scenario.checkpoint.over(from_file).interval_s == "none"


def test_a_bad_value_of_set_is_reported_with_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("racks: 2\n")
    for given, words in (("intervall_s=1h", "unknown setting"), ("interval_s=soon", "expected")):
        with pytest.raises(ConfigError, match=rf"^--set 'checkpoint\.{given}': .*{words}"):
            load_scenario(file, {}, ["racks=1", f"checkpoint.{given}"])
    with pytest.raises(ConfigError, match=r"^scenario: 'racks' is 0"):
        load_scenario(file, {"racks": 0}, ["seed=1"])


def test_bad_values_of_checkpoints_are_quoted_as_typed() -> None:
    assert parse_vary("checkpoint.interval_s=off,1h") == (
        "checkpoint.interval_s",
        ["off", "1h"],
    )


def test_shipped_models_can_be_read_and_say_where_their_numbers_are_from() -> None:
    assert "meta-rsc" in failure_names()
    for name in failure_names():
        model = load_failures(name).model
        assert model.summary
        assert all(one.source for _, one in model.random)


def test_scenarios_sweeps_and_set_take_the_keys(tmp_path: Path) -> None:
    sets = ["checkpoint.interval_s=auto", "checkpoint.cost_s=30", "failures=meta-rsc"]
    scenario = load_scenario(None, {}, sets)
    assert scenario.checkpoint is not None
    assert (scenario.checkpoint.interval_s, scenario.checkpoint.cost_s) == ("auto", 30.0)
    file = tmp_path / "scenario.yaml"
    file.write_text("failures: meta-rsc\ncheckpoint: {interval_s: 3600, cost_s: 30}\n")
    read = load_scenario(file, {}, ["checkpoint.cost_s=31"])
    assert read.model_dump()["checkpoint"] == {"interval_s": 3600.0, "cost_s": 31.0}


def test_a_scenario_without_failures_does_not_mention_them() -> None:
    assert {"failures", "checkpoint"}.isdisjoint(Scenario().model_dump())
    told = simulated()
    assert {"outages", "failures", "training_time_ratio_mean"}.isdisjoint(told.summary)
    assert {"outages", "failure_sizes"}.isdisjoint(told.tables)
    assert {"failures", "checkpoint_s"}.isdisjoint(told.tables["jobs"])
    assert "gpus_withdrawn" not in told.tables["timeline"]


def test_a_result_names_the_digest_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MACHINE)
    assert simulated(failures=str(file)).inputs["failures"].startswith("sha256:")


def test_the_scenarios_checkpoints_come_before_those_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("checkpoint: {interval_s: 100, cost_s: 10}\n")
    of_model = simulated(failures=str(file)).summary["checkpoint_gpu_s"]
    own = {"interval_s": 100, "cost_s": 20}
    of_scenario = simulated(failures=str(file), checkpoint=own).summary["checkpoint_gpu_s"]
    assert of_scenario == pytest.approx(2 * of_model)
    # The model of failures supplies what the scenario leaves out.
    for part in ({"cost_s": 20}, {"interval_s": 50}):
        of_both = simulated(failures=str(file), checkpoint=part).summary["checkpoint_gpu_s"]
        assert of_both == pytest.approx(2 * of_model, rel=0.01)


def test_a_cost_of_checkpoints_that_nobody_writes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cost_s=30: nothing says how often .* add --set"):
        simulated(checkpoint={"cost_s": 30})
    assert simulated(failures="meta-rsc", checkpoint={"cost_s": 30}).summary["checkpoint_gpu_s"] > 0


def test_run_time_is_productive_stalled_saving_or_lost(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("machine: {distribution: exponential, mtbf_s: 3.0e4, repair_s: 60}\n")
    result = simulated(
        failures=str(file), checkpoint={"interval_s": 600, "cost_s": 20}, restart_s=30, racks=1
    )
    jobs, summary = result.jobs, result.summary
    assert summary["failures"] == jobs.failures.sum() > 0
    assert summary["outages"] == len(result.table("outages"))
    parts = jobs.compute_s + jobs.comm_s + jobs.checkpoint_s + jobs.stalled_s
    assert jobs.run_s.to_numpy() == pytest.approx(parts.to_numpy())
    # As `artist explain preemption_time_mean` says; checkpoints in lost work count as such.
    wasted_s = (jobs.stalled_s + jobs.lost_s).mean()
    assert summary["preemption_time_mean_s"] == pytest.approx(wasted_s)
    assert 0 < summary["checkpoint_time_mean_s"] <= jobs.checkpoint_s.mean()
    means = [summary[metric] for metric in parts_of([summary]).values()]
    assert summary["jct_mean_s"] == pytest.approx(sum(means))
    shares = [
        summary[f"gpu_{part}_share"] for part in ("computing", "communicating", "stalled", "lost")
    ]
    assert summary["gpu_allocated_share"] == pytest.approx(sum(shares))
    timeline = result.timeline
    length_s = -timeline.time_s.diff(-1).to_numpy()[:-1]
    away = (timeline.gpus_withdrawn.to_numpy()[:-1] * length_s).sum()
    assert summary["withdrawn_gpu_s"] == pytest.approx(away)
    sizes = result.table("failure_sizes")
    assert sizes.failures.sum() == summary["failures"]
    assert sizes.lost_gpu_s.sum() == pytest.approx(summary["lost_gpu_s"])
    assert result.table("outages").lost_gpu_s.sum() == pytest.approx(summary["lost_gpu_s"])


def test_jobs_state_their_own_checkpoints_and_keep_them_in_files(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,checkpoint_interval_s,checkpoint_cost_s\n"
        "a,0,2,any,100,1.0,10,1\nb,0,2,any,100,1.0,,\n"
    )
    result = simulated(trace=str(file), backend="none")
    assert result.jobs.run_s.tolist() == [110.0, 100.0]
    jobs = read_trace(file).jobs
    assert [job.checkpoint_interval_s for job in jobs] == [10.0, None]
    for write, name in (
        (write_csv, "a.csv"),
        (write_parquet, "a.parquet"),
        (write_simple, "b.csv"),
    ):
        write(jobs, tmp_path / name)
        assert read_trace(tmp_path / name).jobs == jobs


def test_a_job_that_never_gets_done_is_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("artist.engine.job_state.MOST_FAILURES_IN_A_ROW", 50)
    file = tmp_path / "mine.yaml"
    file.write_text("machine: {distribution: exponential, mtbf_s: 5, repair_s: 1}\n")
    with pytest.raises(artist.ArtistError, match="51 failures in a row before it had"):
        simulated(failures=str(file))


def test_a_copied_simulator_meets_the_same_failures(tmp_path: Path) -> None:
    from artist.run import prepare

    file = tmp_path / "mine.yaml"
    file.write_text("machine: {distribution: exponential, mtbf_s: 3.0e4, repair_s: 60}\n")
    scenario = Scenario(
        racks=1, trace="tiny-poisson", policy="fifo", failures=str(file),
        checkpoint={"interval_s": 600},
    )  # fmt: skip
    prepared = prepare(scenario)
    for _ in range(8):
        prepared.simulator.answer(prepared.policy.decide(prepared.simulator.next_question()))
    twin, policy = pickle.loads(pickle.dumps((prepared.simulator, prepared.policy)))  # noqa: S301
    one, other = prepared.simulator.run(prepared.policy), twin.run(policy)
    assert one.placements == other.placements
    assert one.outages == other.outages


def test_a_sweep_distinguishes_two_failure_models(tmp_path: Path) -> None:
    from artist.experiments.resume import Inputs

    names = []
    for repair_s in (600, 601):
        file = tmp_path / f"{repair_s}.yaml"
        file.write_text(MACHINE.replace("600", str(repair_s)))
        names.append(str(file))
    inputs = Inputs()
    one, other = (inputs.of(Scenario(trace="tiny-poisson", failures=name)) for name in names)
    assert one["failures"] != other["failures"]


def test_workers_elsewhere_get_a_copy_of_the_model(tmp_path: Path) -> None:
    from artist.experiments.ray_worker import InputFiles

    file = tmp_path / "mine.yaml"
    file.write_text(MACHINE)
    copied = InputFiles(tmp_path / "there").copied(Scenario(failures=str(file)))
    assert (tmp_path / "there" / copied.failures).read_text() == MACHINE


@pytest.mark.parametrize(("own", "expected"), [("90", 90.0), ("0", 30.0), ("", 30.0)])
def test_a_restart_cost_stated_by_a_job_overrides_the_scenario(
    own: str, expected: float, tmp_path: Path
) -> None:
    trace = tmp_path / "own.csv"
    header = "job_id,arrival_s,gpus,model,iterations,compute_s,restart_s,checkpoint_interval_s"
    trace.write_text(f"{header}\na,0,8,resnet50,1000,1.0,{own},50\n", encoding="utf-8")
    model = tmp_path / "once.yaml"
    out = "{kind: machine, unit: 0, at_s: 160.5, duration_s: 10}"
    model.write_text(f"outages:\n  - {out}\n", encoding="utf-8")
    result = simulated(
        trace=str(trace),
        machines_per_rack=1,
        backend="none",
        failures=str(model),
        restart_s=30.0,
        checkpoint={"interval_s": 100, "cost_s": 0},
    )
    # The job saved at 150 s by its own interval of 50 s, and is stopped at 160.5 s.
    jct_s = float(result.tables["jobs"]["jct_s"][0])
    assert jct_s == pytest.approx(170.5 + expected + 850)


def test_lost_work_counts_what_a_job_held_alone_and_beside_another(tmp_path: Path) -> None:
    # c and d lose 3,600 s on 4 GPUs of their own and 2,800 s on half of them, beside a and b, who
    # lose 2,750 s there. Restarts cost another 1,400 GPU-seconds.
    trace, failures = tmp_path / "jobs.csv", tmp_path / "failures.yaml"
    write_csv([job(name, gpus=4, iterations=14_400) for name in "abcd"], trace)
    failures.write_text(f"outages:\n{OUT}".replace("3, at_s: 100,", "0, at_s: 10000,"))
    result = simulated(
        trace=str(trace),
        machines_per_rack=1,
        backend="none",
        policy="gandiva",
        policy_options={"packing": True},
        failures=str(failures),
        restart_s=50,
    )
    assert result.summary["lost_gpu_s"] == 2 * (3600 * 4 + 2800 * 2) + 2 * 2750 * 2
    assert result.summary["preemption_cost_gpu_s"] == result.summary["lost_gpu_s"] + 1400
    assert result.tables["outages"]["lost_gpu_s"] == [result.summary["lost_gpu_s"]]
    assert result.tables["failure_sizes"]["lost_gpu_s"] == [result.summary["lost_gpu_s"]]

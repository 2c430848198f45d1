"""Does a trace with columns, units and models of its own become the same jobs?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from foreign_samples import put

from artist.config import Scenario
from artist.errors import ConfigError, TraceError
from artist.run import simulate
from artist.trace.named import Given, open_trace
from artist.trace.native.alike import alike, unit_in
from artist.trace.native.choices import Rules
from artist.trace.native.mapping import mapping_for, mapping_path
from artist.trace.native.trace import Trace, check_models
from artist.trace.read import write_mapping
from artist.workload.job import Job
from artist.workload.models import canonical

OWN = """\
id,submitted,n_gpus,run_hours,network,team
a,0,8,2,Inception (batch size 32),red
b,10,4,1.1,VGG-Net,blue
c,10,2,0.5,Inception (batch size 32),red
"""
COLUMNS = {
    "job_id": "id", "arrival_s": "submitted", "gpus": "n_gpus", "duration": "run_hours",
    "model": "network",
}  # fmt: skip
HOURS = {"duration": "h"}
MODELS = {"Inception (batch size 32)": "resnet18", "VGG-Net": "vgg11"}
SIMPLE = """\
job_id,submit_time,num_gpus,duration,model
a,0,8,7200,resnet18
b,600,4,3960,vgg11
c,600,2,1800,resnet18
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return put(tmp_path, "jobs.csv", OWN)


def read(path: Path, **given: Any) -> Trace:
    rules = given.pop("rules", None)
    return open_trace(str(path), rules=rules, given=Given(**given))


def jobs(tmp_path: Path, text: str = SIMPLE) -> tuple[Job, ...]:
    return open_trace(str(put(tmp_path, "plain.csv", text))).jobs


def test_columns_units_and_models_give_the_jobs_of_the_plain_file(own: Path, tmp_path) -> None:
    units = {"duration": "h", "arrival_s": "min"}
    trace = read(own, columns=COLUMNS, units=units, models=MODELS)
    assert trace.jobs == jobs(tmp_path)
    assert trace.format == "simple"
    assert [trace.place(i).rpartition(":")[2] for i in range(3)] == ["2", "3", "4"]


def test_either_name_of_a_column_will_do(own: Path, tmp_path: Path) -> None:
    simple = {
        "job_id": "id", "submit_time": "submitted", "num_gpus": "n_gpus", "model": "network",
        "duration": "run_hours",
    }  # fmt: skip
    units = {"duration": "h", "submit_time": "min"}
    assert read(own, columns=simple, units=units, models=MODELS).jobs == jobs(tmp_path)
    mixed = {"arrival_s": "min", "duration": "h"}
    assert read(own, columns=simple, units=mixed, models=MODELS).jobs == jobs(tmp_path)


def test_only_the_columns_with_other_names_need_a_pair(tmp_path: Path) -> None:
    path = put(
        tmp_path, "t.csv", SIMPLE.replace("num_gpus", "cards").replace("submit_time", "arrival_s")
    )
    assert read(path, columns={"gpus": "cards"}).jobs == jobs(tmp_path)


def test_a_native_trace_and_hints(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", "id,t,gpus,net,steps,step_ms,prio\na,5,4,vgg11,100,20,3\n")
    columns = {
        "job_id": "id", "arrival_s": "t", "model": "net", "iterations": "steps",
        "compute_s": "step_ms", "hint_prio": "prio",
    }  # fmt: skip
    (job,) = read(path, columns=columns, units={"compute_s": "ms"}).jobs
    assert (job.compute_s, job.iterations, job.gpus) == (0.02, 100, 4)
    assert dict(job.hints) == {"hint_prio": "3"}


def test_iterations_without_duration_leave_the_time_of_one_to_the_catalogue(tmp_path: Path) -> None:
    columns = {"job_id": "id", "arrival_s": "t", "gpus": "cards", "model": "net"}
    columns |= {"iterations": "steps"}
    path = put(tmp_path, "t.csv", "id,t,cards,net,steps\na,5,4,vgg11,100\n")
    assert [job.iterations for job in read(path, columns=columns).jobs] == [100]
    path = put(tmp_path, "t.csv", "id,t,cards,net,steps,step_s\na,5,4,vgg11,100,1\n")
    with pytest.raises(TraceError, match="format native needs column 'compute_s'"):
        read(path, columns=columns)


def test_a_json_and_a_parquet_trace(tmp_path: Path, own: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, *rows = [line.split(",") for line in OWN.splitlines()]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    (tmp_path / "t.json").write_text(json.dumps(records))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "t.parquet")
    units = {"duration": "h", "arrival_s": "min"}
    for name in ("t.json", "t.parquet"):
        given: dict[str, Any] = {"columns": COLUMNS, "units": units, "models": MODELS}
        assert read(tmp_path / name, **given).jobs == jobs(tmp_path)


def test_a_foreign_format_with_another_column(tmp_path: Path) -> None:
    head = "job_id,num_gpu,submit_time,iterations,model_name,duration\n"
    row = "a,4,60,100,vgg11,50\n"
    plain = put(tmp_path, "plain.csv", head + row)
    renamed = head.replace("num_gpu", "cards").replace("job_id", "name")
    other = put(tmp_path, "t.csv", renamed + row)
    mapping_path(other).write_text("format: tiresias\ncolumns: {num_gpu: cards, job_id: name}\n")
    assert read(other).jobs == read(plain).jobs
    assert read(other).format == "tiresias"


def test_hours_are_exact() -> None:
    from artist.trace.native.time_units import scaled

    assert [scaled(1.1, unit) for unit in ("us", "ms", "s", "min", "h", "d")] == [
        1.1e-6, 1.1e-3, 1.1, 66, 3960, 95040,
    ]  # fmt: skip


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_dates_count_from_the_first(tmp_path: Path, zone: str) -> None:
    rows = f"a,2020-06-09 00:00:30{zone},1,60\nb,2020-06-08 23:59:00{zone},1,60\n"
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{rows}")
    trace = read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})
    assert [(job.id, job.arrival_s) for job in trace.jobs] == [("b", 0.0), ("a", 90.0)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("12.06.2020 23:59:30", "13.06.2020"),
        ("2.6.2020", "2.6.2020 00:00:30"),  # dots: the day comes first
        ("06/12/2020 23:59:30", "06/13/2020"),
        ("12/06/2020 23:59:30", "13/06/2020 00:00:00"),
        ("12.06.2020 23:59:30Z", "13.06.2020 02:00:00+02:00"),
    ],
)
def test_dates_with_the_day_or_the_month_first(tmp_path: Path, first: str, second: str) -> None:
    rows = f"a,{first},1,60\nb,{second},1,60\n"
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{rows}")
    trace = read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})
    assert [job.arrival_s for job in trace.jobs] == [0.0, 30.0]


@pytest.mark.parametrize("rows", [("06/07/2020", "08/09/2020"), ("13/06/2020", "06/13/2020")])
def test_dates_that_do_not_tell_the_day_are_refused(tmp_path: Path, rows: tuple[str, ...]) -> None:
    lines = "".join(f"{name},{date},1,60\n" for name, date in zip("ab", rows, strict=True))
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{lines}")
    with pytest.raises(TraceError, match=r"t\.csv:2: .*expected a date whose day is known"):
        read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})


def test_the_first_date_that_is_ambiguous_is_named(tmp_path: Path) -> None:
    dates = ("2025-03-03 08:00", "2025-03-15 08:00", "03/04/2025 08:00", "05/06/2025 08:00")
    lines = "".join(f"{name},{date},1,60\n" for name, date in zip("abcd", dates, strict=True))
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{lines}")
    with pytest.raises(TraceError, match=r"t\.csv:4: .* is '03/04/2025 08:00', expected a date"):
        read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})


@pytest.mark.parametrize(("unit", "days"), [("day-first", 31), ("month-first", 1)])
def test_a_unit_says_which_part_of_a_date_is_the_day(tmp_path: Path, unit: str, days: int) -> None:
    rows = "a,01/07/2020,1,60\nb,01/08/2020,1,60\n"
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{rows}")
    with pytest.raises(TraceError, match="say --units submit_time=day-first or submit_time=month-"):
        read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})
    trace = read(path, columns={"arrival_s": "when"}, units={"arrival_s": unit})
    assert trace.jobs[1].arrival_s == days * 86400


def test_dates_with_and_without_a_zone_do_not_mix(tmp_path: Path) -> None:
    rows = "a,2020-06-09 00:00:30Z,1,60\nb,2020-06-08 23:59:00,1,60\n"
    path = put(tmp_path, "t.csv", f"job_id,when,num_gpus,duration\n{rows}")
    with pytest.raises(TraceError, match=r"t\.csv:3: field 'submit_time' \(column 'when'\) is '20"):
        read(path, columns={"arrival_s": "when"}, units={"arrival_s": "date"})


@pytest.mark.parametrize("cell", ["-1.1", "long"])
def test_a_bad_cell_is_named_as_the_file_has_it(own: Path, cell: str) -> None:
    own.write_text(OWN.replace("1.1", cell))
    field = r"field 'duration' \(column 'run_hours'\)"
    with pytest.raises(TraceError, match=rf":3: {field} is '{cell}' h, expected a time, "):
        read(own, columns=COLUMNS, units=HOURS)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown column of the file": (
        {"columns": {**COLUMNS, "gpus": "n_gpu"}},
        r"jobs\.csv:1: columns gpus=n_gpu \(--columns\): the file has no column 'n_gpu' \(did you "
        r"mean 'n_gpus'\?\)",
    ),
    "unknown column of artist": (
        {"columns": {**COLUMNS, "gpu": "n_gpus"}}, r"'columns': column 'n_gpus' is given twice",
    ),
    "misspelt column of artist": (
        {"columns": {"gpuss": "n_gpus"}}, r"no column of artist is called 'gpuss' \(did you",
    ),
    "the wrong way round": (
        {"columns": {"n_gpus": "gpus"}}, r"called 'n_gpus' \(write gpus=n_gpus\)",
    ),
    "two names of one column": (
        {"columns": {"gpus": "n_gpus", "num_gpus": "id"}}, "num_gpus and gpus are one column",
    ),
    "a unit that there is not": ({"columns": COLUMNS, "units": {"duration": "mn"}}, "'mn'"),
    "a unit by its usual name": (
        {"columns": COLUMNS, "units": {"duration": "hours"}},
        "the unit of 'duration' is 'hours', expected us, ms, s, min, h, d; write duration=h$",
    ),
    "an arrival's unit": (
        {"columns": COLUMNS, "units": {"arrival_s": "when"}}, "h, d, date, day-first, month-first",
    ),
    "a unit of no time": ({"columns": COLUMNS, "units": {"gpus": "h"}}, "not a column of times"),
    "a length that is a date": (
        {"columns": COLUMNS, "units": {"duration": "date"}}, "only arrivals can be dates",
    ),
    "a unit of a missing column": (
        {"columns": COLUMNS, "units": {"restart_s": "h"}}, "the trace has no such column",
    ),
    "a model that there is not": (
        {"columns": COLUMNS, "models": {"VGG-Net": "vgg111"}},
        r"--models 'VGG-Net=vgg111': unknown model 'vgg111': did you mean 'vgg11",
    ),
    "a rule that there is not": (
        {"columns": COLUMNS, "model_rule": "unform"}, "unknown model rule 'unform'",
    ),
    "a column that is still missing": (
        {"columns": {"gpus": "n_gpus", "job_id": "id", "duration": "run_hours"}},
        r"format simple needs column 'submit_time': did you mean 'submitted'\?; the "
        r"file has 'id, submitted, .*--columns submit_time=submitted,model=network",
    ),
    "no mapping file": ({"columns": "nowhere.yaml"}, r"nowhere\.yaml: cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_gets_a_sentence(own: Path, name: str) -> None:
    given, words = BAD[name]
    with pytest.raises((ConfigError, TraceError), match=words) as caught:
        read(own, **given)
    assert str(caught.value).isprintable()


def test_the_file_beside_the_trace_is_read_and_named(own: Path, tmp_path: Path) -> None:
    units = {"duration": "h", "arrival_s": "min"}
    written = write_mapping(own, None, {"columns": COLUMNS, "units": units, "models": MODELS})
    assert written == own.with_name("jobs.csv.columns.yaml")
    trace = read(own)
    assert trace.jobs == jobs(tmp_path)
    assert trace.mapped == (
        f"mapping: {written}",
        "columns: job_id from 'id', arrival_s from 'submitted', gpus from 'n_gpus', "
        "duration from 'run_hours', model from 'network'",
        "units: duration in h, arrival_s in min",
        "columns that are not read: team",
    )
    assert trace.filled[0] == (
        "model ('Inception (batch size 32)' is resnet18: 2 jobs; 'VGG-Net' is vgg11: 1 job)"
    )


def test_flags_replace_single_entries_of_the_file(own: Path) -> None:
    mapping_path(own).write_text("columns: {gpus: n_gpus, job_id: id}\nunits: {duration: h}\n")
    mapping, place = mapping_for(own, {"gpus": "team"}, units={"duration": "min"})
    assert mapping.columns == {"gpus": "team", "job_id": "id"}
    assert mapping.units == {"duration": "min"}
    assert place == f"{mapping_path(own)}, --columns, --units"


def test_a_flag_takes_its_column_from_an_entry_of_the_file(own: Path) -> None:
    lines = "columns: {job_id: id, arrival_s: submitted, gpus: n_gpus, duration: run_hours, "
    mapping_path(own).write_text(
        f"{lines}model: network, user: team}}\nunits: {{duration: h}}\nmodel_rule: uniform\n"
    )
    mapping, _ = mapping_for(own, {"tenant": "team"})
    assert (mapping.columns["tenant"], "user" in mapping.columns) == ("team", False)
    trace = read(own, columns={"tenant": "team"})
    assert [job.tenant for job in trace.jobs] == ["red", "blue", "red"]


def test_a_named_mapping_file_goes_before_the_one_beside_the_trace(own: Path, tmp_path) -> None:
    mapping_path(own).write_text("columns: {gpus: n_gpus}\n")
    other = put(tmp_path, "other.yaml", "columns: {gpus: cards}\n")
    mapping, place = mapping_for(own, str(other))
    assert (mapping.columns, place) == ({"gpus": "cards"}, str(other))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "columns: {gpus: n_gpus}\nunit: {}\n",
            r":2: unknown setting 'unit': did you mean 'units'",
        ),
        ("columns: [gpus]\n", r":1: 'columns'"),
        ("format: helois\n", "unknown trace format 'helois'"),
        ("- a\n", r"expected a mapping of settings .*, but it is \['a'\]"),
        ("", r"expected a mapping of settings .*, but the file is empty"),
        ("columns: {gpus: 3}\n", r":1: 'columns.gpus'"),
    ],
)
def test_a_bad_mapping_file_has_file_and_line(own: Path, text: str, words: str) -> None:
    mapping_path(own).write_text(text)
    with pytest.raises(ConfigError, match=words):
        read(own)


def test_nothing_is_written_over_a_mapping_file(own: Path) -> None:
    mapping_path(own).write_text("precious: 1\n")
    with pytest.raises(ConfigError, match="exists already"):
        write_mapping(own, None, {"columns": COLUMNS, "units": HOURS})
    assert mapping_path(own).read_text() == "precious: 1\n"
    write_mapping(own, None, {"columns": COLUMNS, "units": HOURS}, overwrite=True)
    assert read(own).mapped


def test_a_mapping_by_which_the_trace_cannot_be_read_is_not_written(own: Path) -> None:
    with pytest.raises(TraceError, match="'submit_time'"):
        write_mapping(own, None, {"columns": {"gpus": "n_gpus"}})
    assert not mapping_path(own).exists()


def test_a_built_in_trace_takes_no_columns() -> None:
    with pytest.raises(ConfigError, match="'tiny-batch' is not a file"):
        open_trace("tiny-batch", given=Given(columns={"gpus": "n"}))


# -- models ------------------------------------------------------------------------------


def test_an_unknown_model_is_named_with_the_flags_that_help(own: Path) -> None:
    trace = read(own, columns=COLUMNS, units=HOURS)
    with pytest.raises(TraceError) as caught:
        check_models(trace)
    assert "--models 'Inception (batch size 32)=MODEL'" in str(caught.value)
    assert "--model-rule MODEL" in str(caught.value)
    without = {key: value for key, value in COLUMNS.items() if key != "model"}
    with pytest.raises(TraceError, match=r"job 'a' has no model; .*--columns model=COLUMN.*-rule"):
        check_models(read(own, columns=without, units=HOURS))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("resnet50@batch=0", "; correct the cell"),
        ("net@batch=2", "which model it is under 'models' in a file for --columns"),
        ("net=2", "which model it is under 'models' in a file for --columns"),
    ],
)
def test_a_model_that_models_cannot_name_has_another_remedy(
    name: str, remedy: str, tmp_path: Path
) -> None:
    text = f"job_id,submit_time,num_gpus,duration,model\na,0,1,60,{name}\n"
    with pytest.raises(TraceError) as caught:
        check_models(read(put(tmp_path, "t.csv", text)))
    assert remedy in str(caught.value)
    assert "--models" not in str(caught.value)


def test_named_models_go_before_the_rule_and_only_the_rest_is_drawn(own: Path) -> None:
    given: dict[str, Any] = {
        "columns": COLUMNS, "units": HOURS, "models": {"VGG-Net": "vgg19"},
    }  # fmt: skip
    trace = read(own, **given, model_rule="uniform")
    assert trace.jobs[1].model == "vgg19"
    assert len(trace.drawn) == 1
    assert "Inception by " in trace.drawn[0]
    assert trace.drawn[0].endswith("seed 0): 2 jobs")
    assert read(own, **given, model_rule="resnet50").drawn == ()
    assert read(own, **given, rules=Rules(model="resnet50")).jobs[0].model == "resnet50"


def test_a_pattern_names_many_models_and_keeps_their_batch_sizes(tmp_path: Path) -> None:
    rows = ["Inception-v3 (batch size 64)", "Inception-v4 bs16", "inception", "", "VGG-Net"]
    lines = (f"{n},0,1,60,{name}\n" for n, name in enumerate(rows))
    path = put(tmp_path, "t.csv", f"job_id,submit_time,num_gpus,duration,model\n{''.join(lines)}")
    models = {"Inception*": "resnet50", "*": "vgg19", "Inception-v4": "resnet101@batch=8"}
    trace = read(path, models=models)
    assert [job.model for job in trace.jobs] == [
        "resnet50@batch=64", "resnet101@batch=8", "resnet50", "unknown", "vgg19",
    ]  # fmt: skip
    assert "'Inception-v3 (batch size 64)' is resnet50@batch=64: 1 job" in trace.filled[0]
    with pytest.raises(ConfigError, match=r"no job has the model 'Incaption\*'; did you mean"):
        read(path, models={"Incaption*": "resnet50"})
    with pytest.raises(
        ConfigError, match=r"--models 'Inception\*=gpt3-999b': unknown model 'gpt3-"
    ):
        read(path, models={"Inception*": "gpt3-999b"})


@pytest.mark.parametrize("spec", ["gpt3-175b", "gpt3-175b@microbatches=48"])
def test_a_batch_size_that_does_not_suit_a_model_comes_with_a_flag_that_does(
    spec: str, tmp_path: Path
) -> None:
    row = "a,0,1,60,Inception-v3 (batch size 65)"
    path = put(tmp_path, "t.csv", f"job_id,submit_time,num_gpus,duration,model\n{row}\n")
    with pytest.raises(ConfigError, match="does not suit it") as refused:
        read(path, models={"Inception*": spec})
    (pair,) = shlex.split(str(refused.value).partition(" such as --models ")[2])
    key, _, fitting = pair.partition("=")
    assert key == "Inception*"
    assert read(path, models={key: fitting}).jobs[0].model == canonical(fitting)


def test_a_pattern_given_by_a_flag_goes_before_those_of_the_file(own: Path) -> None:
    mapping_path(own).write_text(json.dumps({"columns": COLUMNS, "models": {"*": "alexnet"}}))
    trace = read(own, units=HOURS, models={"Incep*": "vgg19"})
    assert [job.model for job in trace.jobs] == ["vgg19", "alexnet", "vgg19"]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ResNet-50 (batch size 64)", "resnet50@batch=64"),
        ("resnet50_bs64", "resnet50@batch=64"),
        ("torchvision/resnet_50, ImageNet, batch=32", "resnet50"),
        ("meta-llama/Llama-2-7b-hf", "llama2-7b"),
        ("BERT-large (SQuAD)", "bert-large"),
        ("VGG-Net (ImageNet)", "vgg11"),
        ("MobileNetV3-Small", None),
        ("ResNet-50 v2", None),
        ("resnet50 (global batch size 512)", None),
        ("jobs64", None),
        ("gpt3-175b (batch size 7)", None),
    ],
)
def test_a_name_that_says_its_model_is_never_drawn(tmp_path: Path, name, model) -> None:
    path = put(tmp_path, "t.csv", f'job_id,submit_time,num_gpus,duration,model\na,0,1,9,"{name}"\n')
    assert read(path).jobs[0].model == (model or name)
    drawn = read(path, model_rule="uniform")
    assert (drawn.drawn == ()) == bool(model)


def test_a_name_that_no_job_has_is_refused_unless_a_mapping_file_has_it(own: Path) -> None:
    given: dict[str, Any] = {"columns": COLUMNS, "units": HOURS, "models": {"VGGNet": "vgg11"}}
    for refused in (lambda: read(own, **given), lambda: write_mapping(own, None, given)):
        with pytest.raises(ConfigError) as caught:
            refused()
        assert str(caught.value) == (
            "--models 'VGGNet=vgg11': no job has the model 'VGGNet'; did you mean 'VGG-Net'?; the "
            "models of the trace are: 'Inception (batch size 32)', 'VGG-Net'"
        )
    mapping_path(own).write_text(json.dumps(given))
    assert "'VGGNet' is vgg11: 0 jobs" in read(own).filled[0]


def test_scenarios_without_a_mapping_are_as_they_were() -> None:
    dumped = Scenario(trace="tiny-batch").model_dump()
    assert not {"columns", "units", "models", "model_rule"} & dumped.keys()


def test_the_manifest_holds_the_digest_of_the_mapping_file(own: Path) -> None:
    mapping_path(own).write_text("{columns: " + json.dumps(COLUMNS) + ", units: {duration: h}}\n")
    settings: dict[str, Any] = {"trace": str(own), "racks": 1, "backend": "none"}
    result = simulate(Scenario(**settings))
    assert result.inputs["mapping"].startswith("sha256:")
    assert result.trace_mapped[0] == f"mapping: {mapping_path(own)}"
    assert result.summary["makespan_s"] == 7200
    mapping_path(own).unlink()
    given = simulate(Scenario(**settings, columns=COLUMNS, units={"duration": "min"}))
    assert "mapping" not in given.inputs
    assert given.summary["makespan_s"] == 120


def test_a_header_that_names_another_unit_needs_the_unit(own: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read(own, columns=COLUMNS)
    assert "jobs.csv:1: 'run_hours': not in seconds" in str(caught.value)
    assert "add --units duration=h, or --units duration=s if these are seconds" in str(caught.value)
    assert read(own, columns=COLUMNS, units={"duration": "s"}).jobs[0].ideal_s == 2
    own.write_text(OWN.replace("submitted", "Submitted (min)"))
    columns = {**COLUMNS, "arrival_s": "Submitted (min)"}
    with pytest.raises(TraceError, match="add --units submit_time=min, or"):
        read(own, columns=columns, units=HOURS)
    # Either name of a column says its unit.
    for name in ("arrival_s", "submit_time"):
        assert read(own, columns=columns, units={**HOURS, name: "min"}).jobs[1].arrival_s == 600


def test_a_column_of_dates_needs_the_unit_date(own: Path) -> None:
    own.write_text(OWN.replace(",0,", ",2025-03-01,").replace(",10,", ",2025-03-02,"))
    with pytest.raises(
        TraceError,
        match=r"'submitted': not .* add --units submit_time=date; artist trace columns FILE",
    ):
        read(own, columns=COLUMNS, units=HOURS)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",600,", ",2025-01-01 00:00:00,", "18:41:01 with --units submit_time=date"),
        (",600,", ",02:00:00,", "--units reads numbers in us, ms, s, min, h, d (submit_time=h), "
         "and dates with a time such as 2020-06-09 18:41:01 (submit_time=date)"),
        (",7200,", ",90:10,", "stand hours or minutes: write 90:10:00 or 01:30:10"),
        (",7200,", ",90:60,", "; minutes and seconds go up to 59: correct this row"),
        (",7200,", ",2025-01-01,", "such as 1-02:03:04; only arrivals can be dates"),
        (",600,", ",1746000000000,", "4e+09; read Unix times in ms with --units submit_time=ms"),
        (",7200,", ",-1,", "such as 21:44:38; correct this row"),
    ],
)  # fmt: skip
def test_a_date_or_a_clock_time_is_refused_with_the_known_units(tmp_path, old, new, words) -> None:
    with pytest.raises(TraceError) as caught:
        jobs(tmp_path, SIMPLE.replace(old, new))
    assert words in str(caught.value)


# -- columns that look alike ---------------------------------------------------------------


def test_each_column_of_the_file_serves_once() -> None:
    pairs = alike(["num_gpus", "submit_time", "duration"], ["gpu_num", "Submitted At", "durashun"])
    assert pairs == {
        "num_gpus": "gpu_num", "submit_time": "Submitted At", "duration": "durashun",
    }  # fmt: skip
    german = ["Auftrag", "Anzahl GPUs", "Eingang", "Dauer", "Modell", "Gruppe"]
    wanted = ["job_id", "num_gpus", "submit_time", "duration", "model", "user"]
    assert alike(wanted, german) == dict(zip(wanted, german, strict=True))
    assert alike(["gpus", "gpus_max"], ["gpu"]) == {"gpus": "gpu"}
    assert alike(["gpus"], ["colour"]) == {}


def test_a_name_tells_its_unit() -> None:
    named = {"run_hours": "h", "durationH": "h", "t_ms": "ms", "Days": "d", "seconds": None}
    named |= {"Submitted (h)": "h", "Runtime [min]": "min", "run_ms_": "ms", "12": None}
    assert {name: unit_in(name) for name in named} == named


def test_a_missing_unit_has_no_empty_brackets(own: Path) -> None:
    own.write_text(OWN.replace(",0,", ",2025-03-01,").replace(",10,", ",2025-03-02,"))
    with pytest.raises(TraceError, match="no unit is given; add --units") as error:
        write_mapping(own, None, {"columns": COLUMNS, "units": HOURS})
    assert "()" not in str(error.value)

"""Are traces with columns of their own read, and do commands report what they did?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from artist.cli.options import say_what_was_read
from artist.trace.named import Given, open_trace

OWN = """\
id,submitted,n_gpus,run_hours,network
a,0,8,0.5,SqueezeNet (batch size 32)
b,60,4,0.2,"VGG, the old one"
"""
FLAGS = (
    "--columns", "job_id=id,arrival_s=submitted,gpus=n_gpus", "--columns", "duration=run_hours",
    "--columns", "model=network", "--units", "duration=h",
)  # fmt: skip
MODELS = ("--models", "SqueezeNet (batch size 32)=resnet18,VGG, the old one=vgg11")
SIM = ("sim", "--trace", "jobs.csv", "--racks", "1")


@pytest.fixture(autouse=True)
def own(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(OWN)
    return tmp_path


def test_sim_takes_the_flags_and_keeps_them(artist, own: Path) -> None:
    ran = artist(*SIM, *FLAGS, *MODELS, "--out", "run", "--format", "json", code=0)
    assert json.loads(ran.stdout)["jobs_finished"] == 2
    assert "trace jobs: mapping: --columns, --units, --models; columns: job_id from" in ran.stderr
    manifest = json.loads((own / "run" / "manifest.json").read_text())
    assert manifest["scenario"]["columns"]["gpus"] == "n_gpus"
    assert manifest["scenario"]["models"]["VGG, the old one"] == "vgg11"
    assert manifest["trace"]["mapped"][0] == "mapping: --columns, --units, --models"


def test_a_file_that_columns_wrote_serves_every_command(artist, own: Path) -> None:
    artist("trace", "columns", "jobs.csv", *FLAGS, *MODELS, code=0)
    assert (own / "jobs.csv.columns.yaml").is_file()
    for command in (
        SIM,
        ("compare", "--trace", "jobs.csv", "--racks", "1", "--permutations", "2", "--policies",
         "las,fifo", "--workers", "2"),
        ("trace", "stats", "jobs.csv"),
        ("trace", "validate", "jobs.csv"),
        ("trace", "convert", "jobs.csv", "--out", "native.csv"),
    ):  # fmt: skip
        ran = artist(*command)
        assert ran.returncode == 0, (command, ran.stderr)
        assert "jobs.csv.columns.yaml" in ran.stdout + ran.stderr, command
    converted = artist("sim", "--trace", "native.csv", "--racks", "1", "--format", "json")
    direct = artist(*SIM, "--format", "json")
    same = [json.loads(ran.stdout)["makespan_s"] for ran in (converted, direct)]
    assert same[0] == same[1] > 0


def test_a_scenario_and_a_grid_hold_the_mapping(artist, own: Path) -> None:
    (own / "s.yaml").write_text(
        "trace: jobs.csv\nracks: 1\nbackend: none\n"
        "columns: {job_id: id, arrival_s: submitted, gpus: n_gpus, duration: run_hours}\n"
        "units: {duration: h}\n"
    )
    ran = artist("sim", "s.yaml", "--format", "json")
    assert json.loads(ran.stdout)["makespan_s"] == 1800, ran.stderr
    (own / "e.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: jobs.csv, racks: 1, backend: none, columns: "
        "{job_id: id, arrival_s: submitted, gpus: n_gpus, duration: run_hours}}\n"
        "grid: {units: [{duration: h}, {duration: min}]}\n"
    )
    ran = artist("sweep", "e.yaml", "--out", "out", "--workers", "2", code=0)
    assert "units: duration in min" in ran.stderr
    assert len(list((own / "out" / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--columns", "gpus"), "--columns 'gpus': expected pairs"),
        (("--columns", "=x"), "--columns '=x': expected pairs"),
        (("--units", "duration=h,duration=min"), "--units: 'duration' is given twice"),
        (("--columns", "a.yaml"), "a.yaml: cannot be read"),
    ],
)
def test_flags_that_are_no_pairs(artist, flags: tuple[str, ...], words: str) -> None:
    ran = artist(*SIM, *flags, code=2)
    assert words in ran.stderr


def test_a_models_settings_may_hold_commas(artist) -> None:
    artist(
        *SIM, *FLAGS, "--models", "VGG, the old one=vgg11@batch=64,gpu=A100", "--models",
        "SqueezeNet (batch size 32)=resnet18", code=0,
    )  # fmt: skip


def test_an_unknown_model_names_the_flags(artist) -> None:
    ran = artist(*SIM, *FLAGS, code=3)
    assert "--models 'SqueezeNet (batch size 32)=MODEL'" in ran.stderr
    assert "--model-rule MODEL" in ran.stderr


@pytest.mark.parametrize("command", ["sim", "compare", "sweep"])
def test_models_drawn_at_random_are_reported_first_whatever_follows(artist, own, command) -> None:
    """The note is printed before the command ends, whether or not it succeeds."""
    note = "trace jobs: models are drawn at random: model that the catalogue lacks (SqueezeNet"
    flags = (*FLAGS, "--model-rule", "uniform", "--quiet")
    if command == "sweep":
        artist("trace", "columns", "jobs.csv", *FLAGS, "--model-rule", "uniform")
        (own / "e.yaml").write_text("name: e\nversion: 1\nbase: {trace: jobs.csv, racks: 1}\n")
        ran = artist("sweep", "e.yaml", "--out", "out", "--quiet")
    elif command == "compare":
        ran = artist("compare", "--trace", "jobs.csv", "--racks", "1", *flags, "--policies",
                     "las,fifo")  # fmt: skip
    else:
        ran = artist(*SIM, *flags)
    assert note in ran.stderr.splitlines()[0]
    assert "seed 0): 2 jobs; say which they are with --models" in ran.stderr.splitlines()[0]


def test_a_likely_wrong_unit_is_a_warning_of_runs_as_of_validate(artist, own: Path) -> None:
    header = "job_id,arrival_s,gpus,iterations,compute_s,model\n"
    (own / "u.csv").write_text(f"{header}a,0,8,1000,180,resnet50\n")
    _, _, facts = artist("trace", "validate", "u.csv").stdout.partition("warnings\t")
    assert "check the unit of compute_s" in facts
    flags = ("--trace", "u.csv", "--racks", "1")
    compared = ("--policies", "fifo,las", "--permutations", "1")
    for command in (("sim", *flags), ("compare", *flags, *compared)):
        assert f"warning: {facts.strip()}\n" in artist(*command, code=0).stderr
    assert "warning" not in artist("sim", *flags, "--quiet", code=0).stderr


def test_quiet_leaves_the_models_that_were_drawn(own: Path, capsys) -> None:
    columns = {"job_id": "id", "arrival_s": "submitted", "gpus": "n_gpus", "duration": "run_hours"}
    given = Given(columns, {"duration": "h"}, model_rule="mix")
    trace = open_trace(str(own / "jobs.csv"), given=given)
    say_what_was_read(trace, quiet=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("trace jobs: models are drawn at random: model (as in Dally's batch for")
    say_what_was_read(trace)
    assert "mapping: --columns, --units, --model-rule; columns: " in capsys.readouterr().err


def test_the_schema_of_the_file(artist) -> None:
    schema = json.loads(artist("schema", "columns").stdout)
    assert schema["additionalProperties"] is False
    assert {"columns", "units", "models", "format", "model_rule"} == schema["properties"].keys()


def test_the_proposal_for_look_alikes_reads_the_file(artist, own: Path) -> None:
    (own / "o.csv").write_text("id,submitted,n_gpus,runtime_h,net\na,0,8,0.5,vgg11\n")
    ran = artist("trace", "stats", "o.csv", code=3)
    columns = "job_id=id,submit_time=submitted,num_gpus=n_gpus,duration=runtime_h,model=net"
    flags = ("--columns", columns, "--units", "duration=h")
    assert " ".join(flags) in ran.stderr
    ran = artist("trace", "stats", "o.csv", *flags, "--format", "json")
    assert json.loads(ran.stdout)["ideal_jct_p50_s"] == 1800
    assert "will refuse" not in ran.stderr


@pytest.mark.parametrize(
    ("text", "columns", "units"),
    [
        (
            "Job,Submitted (h),GPUs requested,Runtime [h],Network\na,0.5,8,2,vgg11\n",
            "job_id=Job,submit_time=Submitted (h),num_gpus=GPUs requested,duration=Runtime [h],"
            "model=Network",
            "submit_time=h,duration=h",
        ),
        (  # the last column can be nothing but the duration
            "id,submitted,n_gpus,busy (min),net\na,2025-03-01,8,120,vgg11\n",
            "job_id=id,submit_time=submitted,num_gpus=n_gpus,duration=busy (min),model=net",
            "submit_time=date,duration=min",
        ),
    ],
)
def test_the_proposal_names_the_units(artist, own: Path, text, columns, units) -> None:
    (own / "o.csv").write_text(text)
    ran = artist("trace", "validate", "o.csv")
    assert f"--columns '{columns}' --units {units}\n" in ran.stderr
    ran = artist("trace", "stats", "o.csv", "--columns", columns, "--units", units,
                 "--format", "json")  # fmt: skip
    assert json.loads(ran.stdout)["ideal_jct_p50_s"] == 7200


def test_validate_prints_the_units_in_force(artist, own: Path) -> None:
    ran = artist("trace", "validate", "jobs.csv", *FLAGS)
    assert "\nunits\tsubmit_time: s (default), duration: h\n" in ran.stdout
    ran = artist("trace", "validate", "tiny-batch")
    assert "\nunits\tarrival_s: s (default), compute_s: s (default)\n" in ran.stdout
    (own / "n.csv").write_text("job_id,arrival_s,gpus,iterations,model\na,0,8,9,resnet50\n")
    ran = artist("trace", "validate", "n.csv")  # nobody states a compute time
    assert "\nunits\tarrival_s: s (default)\n" in ran.stdout


def test_sim_compares_run_times_with_recorded_ones(artist, own: Path) -> None:
    ran = artist(*SIM, *FLAGS, *MODELS)
    assert "\nJobs run 1 x their recorded time" in ran.stdout
    assert "warning" not in ran.stderr
    dlrm = ("--models", "SqueezeNet (batch size 32)=dlrm,VGG, the old one=vgg11")
    ran = artist(*SIM, *FLAGS, *dlrm, "--quiet", "--format", "json")
    assert "warning: Jobs run " in ran.stderr
    assert "x at most (job 'a', 'dlrm@batch=32')" in ran.stderr


def test_only_recorded_run_times_are_compared(artist) -> None:
    ran = artist("sim", "--trace", "tiny-batch", "--racks", "1")
    assert "recorded time" not in ran.stdout + ran.stderr


def test_stats_and_sim_name_all_unknown_models_as_spelt(artist, own: Path) -> None:
    ran = artist("trace", "stats", "jobs.csv", *FLAGS, code=0)
    assert "artist sim will refuse this trace: jobs.csv:2:" in ran.stderr
    refused = artist(*SIM, *FLAGS, code=3)
    for words in (
        "unknown model 'SqueezeNet (batch size 32)' (artist list models); "
        "unknown as well: 'VGG, the old one'; say which models they are",
        "--models 'SqueezeNet (batch size 32)=MODEL',...",
    ):
        assert words in ran.stderr
        assert words in refused.stderr


def test_a_whole_mapping_is_proposed_and_accepted_with_one_flag(artist, own: Path) -> None:
    shown = artist("trace", "columns", "jobs.csv", code=0)
    assert "columns\tduration\trun_hours\tsure\ta usual name, and its cells fit\n" in shown.stdout
    assert "units\tduration\th\tsure\tthe column's name ends in it\n" in shown.stdout
    assert "write it with artist trace columns jobs.csv --accept" in shown.stderr
    assert "no model of the catalogue is near SqueezeNet (batch size 32), VGG" in shown.stderr
    remedy = "all jobs without a known model one with --model-rule MODEL"
    assert remedy in shown.stderr
    assert remedy in artist(*SIM, *FLAGS).stderr
    assert not (own / "jobs.csv.columns.yaml").exists()
    told = json.loads(artist("trace", "columns", "jobs.csv", "--format", "json").stdout)
    assert told["entries"][0]["confidence"] == "sure"
    artist("trace", "columns", "jobs.csv", "--accept", *MODELS, code=0)
    ran = artist(*SIM, "--format", "json")
    assert json.loads(ran.stdout)["makespan_s"] > 1800, ran.stderr
    again = artist("trace", "columns", "jobs.csv", "--accept")
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to propose; it is read as it is (simple)" in again.stderr
    more = ("--models", "VGG*=vgg16", "--overwrite")
    artist("trace", "columns", "jobs.csv", "--accept", *more, code=0)
    written = (own / "jobs.csv.columns.yaml").read_text()
    assert "VGG*: vgg16" in written and "duration: run_hours" in written


def test_the_one_column_of_dates_is_a_guess_and_cards_are_gpus(artist, own: Path) -> None:
    row = "a,2024-05-01 08:00:00,8,1:00:00,2024-05-02 08:00:00"
    (own / "n.csv").write_text(f"JobName,Sent at,N cards,Took,Ended\n{row}\n")
    shown = artist("trace", "columns", "n.csv")
    assert re.search(r"num_gpus\s+N cards\s+sure", shown.stdout), shown.stdout + shown.stderr
    assert re.search(r"submit_time\s+Sent at\s+guess\s+the one column of dates", shown.stdout)
    refused = artist("trace", "columns", "n.csv", "--accept")
    assert (refused.returncode, (own / "n.csv.columns.yaml").exists()) == (3, False)


def test_dates_whose_day_is_unknown_are_a_guess_and_the_command_to_type_says_which(
    artist, own: Path
) -> None:
    rows = "a,03/03/2025 10:00,8,60,resnet50\nb,03/04/2025 11:00,8,60,resnet50\n"
    (own / "n.csv").write_text(f"job_id,submit_time,num_gpus,duration,model\n{rows}")
    shown = artist("trace", "columns", "n.csv")
    assert re.search(r"submit_time\s+date\s+guess\s+its cells are dates, but which", shown.stdout)
    flags = "--units submit_time=day-first"
    assert f"n.csv --accept {flags} (or month-first); flags" in shown.stderr
    artist("trace", "columns", "n.csv", "--accept", *flags.split())
    (own / "n.csv").write_text((own / "n.csv").read_text() + "c,03/13/2025 11:00,8,60,resnet50\n")
    (own / "n.csv.columns.yaml").unlink()
    shown = artist("trace", "columns", "n.csv")
    assert re.search(r"submit_time\s+date\s+sure\s+its cells are dates", shown.stdout)


def test_the_one_column_of_lengths_is_named_in_the_flag_to_type(artist, own: Path) -> None:
    (own / "n.csv").write_text("JobName,Submitted At,Num. of GPUs,Took,Crew\na,0,8,1:00:00,x\n")
    refused = artist("sim", "--trace", "n.csv", code=3)
    assert "num_gpus=Num. of GPUs,duration=Took'" in refused.stderr
    shown = artist("trace", "columns", "n.csv")
    assert "the one column of lengths" in shown.stdout
    flags = ("--accept", "--columns", "duration=Took")
    assert f"write it with artist trace columns n.csv {' '.join(flags)}; flags" in shown.stderr
    refused = artist("trace", "columns", "n.csv", "--accept")
    assert (refused.returncode, (own / "n.csv.columns.yaml").exists()) == (3, False)
    assert refused.stderr.endswith("if it is right, add --columns duration=Took\n")
    artist("trace", "columns", "n.csv", *flags, code=0)
    assert "duration: Took" in (own / "n.csv.columns.yaml").read_text()


def test_a_column_that_is_missing_has_one_name_in_all_messages(artist, own: Path) -> None:
    (own / "n.csv").write_text("id,gpus,seconds\na,8,60\n")
    shown = artist("trace", "columns", "n.csv")
    named = "no column looks like submit_time of the simple format; name it with --columns sub"
    assert (shown.returncode, named in shown.stderr) == (0, True)
    assert "--accept --columns submit_time=COLUMN; flags" in shown.stderr
    accepted = artist("trace", "columns", "n.csv", "--accept")
    assert (accepted.returncode, f"n.csv: {named}" in accepted.stderr) == (3, True)
    ran = artist("sim", "--trace", "n.csv")
    assert "and the closest, simple, needs columns" in ran.stderr
    assert not (own / "n.csv.columns.yaml").exists()


def test_a_trace_that_a_run_refuses_is_not_called_valid(artist, own: Path) -> None:
    (own / "y.csv").write_text("job_id,submit_time,num_gpus,duration,model\na,0,8,60,yolo\n")
    ran = artist("trace", "validate", "y.csv")
    assert ran.stdout.startswith("# valid only for --backend none\n")
    assert "artist sim will refuse this trace: y.csv:2:" in ran.stderr


def test_axes_that_a_run_refuses_are_not_called_valid(artist, own: Path) -> None:
    header = "job_id,arrival_s,gpus,iterations,compute_s,model\n"
    (own / "x.csv").write_text(f'{header}a,0,8,9,1,"llama2-7b@tensor=3,pipeline=2"\n')
    ran = artist("trace", "validate", "x.csv", code=0)
    assert ran.stdout.startswith("# valid only for --backend none\n")
    refusal = "x.csv:2: job 'a': tensor=3, pipeline=2 do not divide 8 GPUs"
    assert f"artist sim will refuse this trace: {refusal}" in ran.stderr
    assert refusal in artist("sim", "--trace", "x.csv", code=3).stderr


def test_stats_show_the_axes_that_runs_take_for_published_models(artist, own: Path) -> None:
    header = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
    (own / "llm.csv").write_text(f"{header}a,0,64,gpt3-175b,9,1\nb,0,8,vgg11,9,1\n")
    told = "parallelism of 1 job, smaller than published: gpt3-175b@pipeline=8"
    assert f"in_runs\t{told}\n" in artist("trace", "stats", "llm.csv", code=0).stdout
    assert artist("trace", "validate", "llm.csv").stdout.startswith("# valid\n")
    assert told in artist("sim", "--trace", "llm.csv", code=0).stderr


def test_a_rule_for_models_is_checked_where_all_jobs_have_one(artist) -> None:
    ran = artist("sim", "--trace", "tiny-poisson", "--model-rule", "resnet5", "--racks", "1")
    assert (ran.returncode, "did you mean 'resnet50'" in ran.stderr) == (2, True)


def test_columns_that_are_not_read_are_a_note_and_misspelt_ones_an_error(artist, own: Path) -> None:
    (own / "o.csv").write_text(
        "job_id,submit_time,num_gpus,duration,model,colour\n"
        "a,0,8,60,ResNet-50 (batch size 64),red\nb,0,8,60,bert-large-uncased,red\n"
    )
    ran = artist("sim", "--trace", "o.csv", "--racks", "1", code=0)
    assert "trace o: columns that are not read: colour\n" in ran.stderr
    assert (
        "filled in model recognised by its name ('ResNet-50 (batch size 64)' is "
        "resnet50@batch=64: 1 job; 'bert-large-uncased' is bert-large: 1 job)\n"
    ) in ran.stderr
    (own / "o.csv").write_text("job_id,submit_time,num_gpus,duration,gpu_min\na,0,8,60,4\n")
    ran = artist("sim", "--trace", "o.csv", "--racks", "1", code=3)
    assert "unknown column 'gpu_min': did you mean 'gpus_min'? write --columns " in ran.stderr


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_other_separators_than_commas_are_read(artist, own: Path, sign: str) -> None:
    rows = [("job_id", "submit_time", "num_gpus", "duration"), ("a", "0", "8", "60")]
    (own / "o.csv").write_text(
        "\n".join(map(sign.join, rows)) + f'\n"b{sign}"{sign}1{sign}4{sign}30\n'
    )
    ran = artist("trace", "stats", "o.csv", "--format", "json", code=0)
    assert json.loads(ran.stdout)["jobs_by_gpus"] == {"4": 1, "8": 1}


def test_a_decimal_comma_is_named(artist, own: Path) -> None:
    (own / "o.csv").write_text("job_id;submit_time;num_gpus;duration\na;0;8;1,5\n")
    ran = artist("trace", "stats", "o.csv", code=3)
    assert "'duration' is '1,5', expected seconds" in ran.stderr
    assert ran.stderr.endswith(
        "; write decimals with a point, such as 1.5, and no commas between thousands\n"
    )


CLOCKS = (
    "job_id,submit_time,num_gpus,duration,tenant\na,{},8,{},x\nb,24.11.2026 09:03,8,1:00:00,y\n"
)


def test_lengths_with_colons_are_a_unit_and_a_bad_cell_is_shown_a_good_one(
    artist, own: Path
) -> None:
    file, dates = own / "o.csv", ("--units", "submit_time=date")
    file.write_text(CLOCKS.format("24.11.2026 08:16", "21:44:38"))
    told = json.loads(artist("trace", "validate", file, *dates, "--format", "json").stdout)
    assert told["units"] == {"submit_time": "date", "duration": "s or [D-]HH:MM:SS"}
    told = json.loads(artist("trace", "stats", file, *dates, "--format", "json").stdout)
    assert (told["users"], told["tenants"]) == (0, 2)
    for arrival, length, expected in (
        ("24.11.2026 25:16", "1:00:00", "expected a time such as 24.11.2026 09:03; correct"),
        ("24.11.2026 08:16", "nan", "up to 4e+09, or a length such as 21:44:38; correct"),
        ("24.11.2026 08:16", "02:54:99", "'duration' is '02:54:99', expected seconds, more than 0"),
        ("24.11.2026 08:16", "00:90:00", "; minutes and seconds go up to 59: correct this row\n"),
        ("2026-11-24 08:16Z", "1:00:00", "with a zone in all rows or in none; correct"),
    ):
        file.write_text(CLOCKS.format(arrival, length))
        ran = artist("trace", "validate", file, *dates)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert expected in ran.stderr


def test_a_model_rule_without_effect_is_reported(artist, own: Path) -> None:
    (own / "o.csv").write_text("job_id,submit_time,num_gpus,duration,model\na,0,8,60,vgg16\n")
    for trace in ("o.csv", "tiny-batch"):
        ran = artist(
            "sim", "--trace", trace, "--model-rule", "resnet50@batch=32", "--racks", "1", code=0
        )
        assert (
            "filled in nothing by --model-rule resnet50@batch=32: every job has a model that the "
            "catalogue knows\n"
        ) in ran.stderr
        assert "drawn at random" not in ran.stderr


def test_a_piped_cell_keeps_its_lines_apart_and_counts_one_job(artist, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(
        "Job;Karten;Eingang;Laufzeit;Modell;Rest\na;1;5;60;VGGNet;x\n"
    )
    names = "job_id=Job,num_gpus=Karten,submit_time=Eingang,duration=Laufzeit,model=Modell"
    ran = artist("trace", "validate", "one.csv", "--columns", names, "--models", "VGGNet=vgg11")
    shown = " ".join(ran.stdout.split())
    assert "model from 'Modell'; columns that are not read: Rest" in shown, ran.stderr
    assert "is vgg11: 1 job)" in shown
    assert "1 jobs" not in shown


@pytest.mark.parametrize(
    "flags", [(), ("--accept",), ("--columns", "model=net", "--units", "submit_time=date")]
)
def test_bad_cells_of_all_columns_are_reported_at_once(artist, own: Path, flags) -> None:
    (own / "b.csv").write_text(
        "job_id,submit_time,num_gpus,duration,net,priority\n"
        "a,2025-01-01,8,60,vgg11,1\n"
        "b,x,zwei,6 0,vgg11,1.5\n"
        "c,2025-01-03,4.5,-1,vgg11,2\n"
    )
    ran = artist("trace", "columns", "b.csv", *flags)
    told = [
        "b.csv:3: field 'submit_time' is 'x', expected a time such as 2025-01-01; correct this row",
        "b.csv:3: field 'duration' is '6 0'",
        "b.csv:3: field 'num_gpus' is 'zwei', expected a whole number",
        "b.csv:3: field 'priority' is '1.5'",
    ]
    assert [ran.stderr.count(one) for one in told] == [1, 1, 1, 1]
    assert "(also bad: line 4)" in ran.stderr
    assert ran.returncode == (3 if flags else 0)
    assert not (own / "b.csv.columns.yaml").exists()


def test_a_column_of_kinds_that_the_cluster_lacks_may_be_left_out_of_the_mapping(
    artist, own: Path
) -> None:
    (own / "logged.csv").write_text(
        "job_id,submit_time,num_gpus,duration,gpu_type\na,0,8,60,v100\n"
    )
    proposed = artist("trace", "columns", "logged.csv", "--accept", code=0)
    assert "kinds that jobs accept; the cluster file must name them" in proposed.stdout
    sim = ("sim", "--trace", "logged.csv", "--racks", "1", "--backend", "none")
    refused = artist(*sim, "--model-rule", "vgg16", code=3)
    assert "or leave gpu_kinds out of the trace or its mapping" in refused.stderr
    (own / "logged.csv.columns.yaml").write_text("columns: {}\n")
    artist(*sim, "--model-rule", "vgg16", code=0)

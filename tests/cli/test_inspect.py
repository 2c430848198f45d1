"""Do `list`, `explain`, `schema`, `latency` and `trace` show what they should?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from artist import latency
from artist.cli.commands.explain import explain
from artist.cli.commands.list import Listed, list_
from artist.cli.output import Format
from artist.config import Scenario
from artist.errors import ConfigError
from artist.policies.table import POLICIES
from artist.registry import Entry, UnknownNameError
from artist.results.statistics.compare_values import Verdict
from artist.results.terms import columns
from artist.results.terms.glossary import METRICS, TERMS
from artist.results.waiting.job_story import CAUSE_WORDS
from artist.settings import assign


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("policies", "dally-fully-consolidated"),
        ("models", "resnet50"),
        ("fabrics", "h100-quantum2-spectrum4"),
        ("traces", "sensetime-batch-500"),
        ("backends", "analytical"),
        ("interference", "time-slicing"),
        ("machines", "openb"),
        ("placers", "gpu-packing"),
        ("metrics", "makespan_s"),
    ],
)
def test_every_kind_of_thing_can_be_listed(artist, what: str, expected: str) -> None:
    assert expected in artist("list", what).stdout
    rows = json.loads(artist("list", what, "--format", "json").stdout)
    assert expected in {row["id"] for row in rows}


def test_the_health_check_of_the_image_is_answered(artist) -> None:
    # The tests in the image need an engine; a default that moves must be noticed without one.
    lines = (Path(__file__).parents[2] / "docker" / "Dockerfile").read_text()
    program, *arguments = json.loads(re.findall(r"HEALTHCHECK.*\\\n +CMD (.*)", lines)[0])
    assert program == "artist"
    assert json.loads(artist(*arguments).stdout)["iteration_ms"] > 0


def test_a_policy_that_takes_another_one_is_listed_with_it(monkeypatch, capsys) -> None:
    wrapper = Entry("outer", "nowhere:Outer", "takes a policy inside", wraps=True)
    monkeypatch.setitem(POLICIES._entries, "outer", wrapper)
    for format_ in Format:
        list_(Listed.POLICIES, format_)
        printed = capsys.readouterr().out
        assert "outer(POLICY)" in printed
        assert "dally(POLICY)" not in printed


def test_every_term_has_a_unit_or_a_meaning() -> None:
    names = [term.name for term in (*METRICS, *TERMS)]
    assert len(names) == len(set(names))
    assert all(term.meaning for term in (*METRICS, *TERMS))
    assert all(term.unit for term in METRICS)


def test_policies_say_whether_they_know_run_times(artist) -> None:
    rows = json.loads(artist("list", "policies", "--format", "json").stdout)
    oracles = {row["id"] for row in rows if row["knows"] == "run times of all jobs"}
    rules, networks = (
        {"srsf", "srsf-threshold", "lookahead(POLICY)"},
        {"learned", "rl-base", "rl-hybrid"},
    )
    rules |= {"easy", "conservative", "gavel-makespan", "gavel-ftf", "optimus"}
    assert oracles == {"sjf", "srtf", *rules, "themis", "themis-cassini", *networks}
    assert "knows\trun times of all jobs\n" in artist("explain", "sjf").stdout
    assert "run times of all jobs" not in artist("explain", "las").stdout


def test_rounds_count_among_delay_timers(artist) -> None:
    assert "at the beginning of a round" in artist("explain", "a delay timer").stdout


@pytest.mark.parametrize("name", [entry.id for entry in POLICIES if not entry.wraps])
def test_every_policy_is_explained(name: str, capsys) -> None:
    explain([name])
    printed = capsys.readouterr().out
    assert POLICIES[name].summary in printed
    assert f"artist sim --policy {name}" in printed


def test_the_steps_of_the_default_trace_are_explained(capsys) -> None:
    explain(["sensetime-batch-500"])
    assert "steps of its simulator, which are shorter than the" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["efficiency", "speedup", "rho"])
def test_words_of_printed_tables_are_explained(word: str, capsys) -> None:
    explain([word])
    assert capsys.readouterr().out.startswith(f"# {word}\nmeaning\t")


def test_the_weight_of_a_tenant_is_explained(capsys) -> None:
    explain(["weight"])
    assert "credit of waiting jobs" in capsys.readouterr().out


def test_several_terms_are_explained_one_after_the_other(capsys) -> None:
    explain(["jct_mean_s", "makespan_s"])
    printed = capsys.readouterr().out
    assert printed.index("# jct_mean_s\n") < printed.index("# makespan_s\n")
    explain(["latency", "of", "hops"])
    assert "# latency-of-hops\n" in capsys.readouterr().out  # the words of one term


@pytest.mark.parametrize("name", [entry.usage for entry in POLICIES if entry.wraps])
def test_a_policy_is_explained_as_the_list_names_it(name: str, capsys) -> None:
    explain([name])
    assert f"artist sim --policy {name}\n" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["3+1,1,1,1,1", "4+4,8/2", "8,8@tensor-data"])
def test_a_signature_is_explained(text: str, capsys) -> None:
    explain([text])
    assert "',' machines and '/' racks" in capsys.readouterr().out


@pytest.mark.parametrize("name", Scenario.model_fields)
def test_every_setting_is_explained(name: str, capsys) -> None:
    explain([name])
    printed = capsys.readouterr().out
    told = re.search(r"--set ([a-z_.A-Z]+)=VALUE", printed)
    key = told[1].replace("LEVEL.KEY", "network.latency_ns").replace("KEY", "x")
    assert assign({}, key, 1)
    assert Scenario.model_fields[name].description in printed


@pytest.mark.parametrize("asked", ["lease_s", "policy.lease_s"])
def test_an_option_of_policies_is_explained_with_those_that_have_it(asked: str, capsys) -> None:
    explain([asked])
    printed = capsys.readouterr().out
    assert "--set policy.lease_s=VALUE" in printed
    assert "default\t3600.0\n" in printed
    assert re.search(r"policies\tdally,.* tiresias\b", printed)


def test_an_option_with_some_values_is_explained_with_all_of_them(capsys) -> None:
    explain(["policy.placement"])
    values = capsys.readouterr().out.split("values\t")[1].splitlines()[0].split(", ")
    assert {"pack", "consolidate-or-wait", "skew", "affinity"} < {*values}


@pytest.mark.parametrize(
    "printed",
    [
        *Verdict,
        "surely",
        "Holm",
        "geometric",
        "untested",
        "baseline",
        "elastic",
        "batch",
        "isolated",
        "withdrawn",
        "host",
        "squeue",
        "jointly",
        "exact",
        "interval",
        "noise",
        "isolated run",
        "isolated time",
        "exposed_comm_cycles",
        "compute_cycles",
        "sends for",
        "adds",
        "latency of hops",
        "knows_run_times",
        "16x8x2x4",
        "consolidate-or-wait",
        "GPUs gained",
        "per hour of JCT saved",
        "per GPU-hour gained",
        "more per hour",
        "Nw_sens",
        "wait_causes",
        "waits.parquet",
        "97.5 %",
        "overtaken",
        "asked",
        *CAUSE_WORDS.values(),
        *CAUSE_WORDS,
    ],
)
def test_every_word_of_the_output_is_explained(printed: str, capsys) -> None:
    explain([printed])
    assert "meaning\t" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "set_it"),
    [
        ("checkpoint.interval_s", "--set checkpoint.interval_s=VALUE"),
        ("interval_s", "--set checkpoint.interval_s=VALUE"),
        ("checkpoint.cost_s", "--set checkpoint.cost_s=VALUE"),
        ("fabric.rack.bandwidth", "--set fabric.rack.bandwidth=VALUE"),
        ("data.remote", "--set data.remote=VALUE"),
        ("contention.jitter", "--set contention.jitter=VALUE"),
    ],
)
def test_a_key_of_a_group_of_settings_is_explained(asked: str, set_it: str, capsys) -> None:
    explain([asked])
    told = capsys.readouterr().out
    assert set_it in told
    assert "meaning\t" in told


def test_a_group_of_settings_names_its_keys(capsys) -> None:
    explain(["checkpoint"])
    assert "keys\tcheckpoint.interval_s, checkpoint.cost_s\n" in capsys.readouterr().out


def test_the_code_of_a_cause_has_the_meaning_of_its_words(capsys) -> None:
    explain(["left-free"])
    assert capsys.readouterr().out.startswith("# cause of a wait: GPUs were left free\nmeaning\t")


@pytest.mark.parametrize(
    ("name", "title", "more"),
    [
        ("three-regions", "cluster three-regions", "artist cluster show three-regions"),
        ("meta-rsc", "failure meta-rsc", "artist sim --failures meta-rsc"),
        ("tiny-batch", "trace tiny-batch", "artist sim --trace tiny-batch"),
        ("vgg11", "model vgg11", "artist latency --model vgg11"),
        ("mean", "contention mean", "artist sim --contention mean"),
    ],
)
def test_a_listed_name_is_explained_with_the_command_that_shows_more(
    name: str, title: str, more: str, capsys
) -> None:
    explain([name])
    told = capsys.readouterr().out
    assert f"# {title}\n" in told and f"more\t{more}\n" in told


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("sfj", "sjf"),
        ("restarts_s", "restart_s"),
        ("leases_s", "lease_s"),
        ("ganng", "gang"),
        ("three-region", "three-regions"),
    ],
)
def test_an_unknown_term_is_answered_with_the_nearest_of_every_kind(asked: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"unknown term '{asked}': did you mean '{meant}'"):
        explain([asked])


def test_latency_of_a_placement_and_of_bare_dimensions_agree(artist) -> None:
    on_placement = artist(
        "latency", "--model", "resnet18", "--placement", "4/4", "--calibration", "none", "--fabric",
        "dally2025", "--format", "json",
    )  # fmt: skip
    bare = artist(
        "latency", "--model", "resnet18", "--topology", "FullyConnected,Switch", "--npus", "4,2",
        "--bandwidth", "600,400", "--latency", "0,50000", "--system",
        "collective_optimization=baseline", "--system", "preferred_dataset_splits=1", "--system",
        "local_mem_bandwidth_gb_per_s=1555", "--format", "json",
    )  # fmt: skip
    first, second = json.loads(on_placement.stdout), json.loads(bare.stdout)
    assert first["signature"] == "4/4"
    assert first["finish_cycles"] == second["finish_cycles"]
    assert set(first) == {
        *("finish_cycles", "exposed_comm_cycles", "compute_cycles", "comm_ratio", "iteration_ms"),
        *("constant_share", "calibration", "source", "signature", "asked", "slowest", "wall_s"),
        *("split_ns", "sent_ns", "hidden_comm_ns"),
    }
    assert sum(first["split_ns"].values()) == first["finish_cycles"]


@pytest.mark.parametrize(
    ("placement", "fabric", "most"), [("9", "a100", 8), ("8", "t4", 4), ("4+4+4", "dally2025", 8)]
)
def test_latency_refuses_more_gpus_than_a_machine_has(
    artist, placement: str, fabric: str, most: int
) -> None:
    asked = ("latency", "--model", "vgg11", "--placement", placement, "--fabric", fabric)
    refused = artist(*asked, code=2)
    assert f"machines have {most}" in refused.stderr
    assert artist(*asked, "--gpus-per-machine", "16").returncode == 0
    with pytest.raises(ConfigError, match=f"machines have {most}"):
        latency("vgg11", placement, fabric=fabric)


def test_latency_of_one_gpu_is_compute_alone(artist) -> None:
    ran = artist("latency", "--model", "vgg11", "--placement", "1", "--format", "json")
    assert json.loads(ran.stdout)["comm_ratio"] == 0


def test_trace_commands(artist, tmp_path) -> None:
    artist(
        "trace", "synth", "--jobs", "50", "--load", "0.9", "--gpus", "64", "--seed", "3", "--out",
        "t.csv", code=0,
    )  # fmt: skip
    assert json.loads(artist("trace", "validate", "t.csv", "--format", "json").stdout)["jobs"] == 50
    assert (
        json.loads(artist("trace", "stats", "t.csv", "--format", "json").stdout)["gpus_max"] <= 64
    )
    assert artist("sim", "--trace", "t.csv", "--racks", "1", "--check").returncode == 0


def test_version_and_help(artist) -> None:
    assert artist("--version").stdout.startswith("artist ")
    assert "sim" in artist("--help").stdout


@pytest.mark.parametrize("kind", ["scenario", "experiment", "fabric", "calibration"])
def test_schemas_forbid_unknown_keys_and_describe_known_ones(artist, kind: str) -> None:
    schema = json.loads(artist("schema", kind).stdout)
    assert schema["additionalProperties"] is False
    assert schema["properties"]


def test_an_uneven_shape_is_rendered_as_the_regular_ones_that_are_asked(
    artist, tmp_path: Path
) -> None:
    wider = tmp_path / "wider"
    asked = ("--placement", "2/1", "--fabric", "dally2025", "--out")
    ran = artist("render", "--model", "resnet18", *asked, str(wider), code=0)
    folders = sorted(path.name for path in wider.iterdir())
    assert folders == ["1+1_1+1", "1,1_1,1", "1_1_1", "2_2"]
    both = tmp_path / "both"
    asked = ("--placement", "8/7", "--system", "uneven=bounded", "--fabric", "dally2025", "--out")
    ran = artist("render", "--model", "resnet18", *asked, str(both), code=0)
    assert sorted(path.name for path in both.iterdir()) == ["3+3_3+3", "4+4_4+4"]
    assert len(list((both / "4+4_4+4").glob("workload.*.et"))) == 16
    # Groups of four fit one neighbour only: that one is written, and the other is named.
    one = tmp_path / "one"
    ran = artist("render", "--model", "gpt2@tensor=4", *asked, str(one), code=0)
    assert [path.name for path in one.iterdir()] == ["4+4_4+4"]
    assert "3+3/3+3: not asked" in ran.stderr


def test_every_column_of_jobs_that_share_links_is_explained(artist) -> None:
    setup = ("--model", "vgg16", "--placement", "4/4", "--beside", "vgg16:4/4")
    tables = artist("latency", *setup, "--fabric", "cassini-testbed", code=0).stdout.split("\n# ")
    columns = {name for table in tables for name in table.splitlines()[1].split("\t")}
    assert "bandwidth_share" in columns
    artist("explain", *sorted(columns - {"machines"}), code=0)


def test_a_model_is_explained_in_any_spelling(capsys) -> None:
    explain(["GPT2", "small"])
    assert capsys.readouterr().out.startswith("# model gpt2\nsummary\tGPT-2 small")


def test_no_meaning_leans_on_the_line_before_it() -> None:
    texts = [one.meaning for one in (*METRICS, *TERMS)]
    texts += [line.meaning for lines in columns.TABLES.values() for line in lines]
    assert [text for text in texts if text.startswith("the same")] == []


def test_a_changed_fabric_is_explained_as_it_is_in_force(artist) -> None:
    """Four to one between the machines of a100 is one to one: an uplink carries a flow."""
    changes = ("--set", "fabric.network.bandwidth=x2", "--set", "fabric.machine.oversubscription=4")
    plain, changed = (artist("explain", "a100", *more).stdout for more in ((), changes))
    title = "# fabric a100 with machine oversubscription 4:1, network bandwidth 3201 Gbit/s: DGX"
    assert changed.startswith(title)
    assert "\nnetwork\tRing\t1600 Gbit/s" in plain
    assert "\nnetwork\tRing\t3201 Gbit/s" in changed
    assert plain.splitlines()[2:4] == changed.splitlines()[2:4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("jct", "--set", "fabric.rack.latency=1us"), "only of a fabric, and 'jct' is none"),
        (("a100", "--set", "racks=3"), "--set 'racks=3': expected fabric.LEVEL.KEY=VALUE here"),
        (("a100", "--set", "fabric.rak.latency=1us"), "did you mean 'rack'?"),
    ],
)
def test_what_is_no_change_of_a_fabric_is_refused(artist, arguments, words) -> None:
    ran = artist("explain", *arguments, code=2)
    assert words in ran.stderr


def test_what_jobs_get_of_an_uplink_that_they_share_is_explained(artist) -> None:
    eta = "Jobs that share an uplink of a rack get {} % of what it carries (eta).\n"
    assert artist("explain", "cassini-testbed").stdout.count("(eta)") == 1
    assert eta.format(88) in artist("explain", "cassini-testbed").stdout
    for set_, told in (("0.905", eta.format(90.5)), ("1", "")):
        changed = artist("explain", "cassini-testbed", "--set", f"fabric.rack.eta={set_}").stdout
        assert told in changed
        assert changed.count("(eta)") == bool(told)
    assert "(eta)" not in artist("explain", "leaf-spine").stdout


def test_latency_says_where_the_iteration_goes(artist, tmp_path: Path) -> None:
    divided = "gpt2@tensor=2,pipeline=2,batch=8,microbatches=4"
    shown = artist("latency", "--model", divided, "--placement", "8").stdout
    table = shown.partition("# where the iteration goes\n")[2].splitlines()
    assert table[0].split("\t")[1:] == ["adds, ms", "share", "sends for, ms"]
    parts = [line.split("\t") for line in table[1:] if "\t" in line]
    assert [name for name, *_ in parts] == [
        "compute", "uneven stages", "pipeline bubble", "tensor groups", "stage to stage",
        "data parallel",
    ]  # fmt: skip
    whole = float(re.search(r"iteration_ms\t(\S+)", shown)[1])
    assert sum(float(ms) for _, ms, *_ in parts) == pytest.approx(whole, abs=0.003)
    assert "Computing hides" in shown
    text = "DATA\n1\nlayer -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 100000 5\n"
    (tmp_path / "one.txt").write_text(text)
    of_file = artist("latency", "--workload", "one.txt", "--placement", "8").stdout
    assert "data parallel\t" in of_file

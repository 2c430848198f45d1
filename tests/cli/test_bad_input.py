"""Does bad input end with one clear message, the right exit code and nothing half-written?"""

from __future__ import annotations

from pathlib import Path

import pytest

NATIVE = "job_id,arrival_s,gpus,model,iterations,compute_s,user\n"

FLAGS = [
    (("--policy", "daly"), 2, ["'daly'", "did you mean 'dally'"]),
    (("--fabric", "dally2052"), 2, ["'dally2052'", "did you mean 'dally2025'"]),
    (("--fabric", "h100"), 2, ["'h100'", "did you mean 'hgx-h100'"]),
    (("--set", "lease_s=5"), 2, ["'lease_s'", "did you mean 'policy.lease_s'"]),
    (("--policy", "sjf", "--set", "oder=length"), 2, ["did you mean 'policy.order'"]),
    (("--policy", "FILE.py:X", "--set", "rack=5"), 2, ["did you mean 'racks'"]),
    (("--set", "restart_s=10minutes"), 2, ["restart_s='10minutes'", "expected seconds", "10min"]),
    (("--set", "restart_s=soon"), 2, ["restart_s", "'soon'", "expected seconds, or a time"]),
    (("--set", "first_start_s=soon"), 2, ["first_start_s=soon", "seconds, or restart for as many"]),
    (("--set", "first_start_s=restart"), 2, ["no job of the trace has a cost", "set restart_s"]),
    (("--measure-from", "2weeks"), 2, ["--measure-from '2weeks'", "such as 2h"]),
    (("--fabric", "nowhere.yaml"), 2, ["nowhere.yaml", "cannot be read"]),
    (("--failures", "meta-rcs"), 2, ["'meta-rcs'", "did you mean 'meta-rsc'", "list failures"]),
    (("--failures", "nowhere.yaml"), 2, ["nowhere.yaml", "cannot be read", "give a readable file"]),
    (("--set", "checkpoint.interval_s=0"), 2, ["'checkpoint.interval_s'", "above 0", "got 0"]),
    (("--policy", "las", "--estimates", "exact"), 2, ["only policies easy and conservative take"]),
    (("--policy", "cassini()"), 2, ["write cassini(POLICY)"]),
    (("--set", "restart_s=1:00"), 2, ["'1:00'", "write a time with its unit (10min)"]),
    (("--set", "checkpoint=3"), 2, ["'checkpoint'", "3"]),
    (("--backend", "analytic"), 2, ["did you mean 'analytical'"]),
    (("--fabric", "a100,t4"), 2, ["expected one value; artist compare --vary fabric=a100,t4"]),
    (("--policy", "las,fifo"), 2, ["expected one value; artist compare --policies las,fifo"]),
    (("--racks", "2,4"), 2, ["expected an integer; artist compare --vary racks=2,4 compares"]),
    (("--seed", "2,4"), 2, ["expected an integer\n"]),
    (
        ("--set", "fabric.spine.bandwidth=9"),
        2,
        ["fabric.spine: fabric 'dally2025' has", "network\n"],
    ),
    (("--set", "fabric.rak.bandwidth=9"), 2, ["did you mean 'rack'?"]),
    (
        ("--set", "fabric.bandwidth=9GB/s"),
        2,
        ["fabric.LEVEL.bandwidth, where LEVEL is one of socket,"],
    ),
    (("--failures", "failure.yaml"), 2, ["cannot be read", "; did you mean failures.yaml?"]),
    (("--trace", "sensetime-batch"), 2, ["did you mean 'sensetime-batch-500'"]),
    (("--trace", "nowhere.csv"), 3, ["nowhere.csv"]),
    (("--calibration", "nobody"), 2, ["'nobody'"]),
    (("--racks", "0"), 2, ["--racks is 0, expected at least 1"]),
    (("--set", "racks=x"), 2, ["'racks' is 'x', expected an integer"]),
    (("--set", "uneven=q"), 2, ["'uneven' is 'q', expected 'wider', 'bounded' or 'flat'"]),
    (("--set", "columns=3"), 2, ["'columns' is 3, expected a mapping"]),
    (("--racks", "-3"), 2, ["racks", "-3"]),
    (("--racks", "many"), 2, ["--racks is 'many', expected an integer"]),
    (("--racks", "1.5"), 2, ["--racks is 1.5, expected an integer"]),
    (("--racks", "4", "--racks", "2"), 2, ["--racks is given 2 times; give it once"]),
    (("--cache", "--no-cache"), 2, ["--cache is given 2 times"]),
    (("--format", "jason"), 2, ["--format is 'jason': did you mean 'json'? (known: table, json)"]),
    (("--gpus-per-machine", "0"), 2, ["--gpus-per-machine"]),
    (("--racks", "100000000"), 2, ["100000000", "at most"]),
    (("--jobs", "0"), 2, ["jobs"]),
    (("--jobs", "501"), 2, ["501", "500"]),
    (("--arrivals", "poisson:-1"), 2, ["poisson"]),
    (("--arrivals", "sometimes"), 2, ["sometimes"]),
    (("--seed", "-1"), 2, ["seed"]),
    (("--set", "policy.lease=5"), 2, ["'lease'", "did you mean 'lease_s'"]),
    (("--set", "policy.lease_s=-5"), 2, ["lease_s", "-5"]),
    (("--set", "policy.lease_s=nan"), 2, ["lease_s"]),
    (("--set", "estimates=exact"), 2, ["unknown setting 'estimates' (only policies easy and"]),
    (("--set", "polcy=fifo"), 2, ["polcy", "did you mean 'policy'"]),
    (("--set", "racks"), 2, ["KEY=VALUE"]),
    (("--set", "system.preferred_dataset_splits=0"), 2, ["preferred_dataset_splits", "0"]),
    (("--set", "system.chunks=4"), 2, ["chunks"]),
    (("--polcy", "fifo"), 2, ["--polcy"]),
    (("--racks", "1", "--machines-per-rack", "1"), 3, ["GPUs", "cluster has 8"]),
    (("--out", "/proc/run"), 2, ["/proc/run"]),
]

TRACES = [
    ("empty.csv", "", ["empty"]),
    ("header.csv", NATIVE, ["no jobs"]),
    ("columns.csv", "job_id,arrival_s,gpus\n1,0,1\n", ["model"]),
    ("zero.csv", NATIVE + "a,0,0,vgg11,10,0.1,u\n", ["zero.csv:2", "gpus", "0"]),
    ("negative.csv", NATIVE + "a,0,1,vgg11,10,0.1,u\nb,0,-4,vgg11,1,0.1,u\n", ["negative.csv:3"]),
    ("nan.csv", NATIVE + "a,nan,1,vgg11,10,0.1,u\n", ["nan.csv:2", "arrival_s"]),
    ("twice.csv", NATIVE + "a,0,1,vgg11,10,0.1,u\na,1,1,vgg11,10,0.1,u\n", ["twice.csv:3", "'a'"]),
    ("model.csv", NATIVE + "a,0,1,vgg111,10,0.1,u\n", ["model.csv:2", "did you mean 'vgg11'"]),
    ("cut.json", '[{"job_id": "1", "model": "VGG"', ["cut.json"]),
    ("noise.json", "\x00\x01\x02", ["noise.json"]),
]


@pytest.mark.parametrize(("flags", "code", "words"), FLAGS, ids=lambda value: str(value)[:40])
def test_bad_flags(artist, tmp_path: Path, flags, code: int, words: list[str]) -> None:
    (tmp_path / "failures.yaml").touch()
    _expect(artist("sim", *flags), code, words)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("list", "polices"), "'polices': did you mean 'policies'? (known: policies, models,"),
        (("latency", "--model", "dlrm", "--model", "vgg11"), "--model is given 2 times"),
        (("trace", "synth", "--jobs", "2", "--jobs", "3"), "--jobs is given 2 times"),
        (
            ("trace", "synth", "--jobs", "2", "--gpus", "8", "--out", "t.csv"),
            "has Poisson arrivals at a load; give --load\n",
        ),
        (("compare", "--policies", "las,fifo", "--estimates", "limit"), "only policies easy and"),
        (("compare", "--cluster", "one.yaml"), "one.yaml:3: 'levels.0' is {"),
        (("compare", "--contention", "nope"), "unknown model of contention 'nope'"),
        (("compare", "--workers", "0"), "--workers is 0, expected at least 1"),
        (("compare", "--until", "2"), "--until 2: expected a share between 0 and 1"),
        (("compare", "--until", "decided", "--budget", "1"), "--budget 1: expected at least 8, to"),
        (("compare", "--equivalence", "5"), "--equivalence 5: expected a share from 0 to"),
        (("compare", "--metrics", "jct"), "did you mean 'jct_mean_s'? (closest: jct_mean_s,"),
        (("compare", "--policies", "dally,daly"), "did you mean 'dally'"),
        (("explain", "changes more settings"), "settings' (artist list metrics has all)"),
        (("explain", "makespn"), "did you mean 'makespan"),
        (("explain", "one.yaml"), "one.yaml:3: 'levels' has 1, expected at least 2 of them"),
    ],
)
def test_any_command_refuses_in_one_line_and_before_it_begins(
    artist, tmp_path: Path, command: tuple[str, ...], told: str
) -> None:
    level = "{name: machine, topology: Ring, bandwidth: 1GB/s, latency: 1us, source: me}"
    (tmp_path / "one.yaml").write_text(f"name: one\nsummary: x\nlevels: [{level}]\n")
    ran = artist(*command, code=2)
    assert ran.stdout == ""
    assert ran.stderr.startswith("artist: error: ")
    assert ran.stderr.count("\n") == 1
    assert told in ran.stderr


def test_repeatable_options_may_be_given_twice(artist) -> None:
    several = ("--set", "racks=2", "--set", "jobs=2", "--quiet", "--quiet")
    assert artist("sim", "--trace", "tiny-batch", *several).returncode == 0


@pytest.mark.parametrize(("name", "content", "words"), TRACES, ids=lambda v: str(v)[:12])
def test_bad_traces(artist, tmp_path: Path, name: str, content: str, words: list[str]) -> None:
    (tmp_path / name).write_text(content)
    ran = artist("sim", "--trace", name, "--racks", "1", "--out", "run")
    _expect(ran, 3, words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("racks: 2\npolicy: fifp\n", ["s.yaml:2: unknown policy 'fifp': did you mean 'fifo'"]),
        ("racks: 2\npolcy: fifo\n", ["s.yaml:2", "did you mean 'policy'"]),
        (
            "racks: 1\nlease_s: 60\npolicy: las\n",
            ["s.yaml:2: unknown setting 'lease_s': write policy_options: {lease_s: VALUE}"],
        ),
        (
            "policy: easy\nfabric.rack.latency: 5us\n",
            ["s.yaml:2: unknown setting 'fabric.rack.latency': write fabric_options: {rack: {lat"],
        ),
        ("policy: fifo\nquantum_s: 60\n", ["s.yaml:2: unknown setting 'quantum_s': known: racks"]),
        ("polcy.lease_s: 60\n", ["s.yaml:1: unknown setting 'polcy.lease_s': "]),
        ("policy: fifo\nracks: two\n", ["s.yaml:2", "racks", "'two'"]),
        ("racks: 2\n  policy: [\n", ["s.yaml:", "not valid YAML"]),
        ("- racks\n", ["s.yaml:1", "mapping"]),
        ("", ["s.yaml:1", "mapping"]),
        ("policy: las\ntree: [[4, 0]]\n", ["s.yaml:2: 'tree': a machine", "one holds 0"]),
        ("tree: [4]\n", ["machine", "got 4"]),
        ("name: x\nversion: 1\ngrid: {jobs: [1]}\n", ["s.yaml: this is an experiment", "sweep"]),
        ("name: x\nlevels: [rack, machine]\ntree: {}\n", ["this is a cluster (--cluster FILE)"]),
        ("name: x\nlevels: []\n", ["s.yaml: this is a fabric (--fabric FILE)"]),
        ("tree: [[4]]\nracks: 2\n", ["s.yaml:1", "tree [[4]]", "racks=2", "leave one"]),
    ],
)
def test_bad_scenarios(artist, tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "s.yaml").write_text(content)
    for command in ("sim", "compare"):
        _expect(artist(command, "s.yaml"), 2, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "vgg12", "--placement", "4"), ["did you mean 'vgg1"]),
        (("--model", "vgg11", "--placement", "4;4"), ["'4;4'", "4+4,8/2"]),
        (("--model", "vgg11", "--placement", "0,4"), ["'0,4'", "1 to"]),
        (("--model", "vgg11", "--placement", "4//4"), ["'//'"]),
        (("--model", "vgg11"), ["--placement"]),
        (("--placement", "4,4"), ["--model"]),
        (("--model", "vgg11", "--topology", "Ring", "--npus", "4,2"), ["--npus 2"]),
        (
            ("--model", "vgg11", "--topology", "Star", "--npus", "4", "--bandwidth", "50",
             "--latency", "0"),
            ["'Star'", "Switch"],
        ),
        (("--model", "vgg11", "--placement", "4,4", "--system", "splits=4"), ["'splits=4'"]),
    ],
)  # fmt: skip
def test_bad_latency_questions(artist, arguments, words: list[str]) -> None:
    _expect(artist("latency", *arguments), 2, words)


def _expect(ran, code: int, words: list[str]) -> None:
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    for word in words:
        assert word in ran.stderr


@pytest.mark.parametrize(
    ("option", "remedy"), [("--polcy", "did you mean --policy?"), ("--zzz", "--help lists all")]
)
def test_an_unknown_option_ends_with_one_sentence(artist, option, remedy) -> None:
    ran = artist("sim", option, "las", code=2)
    assert ran.stderr == f"artist: error: no option '{option}': {remedy}\n"

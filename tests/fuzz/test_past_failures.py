"""Broken files that once crashed artist, one test for each: today they end in a named error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from campaign import soon
from kinds import CASES, kinds, run_folder

from artist.errors import ArtistError, TraceError
from artist.io.shipped import resource

KINDS = kinds()
FABRIC = yaml.safe_load(resource("astra_configs", "fabrics", "dally2025.yaml").read_text())
STEP = {"ph": "X", "name": "ProfilerStep#1", "cat": "user_annotation", "ts": 0, "dur": 9}
KERNEL = {"ph": "X", "name": "gemm", "cat": "kernel", "ts": 1, "dur": 2}
RECORDED = "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us\n"


def fabric(**system: object) -> str:
    return json.dumps({**FABRIC, "system": {**FABRIC["system"], **system}})


def level(**settings: object) -> str:
    return json.dumps({**FABRIC, "levels": [*FABRIC["levels"][:-1],
                                            {**FABRIC["levels"][-1], **settings}]})  # fmt: skip


def profile(**settings: object) -> str:
    return json.dumps({"traceEvents": [STEP, {**KERNEL, **settings}]})


def grid(text: str) -> str:
    return "name: e\nversion: 1\n" + text


REFUSED = {
    "a key twice": ("scenario", "racks: 2\nseed: 1\nracks: 4\n", "s.yaml:3: 'racks' is given"),
    "a bomb of aliases": (
        "scenario",
        "policy_options:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
        "more than 2000000 values",
    ),
    "an alias of itself": ("scenario", "tree: &a [*a]\n", "s.yaml:1: an alias inside"),
    "a chain of aliases": (
        "scenario",
        "policy_options:\n  a0: &a0 [x]\n"
        + "".join(f"  a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300)),
        "aliases nest more than 100 deep",
    ),
    "deep nesting": ("scenario", "tree: " + "[" * 5000 + "]" * 5000, "nested more than 100 deep"),
    "five thousand digits": ("scenario", "racks: " + "9" * 5000, "a number of 5000 digits"),
    "hexadecimal digits": ("experiment", grid(f"grid: {{seed: [0x{'f' * 6000}]}}"), "6002 digits"),
    "a tab in a list": ("scenario", "racks:\n\t- 2\n", "(a tab; indent with spaces)"),
    "an int of nothing": ("scenario", "racks: !!int ''\n", "not valid YAML"),
    "a float of nothing": ("scenario", "restart_s: !!float ''\n", "not valid YAML"),
    "no truth": ("scenario", "policy_options: {strict: !!bool x}\n", "not valid YAML"),
    "no day": ("scenario", "policy: !!timestamp x\n", "not valid YAML"),
    "an object": ("scenario", "policy: !!python/object:os.system x\n", "not valid YAML"),
    "four megabytes": ("scenario", "#" * 2**22 + "#\n", "more than 4 MiB"),
    "a long name": ("scenario", f"fabric: {'a' * 3000}\n", "unknown fabric"),
    "a long trace": ("scenario", f"trace: {'a' * 3000}\n", "unknown trace"),
    "a trace of nothing": ("scenario", 'trace: "\\0.csv"\n', "cannot be read"),
    "a terminal's colours": ("scenario", 'policy: "\\e[31m\\n"\n', "unknown policy"),
    "a timer beyond all time": (
        "scenario", "policy: dally-manual\npolicy_options: {machine_timer_s: 1e308}\n",
        "machine_timer_s is 1e+308 s",
    ),
    "an endless timer": (
        "scenario", "policy: dally-manual\npolicy_options: {machine_timer_s: .inf}\n", "finite",
    ),
    "splits without end": ("fabric", fabric(preferred_dataset_splits=2**63), "at most 1000"),
    "a memory that stands still": (
        "fabric", fabric(local_mem_bandwidth_gb_per_s=1e-320), "local_mem_bandwidth",
    ),
    "a link that stands still": (
        "fabric", level(bandwidth_gib_per_s=1e-320), "expected 1 Mbit/s to 1 Pbit/s",
    ),
    "a link to the stars": ("fabric", level(latency_ns=1e308), "latency_ns"),
    "a carriage return": ("recorded", RECORDED.replace(",units", ",\r,units"), "not CSV"),
    "no end of a delay": (
        "cases", CASES.removesuffix(",1\n") + ",1e308\n", "injection_scale is '1e308'"
    ),
    "no end": ("recorded", RECORDED + "a,Ring,N,4,50,500,1,1e308\n", "expected a number from 0"),
    "a tab": ("services", "\t", "no column 'gpu_s'"),
    "threads in a list": ("profile", profile(pid=[1], tid={}, ts=50), "without computation"),
    "arguments of another kind": ("profile", profile(args=5, ts=50), "without computation"),
    "a time of 400 digits": ("profile", profile(ts=10**400), "no time"),
    "brackets": ("profile", '{"traceEvents": ' + "[" * 10**5, "not a profiler trace"),
    "a long setting": ("astra-system", json.dumps({"a" * 9000: 1}), "aa...aa"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_once_crashed_artist_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    kind, text, words = REFUSED[name]
    path = tmp_path / KINDS[kind].name
    path.write_bytes(text.encode())
    with soon(), pytest.raises(ArtistError) as caught:
        KINDS[kind].read(path)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1600


def test_a_run_of_a_trillion_racks_is_refused(tmp_path: Path) -> None:
    manifest = json.loads((run_folder() / "manifest.json").read_text())
    manifest["scenario"]["racks"] = 10**12
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    with soon(), pytest.raises(TraceError, match="64000000000000 GPUs"):
        KINDS["run-manifest"].read(path)


@pytest.mark.parametrize("text", ["\ufeffracks: 1\njobs: 1\n", "racks: 1\r\njobs: 1\r\n"])
def test_what_other_editors_write_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.yaml"
    path.write_bytes((text + "trace: tiny-batch\n").encode())
    KINDS["scenario"].read(path)

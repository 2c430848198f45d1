"""Are absurd sizes refused in one sentence that names the limit, before memory is used up?"""

from __future__ import annotations

import json
import resource

import pytest

BILLION = "1000000000"
LIMIT_MIB = 600
LATENCY = ("latency", "--model", "resnet50", "--topology", "Ring", "--bandwidth", "50",
           "--latency", "0", "--npus")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("sim", "--racks", BILLION), 2, "at most 4000000"),
        (("sim", "--racks", "1", "--gpus-per-machine", BILLION), 2, "at most 4000000"),
        (("sim", "--set", f"tree=[[[{BILLION}]]]"), 2, "at most 4000000"),
        (("sim", "--jobs", BILLION), 2, "500 jobs"),
        (
            ("sim", "--set", "fabric.rack.routing=static", "--set", "fabric.rack.links=1000000",
             "--set", "fabric.rack.oversubscription=2"),
            2, "1000000 links with routing static, expected at most 1024",
        ),
        (("sim", "--set", "policy.lease_s=1e300"), 2, "at most 4e+09"),
        (("sim", "--set", "policy.lease_s=1.0e-6"), 2, "expected at least 0.001"),
        (("sim", "--policy", "gandiva", "--set", "policy.quantum_s=1.0e-6"), 2, "at least 0.001"),
        (("sim", "--policy", "themis", "--set", "policy.period_s=1.0e-6"), 2, "at least 0.001"),
        (
            ("sim", "--policy", "fifo", "--set", f"system.endpoint_delay_ns={BILLION}000"),
            4, "endpoint_delay_ns is 1000000000000, expected at most 1000000000",
        ),
        (("sim", "--trace", "long.csv", "--backend", "none", "--racks", "1", "--policy", "fifo"),
         3, "where the clock ends"),
        (("sim", "--trace", "wide.csv"), 3, "wide.csv:1: 100000 columns, expected at most 1000"),
        (("sim", "--trace", "wide.json"), 3, "wide.json: 2000 columns, expected at most 1000"),
        (("sim", "--seed", BILLION * 3), 2, "9223372036854775808"),
        (("latency", "--model", "resnet50", "--placement", BILLION), 2, "1 to 4000000"),
        ((*LATENCY, BILLION), 4, "at most 4000000"),
        ((*LATENCY, "8", "--system", f"preferred_dataset_splits={BILLION}"), 4, "at most 1000"),
        (("compare", "--policies", "fifo,las", "--permutations", BILLION), 2, "at most 100000"),
        (("sweep", "e.yaml", "--out", "out"), 2, "at most 100000"),
        (
            ("trace", "synth", "--jobs", BILLION * 2, "--load", "1", "--gpus", "8", "--out", "t"),
            2, "at most 100,000,000 jobs",
        ),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_refused_before_memory_is_gone(start, tmp_path, command, code: int, words: str) -> None:
    numbers = ", ".join(map(str, range(400)))
    (tmp_path / "e.yaml").write_text(
        f"name: e\nversion: 1\ngrid: {{seed: [{numbers}], permutation: [{numbers}]}}\n"
    )
    (tmp_path / "wide.csv").write_text(",".join(f"c{n}" for n in range(100_000)) + "\n")
    (tmp_path / "wide.json").write_text(json.dumps([{f"c{n}": 1} for n in range(2000)]))
    (tmp_path / "long.csv").write_text(
        "job_id,submit_time,num_gpus,duration\n"
        + "".join(f"{name},0,64,4000000000\n" for name in "abc")
    )
    bytes_ = LIMIT_MIB * 2**20
    process = start(
        *command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_))
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert words in errors
    assert "Traceback" not in errors


def test_a_trillion_iterations_are_no_work(start, tmp_path) -> None:
    """Iterations are never counted one by one."""
    (tmp_path / "t.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,8,vgg11,1000000000000,0.001\n"
    )
    process = start("sim", "--trace", "t.csv", "--racks", "1", "--policy", "fifo", "--quiet")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "makespan\t11,589 d" in output


@pytest.mark.slow
def test_memory_that_is_gone_is_named(start) -> None:
    """If the operating system refuses memory first, the command ends with a sentence too."""
    bytes_ = 250 * 2**20
    process = start(
        "sim", "--racks", "62500", "--trace", "tiny-batch", "--policy", "fifo",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_)),
    )  # fmt: skip
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0 or "memory" in errors.lower()
    assert "Traceback" not in errors

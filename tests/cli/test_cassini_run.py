"""CASSINI around a policy from the command line: the same bytes, and what `explain` says."""

from __future__ import annotations

from pathlib import Path

PAIR = """job_id,arrival_s,gpus,model,iterations,compute_s
a,0,3,vgg16@batch=64,500,0.2
b,0,3,vgg16@batch=64,500,0.2
"""


def test_the_same_bytes_whatever_the_hash_seed(artist, tmp_path: Path) -> None:
    (tmp_path / "pair.csv").write_text(PAIR)
    asked = ["sim", "--trace", str(tmp_path / "pair.csv"), "--fabric", "cassini-testbed", "--quiet"]
    asked += ["--racks", "3", "--machines-per-rack", "2", "--gpus-per-machine", "1", "--no-cache"]
    asked += ["--policy", "cassini(las)", "--set", "policy.host.placement=any"]
    written = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        chosen = (*asked, "--contention", "phase", "--out", str(out))
        assert artist(*chosen, PYTHONHASHSEED=seed).returncode == 0
        written.append([(out / f"{x}.parquet").read_bytes() for x in ("placements", "cassini")])
    assert written[0] == written[1]


def test_explain_names_the_options_of_wrapper_and_host(artist) -> None:
    said = artist("explain", "themis-cassini").stdout
    assert "same as themis under none" in said
    assert "policy.candidates" in said
    assert "policy.KEY or policy.host.KEY, those of themis" in said
    assert "those of POLICY" in artist("explain", "cassini").stdout


def test_cassini_under_mean_says_that_it_holds_no_job(artist) -> None:
    told = "no job under contention mean, which does not know when jobs send; --contention phase"
    small = ("--trace", "tiny-batch", "--racks", "1", "--contention", "mean")
    assert f"quota(themis-cassini) holds {told}" in (
        artist("sim", *small, "--policy", "quota(themis-cassini)").stdout
    )
    policies = ("--policies", "fifo,cassini(fifo),cassini(las)", "--permutations", "1")
    compared = artist("compare", *small, *policies).stdout
    assert f"cassini(fifo) and cassini(las) hold {told}" in compared
    assert told not in artist("compare", *small, *policies, "--contention", "none").stdout
    assert "holds no job under mean" in artist("explain", "cassini").stdout

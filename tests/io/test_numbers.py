"""Are numbers what they look like? What Python or YAML reads otherwise is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from artist.cli.options import share_of
from artist.config import Scenario
from artist.errors import ConfigError, TraceError
from artist.io.csv_rows import csv_rows
from artist.io.reading import as_float
from artist.settings import load_scenario
from artist.trace.arrivals import with_arrivals
from artist.trace.read import read_trace
from artist.trace.synthetic.generate import synth, synth_jobs
from artist.units import LATENCY_UNITS, quantity


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("racks: true", "1: 'racks' is True, expected a number"),
        ("restart_s: false", "1: 'restart_s' is False, expected seconds, or a time such as 10min"),
        (
            "policy: fifo\nracks: 1:30",
            "2: '1:30' is not a decimal number; write a time with its unit",
        ),
        (
            "racks: 010",
            "1: '010' is not a decimal number; write it as one, or quote it if it is text",
        ),
        ("restart_s: 1:30.5", "1: '1:30.5' is not a decimal number"),
        ("tree: [[08, 010]]", "1: '010' is not a decimal number"),
    ],
)
def test_a_number_that_yaml_misreads_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "s.yaml").write_text(f"{text}\n")
    with pytest.raises(ConfigError, match=f"s.yaml:{problem}"):
        load_scenario(tmp_path / "s.yaml", {}, ())


def test_other_numbers_and_texts_stay(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("racks: 10\nrestart_s: 0.5\ntrace: '1:30'\nseed: 0\n")
    read = load_scenario(tmp_path / "s.yaml", {}, ())
    assert (read.racks, read.restart_s, read.trace, read.seed) == (10, 0.5, "1:30", 0)
    assert Scenario(policy_options={"strict": True}).policy_options == {"strict": True}
    with pytest.raises(ConfigError, match="'racks' is True, expected a number"):
        Scenario(racks=True)


@pytest.mark.parametrize("cell", ["\u0663", "\uff11", "1_000", True, "\u00bd"])
def test_digits_of_other_scripts_are_no_digits(cell: object) -> None:
    assert math.isnan(as_float(cell))


def test_digits_of_other_scripts_are_refused_in_options() -> None:
    assert quantity("\uff11us", LATENCY_UNITS) is None
    with pytest.raises(ConfigError, match="expected trace, batch or poisson"):
        Scenario(arrivals="poisson:\u0663")
    with pytest.raises(ConfigError, match="expected a share"):
        share_of("--margin", "\u0662%")


def test_a_json_key_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    job = '"job_id": "a", "arrival_s": 0, "gpus": 1, "model": "resnet18", "iterations": 1'
    path = tmp_path / "t.json"
    path.write_text(f'[{{{job}, "compute_s": 1, "gpus": 4}}]')
    with pytest.raises(TraceError, match=r"t.json: .*a key is given twice: 'gpus'"):
        read_trace(path)


def test_arrivals_beyond_the_clock_are_refused() -> None:
    trace = synth(20, 0.9, 8, seed=0)
    with pytest.raises(
        ConfigError, match=r"poisson:1e-06: 20 jobs would arrive over .* at most 4e"
    ):
        with_arrivals(trace, "poisson:1e-06", seed=0)
    assert len(with_arrivals(trace, "poisson:1e-4", seed=0).jobs) == 20


def test_more_jobs_than_any_trace_holds_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 100,000,000 jobs"):
        next(iter(synth_jobs(10**19, 0.9, 8, seed=0)))


def test_a_csv_file_without_a_line_is_empty() -> None:
    with pytest.raises(TraceError, match=r"d\.csv: the file is empty"):
        csv_rows(Path("d.csv"), "")

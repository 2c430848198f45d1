"""Does a log of outages run as the same outages in a file of failures, and say what is wrong?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import artist
from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, TraceError
from artist.failures.model_file import load_failures

LOG = """unit,from,until
machine 3,100,7300
rack 0,90000.5,93600

gpu 17,200,4000
link 3,9e3,1e4
"""
MODEL = """
outages:
  - {kind: machine, unit: 3, at_s: 100, duration_s: 7200}
  - {kind: rack, unit: 0, at_s: 90000.5, duration_s: 3599.5}
  - {kind: gpu, unit: 17, at_s: 200, duration_s: 3800}
  - {kind: link, unit: 3, at_s: 9000, duration_s: 1000}
"""


def simulated(file: Path, **settings: Any) -> artist.Result:
    small = {"racks": 1, "trace": "tiny-poisson", "policy": "fifo", "fabric": "a100"}
    scenario = Scenario(**{**small, **settings}, failures=str(file))
    return artist.simulate(scenario, cache=False, check=True)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_log_is_the_model_with_its_outages(tmp_path: Path) -> None:
    options = {"checkpoint": {"interval_s": 600, "cost_s": 5}}
    log = simulated(written(tmp_path / "log.csv", LOG), **options)
    model = simulated(written(tmp_path / "model.yaml", MODEL), **options)
    assert log.table("outages").equals(model.table("outages"))
    assert log.summary["failures"] == model.summary["failures"] > 0
    assert log.jobs.equals(model.jobs)
    assert log.inputs["failures"].startswith("sha256:")


def test_a_log_in_the_working_directory_needs_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "log.csv", LOG)
    monkeypatch.chdir(tmp_path)
    assert simulated(Path("log.csv")).summary["outages"] > 0


def test_columns_may_stand_in_any_order_and_outages_may_touch(tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", "until,unit,from\n.3,gpu 0,.1\n.7,gpu 0,.3\n.8,gpu 0,.7\n")
    assert len(load_failures(str(log)).model.outages) == 3


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", TraceError, ": the file is empty"),
        ("unit,from,to\n", TraceError, ":1: columns 'unit, from, to', expected unit, from and"),
        ("unit,from,until\nmachine 3,1\n", TraceError, ":2: 2 cells, expected 3"),
        ("unit,from,until\n\n3,1,2\n", TraceError, ":3: unit '3', expected a kind and a number"),
        ("unit,from,until\nmachine -3,1,2\n", TraceError, ":2: unit 'machine -3', expected"),
        ("unit,from,until\nmachine 3,-1,2\n", TraceError, ":2: from '-1', expected seconds since"),
        ("unit,from,until\nmachine 3,1,nan\n", TraceError, ":2: until 'nan', expected seconds"),
        (
            "unit,from,until\nmachine 3,1h,2h\n",
            TraceError,
            ":2: from '1h', expected seconds since the start of the run; write 3600",
        ),
        ("unit,from,until\nmachine 3,5,5\n", TraceError, ":2: until 5 is not after from 5; corr"),
        ("unit,from,until\nmachine 3,2024-01-01,9\n", TraceError, ":2: from '2024-01-01', expec"),
        (
            "unit,from,until\nmachine 0,1,2\nmachine 8,1,2\n",
            ConfigError,
            ":3: an outage of machine 8, but the cluster has 8 (numbered from 0); correct unit",
        ),
        ("unit,from,until\nmachnie 0,1,2\n", ConfigError, ":2: no 'machnie' in this cluster (did"),
        (
            "unit,from,until\ngpu 0,9,12\ngpu 0,1,9.5\n",
            ConfigError,
            ":2: gpu 0 leaves service at 9 s, but is away from 1 s to 9.5 s; join the two outages",
        ),
    ],
)
def test_a_bad_log_ends_in_one_sentence_with_line_value_and_remedy(
    text: str, error: type[ArtistError], words: str, tmp_path: Path
) -> None:
    log = written(tmp_path / "log.csv", text)
    with pytest.raises(error, match=r"^[^\n]*$") as caught:
        simulated(log)
    assert f"{log}{words}" in str(caught.value)


def test_a_log_that_is_not_there_is_named() -> None:
    with pytest.raises(TraceError, match=r"^nowhere\.csv: cannot be read"):
        simulated(Path("nowhere.csv"))

"""Does a report draw what `--across` and `--assumptions` found?"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from artist.errors import ConfigError
from artist.experiments.experiment import Experiment
from artist.experiments.sweep import sweep
from artist.report.figures_across_settings import of_worlds
from artist.report.grouping import Study, group
from artist.report.page import page
from artist.report.reader import read_runs, read_worlds


def point(world: str, ratio: float | None, low: float | None, high: float | None) -> dict:
    return {"world": world, "ratio": ratio, "low": low, "high": high, "verdict": "less"}


TOLD = {
    "setting": "policy",
    "baseline": "fifo",
    "design": "8 permutations",
    "not_tried": ["t4"],
    "differences": [
        {
            "metric": "jct_mean_s",
            "variant": "las",
            "worlds": [point("as given", 0.9, 0.85, 0.95), point("rings=one", 0.5, None, None)],
        },
        {
            "metric": "jct_mean_s",
            "variant": "sjf",
            "worlds": [point("rings=one", 2.0, 1.5, 2.5), point("as given", None, None, None)],
        },
    ],
}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    out = tmp_path / "out"
    base = {"trace": "tiny-batch", "backend": "none", "racks": 1}
    runs = Experiment(name="tiny", version=1, base=base, grid={"policy": ["fifo", "las"]})
    sweep(runs, out, [], workers=1)
    (out / "decides.json").write_text(json.dumps(TOLD))
    return replace(group(read_runs([out])), worlds=read_worlds([out]))


def test_each_variant_has_its_interval_in_each_world(study: Study) -> None:
    (figure,) = of_worlds(study)
    assert figure.categories == ["as given", "rings=one"]
    las, sjf = figure.series
    assert (las.name, las.y, las.low[0], las.high[0]) == ("las", [90, 50], 85, 95)
    assert math.isnan(las.low[1])
    assert math.isnan(sjf.y[0])
    assert (sjf.y[1], sjf.low[1], sjf.high[1]) == (200, 150, 250)
    assert "8 permutations" in figure.note
    assert "Not tried: t4." in figure.note
    assert b"Where JCT mean differs" in page(study)


def test_a_policy_has_its_colour_of_the_page_and_settings_are_numbered(study: Study) -> None:
    (figure,) = of_worlds(study)
    assert [one.tone for one in figure.series] == ["s1", "s2"]  # no run has the policy `sjf`
    (figure,) = of_worlds(replace(study, policies=("fifo", "sjf", "las")))
    assert {one.name: one.tone for one in figure.series} == {"las": "s2", "sjf": "s1"}


def test_other_runs_have_no_such_figure(study: Study) -> None:
    assert not list(of_worlds(replace(study, worlds=())))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "decides.json").write_text(json.dumps({**TOLD, "design": 3}))
    with pytest.raises(ConfigError, match=r"decides\.json: "):
        read_worlds([tmp_path])

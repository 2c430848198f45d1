"""Do the accounts of tenants and priorities say what the rows say?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, TraceError
from artist.report.figures_by_group import of_tenants
from artist.report.grouping import group
from artist.report.reader import read_runs
from artist.results.run_directory import write_run
from artist.results.terms import glossary
from artist.results.terms.columns import TABLES
from artist.run import simulate

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,tenant,priority"
JOBS = [
    "a,0,8,resnet50,600,1,ads,3",
    "b,0,8,resnet50,600,1,ads,3",
    "c,60,8,resnet50,600,1,web,",
    "d,120,4,resnet50,60,1,,1",
]


def scenario(folder: Path, *rows: str, **settings: object) -> Scenario:
    path = folder / "teams.csv"
    path.write_text("\n".join([HEADER, *(rows or JOBS)]) + "\n")
    fields = {
        "trace": str(path), "racks": 1, "machines_per_rack": 2, "backend": "none", **settings,
    }  # fmt: skip
    return Scenario.model_validate(fields)


def test_use_is_what_jobs_held(tmp_path: Path) -> None:
    result = simulate(scenario(tmp_path, tenants={"ads": 8, "web": 4}, policy="fifo"))
    tenants, use = result.tables["tenants"], result.tables["tenant_use"]
    assert list(tenants["tenant"]) == ["ads", "web"]
    assert list(tenants["jobs"]) == [2, 1]
    assert tenants["used_gpu_h"] == pytest.approx([2 * 8 * 600 / 3600, 8 * 600 / 3600])
    assert list(tenants["entitled_share"]) == [0.5, 0.25]
    length_h = (np.asarray(use["end_s"]) - np.asarray(use["start_s"])) / 3600
    names = np.array(use["tenant"])
    for name, gpu_h in zip(("ads", "web"), tenants["used_gpu_h"], strict=True):
        own = names == name
        total = float((np.asarray(use["gpus_held_mean"])[own] * length_h[own]).sum())
        assert total == pytest.approx(gpu_h)


def test_waits_by_priority(tmp_path: Path) -> None:
    result = simulate(scenario(tmp_path, policy="fifo"))
    rows = result.tables["priorities"]
    assert list(rows["priority"]) == [1, 3, 0]
    assert list(rows["jobs"]) == [1, 2, 1]
    assert list(rows["queue_delay_mean_s"]) == [480.0, 0.0, 540.0]
    assert result.summary["queue_delay_urgent_mean_s"] == 160.0
    assert list(result.tables["jobs"]["tenant"]) == ["ads", "ads", "web", ""]


@pytest.mark.parametrize(
    ("window", "urgent_s"),
    [
        ({"measure_from_s": 120}, 480.0),
        ({"measure_until_s": 120}, 0.0),
        ({"measure_from_s": 60, "measure_until_s": 120}, None),
    ],
)
def test_urgent_waits_are_of_the_jobs_of_the_window(
    tmp_path: Path, window: dict[str, float], urgent_s: float | None
) -> None:
    """Of the urgent jobs, a and b arrive at 0 s and wait for nothing, d arrives at 120 s."""
    result = simulate(scenario(tmp_path, policy="fifo", **window))
    for name in ("mean", "p95"):
        assert result.summary.get(f"queue_delay_urgent_{name}_s") == urgent_s


def test_runs_without_tenants_have_no_accounts(tmp_path: Path) -> None:
    rows = [row.rsplit(",", 2)[0] + ",," for row in JOBS]
    result = simulate(scenario(tmp_path, *rows, policy="fifo"))
    assert not {"tenants", "tenant_use", "priorities"} & set(result.tables)
    assert "tenant" not in result.tables["jobs"]
    assert "tenants" not in result.summary


def test_every_column_is_explained(tmp_path: Path) -> None:
    rows = ["a,0,16,resnet50,600,1,ads,1", "b,10,16,resnet50,60,1,web,1"]
    result = simulate(scenario(tmp_path, *rows, policy="mast", tenants={"ads": 16, "web": 16}))
    for name in ("tenants", "tenant_use", "priorities", "queue", "passes"):
        assert list(result.tables[name]) == [term.name for term in TABLES[name]]
    assert list(
        zip(*(result.tables["queue"][x] for x in ("job", "job_id", "tenant")), strict=True)
    ) == [
        (0, "a", "ads"),
        (1, "b", "web"),
    ]
    assert list(result.tables["jobs"])[-2:] == ["tenant", "priority"]
    assert all(glossary.find(key) for key in result.summary if "tenant" in key or "urgent" in key)


def test_late_share_is_of_waits_within_quota(tmp_path: Path) -> None:
    rows = ["a,0,16,resnet50,600,1,ads,1", "b,10,16,resnet50,60,1,web,1"]
    tenants = {"ads": 16, "web": 16}
    result = simulate(scenario(tmp_path, *rows, policy="mast", tenants=tenants))
    assert result.summary["late_share"] == 0.5  # b waits 590 s
    patient = {"slo_s": 600}
    again = scenario(tmp_path, *rows, policy="mast", tenants=tenants, policy_options=patient)
    assert simulate(again).summary["late_share"] == 0.0


@pytest.mark.parametrize(
    ("tenants", "error", "words"),
    [
        ({"adz": 8, "web": 8}, TraceError, "teams.csv:2: job 'a' is of tenant 'ads'"),
        ({"ads": 17, "web": 8}, ConfigError, "quota of 'ads' is 17 GPUs, but the cluster has 16"),
        ("absent.yaml", ConfigError, "absent.yaml"),
    ],
)
def test_bad_tenants_are_refused_in_a_sentence(
    tmp_path: Path, tenants: object, error: type[ArtistError], words: str
) -> None:
    with pytest.raises(error) as caught:
        simulate(scenario(tmp_path, tenants=tenants))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_report_draws_them(tmp_path: Path) -> None:
    result = simulate(scenario(tmp_path, tenants={"ads": 8, "web": 4}, policy="mast"))
    write_run(result, tmp_path / "run", ["artist", "sim"])
    study = group(read_runs([tmp_path / "run"]))
    waits, use = of_tenants(study, study.settings[0])
    assert list(waits.categories) == ["1", "3", "none"]
    assert [series.name for series in use.series] == ["ads", "web"]
    assert max(use.series[0].y) == pytest.approx(200.0)  # both jobs, of a quota of one


@pytest.mark.parametrize("policy", ["quota(fifo)", "mast"])
def test_placements_record_the_class_with_which_a_job_got_its_gpus(
    policy: str, tmp_path: Path
) -> None:
    """Of the quota of 8 GPUs a takes all, so b is above it; web has 4, and d has no tenant."""
    result = simulate(scenario(tmp_path, tenants={"ads": 8, "web": 4}, policy=policy))
    placements = result.tables["placements"]
    classes: dict[str, set[int]] = {}
    for name, number in zip(placements["job_id"], placements["class"], strict=True):
        classes.setdefault(name, set()).add(int(number))
    assert classes == {"a": {3}, "b": {9}, "c": {9}, "d": {9}}
    assert "starts_by_class" not in result.tables
    run = write_run(result, tmp_path / "run", ["test"])
    assert read_runs([tmp_path / "run"]) and run is None


def test_a_job_that_goes_on_at_another_speed_keeps_its_class() -> None:
    from types import SimpleNamespace

    from artist.results.tenant_tables import class_column

    rows = [(0, 1), (5, 0), (7, 1), (7, 0), (9, 1)]
    placements = [SimpleNamespace(start=start, handle=handle) for start, handle in rows]
    starts = {"tick": [0, 5, 9], "job": [1, 0, 1], "class": [9, 2, 3]}
    column = class_column(SimpleNamespace(placements=placements), starts)["class"]  # type: ignore[arg-type]
    assert list(column) == [9, 2, 9, 2, 3]
    assert class_column(SimpleNamespace(placements=placements), {}) == {}  # type: ignore[arg-type]

"""Do other links change the communication of jobs with known models, and nothing else?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recordings import SLURM, needs_slurm
from test_slurm_replay import SACCT
from test_slurm_whatif import whole_folder
from typer.testing import CliRunner

from artist.cli.main import application
from artist.cli.whatif_text import answer, page
from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.recorded.other_links import OtherLinks
from artist.experiments.recorded.whatif import RecordedWhatIf, what_if
from artist.run import build_latency

BERT = {"gpus:16": "bert-large"}
LONG = SACCT.replace("00:01:00|2", "01:00:00|2")


def found(path: Path, *changes: str, sacct: str = SACCT, **more: object) -> RecordedWhatIf:
    whole_folder(path)
    (path / "sacct.txt").write_text(sacct)
    given = {"fabric": "a100", "models": BERT, "keep_names": True, **more}
    return what_if(path, path / "inputs", changes, **given)  # type: ignore[arg-type]


def links_of(one: RecordedWhatIf) -> OtherLinks:
    links = one.outcomes[0].links
    assert links is not None
    return links


def comm_ratio(fabric: str, model: str = "bert-large@gpu=a100") -> float:
    """On two machines, eight GPUs each, that the outermost level joins: Slurm names no racks."""
    latency = build_latency(Scenario(), load_fabric(fabric))
    return latency.estimate(model, ((8,), (8,))).comm_ratio


def test_a_run_is_its_computing_and_its_communication_on_the_other_links(tmp_path: Path) -> None:
    one = found(tmp_path, "fabric=t4", sacct=LONG)
    run_s = 50 / (1 + comm_ratio("a100")) * (1 + comm_ratio("t4"))
    assert run_s > 100
    # The second job has no model.
    assert links_of(one).stretch == {"1": pytest.approx(run_s / 50)}
    jobs = one.outcomes[0].results[0].tables["jobs"]
    ran_s = np.asarray(jobs["finish_s"]) - np.asarray(jobs["start_s"])
    assert sorted(ran_s) == pytest.approx([40, run_s])


@pytest.mark.parametrize("change", ["fabric=a100", "fabric.network.bandwidth=x1"])
def test_the_same_links_change_nothing_at_all(tmp_path: Path, change: str) -> None:
    one = found(tmp_path, change, phases=2)
    assert links_of(one).stretch == {"1": 1.0}
    assert np.array_equal(one.present.waits_s, one.outcomes[0].waits_s)
    assert one.gpu_hours(one.present) == one.gpu_hours(one.outcomes[0])


def test_a_job_behind_one_that_communicates_less_waits_less(tmp_path: Path) -> None:
    one = found(
        tmp_path, "fabric=a100", "fabric.network.bandwidth=x0.5",
        fabric="t4", sacct=LONG,
    )  # fmt: skip
    fast, slow = (x.waits_s[0, 1] for x in one.outcomes)
    assert fast < one.present.waits_s[0, 1] < slow


def test_no_job_runs_longer_than_its_limit(tmp_path: Path) -> None:
    links = links_of(found(tmp_path, "fabric.network.bandwidth=x0.01"))
    assert links.stretch == {"1": 60 / 50}


def test_a_job_that_its_limit_stopped_keeps_its_run_time(tmp_path: Path) -> None:
    log = SACCT.replace("COMPLETED|gres/gpu=16", "TIMEOUT|gres/gpu=16")
    for change in ("x0.01", "x4"):
        links = links_of(found(tmp_path, f"fabric.network.bandwidth={change}", sacct=log))
        assert links.stretch == {"1": 1.0}


def test_the_share_of_gpu_hours_with_a_model_is_stated(tmp_path: Path) -> None:
    one = found(tmp_path, "fabric.network.bandwidth=x0.01")
    known = 16 * 50 / (16 * 50 + 8 * 40)
    assert (links_of(one).known, links_of(one).change) == pytest.approx((known, 0.2))
    said = (
        "fabric.network.bandwidth=x0.01: models are known of jobs with 71 % of the GPU-hours, "
        "which take 20 % more; all others keep their run times. 1 job would run into time limits "
        "and be lost."
    )
    assert said in answer(one)
    assert said in page(one, "slurm")
    assert "a100 with network bandwidth" in one.assumed[1]


def test_gpu_hours_are_those_of_the_same_work_at_present(tmp_path: Path) -> None:
    one = found(tmp_path, "fabric.network.bandwidth=x0.01", sacct=LONG)
    present, changed = (one_of.gpu_hours(1e6) for one_of in (one.present, one.outcomes[0]))
    assert changed == pytest.approx(present)


def test_the_work_of_a_job_that_runs_into_its_limit_is_lost(tmp_path: Path) -> None:
    one = found(tmp_path, "fabric.network.bandwidth=x0.01")
    assert links_of(one).stopped == {"1"}
    assert one.outcomes[0].gpu_hours(1e6) == pytest.approx((8 * 40 / 3600, 16 * 60 / 3600))


@pytest.mark.parametrize(
    ("models", "known"),
    [
        ({"account:vision": "bert-large"}, {"1", "2"}),
        ({"account:visio*": "bert-large"}, {"1", "2"}),
        ({"gpus:8": "bert-large"}, {"2"}),
        ({"train-*": "bert-large"}, {"1"}),
        ({"train-*": "bert-large", "gpus:8": "vgg16"}, {"1", "2"}),
    ],
)
def test_models_are_known_by_name_account_or_size(
    tmp_path: Path, models: dict[str, str], known: set[str]
) -> None:
    head, first, _, second = SACCT.splitlines()
    log = "".join(f"{line}\n" for line in (f"{head}|JobName", f"{first}|train-7", f"{second}|x"))
    assert {*links_of(found(tmp_path, "fabric=t4", sacct=log, models=models)).stretch} == known


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        ("fabric=t4", {"models": {}}, r"cannot be judged, since the models of all 2 jobs are.*"
         r"--models 'account:NAME=MODEL'"),
        ("fabric=t4", {"models": {"gpus:4": "vgg16"}}, "cannot be judged, since the models"),
        ("fabric=t4", {"fabric": None}, "on which links jobs took.*--fabric"),
        ("fabric=t5", {}, "did you mean 't4'"),
        ("fabric.rakc.bandwidth=x2", {}, "rakc"),
        ("fabric=t4", {"fabric": "a10"}, "a10.*did you mean 'a100'"),
        ("fabric=t4", {"models": {"gpus:16": "brt-large"}}, "--models.*bert-large"),
        ("contention=fluid", {}, "is not part of a cluster"),
    ],
)  # fmt: skip
def test_changes_that_cannot_be_judged_are_refused_with_a_remedy(
    tmp_path: Path, change: str, more: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        found(tmp_path, change, **more)
    assert "\n" not in str(caught.value)


def test_the_names_with_most_gpu_hours_are_offered(tmp_path: Path) -> None:
    head, first, _, second = SACCT.splitlines()
    log = "".join(f"{line}\n" for line in (f"{head}|JobName", f"{second}|x", f"{first}|train-7"))
    with pytest.raises(ConfigError, match=r"e\.g\. --models 'train-\*=MODEL,x=MODEL'"):
        found(tmp_path, "fabric=t4", sacct=log, models={})


def test_a_job_on_a_machine_that_is_gone_counts_as_unknown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be judged"):
        found(tmp_path, "fabric=t4", sacct=SACCT.replace("g[1-2]", "g[1,9]"))


def test_another_policy_and_other_links_together(tmp_path: Path) -> None:
    one = found(tmp_path, "policy=fifo fabric.network.bandwidth=x0.01")
    jobs = one.outcomes[0].results[0].tables["jobs"]
    assert np.asarray(jobs["finish_s"]).tolist() == pytest.approx([60, 100], abs=1)


def test_the_command(tmp_path: Path) -> None:
    whole_folder(tmp_path)
    arguments = ["whatif", str(tmp_path), "--change", "fabric=hgx-h100", "--fabric", "a100",
                 "--models", "account:vision=bert-large", "--phases", "1"]  # fmt: skip
    answered = CliRunner().invoke(
        application(["whatif", "doctor"]), [*arguments, "--format", "json"]
    )
    assert answered.exit_code == 0, answered.output
    (change,) = json.loads(answered.stdout)["changes"]
    assert change["links"]["share_of_gpu_hours_known"] == 1.0


@needs_slurm
def test_a_slower_network_is_felt_in_a_recorded_session(tmp_path: Path) -> None:
    one = what_if(
        SLURM / "topology", tmp_path, ["fabric.network.bandwidth=x0.1"],
        fabric="a100", models={"*": "bert-large"},
    )  # fmt: skip
    links = links_of(one)
    assert links.known == 1.0
    assert links.change > 0

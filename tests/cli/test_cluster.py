"""Do commands accept cluster files, with the same results as flags give?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import artist as library
from artist.errors import ConfigError
from artist.experiments.experiment import Experiment
from artist.experiments.sweep import sweep

AS_FLAGS = """\
name: mine
summary: as --racks 2 --machines-per-rack 3 --gpus-per-machine 4
levels: [rack, machine]
tree: {count: 2, machine: {count: 3, gpus: 4}}
"""
FLAGS = ("--racks", "2", "--machines-per-rack", "3", "--gpus-per-machine", "4")
SIM = ("sim", "--trace", "tiny-poisson", "--quiet")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.yaml").write_text(AS_FLAGS)
    return "mine.yaml"


def test_a_file_and_flags_for_one_cluster_give_the_same_bytes(
    artist, mine: str, tmp_path: Path
) -> None:
    artist(*SIM, *FLAGS, "--out", "flags")
    artist(*SIM, "--cluster", mine, "--out", "file")
    written = sorted(path.name for path in (tmp_path / "flags").glob("*.parquet"))
    assert written
    for name in written:
        assert (tmp_path / "flags" / name).read_bytes() == (tmp_path / "file" / name).read_bytes()
    one, other = (
        json.loads((tmp_path / x / "summary.json").read_text()) for x in ("flags", "file")
    )
    assert {**one, "wall_s": 0} == {**other, "wall_s": 0}


def test_the_manifest_names_the_file_and_its_digest_and_reads_back(
    artist, mine: str, tmp_path: Path
) -> None:
    artist(*SIM, "--cluster", mine, "--out", "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    scenario = manifest["scenario"]
    assert scenario["cluster"] == mine
    assert not {"racks", "machines_per_rack", "gpus_per_machine", "tree", "fabric"} & set(scenario)
    assert manifest["inputs"]["cluster"].startswith("sha256:")
    assert library.Scenario.model_validate(scenario).model_dump() == scenario


@pytest.mark.parametrize("also", [("--racks", "2"), ("--set", "tree=[[[4, 4]]]")])
def test_two_descriptions_of_a_cluster_are_refused(
    artist, mine: str, also: tuple[str, ...]
) -> None:
    refused = artist(*SIM, "--cluster", mine, *also, code=2)
    assert "describes the whole cluster and contradicts" in refused.stderr


def test_show_prints_the_tree_and_its_links(artist) -> None:
    shown = artist("cluster", "show", "three-regions").stdout
    assert "|- region east: 96 GPUs, storage 400 TB" in shown
    assert "network\t400 Gbit/s\t30 ms\tregion" in shown  # as in the file


def test_show_without_a_file_is_about_the_flags(artist) -> None:
    shown = artist("cluster", "show", *FLAGS).stdout
    assert "`- 2 racks of 12 GPUs\n   `- 3 machines of 4 GPUs" in shown


def test_show_as_json_counts_the_units(artist) -> None:
    facts = json.loads(artist("cluster", "show", "mast-5-regions", "--format", "json").stdout)
    assert facts["units"] == {
        "region": 5, "datacenter": 20, "cluster": 100, "rack": 2500, "machine": 12500
    }  # fmt: skip
    assert facts["gpus"] == 100_000
    assert facts["tree"]["inside"][0]["count"] == 5


@pytest.mark.parametrize("name", ["three-regions", "mast-5-regions"])
def test_the_picture_needs_nothing_else_and_shares_the_width_by_gpus(
    artist, tmp_path: Path, name: str
) -> None:
    artist("cluster", "show", name, "--plot", "drawn.svg")
    text = (tmp_path / "drawn.svg").read_text()
    assert "href" not in text
    assert len(text) < 60_000
    whole, *boxes = [float(width) for width in re.findall(r'<g>.*<rect .* width="([^"]+)"', text)]
    regions = {"three-regions": 3, "mast-5-regions": 5}[name]
    widths = boxes[:regions]
    assert sum(widths) == pytest.approx(whole, abs=1.0 * regions)
    if name == "three-regions":
        assert widths[0] == pytest.approx(3 * widths[2], abs=2)


def test_a_picture_of_another_kind_is_refused(artist) -> None:
    refused = artist("cluster", "show", "--plot", "drawn.png", code=2)
    assert "expected a name that ends in .svg" in refused.stderr


def test_sweeps_vary_the_cluster_and_a_changed_file_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(AS_FLAGS)
    experiment = Experiment(
        name="clusters",
        version=1,
        base={"trace": "tiny-poisson"},
        grid={"cluster": ["mine.yaml", "three-regions"]},
    )
    assert sweep(experiment, tmp_path / "out", command=[], workers=1).total == 2
    mine.write_text(AS_FLAGS.replace("count: 2", "count: 3"))
    with pytest.raises(ConfigError, match=r"read another cluster mine\.yaml than there is now"):
        sweep(experiment, tmp_path / "out", command=[], workers=1, resume=True)

"""Are the files for ASTRA-sim exact, repeatable, and free of keys that it would ignore?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rendered_queries import GOLDEN, tiny, with_phase

from artist.astra.files import render as render_module
from artist.astra.files.dialects import DIALECTS, links
from artist.astra.files.render import render
from artist.errors import BackendSettingError, ConfigError
from artist.estimates.query import Dimension, LatencyQuery, Topology
from artist.estimates.recorded import dimension_type
from artist.workload.astra_text import read_text, to_text
from artist.workload.layers import Parallelism, Phase

ALL = [(name, file) for name, spoken in DIALECTS.items() for file in spoken.files]
TRACES = [("astra2", "workload.0.et")]


@pytest.mark.parametrize(("dialect", "file"), [*ALL, *TRACES])
def test_golden_file(dialect: str, file: str, tmp_path: Path) -> None:
    render(tiny(2, 3, 2, passes=2), tmp_path, dialect)
    expected = GOLDEN / dialect / file
    if os.environ.get("ARTIST_UPDATE_GOLDEN"):
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_bytes((tmp_path / file).read_bytes())
    assert (tmp_path / file).read_bytes() == expected.read_bytes()


def test_every_rank_has_the_same_trace(tmp_path: Path) -> None:
    rendered = render(tiny(4, 5), tmp_path)
    traces = sorted(tmp_path.glob("workload.*.et"))
    assert rendered.npus == len(traces) == 20
    assert len({path.read_bytes() for path in traces}) == 1


def test_traces_of_an_earlier_query_are_removed(tmp_path: Path) -> None:
    render(tiny(4, 5), tmp_path)
    render(tiny(2, 2), tmp_path)
    assert len(list(tmp_path.glob("workload.*.et"))) == 4


def test_traces_are_copied_where_links_are_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    render(tiny(2, 2), tmp_path)
    assert len(list(tmp_path.glob("workload.*.et"))) == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_same_query_same_bytes(dialect: str, tmp_path: Path) -> None:
    rendered = []
    for name in ("a", "b"):
        render(tiny(), tmp_path / name, dialect)
        files = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        rendered.append({path.name: path.read_bytes() for path in files})
    assert rendered[0] == rendered[1]


def test_rendered_workload_reads_back(tmp_path: Path) -> None:
    query = tiny()
    render(query, tmp_path)
    assert (tmp_path / "workload.txt").read_text() == to_text(query.workload)
    assert read_text(tmp_path / "workload.txt").layers == query.workload.layers


def test_uninitialised_keys_are_always_written(tmp_path: Path) -> None:
    render(tiny(), tmp_path)
    system = json.loads((tmp_path / "system.json").read_text())
    for key in ("collective-optimization", "scheduling-policy", "preferred-dataset-splits"):
        assert key in system


def test_queues_are_a_flag(tmp_path: Path) -> None:
    query = tiny()
    system = replace(query.system, queues_per_dimension=3)
    rendered = render(replace(query, system=system), tmp_path)
    assert "--num-queues-per-dim=3" in rendered.arguments


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fractions_that_the_dialect_would_cut_are_refused(dialect: str, tmp_path: Path) -> None:
    fraction_us = {"astra2": 1.5, "astra1": 1.0005}[dialect]
    with pytest.raises(BackendSettingError, match="conv1"):
        render(with_phase(tiny(), Phase(fraction_us)), tmp_path, dialect)
    assert not list(tmp_path.iterdir())


def test_astra1_has_nanoseconds(tmp_path: Path) -> None:
    render(with_phase(tiny(), Phase(1.005)), tmp_path, "astra1")
    assert "conv1\t-1\t1005\t" in (tmp_path / "workload.txt").read_text()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"scheduling_policy": "EXPLICIT"}, "scheduling_policy"),
        ({"all_reduce": ("ring",)}, "all_reduce"),
    ],
)
def test_astra1_refuses_what_it_cannot_read(
    change: dict[str, object], word: str, tmp_path: Path
) -> None:
    query = tiny()
    system = replace(query.system, **change)  # type: ignore[arg-type]
    with pytest.raises(BackendSettingError, match=word):
        render(replace(query, system=system), tmp_path, "astra1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_workloads_that_the_text_format_cannot_hold(dialect: str, tmp_path: Path) -> None:
    query = tiny()
    workload = replace(query.workload, parallelism=Parallelism.FSDP)
    with pytest.raises(BackendSettingError, match="FSDP"):
        render(replace(query, workload=workload), tmp_path, dialect)


def test_astra2_refuses_what_crashes(tmp_path: Path) -> None:
    query = tiny()
    system = replace(query.system, preferred_dataset_splits=0)
    with pytest.raises(BackendSettingError, match="preferred_dataset_splits"):
        render(replace(query, system=system), tmp_path)


def test_layer_name_with_a_space_is_refused(tmp_path: Path) -> None:
    query = tiny()
    first, *others = query.workload.layers
    layers = (replace(first, name="conv 1"), *others)
    with pytest.raises(ConfigError, match="'conv 1'"):
        render(replace(query, workload=replace(query.workload, layers=layers)), tmp_path)


def test_an_unknown_dialect_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'astra2'"):
        render(tiny(), tmp_path, "astra3")


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        render(tiny(), tmp_path / "taken")


class TestTemplates:
    """A template is data that somebody may edit: mistakes in it are found, not simulated."""

    @pytest.fixture
    def templates(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        folder = tmp_path / "templates" / "astra2"
        folder.mkdir(parents=True)
        original = render_module.resource("templates", "astra2")
        for path in original.iterdir():
            (folder / path.name).write_text(path.read_text())
        monkeypatch.setattr(render_module, "resource", lambda *parts: tmp_path.joinpath(*parts))
        render_module._template.cache_clear()
        yield folder
        render_module._template.cache_clear()

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def test_misspelt_key(self, templates: Path, tmp_path: Path) -> None:
        self.edit(templates / "system.json.j2", '"endpoint-delay"', '"enpoint-delay"')
        with pytest.raises(ConfigError, match="did you mean 'endpoint-delay'"):
            render(tiny(), tmp_path / "out")

    def test_missing_key(self, templates: Path, tmp_path: Path) -> None:
        self.edit(templates / "network.yml.j2", "latency:", "# ")
        with pytest.raises(ConfigError, match="latency"):
            render(tiny(), tmp_path / "out")

    def test_undefined_name(self, templates: Path, tmp_path: Path) -> None:
        self.edit(templates / "system.json.j2", "endpoint_delay_ns", "endpoint_delay")
        with pytest.raises(ConfigError, match="endpoint_delay"):
            render(tiny(), tmp_path / "out")

    def test_broken_json(self, templates: Path, tmp_path: Path) -> None:
        self.edit(templates / "memory.json.j2", "}", "")
        with pytest.raises(ConfigError, match="not valid JSON"):
            render(tiny(), tmp_path / "out")

    def test_missing_template(self, templates: Path, tmp_path: Path) -> None:
        (templates / "memory.json.j2").unlink()
        with pytest.raises(ConfigError, match=r"memory\.json\.j2"):
            render(tiny(), tmp_path / "out")


@pytest.mark.parametrize(
    ("topology", "npus", "expected"),
    [("Ring", 2, 4), ("Ring", 3, 4), ("Ring", 5, 6), ("Ring", 8, 8), ("Switch", 3, 3)],
)
def test_links_of_astra1(topology: str, npus: int, expected: int) -> None:
    assert links(Dimension(Topology(topology), npus, 1.0, 0.0)) == expected


def test_kinds_of_astra1() -> None:
    query: LatencyQuery = tiny(2, 2, 2)
    assert [dimension_type(dim) for dim in query.dimensions] == ["N", "P", "PP"]

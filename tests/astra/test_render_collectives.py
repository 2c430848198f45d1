"""Do the files of a divided model hold everything that its iteration is composed of?"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from artist.astra.files.render import render
from artist.astra.files.rendered_folder import render_collectives
from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import load_fabric
from artist.errors import BackendSettingError
from artist.estimates.divided.layer_wise import LayerwiseBackend, collective_queries
from artist.estimates.query import Estimate, LatencyQuery
from artist.estimates.query_from_text import on_placement
from artist.workload.iteration_graph import IterationNode, schedule
from artist.workload.models import workload


class Noting:
    """A backend that records its queries."""

    source = "noting"

    def __init__(self) -> None:
        self.asked: list[LatencyQuery] = []

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        self.asked.append(query)
        return AnalyticalBackend().estimate(query, profile=profile)


def query(model: str, placement: str) -> LatencyQuery:
    return on_placement(workload(model), placement, load_fabric("dally2025"), {}).asked[0].query


MODELS = [
    ("llama2-7b", "4+4"),
    ("gpt2-moe", "4+4,4+4"),
    ("gpt2-moe", "2+2,2+2,2+2"),  # experts on 4 of 12 GPUs
    ("gpt2@tensor=4,stages=2", "4+4"),
]


@pytest.mark.parametrize(("model", "placement"), MODELS)
def test_the_folders_hold_the_queries_of_a_backend_and_nothing_else(
    model: str, placement: str, tmp_path: Path
) -> None:
    asked, backend = query(model, placement), Noting()
    LayerwiseBackend(backend).estimate(asked)
    parts = collective_queries(asked).values()
    assert backend.asked == [part for part in parts if part is not None]

    render_collectives(asked, tmp_path / "out")
    folders = sorted(path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert len(folders) == len(backend.asked)
    for number, (folder, part) in enumerate(zip(folders, backend.asked, strict=True)):
        render(part, tmp_path / str(number))
        for file in sorted((tmp_path / str(number)).iterdir()):
            if file.is_file():
                assert (folder / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize(("model", "placement"), MODELS)
def test_an_iteration_can_be_composed_again_from_the_files(
    model: str, placement: str, tmp_path: Path
) -> None:
    asked = query(model, placement)
    render_collectives(asked, tmp_path)
    rows = list(csv.DictReader((tmp_path / "iteration.csv").read_text().splitlines()))
    parts = dict(
        zip(
            sorted(path.name for path in tmp_path.iterdir() if path.is_dir()),
            [part for part in collective_queries(asked).values() if part is not None],
            strict=True,
        )
    )
    ends = {name: AnalyticalBackend().estimate(part).finish_ns for name, part in parts.items()}
    lengths = [
        (1000 * int(row["compute_us"]) or 1) if row["compute_us"] else ends.get(row["folder"], 0)
        for row in rows
    ]
    played = [
        IterationNode(
            row["node"],
            tuple(map(int, row["after"].split())),
            collective=None if row["compute_us"] else row["collective"],  # type: ignore[arg-type]
        )
        for row in rows
    ]
    spans = schedule(tuple(played), lambda node: lengths[int(node.name)])
    whole = LayerwiseBackend(AnalyticalBackend()).estimate(asked)
    assert round(max(span.end for span in spans)) == whole.finish_ns


def test_a_model_that_does_not_divide_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(BackendSettingError, match="not divide 3 GPUs"):
        render_collectives(query("gpt2@tensor=4,stages=2", "3"), tmp_path / "out")
    assert not (tmp_path / "out").exists()

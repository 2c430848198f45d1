"""Does a recorded table answer the queries that it holds, and no others?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rendered_queries import tiny

from artist.errors import BackendError, TraceError
from artist.estimates.query import Estimate, LatencyQuery
from artist.estimates.recorded import RecordedBackend, query_key

HEADER = (
    "source,model,topologies,dim_types,units,links,bw_GBps,latency_ns,total_comp_us,finished_at_us"
)
ROW = "java-run,VGG,FullyConnected Ring,N P,2 3,2 4,600 300.0,0 5e2,52.884000,65.328"


def table(folder: Path, *rows: str) -> Path:
    path = folder / "table.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    return path


def query(model: str = "vgg11") -> LatencyQuery:
    return replace(tiny(2, 3), workload=replace(tiny().workload, name=model))


class Other:
    source = "other"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        return Estimate(2, 1, self.source)


@pytest.mark.parametrize("model", ["vgg11", "VGG", "Vgg11"])
def test_answer_of_a_row(model: str, tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW))
    assert backend.estimate(query(model)) == Estimate(65328, 52884, backend.source)
    assert backend.source.startswith("recorded@sha256:")


def test_a_model_outside_the_catalogue_is_answered(tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW.replace("VGG", "my-net")))
    assert backend.estimate(query("my-net")).finish_ns == 65328


def test_missing_key_is_printed(tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW))
    with pytest.raises(BackendError) as caught:
        backend.estimate(query("resnet50"))
    for part in ("model='resnet50'", "units='2 3'", "bw_GBps='600 300'"):
        assert part in str(caught.value)
    assert "fallback" in str(caught.value)


def test_fallback_is_counted_and_named(tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW), fallback=Other())
    assert backend.estimate(query()).source == backend.source
    assert backend.fallback_uses == 0
    assert backend.estimate(query("resnet50")).source == "other"
    assert backend.fallback_uses == 1


def test_several_passes_were_not_recorded(tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW))
    with pytest.raises(BackendError, match="2 passes"):
        backend.estimate(replace(query(), passes=2))


def test_rows_of_altered_inputs_do_not_count(tmp_path: Path) -> None:
    altered = ROW.replace("java-run", "systematic-altbw").replace("65.328", "99")
    backend = RecordedBackend(table(tmp_path, altered, ROW))
    assert backend.estimate(query()).finish_ns == 65328


def test_table_without_sources_counts_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    cut = [line.partition(",")[2] for line in (HEADER, ROW)]
    path.write_text("\n".join(cut))
    assert RecordedBackend(path).estimate(query()).finish_ns == 65328


def test_same_row_twice_is_no_contradiction(tmp_path: Path) -> None:
    backend = RecordedBackend(table(tmp_path, ROW, ROW.replace("java-run", "systematic")))
    assert backend.estimate(query()).finish_ns == 65328


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (ROW.replace("65.328", "99"), r"table\.csv:3: another answer"),
        (ROW.replace("65.328", "soon"), "finished_at_us is 'soon'"),
        (ROW.replace("65.328", "inf"), "finished_at_us is 'inf'"),
        (ROW.replace(",65.328", ""), "9 cells, expected 10"),
        (ROW.replace("65.328", "5"), "less than total_comp_us"),
        (ROW.replace("2 3,", "2 x,"), "units is 'x'"),
        (ROW.replace("2 3,", "2,"), "same number of entries"),
        (ROW.replace("VGG", ""), "same number of entries|model"),
    ],
)
def test_bad_rows(row: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=why):
        RecordedBackend(table(tmp_path, ROW, row))


def test_missing_column(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(HEADER.replace("units", "sizes") + "\n")
    with pytest.raises(TraceError, match="columns are missing: units"):
        RecordedBackend(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        RecordedBackend(tmp_path / "nothing.csv")


def test_key_is_in_normal_form() -> None:
    assert query_key(query("VGG")) == (
        "vgg11",
        "FullyConnected Ring",
        "N P",
        "2 3",
        "600 300",
        "0 500",
    )

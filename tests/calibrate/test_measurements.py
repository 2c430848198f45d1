from pathlib import Path

import pytest

from artist.calibrate.measurements import default_measurements, read_measurements
from artist.errors import ConfigError, TraceError

HEAD = "# source: a test\n"


def _write(folder: Path, text: str) -> Path:
    path = folder / "m.csv"
    path.write_text(text)
    return path


def test_a_file_by_hand(tmp_path: Path) -> None:
    text = (
        "# source: our machine\n# hardware: 8 x X\n# who: us\n# when: 2026-01\n"
        "model,placement,comm_percent,use,note\n"
        'ResNet-50,4+4,12,,\nresnet50,"4,4",0,compare,"hidden, all of it"\n'
    )
    measured = read_measurements(_write(tmp_path, text))
    assert (measured.name, measured.source, measured.hardware) == ("m", "our machine", "8 x X")
    assert (measured.who, measured.when) == ("us", "2026-01")
    assert [(r.model, r.placement, r.share, r.fitted, r.note) for r in measured.rows] == [
        ("resnet50", "4+4", 0.12, True, ""),
        ("resnet50", "4,4", 0.0, False, "hidden, all of it"),
    ]


def test_times_instead_of_a_percentage(tmp_path: Path) -> None:
    text = HEAD + "model,placement,compute_ms,exposed_comm_ms\nvgg11,8,40,10\n"
    assert read_measurements(_write(tmp_path, text)).rows[0].share == 0.25


def test_table_1_of_the_paper() -> None:
    table = default_measurements()
    shares = {(row.model, row.placement): 100 * row.share for row in table.rows}
    assert {m: shares[m, "4+4"] for m in table.models()} == pytest.approx(
        {
            "vgg11": 1,
            "alexnet": 2,
            "mobilenetv3": 42,
            "resnet18": 7,
            "resnet50": 12,
            "bert-large": 8,
        }
    )
    assert shares["mobilenetv3", "4/4"] == pytest.approx(19592)
    assert "Table I" in table.source


def test_a_models_rows_serve_its_other_batches() -> None:
    table = default_measurements()
    assert table.of("resnet50@batch=64") == table.of("resnet50")
    with pytest.raises(ConfigError, match=r"no row to fit model 'gpt2'.*vgg11"):
        table.of("gpt2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,placement,comm_percent\nvgg11,8,1\n", r"m.csv:1: no '# source:' line"),
        (HEAD, r"m.csv:1: no column names"),
        (HEAD + "model,share\n", r"m.csv:2: columns are 'model,share'"),
        (HEAD + "model,placement,comm_percent\nvgg99,8,1\n", r"m.csv:3: unknown model 'vgg99'"),
        (HEAD + "model,placement,comm_percent\nvgg11,8\n", r"m.csv:3: 2 fields, expected 3"),
        (HEAD + "model,placement,comm_percent\nvgg11,8,x\n", r"m.csv:3: comm_percent is 'x'"),
        (HEAD + "model,placement,comm_percent\nvgg11,8,-1\n", r"m.csv:3: comm_percent is '-1'"),
        (HEAD + "model,placement,comm_percent\nvgg11,8,nan\n", r"m.csv:3: comm_percent is 'nan'"),
        (HEAD + "model,placement,comm_percent\nvgg11,8,0\n", r"m.csv:3: no exposed"),
        (HEAD + "model,placement,comm_percent,use\nvgg11,8,1,x\n", r"m.csv:3: use is 'x'"),
        (HEAD + "model,placement,compute_ms\nvgg11,8,1\n", r"m.csv:3: give comm_percent"),
        (
            HEAD + "model,placement,compute_ms,exposed_comm_ms\nvgg11,8,0,1\n",
            r"m.csv:3: compute_ms is '0', expected a number above 0",
        ),
        (HEAD + "model,placement,comm_percent\nvgg11,1,3\n", r"m.csv:3: placement 1 is one GPU"),
        (HEAD + "model,placement,comm_percent\nvgg11,01,3\n", r"m.csv:3: placement 1 is one GPU"),
        (
            HEAD + "model,placement,compute_ms,comm_percent\nvgg11,1,40,3\n",
            r"m.csv:3: placement 1 is one GPU.*compute_ms alone",
        ),
        (
            HEAD + "model,placement,compute_ms\nvgg11,1,1e300\n",
            r"m.csv:3: compute_ms is '1e300', expected milliseconds from 0.001 to 1e\+07",
        ),
        (HEAD + "model,placement,compute_ms\nvgg11,1,0\n", r"m.csv:3: compute_ms is '0'"),
        (
            HEAD + "model,placement,compute_ms,comm_percent\nvgg11,1,40,\nvgg11,8,,2\n",
            r"m.csv:4: vgg11 has rows on one GPU and on several",
        ),
        (
            HEAD + "model,placement,comm_percent\nvgg11,8,1\nVGG,8,2\n",
            r"m.csv:4: vgg11 on 8 has a row already",
        ),
        (
            HEAD + "model,placement,comm_percent,use\nvgg11,8,1,compare\n",
            r"m.csv:3: no row to fit to",
        ),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_measurements(_write(tmp_path, text))

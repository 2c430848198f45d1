"""Does a table of measured slowdowns of pairs decide how fast jobs run?"""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import job, network, rates, run
from support import intervals

from artist.errors import ArtistError, ConfigError, TraceError

LEFT, RIGHT, THIRD = {0: 4, 2: 4}, {1: 4, 3: 4}, {1: 4, 3: 4}


def table(folder: Path, text: str) -> str:
    path = folder / "pairs.csv"
    path.write_text(text)
    return f"table:{path}"


def slowdowns(name: str, *models: str) -> list[tuple[float, str]]:
    jobs = [job(f"job-{i}", model, gpus=8) for i, model in enumerate(models)]
    placed = (LEFT, RIGHT, THIRD)[: len(models)]
    rows = run(jobs, placed, name)
    first = [intervals(rows, handle)[0] for handle in range(len(models))]
    return [(row.iteration_s / row.alone_iteration_s, row.source) for row in first]


def test_the_throughput_is_the_least_with_any_co_located_job(tmp_path: Path) -> None:
    # vgg11 with itself 1.2, with bert-large 1.5; bert-large with vgg11 1.0.
    name = table(
        tmp_path,
        "model,beside,slowdown\nvgg11,vgg11,1.2\nvgg11,bert-large,1.5\nbert-large,vgg11,1\n",
    )
    one, two, three = slowdowns(name, "vgg11", "vgg11", "bert-large")
    assert one == (pytest.approx(1.5), "analytical+table")
    assert two == (pytest.approx(1.5), "analytical+table")
    assert three == (1.0, "analytical")


def test_the_other_names_of_the_columns_and_spellings_of_models_are_read(tmp_path: Path) -> None:
    name = table(tmp_path, "model_a,model_b,slowdown\nVGG-11,BERT large,2\nbert-large,vgg11,1\n")
    assert [x for x, _ in slowdowns(name, "vgg11", "bert-large")] == [2.0, 1.0]


def test_a_pair_that_occurs_must_be_there(tmp_path: Path) -> None:
    name = table(tmp_path, "model,beside,slowdown\nvgg11,vgg11,1.2\n")
    with pytest.raises(ConfigError) as caught:
        slowdowns(name, "vgg11", "resnet50")
    assert "lacks the slowdown of 'vgg11' beside 'resnet50'" in str(caught.value)
    assert "add the row vgg11,resnet50,SLOWDOWN" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,slowdown\n", ":1: columns model, slowdown, expected model, beside and slowdown"),
        ("", "the file is empty"),
        ("model,beside,slowdown\nvgg11,vgg11,0.9\n", ":2: slowdown '0.9', expected a number from"),
        ("model,beside,slowdown\nvgg11,vgg11,nan\n", ":2: slowdown 'nan'"),
        ("model,beside,slowdown\nvgg11,vgg11\n", ":2: 2 cells, expected 3"),
        ("model,beside,slowdown\n,vgg11,1\n", ":2: a row without two models"),
        ("model,beside,slowdown\na,b,1\na,b,2\n", ":3: a beside b is 2, but 1 above"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        rates(table(tmp_path, text), network())
    assert said in str(caught.value)


def test_a_table_without_a_file_is_refused() -> None:
    for name, said in (("table", "write table:FILE"), ("table:/nowhere.csv", "/nowhere.csv")):
        with pytest.raises(ArtistError, match=said):
            rates(name, network())

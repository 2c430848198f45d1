"""Does the page about learned policies say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from artist.results.statistics.compare_values import compare_values
from studies.common.rows import RowsFile
from studies.rl.study import judging, paper, plan, trainings, wording
from studies.rl.study.observations import ROWS


def test_the_judgement_has_at_least_twenty_traces_that_no_training_used() -> None:
    seeds = {run.seed for run in plan.planned()}
    assert len(seeds) >= 20
    assert not seeds & {0, 1, *range(5000, 5100)}


@pytest.mark.parametrize(
    ("factor", "word"), [(0.9, "**win**"), (1.1, "loss"), (1.005, "no difference")]
)
def test_verdicts(factor: float, word: str) -> None:
    base = (100.0, 110.0, 95.0, 103.0, 99.0, 101.0)
    noise = (1.01, 0.99, 1.0, 1.005, 0.995, 1.0)
    other = tuple(x * factor * f for x, f in zip(base, noise, strict=True))
    assert judging.verdict(compare_values(base, other)) == word


# -- the paper's setting, on a table that is worked out by hand ------------------------


@pytest.fixture
def tables(tmp_path: Path) -> tuple[ModuleType, object, Path]:
    """Model m does a sample a second; beside another m on a shared machine half of one."""
    kinds = [f"m,{gpus},{count}" for gpus in (2, 4, 8) for count in (2, 4) if count <= gpus]
    alone = "\n".join([",isol_thp", *(f'"{kind}",1.0' for kind in kinds)])
    (tmp_path / "isolated_thp.csv").write_text(alone + "\n")
    head = ",".join(["", *(f'"{kind}"' for kind in kinds)])
    rows = [",".join([f'"{kind}"', *["0.5"] * len(kinds)]) for kind in kinds]
    (tmp_path / "shared_thp_ratio.csv").write_text("\n".join([head, *rows]) + "\n")
    return paper, paper.Tables.read(tmp_path), tmp_path


def run(tables: tuple[ModuleType, object, Path], sizes: list[tuple[int, float]], *how: object):
    paper, read, folder = tables
    rows = {
        str(x): {"model": "m", "gpu_demand": gpus, "total_samples_to_train": samples}
        for x, (gpus, samples) in enumerate(sizes)
    }
    trace = folder / "trace.json"
    trace.write_text(json.dumps(rows))
    row = paper.measured(read, read.jobs(trace), *how)
    return float(row["service_s"]), float(row["jct_mean_s"]), float(row["utilisation"])


def test_a_round_is_served_to_its_end(tables) -> None:
    # 450 samples at one a second: two rounds of 300 s, but over at 450 s. 8 of 32 GPUs.
    assert run(tables, [(8, 450)], "las as coded", "spread") == (600.0, 450.0, 0.25)


def test_two_spread_jobs_slow_each_other_down_and_packed_ones_do_not(tables) -> None:
    # Spread, both lie on all four machines at half speed: 300 samples take 600 s. Packed over two
    # machines each, they would fill two machines; the second takes those with the least left.
    both = [(8, 300), (8, 300)]
    assert run(tables, both, "las as coded", "spread")[:2] == (600.0, 600.0)
    assert run(tables, both, "srsf", "one machine")[:2] == (300.0, 300.0)
    # Nobody below .6 of its speed: the second job waits a round.
    assert run(tables, both, "srsf", "pack", 0.6)[:2] == (300.0, 450.0)


def test_coded_orders_are_the_reverse_of_their_names(tables) -> None:
    # Five jobs of 8 GPUs, room for four a round; the first has ten rounds of work, the others four.
    # On one machine nobody is slowed down. Correct SRTF ends the short ones first.
    sizes = [(8, 3000), *[(8, 1200)] * 4]
    correct = run(tables, sizes, "srtf", "one machine")[1]
    coded = run(tables, sizes, "srtf as coded", "one machine")[1]
    assert correct == (4 * 1200 + 4200) / 5
    assert coded > correct


def test_the_page_says_which_rows_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, file in (("PAPER", "paper.csv"), ("TRAININGS", "trainings.csv")):
        monkeypatch.setattr(wording, name, RowsFile(tmp_path / file, (), "rl"))
    text = wording.page_text(ROWS.read())
    assert "`paper.csv` is missing: it needs the authors' tables" in text
    assert "`trainings.csv` is missing. Train with several seeds" in text


def test_a_search_that_changes_nothing_makes_no_difference() -> None:
    base = (100.0, 110.0, 95.0)
    assert judging.verdict(compare_values(base, base)) == "no difference"


def test_trainings_are_averaged_over_traces_and_then_over_seeds() -> None:
    """Seeds 0 and 1 take 10 % and 30 % more than the baseline: 20 % on average."""
    base = {cell: [100.0, 200.0] for cell in trainings.CELLS}
    rows = [
        {
            "network": "n",
            "training_seed": str(seed),
            "steps": "4096",
            "machines": str(machines),
            "load": load,
            "seed": str(trace),
            "jct_mean_s": str(share * base[machines, load][trace]),
        }
        for seed, share in ((0, 1.1), (1, 1.3))
        for machines, load in trainings.CELLS
        for trace in (0, 1)
    ]
    lines = trainings.seeds_table(rows, base).splitlines()
    assert lines[2].startswith("| n, seed 0, 4,096 steps | +10.0 % |")
    assert lines[4].startswith("| n: mean ± standard deviation | +20.0 % ± 14.1 |")

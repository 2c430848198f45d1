"""How far are the rules for pairs that nobody measured, and for threes, from real GPUs?"""

from pathlib import Path
from statistics import median

import pytest
from support import nested

from artist.cluster.placement import Placement
from artist.errors import ConfigError
from artist.io.csv_rows import csv_rows
from artist.network.rates.interference import (
    TAKING_TURNS,
    PairSpeeds,
    interfered,
    read_speeds,
    table_path,
)
from artist.workload.job import Job

ON_ONE_GPU = Placement((0,), (1,))
H200, H100 = table_path("h200"), table_path("h100")


def _job(model: str) -> Job:
    return Job(model, 0.0, 1, model, 10, 1.0)


def _speed(speeds: dict, model: str, *others: str) -> float:
    pairs = PairSpeeds(nested(("machine", "network"), [4]), speeds)
    return 1 / pairs.slowdown(_job(model), ON_ONE_GPU, [_job(other) for other in others])


def test_a_pair_nobody_measured_has_the_speed_of_two_of_its_model() -> None:
    _, rows = csv_rows(H200, H200.read_text(), commented=True)
    of_models = {x["model_a"] for _, x in rows if x["source"] == "models"}
    speeds = read_speeds(H200)
    beside_itself = {pair: speed for pair, speed in speeds.items() if pair[0] == pair[1]}
    errors = [
        _speed(beside_itself, one, other) / speed - 1
        for (one, other, _), speed in speeds.items()
        if one != other and {one, other} <= of_models
    ]
    assert len(errors) == 20
    assert median(map(abs, errors)) == pytest.approx(0.026, abs=0.001)
    assert max(map(abs, errors)) == pytest.approx(0.061, abs=0.001)
    assert _speed(beside_itself, "gpt2", "a model of one's own") == pytest.approx(0.462)
    assert _speed(beside_itself, "inceptionv3", "gpt2") == TAKING_TURNS


def test_on_a_gpu_that_waits_for_its_host_two_of_a_model_say_little() -> None:
    speeds = read_speeds(H100)
    beside_itself = {pair: speed for pair, speed in speeds.items() if pair[0] == pair[1]}
    errors = [
        _speed(beside_itself, one, other) / speed - 1
        for (one, other, _), speed in speeds.items()
        if one != other
    ]
    assert len(errors) == 56
    assert median(map(abs, errors)) == pytest.approx(0.187, abs=0.001)


def test_a_table_of_another_machine_is_better_than_none() -> None:
    speeds, others = read_speeds(H100), read_speeds(H200)
    errors = [_speed(others, *pair[:2]) / speed - 1 for pair, speed in speeds.items()]
    assert median(map(abs, errors)) == pytest.approx(0.118, abs=0.001)
    taking_turns = [abs(TAKING_TURNS / speed - 1) for speed in speeds.values()]
    assert median(taking_turns) == pytest.approx(0.245, abs=0.001)


@pytest.mark.parametrize(
    ("gpu", "table", "count", "middle", "most"),
    [("h200", H200, 18, 0.053, 0.253), ("h100", H100, 12, 0.132, 0.248)],
)
def test_times_that_others_cost_add_up_to_too_little_among_three(
    gpu: str, table: Path, count: int, middle: float, most: float
) -> None:
    path = Path(__file__).with_name(f"threes_on_{gpu}.csv")
    _, rows = csv_rows(path, path.read_text(), commented=True)
    errors = [
        _speed(read_speeds(table), x["model"], x["beside"], x["and"]) / float(x["speed"]) - 1
        for _, x in rows
    ]
    assert len(errors) == count
    assert median(errors) == pytest.approx(middle, abs=0.001)
    assert max(errors) == pytest.approx(most, abs=0.001)


def _table(tmp_path: Path, rows: str) -> str:
    path = tmp_path / "pairs.csv"
    path.write_text(f"model_a,model_b,speed_a,speed_b,gpu_kind\n{rows}")
    return str(path)


def test_two_of_a_model_have_one_speed(tmp_path: Path) -> None:
    speeds = read_speeds(Path(_table(tmp_path, "resnet50,resnet50,0.653,0.649,\n")))
    assert speeds == {("resnet50", "resnet50", ""): pytest.approx(0.651)}


def test_rows_of_the_kind_stand_before_rows_of_none(tmp_path: Path) -> None:
    rows = ["lstm,gpt2,0.6,0.6,v100", "lstm,gpt2,0.9,0.9,"]
    tree = nested(("machine", "network"), [4])
    for order in (rows, rows[::-1]):
        table = _table(tmp_path, "\n".join(order))
        rates = interfered(_Isolated(), table, tree, 2)
        assert rates._pairs.slowdown(_job("lstm"), ON_ONE_GPU, [_job("gpt2")]) == 1 / 0.6


def test_speeds_of_no_kind_of_the_cluster_are_refused(tmp_path: Path) -> None:
    tree = nested(("machine", "network"), [4], kinds=["h100"])
    table = _table(tmp_path, "lstm,gpt2,0.6,0.6,v100\n")
    with pytest.raises(ConfigError, match="speeds on 'v100', but the cluster has 'h100'"):
        interfered(_Isolated(), table, tree, 2)


class _Isolated:
    """A rate function that is never called."""

"""Do spares take the places of failed units, and become spares again after the repair?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import exponential, units
from support import cluster

import artist
from artist.config import Scenario
from artist.contract import Restore, Withdraw
from artist.errors import ConfigError
from artist.failures.events import FailureEvents
from artist.units import seconds

TREE = cluster([2, 2, 2])


def out(unit: int, at_s: float, duration_s: float = 1000, kind: str = "machine") -> dict[str, Any]:
    return {"kind": kind, "unit": unit, "at_s": at_s, "duration_s": duration_s}


def heard(model: dict[str, Any], count: int = 1000) -> list[tuple[str, float, int]]:
    """The first events: - or +, when, and the first leaf that leaves or comes back."""
    events, told = FailureEvents(units(TREE, model), 0), []
    while len(told) < count and (event := events.next_event(0)) is not None:
        assert isinstance(event, Withdraw | Restore)
        sign = "-" if isinstance(event, Withdraw) else "+"
        told.append((sign, seconds(event.at), event.placement.leaves[0]))
    return told


def test_one_spare_for_three_failures_by_hand() -> None:
    """The spare stands in after 50 s. It is there again when the machine is repaired, at 1100 s."""
    model = {
        "outages": [out(0, 100), out(1, 200), out(2, 1100)],
        "spares": {"count": 1, "swap_s": 50},
    }
    assert heard(model) == [
        ("-", 100, 0), ("+", 150, 0), ("-", 200, 1), ("-", 1100, 2), ("+", 1150, 2), ("+", 1200, 1),
    ]  # fmt: skip


def test_an_outage_lasts_until_a_spare_fills_the_place() -> None:
    model = {"outages": [out(0, 100)], "spares": {"count": 1, "swap_s": 50}}
    event = FailureEvents(units(TREE, model), 0).next_event(0)
    assert isinstance(event, Withdraw) and seconds(event.outage.until) == 150


@pytest.mark.parametrize(
    "model",
    [
        {"outages": [out(0, 100, 40)], "spares": {"count": 1, "swap_s": 50}},
        {"outages": [out(0, 100, kind="link")], "spares": {"count": 1, "swap_s": 50}},
        {"outages": [out(0, 100, kind="gpu")], "spares": {"count": 1, "swap_s": 50}},
        {"maintenance": [out(0, 100)], "spares": {"count": 1, "swap_s": 50}},
    ],
)
def test_no_spare_is_taken_where_it_does_not_help(model: dict[str, Any]) -> None:
    """A repair that is as quick, another kind of unit, and planned work."""
    assert heard(model) == heard({**model, "spares": None})


def test_no_spare_is_taken_for_a_unit_that_is_away_already() -> None:
    """Machine 1 fails behind its own link, and gets none. So machine 2 does."""
    model = {
        "outages": [out(1, 100, kind="link"), out(1, 200), out(2, 300)],
        "spares": {"count": 1, "swap_s": 50},
    }
    assert heard(model)[:3] == [("-", 100, 1), ("-", 300, 2), ("+", 350, 2)]


def test_with_enough_spares_every_place_is_empty_for_the_swap_only() -> None:
    swap = exponential(1000.0, 60.0)
    model = {"machine": exponential(1000.0, 5000.0), "spares": {"count": 1000, "swap_s": 60}}
    assert heard(model, 200) == heard({"machine": swap}, 200)


def test_a_run_with_spares_waits_less(tmp_path: Path) -> None:
    def withdrawn_gpu_s(spares: str) -> float:
        file = tmp_path / "mine.yaml"
        file.write_text(
            f"machine: {{distribution: exponential, mtbf_s: 5.0e4, repair_s: 20000}}\n{spares}"
        )
        scenario = Scenario(racks=1, trace="tiny-poisson", policy="fifo", failures=str(file))
        result = artist.simulate(scenario, cache=False, check=True)
        return float(result.summary["withdrawn_gpu_s"])

    without, one, three = (
        withdrawn_gpu_s(f"spares: {{count: {count}, swap_s: 600}}" if count else "")
        for count in (0, 1, 3)
    )
    assert without > one > three


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spares: {count: 0, swap_s: 1}", ":1: 'spares.count' is 0, expected at least 1"),
        ("spares: {count: 1}", ":1: setting 'spares.swap_s' is missing"),
        ("spares:\n  count: 1\n  swap_s: 1\n  level: rak", ":4: no 'rak' in this cluster (did"),
    ],
)
def test_bad_spares_end_in_one_sentence_with_line_and_remedy(
    text: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        artist.simulate(
            Scenario(racks=1, trace="tiny-poisson", fabric="a100", failures=str(file)), cache=False
        )
    assert f"{file}{words}" in str(caught.value)

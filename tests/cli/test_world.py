"""Does the first line say in which world results are true?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.cli.world import busiest_model, world
from artist.cluster.fabric import Fabric, fabric_names, load_fabric
from artist.config import Scenario


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "fabric dally2025, imitates the simulator of the Dally paper (2025); "
            "calibration: dally2025-table1 (a table of a paper)",
        ),
        (
            {"fabric": "leaf-spine"},
            "fabric leaf-spine, vendors' figures: NVIDIA's data sheets; cal",
        ),
        ({"fabric": "t4"}, "fabric t4, measured: steps of ResNet-50 (error of other models "),
        (
            {"fabric": "t4", "fabric_options": {"rack": {"latency": "5us"}}},
            "fabric t4 (changed), m",
        ),
        ({"calibration": "none"}, "(2025); calibration: no"),
        ({"backend": "none"}, "no network: communication takes no time"),
    ],
)
def test_a_world_is_named_with_the_source_of_its_figures(
    changes: dict[str, object], words: str
) -> None:
    assert words in world(Scenario.model_validate({"policy": "fifo", "racks": 2, **changes}))


def test_every_shipped_fabric_says_where_its_figures_come_from() -> None:
    assert [name for name in fabric_names() if load_fabric(name).origin is None] == []


def test_the_origin_changes_no_digest() -> None:
    fabric = load_fabric("t4")
    nameless = fabric.model_copy(update={"origin": None})
    assert nameless.digest == fabric.digest
    assert nameless.origin_words == "its own figures"
    assert Fabric.model_validate(fabric.model_dump()).digest == fabric.digest


def test_the_busiest_model_has_most_gpu_seconds_of_communication() -> None:
    jobs = {
        "model": np.array(["vgg11", "resnet50", "vgg11"]),
        "gpus": np.array([1, 8, 1]),
        "comm_s": np.array([30.0, 10.0, 10.0]),
    }
    assert busiest_model(jobs) == "resnet50 makes 67 % of the communication"
    assert busiest_model({**jobs, "comm_s": np.zeros(3)}) == ""


def test_it_is_the_first_line_of_a_run_but_of_a_quiet_one(artist) -> None:
    asked = ("sim", "--trace", "tiny-batch", "--racks", "2")
    first, second, *_ = artist(*asked).stdout.splitlines()
    assert first.startswith("# fabric dally2025, imitates the simulator of the Dally paper (2025);")
    assert first.endswith("% of the communication")
    assert second.startswith("# dally on tiny-batch")
    assert artist(*asked, "--quiet").stdout.startswith("# dally on tiny-batch")
    compared = artist("compare", *asked[1:], "--policies", "fifo,las", "--permutations", "2")
    assert compared.stdout.startswith("# fabric dally2025, imitates")

"""Is what decides a result, and stands in no table, said below it? And only where it holds?"""

from __future__ import annotations

import pytest

from artist.cli.comparison_text import print_comparison
from artist.config import Scenario
from artist.experiments.compare import compare
from artist.results.caveats import FREE_PREEMPTIONS, preempts_freely

TINY = {"trace": "tiny-batch", "racks": 1, "machines_per_rack": 2, "backend": "none"}


def shown(capsys: pytest.CaptureFixture[str], policies: list[str], permutations: int = 1, **more):
    scenario = Scenario(**{**TINY, **more})
    print_comparison(compare(scenario, policies, seeds=1, permutations=permutations))
    return capsys.readouterr().out


def test_free_preemptions_are_told_once_per_comparison(capsys) -> None:
    assert shown(capsys, ["fifo", "las", "srtf"]).count(FREE_PREEMPTIONS) == 1


@pytest.mark.parametrize("policies", [["fifo", "sjf"], ["las", "srtf"]])
def test_preemptions_that_cost_or_do_not_occur_are_not_called_free(capsys, policies) -> None:
    assert FREE_PREEMPTIONS not in shown(capsys, policies, restart_s=30.0)
    assert (FREE_PREEMPTIONS in shown(capsys, policies)) == ("las" in policies)


@pytest.mark.parametrize(("restart", "told"), [((), 1), (("--set", "restart_s=30"), 0)])
def test_a_run_tells_that_its_preemptions_are_free(artist, restart, told: int) -> None:
    sizes = ("--racks", "1", "--machines-per-rack", "2", "--backend", "none")
    ran = artist("sim", "--trace", "tiny-batch", *sizes, "--policy", "las", *restart)
    assert (ran.returncode, ran.stdout.count(FREE_PREEMPTIONS)) == (0, told)


def test_one_run_with_a_cost_is_enough() -> None:
    free = {"preemptions": 3, "migrations": 0, "preemption_cost_gpu_s": 0.0}
    moved = {"preemptions": 0, "migrations": 1, "preemption_cost_gpu_s": 0.0}
    calm = {**free, "preemptions": 0}
    assert [preempts_freely([one]) for one in (free, moved, calm)] == [True, True, False]
    assert not preempts_freely([free, {**moved, "preemption_cost_gpu_s": 1.0}])
    # Parts of iterations that are lost are no restarts.
    assert preempts_freely([{**free, "preemption_cost_gpu_s": 2.9}])

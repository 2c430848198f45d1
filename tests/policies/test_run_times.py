"""Does the table say of each policy whether it knows how long jobs will run?"""

from __future__ import annotations

import pytest
from support import SELF_SUFFICIENT, longer_rounds

from artist.contract import BasePolicy, Start, WrapperPolicy
from artist.errors import PolicyError
from artist.policies.run_times import knows_run_times
from artist.policies.shared.placers import PackPlacer
from artist.run import open_policy
from artist.testing import check_policy, check_run_times, decides_by_run_times


@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_only_policies_that_know_run_times_decide_by_them(name: str) -> None:
    seen = decides_by_run_times(lambda: open_policy(name, longer_rounds(name)))
    assert (seen is not None) == knows_run_times(name)


class Fairsize(BasePolicy):
    """Smallest job first, by GPUs and by the run time, which a scheduler cannot know."""

    def decide(self, view):
        free, decisions = view.free.copy(), []
        for job in sorted(view.waiting.values(), key=self._size):
            placement = PackPlacer().place(free, job.job.gpus)
            if placement is not None:
                free.claim(placement)
                decisions.append(Start(job.handle, placement))
        return decisions

    def _size(self, job):
        return job.job.gpus * job.job.iterations * job.job.compute_s, job.handle


class Declared(Fairsize):
    """The same policy, which declares that it knows run times."""

    knows_run_times = True


class Later(Fairsize):
    """Uses run times only among jobs that arrived later, so only later questions show it."""

    def _size(self, job):
        return (job.job.iterations if job.entered else 0), job.handle


class Quota(WrapperPolicy):
    """A wrapper that forwards everything to its host."""


def test_a_policy_that_reads_run_times_undeclared_breaks_the_contract() -> None:
    with pytest.raises(PolicyError, match=r"knows run times: .*class Fairsize"):
        check_policy(Fairsize)
    with pytest.raises(PolicyError, match=r"decision at 3000 s .*class Later"):
        check_run_times(Later)
    check_policy(Declared)


def test_the_policy_inside_a_wrapper_is_seen() -> None:
    with pytest.raises(PolicyError, match="class Quota"):
        check_run_times(lambda: Quota(Fairsize()))
    check_run_times(lambda: Quota(Declared()))


def test_a_wrapper_knows_what_the_policy_inside_knows(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from artist.contract import BasePolicy, WrapperPolicy\n"
        "class Plain(BasePolicy):\n    def decide(self, view): return ()\n"
        "class Oracle(Plain):\n    knows_run_times = True\n"
        "class Quota(WrapperPolicy): pass\n"
    )
    assert not knows_run_times("own.py:Plain")
    assert knows_run_times("own.py:Oracle")
    assert knows_run_times("own.py:Quota(srtf)")
    assert not knows_run_times("own.py:Quota(own.py:Quota(las))")

"""Do jobs across regions pay for the wide-area network, and share it?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import artist

CLUSTER = """\
name: two
summary: two regions of two machines
fabric: hgx-h100
levels: [region, machine]
wide_area: {bandwidth: %s, latency: 0ns, source: a test}
tree: {count: 2, machine: {count: 2, gpus: 8}}
"""
ACROSS = """\
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, Start


class Across(BasePolicy):
    def decide(self, view):
        return [Start(h, Placement((h, 2 + h), (8, 8))) for h in view.waiting]
"""
JOB = "j%d,0,16,bert-large,1000,1.0\n"


@pytest.fixture
def jct_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """Mean JCT of this many jobs, each with half of its GPUs in either region."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "across.py").write_text(ACROSS)

    def run(jobs: int, bandwidth: str, contention: str = "none") -> float:
        (tmp_path / "two.yaml").write_text(CLUSTER % bandwidth)
        rows = "".join(JOB % number for number in range(jobs))
        (tmp_path / "t.csv").write_text("job_id,arrival_s,gpus,model,iterations,compute_s\n" + rows)
        scenario = artist.Scenario(
            cluster="two.yaml", trace="t.csv", policy="across.py:Across", contention=contention
        )
        mean_s: float = artist.simulate(scenario, check=True).summary["jct_mean_s"]
        return mean_s

    return run


def test_a_slower_network_between_regions_makes_iterations_longer(
    jct_s: Callable[..., float],
) -> None:
    fast, slow = jct_s(1, "400Gbit/s"), jct_s(1, "8Gbit/s")
    assert 1000 < fast < slow


def test_two_jobs_share_the_link_of_a_region(jct_s: Callable[..., float]) -> None:
    """At 8 Gbit/s one job is bound by the link already, so two of them are nearly twice as slow."""
    alone = jct_s(1, "8Gbit/s", "mean")
    assert alone == pytest.approx(jct_s(1, "8Gbit/s"))
    assert 1.6 * alone < jct_s(2, "8Gbit/s", "mean") < 2 * alone
    assert jct_s(2, "8Gbit/s") == pytest.approx(alone)

"""Does the page about MAST's Table 1 say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import numpy as np
import pytest

from studies.mast.study import workloads


def test_the_workloads_have_the_published_quantiles() -> None:
    made = [job for seed in range(12) for job in workloads.jobs(workloads.PAPER, 1.3, seed, 2688)]
    gpus = np.percentile([job.gpus for job in made], [50, 90, 99])
    assert gpus.tolist() == [16, 64, 128]
    run_s = [job.iterations * job.compute_s for job in made]
    assert np.percentile(run_s, 50) == pytest.approx(20 * 60, rel=0.1)
    assert np.percentile(run_s, 90) == pytest.approx(6.7 * 3600, rel=0.1)


def test_the_load_is_met_on_average() -> None:
    hours = workloads.WARM_H + workloads.COUNTED_H
    loads = [
        sum(
            x.gpus * x.iterations * x.compute_s
            for x in workloads.jobs(workloads.URGENT, 1.5, s, 2688)
        )
        / (2688 * hours * 3600)
        for s in range(12)
    ]
    assert np.mean(loads) == pytest.approx(1.5, rel=0.05)

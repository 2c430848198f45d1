"""Do policies see how a job is divided: in Dally's sensitivity, and on CASSINI's circle?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cluster.fabric import load_fabric
from artist.cluster.placement import Placement
from artist.config import Scenario
from artist.contract import ClusterView
from artist.estimates.query import Estimate
from artist.estimates.query_from_text import on_placement
from artist.policies.cassini.jobs_on_links import JobsOnLinks
from artist.policies.shared.ranking import sensitivity
from artist.run import open_backend
from artist.run.prepare import prepare
from artist.workload.models import parameters, workload

FABRIC = "h100-quantum2-spectrum4"
TWO_MACHINES = Placement((0, 1), (8, 8))


def isolated(model: str) -> Estimate:
    """What an iteration takes on two machines."""
    question = on_placement(workload(model), "8,8", load_fabric(FABRIC), {})
    return question.answer(open_backend("analytical")).estimate


def asked_at_9_s(folder: Path, model: str, contention: str) -> ClusterView:
    """Job a of 16 GPUs runs from 0 on, on two machines; job b arrives after 9 s."""
    trace = folder / "t.csv"
    rows = f'a,0,16,"{model}",100,1\nb,9,8,resnet50,1,1\n'
    trace.write_text(f"job_id,arrival_s,gpus,model,iterations,compute_s\n{rows}")
    scenario = Scenario(
        trace=str(trace), racks=1, machines_per_rack=2, policy="fifo", fabric=FABRIC,
        calibration="none", contention=contention,
    )  # fmt: skip
    prepared = prepare(scenario)
    simulator, policy = prepared.simulator, prepared.policy
    view = simulator.next_question(policy)
    assert view is not None
    simulator.answer(policy.decide(view))
    view = simulator.next_question(policy)
    assert view is not None
    return view


@pytest.mark.parametrize(
    ("order", "ratio", "done"),
    [("tensor-pipeline-data", 0.123537, 8), ("data-pipeline-tensor", 0.261584, 7)],
)
def test_sensitivity_follows_the_order_of_ranks(
    tmp_path: Path, order: str, ratio: float, done: int
) -> None:
    """Nw_sens = iterations done x 1 s of compute / 9 s, of iterations of 1.12 s or of 1.26 s.

    Tensor groups inside machines let 8 iterations end, across machines 7: that job goes first.
    """
    model = f"gpt2@gpu=a100,tensor=4,pipeline=2,order={order}"
    assert isolated(model).comm_ratio == pytest.approx(ratio, abs=1e-6)
    assert int(9 / (1 + ratio)) == done
    view = asked_at_9_s(tmp_path, model, "none")
    (job,) = view.running.values()
    assert sensitivity(job, view.now)[0] == pytest.approx(done / 9)


# A machine's 8 GPUs send over its uplink, once per iteration: activations of 16 samples of 1024
# tokens of 768 numbers in BF16 between stages, or gradients in FP32 of a GPU's share of the model.
BORDER = 8 * 16 * 1024 * 768 * 2
GRADIENTS = 8 * parameters("gpt2") / (4 * 2) * 4


@pytest.mark.parametrize(
    ("axes", "sent_bytes"),
    [
        ("tensor=8,pipeline=2,order=tensor-pipeline-data", BORDER),
        ("tensor=4,pipeline=2,order=tensor-pipeline-data", GRADIENTS),
    ],
)
def test_the_circle_of_a_divided_job_holds_its_bursts(
    tmp_path: Path, axes: str, sent_bytes: float
) -> None:
    """Stages on two machines meet at their border, replicas on two machines reduce gradients."""
    model = f"gpt2@gpu=a100,{axes}"
    view = asked_at_9_s(tmp_path, model, "mean")
    (job,) = view.running.values()
    jobs = JobsOnLinks()
    pattern = view.links.pattern(job.job, TWO_MACHINES)
    jobs.put(job.handle, TWO_MACHINES, pattern)
    for uplink in pattern.up:
        (circle,) = jobs.use(uplink, view.links).circles
        # The trace's second of compute is that much longer than the model's.
        longer = 1e9 / isolated(model).compute_ns
        (up,) = circle.arcs
        assert up.demand * up.length_s == pytest.approx(longer * sent_bytes)
        assert up.start_s + up.length_s == pytest.approx(circle.period_s)
        assert up.demand <= 1.03 * view.links.capacity(uplink)
    assert len(pattern.up) == 2

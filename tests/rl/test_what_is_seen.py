"""Does every observation show what the engine would have if the agent chose nothing more?

Each state is answered in a copy of the environment. The GPUs, links and jobs of the copy's engine
are then compared with the numbers that the agent saw.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import SMALL, made

from artist.cluster.placement import machine_counts
from artist.contract import ClusterView, JobView, Preempt
from artist.policies.learned.observation_graph import KINDS
from artist.policies.learned.observation_sensitivity import OF_THE_CLUSTER

pytestmark = pytest.mark.rl
pytest.importorskip("gymnasium", exc_type=ImportError)

CONTENTIONS = ("none", "mean", "phase", "fluid", "table")
TASKS = {
    "never": {"preemption": "never"},
    "at-once": {"preemption": "at-once"},
    "place": {"name": "artist/Place-v0"},
}
BUSY = SMALL.model_copy(update={"trace": "synth:24:32:4"})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Any model slows any other down by a half."""
    models = ("alexnet", "bert-large", "mobilenetv3", "resnet18", "resnet50", "vgg11")
    rows = (f"{one},{other},1.5" for one, other in itertools.product(models, repeat=2))
    file: Path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    file.write_text("\n".join(("model,beside,slowdown", *rows)))
    return f"table:{file}"


def rounded(*numbers: float) -> tuple[float, ...]:
    """Observations are 32-bit floats."""
    return tuple(round(float(one), 5) for one in numbers)


def on_machines(view: ClusterView, tree: Any) -> list[Counter[Any]]:
    """For each machine how many GPUs hold a job of which profile; free ones have the profile 0."""
    machines: list[Counter[Any]] = [Counter() for _ in tree.levels[tree.machine].gpus]
    for job in view.running.values():
        assert job.placement is not None
        alone_s = view.alone(job.job, job.placement).iteration_s
        for machine, count in machine_counts(tree, job.placement).items():
            machines[machine][rounded(1.0 - 0.5 * job.job.compute_s / alone_s)] += count
    for held, gpus in zip(machines, tree.levels[tree.machine].gpus, strict=True):
        held[0.0,] = gpus - held.total()
    return machines


def grid_shows(seen: Any, view: ClusterView, tree: Any) -> None:
    left = seen[:, : tree.largest(tree.machine)]
    shown = [Counter(rounded(slot) for slot in row if slot >= 0.0) for row in left]
    assert shown == on_machines(view, tree)


def crossed(job: JobView, view: ClusterView, tree: Any) -> list[tuple[float, ...]]:
    """Level, load and free GPUs of each uplink that a job crosses, and the job's share inside."""
    assert job.placement is not None
    busy = view.links.busy({})
    links = []
    for level in range(tree.machine, tree.root):
        inside: Counter[int] = Counter()
        for leaf, count in zip(job.placement.leaves, job.placement.counts, strict=True):
            inside[tree.ancestor(0, leaf, level)] += count
        if len(inside) == 1:
            break
        for unit, count in inside.items():
            load = busy.get((level, unit), 0.0)
            free = view.free.of(level, unit) / tree.levels[level].gpus[unit]
            links.append(rounded(level / tree.root, load / (1 + load), free, count / job.gpus))
    return sorted(links)


def graph_shows(seen: Any, view: ClusterView, tree: Any) -> None:
    nodes, edges, ends = seen.nodes[:, len(KINDS) :], seen.edges[:, 0], seen.edge_links
    running = np.flatnonzero(seen.nodes[:, KINDS.index("running job")])
    shown = [
        (
            *rounded(nodes[job][0] * tree.gpus),
            sorted(
                rounded(*nodes[link][:3], share)
                for (one, link), share in zip(ends, edges, strict=True)
                if one == job
            ),
        )
        for job in running
    ]
    held = [(float(job.gpus), crossed(job, view, tree)) for job in view.running.values()]
    assert sorted(shown) == sorted(held)


def sensitivity_shows(seen: Any, view: ClusterView, tree: Any) -> None:
    free = seen[OF_THE_CLUSTER.index("free GPUs") - len(OF_THE_CLUSTER)]
    assert round(float(free) * tree.gpus, 5) == view.free.total


SHOWS = {"sensitivity": sensitivity_shows, "grid": grid_shows, "graph": graph_shows}


@pytest.mark.parametrize("contention", CONTENTIONS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("observation", SHOWS)
def test_an_observation_shows_the_engine_after_the_answer_none(
    observation: str, task: str, contention: str, table: str
) -> None:
    contention = table if contention == "table" else contention
    scenario = BUSY.model_copy(update={"contention": contention})
    env = made(scenario=scenario, observation=observation, **TASKS[task])
    rng = np.random.default_rng(3)
    seen, _ = env.reset(seed=3)
    preempted = 0
    while not env.episode.done:
        twin = copy.deepcopy(env).episode
        decisions = twin.task.decisions()
        preempted += sum(isinstance(one, Preempt) for one in decisions)
        twin.simulator.answer(decisions)
        SHOWS[observation](seen, twin.simulator.view(), twin.simulator.tree)
        seen = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))[0]
    assert bool(preempted) == (task == "at-once")

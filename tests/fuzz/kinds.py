"""Kinds of files that users give artist: how to break a valid one, and what reads it."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from breaking import broken_bytes, broken_json, broken_yaml
from support import SELF_SUFFICIENT

from artist.cli.cluster_outline import lines, outline
from artist.cluster.cluster_file import load_cluster
from artist.cluster.fabric import load_fabric
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import parse_signature
from artist.config import Scenario
from artist.data.catalogue import load_catalogue
from artist.estimates.calibration import load_calibration
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.experiments.comparison.costs import check_prices, load_costs
from artist.experiments.experiment import load_experiment, runs
from artist.io.shipped import resource
from artist.policies.learned.network import Array
from artist.policies.learned.task_options import TaskOptions
from artist.policies.learned.weights import Manifest, digest_of, write_weights
from artist.policies.table import POLICIES
from artist.run import (
    build_calibration,
    build_cluster,
    build_fabric,
    build_latency,
    build_policy,
    build_trace,
    open_policy,
    simulate,
)
from artist.settings import load_scenario
from artist.trace.named import Given, open_trace
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.mapping import TraceMapping
from artist.trace.proposal import accepted, propose
from artist.trace.read import read_trace
from artist.workload.astra_text import read_text, to_text
from artist.workload.job import Job
from artist.workload.layers import quantised
from artist.workload.models import workload
from artist.workload.tenants import check_quotas, load_tenants

Break = Callable[[random.Random], bytes]
SMALL_GPUS = 4096

NETWORK = (
    Dimension(Topology.RING, 4, 50.0, 500.0),
    Dimension(Topology.SWITCH, 2, 25.0, 1000.0),
)
SYSTEM = SystemSettings(("ring",) * 2, ("ring",) * 2, ("ring",) * 2, ("ring",) * 2)


@dataclass(frozen=True, slots=True)
class Kind:
    """`broken` makes a file's bytes, `read` uses the file called `name` as artist would."""

    id: str
    name: str
    broken: Break
    read: Callable[[Path], object]


def _yaml(*samples: Any) -> Break:
    texts = [yaml.safe_dump(sample, sort_keys=False).encode() for sample in samples]

    def broken(rng: random.Random) -> bytes:
        at = rng.randrange(len(samples))
        return broken_bytes(texts[at], rng) if rng.random() < 0.3 else broken_yaml(samples[at], rng)

    return broken


def text_break(*samples: str | bytes) -> Break:
    """Breaks the bytes of one of the samples."""
    contents = [sample if isinstance(sample, bytes) else sample.encode() for sample in samples]
    return lambda rng: broken_bytes(rng.choice(contents), rng)


def _json(sample: Any) -> Break:
    text = json.dumps(sample).encode()
    return lambda rng: broken_bytes(text, rng) if rng.random() < 0.3 else broken_json(sample, rng)


def _shipped(*parts: str) -> Any:
    return yaml.safe_load(resource("astra_configs", *parts).read_text())


# -- scenarios and experiments


@cache
def _scenarios() -> list[dict[str, Any]]:
    """A scenario per policy with all its options written out, and a few other shapes."""
    scenarios: list[dict[str, Any]] = []
    for entry in map(POLICIES.__getitem__, SELF_SUFFICIENT):
        options = entry.load().Options.model_validate(dict(entry.preset))
        policy = entry.usage.replace("POLICY", "fifo")
        scenarios.append({**_BASE, "policy": policy, "policy_options": _plain(options)})
    scenarios.append(Scenario().model_dump() | {"jobs": 3})
    scenarios.append({"tree": [[[4, 4], [4, 4]], [[4, 4]]], "trace": "tiny-batch", "jobs": 2})
    return scenarios


_BASE: dict[str, Any] = {
    "racks": 2, "machines_per_rack": 2, "gpus_per_machine": 8, "trace": "tiny-poisson", "jobs": 6,
    "arrivals": "poisson:20", "fabric": "dally2025", "backend": "analytical",
    "system": {"preferred_dataset_splits": 4, "endpoint_delay_ns": 10}, "calibration": "none",
    "restart_s": 5.0, "first_start_s": "restart", "permutation": 1, "seed": 3,
}  # fmt: skip


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(model.model_dump_json())
    return plain


def read_scenario(path: Path) -> None:
    """As `artist sim` does. A small scenario is run too."""
    scenario = load_scenario(path, {}, [])
    fabric = load_fabric(scenario.fabric)
    tree = build_cluster(scenario, fabric)
    build_policy(scenario)
    build_trace(scenario, tree)
    if not scenario.backend.startswith("astra"):
        build_latency(scenario, fabric, build_calibration(scenario, fabric))
        if tree.gpus <= SMALL_GPUS:
            simulate(scenario)


def read_experiment(path: Path) -> None:
    """All runs of the grid."""
    runs(load_experiment(path))


# -- what the network and the models are like


def read_fabric(path: Path) -> None:
    """Build a cluster on it and ask for a model's communication."""
    fabric = load_fabric(str(path))
    scenario = Scenario(racks=2, machines_per_rack=2, fabric=str(path))
    build_cluster(scenario, fabric)
    shape = parse_signature("4,4/4", fabric.level_names, fabric.gpus_per_socket)
    build_latency(scenario, fabric).estimate("resnet18", shape)


def read_cluster(path: Path) -> None:
    """Build its tree on its fabric, and say what it consists of."""
    scenario = Scenario(cluster=str(path))
    tree = build_cluster(scenario, build_fabric(scenario))
    if tree.gpus <= SMALL_GPUS:
        assert list(lines(outline(tree, load_cluster(str(path)))))


def _clusters() -> list[Any]:
    return [_shipped("clusters", f"{name}.yaml") for name in ("three-regions", "mast-5-regions")]


def read_speeds(path: Path) -> None:
    """Ask how fast jobs are on the kinds of a shipped cluster."""
    from artist.estimates.speeds import SpeedsOfRun, load_speeds

    scenario = Scenario(cluster="k80-p100-v100")
    of_run = SpeedsOfRun(load_speeds(str(path)), build_cluster(scenario, build_fabric(scenario)))
    jobs = [Job("a", 0.0, gpus, "resnet50@batch=16", 1, 1.0) for gpus in (1, 3, 64)]
    of_run.check(jobs, str)
    for job in jobs:
        assert of_run.least_scale(job) <= of_run.scale_on(job, Placement((0,), (job.gpus,)))


_GOODPUT: dict[str, Any] = {
    "name": "mine",
    "summary": "one model",
    "source": "made up",
    "models": {
        "resnet18": {
            "batch": 128,
            "batch_max": 4096,
            "per_gpu_max": 1024,
            "alpha_c": 0.02,
            "beta_c": 0.0005,
            "alpha_r": 0.01,
            "alpha_n": 0.03,
            "gamma": 2.0,
            "noise": {0: 200, 0.5: 1000},
        }
    },
}


def read_goodput(path: Path) -> None:
    """Make a job elastic, and ask for its best batch."""
    from artist.estimates.goodput_table import load_goodput, with_goodput
    from artist.workload.goodput import best

    for job in with_goodput(
        [Job("a", 0.0, 2, "resnet18", 9, 1.0)], load_goodput(str(path)), 8, str
    ):
        if job.goodput is not None:
            noise, _ = job.goodput.noise_at(0, job.iterations)
            assert best(job.goodput, job.gpus_max, noise, one_machine=False)[0] >= 0


def read_tables(path: Path) -> None:
    """Tables on the regions of a shipped cluster."""
    load_catalogue(path, load_cluster("three-regions"))


_TABLES = "table,partition,size,regions\nads,,2TB,east west\nuser,1,1GB,west\nuser,2,5,west north\n"


def read_failures(path: Path) -> None:
    """Let a small cluster fail for a while."""
    from artist.failures.failures_of_run import open_failures

    tree = build_cluster(Scenario(racks=2, machines_per_rack=2), load_fabric("a100"))
    failures = open_failures(str(path), None, tree)
    events = failures.events(0)
    assert events is not None
    for _ in range(100):
        if events.next_event(0) is None:
            break
    failures.checkpoints(Job("a", 0.0, 9, "any", 1, 1.0), Placement((0, 1), (8, 1)))


_OUTAGES = "unit,from,until\nmachine 3,100,7300\nrack 0,90000,93600\ngpu 5,1e5,1.1e5\n"


def read_prices(path: Path) -> None:
    """What two settings cost on a small cluster."""
    costs = load_costs(path)
    check_prices([{}, {"racks": "+2"}, {"fabric.network.bandwidth": "x2"}], costs)
    for price in costs.settings.values():
        assert price.per_hour(64) >= 0


_PRICES: dict[str, Any] = {
    "currency": "EUR", "gpu_hour": 2.0,
    "settings": {
        "fabric.network.bandwidth=x2": {"gpu_hour": 0.15, "hour": 3},
        "restart_s=5": {"once": 200_000, "years": 4},
    },
}  # fmt: skip


def read_quotas(path: Path) -> None:
    """Tenants with quotas on a small cluster."""
    tenants = load_tenants(str(path))
    check_quotas(tenants, 64)


_QUOTAS: dict[str, Any] = {"tenants": {"a": 16, "b": {"quota": 32, "weight": 2}, "c": {"quota": 0}}}


def read_pairs(path: Path) -> None:
    """A table of slowdowns, with which a small run is simulated."""
    simulate(
        Scenario(
            racks=1, trace="tiny-batch", jobs=4, contention=f"table:{path}", fabric="dally2025"
        )
    )


_PAIRS = (
    "model,beside,slowdown\nresnet50,vgg11,1.5\nvgg11,resnet50,1.2\nresnet18,resnet18,1\n"
    "bert,alexnet,2.5\n"
)


def read_steps_file(path: Path) -> None:
    """Measured steps of placed jobs."""
    from artist.calibrate.measured_steps import read_steps

    assert all(step.gpus > 0 for step in read_steps(path))


_STEPS = (
    "hardware,task,batch_per_gpu,placement,step_s\na100,resnet50,32,4,0.11\n"
    'a100,resnet50,32,"4,4",0.15\na100,vgg11,32,8,0.2\n'
)


def read_proposal(path: Path) -> None:
    """What `artist trace columns --accept` makes of a table with names of its own."""
    proposal = propose(path, TraceMapping())
    accepted(proposal, TraceMapping())


_ACCOUNTING = (
    "State|JobID|User|Account|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n"
    "COMPLETED|7|ann|lab|2026-03-29T01:59:00|2026-03-29T01:59:30|2026-03-29T03:00:05"
    "|2026-03-29T03:01:05|60|30|cpu=1,gres/gpu:a100=8\n"
    "COMPLETED|7.batch|||2026-03-29T01:59:00||2026-03-29T03:00:05|2026-03-29T03:01:05|60||cpu=1\n"
    "PREEMPTED|8_0|ben|lab|1774745999|Unknown|2026-03-29T01:59:59Z|2026-03-29T03:00:31|20|5"
    "|gres/gpu=2\n"
    "PENDING|12_[3-9%2]|ann|lab|2026-10-25T02:30:00|Unknown|Unknown|Unknown|0|UNLIMITED|\n"
)

_QUEUE = (
    "ACCOUNT|TRES_PER_NODE|JOBID|TIME_LIMIT|PRIORITY||STATE|USER|JOBID|NODES|TIME_LEFT|TIME\n"
    "lab|gres:gpu:8|12|1-00:00:00|100||PENDING|ann|12|2|1-00:00:00|0:00\n"
    "lab|gres:gpu:a100:4|11|2:00:00|120||RUNNING|ben|11|1|30:00|1:30:00\n"
    "lab|N/A|15_1|UNLIMITED|100||PENDING|ben|15|1|UNLIMITED|0:00\n"
)


def read_accounting(path: Path) -> None:
    """What `sacct` and `squeue` print, in a zone with summer time."""
    read_trace(path, rules=Rules(time_zone="Europe/Berlin", fractional=Fractional.ROUND_UP))


_FAILURES: dict[str, Any] = {
    "machine": {"distribution": "exponential", "mtbf_s": 5e5, "repair_s": 600},
    "gpu": {"distribution": "weibull", "shape": 0.7, "mtbf_s": 2e7, "repair_s": 0},
    "link": {"level": "rack", "distribution": "exponential", "mtbf_s": 3e6, "repair_s": 60},
    "outages": [{"kind": "rack", "unit": 1, "at_s": 1e5, "duration_s": 3600}],
    "maintenance": [{"kind": "machine", "unit": 3, "at_s": 2e5, "duration_s": 7200}],
    "checkpoint": {"interval_s": "auto", "cost_s": 30},
}


def read_calibration(path: Path) -> None:
    """Apply it to a model and ask for its communication."""
    calibration = load_calibration(str(path))
    assert calibration is not None
    fabric = load_fabric("dally2025")
    shape = parse_signature("4,4", fabric.level_names, fabric.gpus_per_socket)
    build_latency(Scenario(), fabric, calibration).estimate("resnet50", shape)


def _ask(iteration: Any, passes: int = 1) -> None:
    from artist.astra.model.analytical import AnalyticalBackend

    if len(iteration.layers) < 200 and passes < 5:
        AnalyticalBackend().estimate(LatencyQuery(quantised(iteration), NETWORK, SYSTEM, passes))


def read_workload(path: Path) -> None:
    """A layer table: read, ask, and write again."""
    iteration = read_text(path)
    _ask(iteration)
    assert to_text(iteration)


def read_chakra(path: Path) -> None:
    """An execution trace, as ASTRA-sim's command line names it."""
    from artist.astra.files.input_reader import read_traces

    _ask(*read_traces(path.with_name(path.name.removesuffix(".0.et")), 1))


def _chakra() -> bytes:
    from artist.astra.files.chakra_writer import encode_workload

    small = workload("alexnet")
    return encode_workload(quantised(small), 2)


def _resnet_text() -> str:
    return to_text(workload("resnet18"))


def read_recorded(path: Path) -> None:
    """A table of answers."""
    from artist.estimates.recorded import RecordedBackend

    RecordedBackend(path)


_RECORDED = (
    "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us,source\n"
    "resnet18,Ring Switch,N P,4 2,50 25,500 1000,120.5,300.25,java-run\n"
    "vgg11,Ring,N,4,50,500,1200,1300,systematic\n"
)


def read_cases(path: Path) -> None:
    """Many questions at once."""
    from artist.astra.files.case_table import run_cases

    (path.parent / "w.txt").write_text(_resnet_text())
    run_cases(path, path.parent, path.parent / "answers.csv")


CASES = (
    "case_id,backend,workload,num_passes,topology,npus_count,bandwidth,latency,all_reduce_impl,"
    "all_gather_impl,reduce_scatter_impl,all_to_all_impl,scheduling_policy,collective_optimization,"
    "preferred_dataset_splits,active_chunks_per_dimension,endpoint_delay,local_mem_bw,"
    "num_queues_per_dim,comm_scale,injection_scale\n"
    "1,unaware,w,1,Ring|Switch,4|2,50|25,500|1000,ring|ring,ring|ring,ring|ring,ring|ring,LIFO,"
    "localBWAware,4,1,10,1600,1,1,1\n"
)


def read_images(path: Path) -> None:
    """Images with an ASTRA-sim."""
    from artist.astra.programs.images import load_images

    load_images(path)


def read_system(path: Path) -> None:
    """ASTRA-sim's own system file."""
    from artist.astra.files.input_reader import read_system as read

    read(path, queues=1)


_SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 10,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 4,
    "all-reduce-implementation": ["ring", "halvingDoubling"],
    "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"],
    "all-to-all-implementation": ["ring"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
}


def read_services(path: Path) -> None:
    """Past service for Tiresias' Gittins index."""
    from artist.policies.tiresias.queues import read_services as read

    read(path, "gpu_s")


# -- measurements


def read_measured(path: Path) -> None:
    """Measured shares of communication."""
    from artist.calibrate.measurements import read_measurements

    read_measurements(path)


def read_log(path: Path) -> None:
    """A log of nccl-tests."""
    from artist.calibrate.nccl_log import read_log as read

    read(path)


def nccl_log() -> str:
    rows = []
    for power in range(10, 20):
        size = 2**power
        time = digits = 10 + size * 5e-6
        bandwidth = size / time / 1e3
        row = f"{digits:.2f} {bandwidth:.2f} {bandwidth * 1.75:.2f} 0"
        rows.append(f"{size} {size // 4} float sum -1 {row} {row}")
    ranks = [
        f"#  Rank  {i} Group  0 Pid   {1000 + i} on      host0 device  {i} [0x07] NVIDIA A100"
        for i in range(8)
    ]
    return "\n".join(
        [
            "# Collective test starting: all_reduce_perf",
            "# nThread 1 nGpus 8 minBytes 1024 maxBytes 524288 step: 2(factor)",
            "# Using devices",
            *ranks,
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
            "            (us)  (GB/s)  (GB/s)",
            *rows,
            "# Out of bounds values : 0 OK",
            "# Avg bus bandwidth    : 41.2",
            "",
        ]
    )


def read_profile(path: Path) -> None:
    """A trace of PyTorch's profiler."""
    from artist.calibrate.kineto import read_kineto

    read_kineto(path)


def _profile() -> dict[str, Any]:
    def event(name: str, cat: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Any:
        return {"ph": "X", "name": name, "cat": cat, "pid": 0, "tid": tid, "ts": ts, "dur": dur,
                "args": args}  # fmt: skip

    return {
        "traceEvents": [
            event("ProfilerStep#1", "user_annotation", 0, 200),
            event("layer:a", "user_annotation", 1, 5),
            event("aten::linear", "cpu_op", 2, 3, **{"Sequence number": 7}),
            event("cudaLaunchKernel", "cuda_runtime", 3, 1, correlation=1),
            event("autograd", "cpu_op", 20, 9, tid=2, **{"Sequence number": 7}),
            event("cudaLaunchKernel", "cuda_runtime", 21, 1, tid=2, correlation=3),
            event("gemm", "kernel", 10, 10, tid=70, correlation=1),
            event("gemm_backward", "kernel", 50, 40, tid=70, correlation=3),
            event("ncclDevKernel_AllReduce", "kernel", 60, 60, tid=71),
        ]
    }


# -- run directories


@cache
def run_folder() -> Path:
    import tempfile

    from artist.results.run_directory import write_run

    out = Path(tempfile.mkdtemp()) / "run"
    write_run(simulate(Scenario(racks=1, trace="tiny-batch", jobs=8)), out, ["artist"])
    return out


def break_run_file(name: str) -> Break:
    def broken(rng: random.Random) -> bytes:
        data = (run_folder() / name).read_bytes()
        if name.endswith(".json") and rng.random() < 0.7:
            return broken_json(json.loads(data), rng)
        return broken_bytes(data, rng)

    return broken


def read_report(path: Path) -> None:
    """The page of a run, one file of which is broken."""
    from artist.report.grouping import group
    from artist.report.page import page
    from artist.report.reader import read_runs

    for file in run_folder().iterdir():
        if file.name != path.name:
            shutil.copy(file, path.with_name(file.name))
    page(group(read_runs([path.parent])))


OWN_TRACE = (
    "id,submitted,n_gpus,run_hours,network\na,2020-06-09 18:41:01,4,0.5,ResNet-18\n"
    'b,2020-06-09 18:42:01,2,1,"VGG, old"\n'
)
_MAPPING = {
    "columns": {
        "job_id": "id", "arrival_s": "submitted", "gpus": "n_gpus", "duration": "run_hours",
        "model": "network",
    },
    "units": {"duration": "h", "arrival_s": "date"},
    "models": {"ResNet-18": "resnet18", "VGG, old": "vgg11"},
    "model_rule": "mix",
}  # fmt: skip


def read_mapping(path: Path) -> None:
    """The mapping file of a sound trace."""
    trace = path.with_name("sound.csv")
    trace.write_text(OWN_TRACE)
    open_trace(str(trace), given=Given(str(path)))


def read_mapped_trace(path: Path) -> None:
    """A trace with columns of its own, and with a sound mapping."""
    given = Given(**{**_MAPPING, "model_rule": None})  # type: ignore[arg-type]
    open_trace(str(path), given=given)


def read_policy_weights(path: Path) -> object:
    return open_policy("learned", {"weights": str(path)})


def _weights() -> bytes:
    arrays: dict[str, Array] = {
        "scores.0.weight": np.ones((9, 112), np.float32),
        "scores.0.bias": np.zeros(9, np.float32),
    }
    manifest = Manifest(
        task=TaskOptions(),
        network="mlp",
        reward="jct",
        algorithm="none",
        scenario={},
        steps=0,
        seed=0,
        settings={},
        versions={},
        shapes={name: array.shape for name, array in arrays.items()},
        digest=digest_of(arrays),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.npz"
        write_weights(file, arrays, manifest)
        return file.read_bytes()


def read_policy_file(path: Path) -> None:
    """A policy's source, which is run. Broken source does nothing but fail."""
    open_policy(f"{path}:Mine", {})


POLICY = """\
from artist.contract import BasePolicy, Options
class MineOptions(Options):
    share: float = 0.5
class Mine(BasePolicy):
    Options = MineOptions
    def __init__(self, options):
        self.share = options.share
    def decide(self, view):
        return []
"""


def read_parquet_trace(path: Path) -> None:
    """A trace in Parquet."""
    read_trace(path)


def _parquet_trace() -> bytes:
    from artist.trace.named import builtin
    from artist.trace.native.writer import write_trace

    path = Path(tempfile.mkdtemp()) / "t.parquet"
    write_trace(builtin("tiny-batch"), path)
    return path.read_bytes()


def kinds() -> dict[str, Kind]:
    """All kinds by id. The text formats of traces have a campaign of their own, in tests/trace."""
    quickstart = {
        "name": "q", "version": 1, "summary": "s", "base": {"trace": "tiny-batch", "racks": 1},
        "grid": {"policy": ["dally", "fifo"], "racks": [1, 2], "system.endpoint_delay_ns": [1, 2]},
    }  # fmt: skip
    all_kinds = [
        Kind("scenario", "s.yaml", _yaml(*_scenarios()), read_scenario),
        Kind("experiment", "e.yaml", _yaml(quickstart), read_experiment),
        Kind(
            "fabric",
            "f.yaml",
            _yaml(
                _shipped("fabrics", "dally2025.yaml"),
                _shipped("fabrics", "h100-quantum2-spectrum4.yaml"),
            ),
            read_fabric,
        ),
        Kind(
            "calibration",
            "c.yaml",
            _yaml(_shipped("calibrations", "dally2025-table1.yaml")),
            read_calibration,
        ),
        Kind("cluster", "cl.yaml", _yaml(*_clusters()), read_cluster),
        Kind("speeds", "sp.yaml", _yaml(_shipped("speeds", "gavel.yaml")), read_speeds),
        Kind("goodput", "gp.yaml", _yaml(_GOODPUT), read_goodput),
        Kind("tables", "tables.csv", text_break(_TABLES), read_tables),
        Kind("failures", "x.yaml", _yaml(_FAILURES), read_failures),
        Kind("outages", "outages.csv", text_break(_OUTAGES), read_failures),
        Kind("prices", "prices.yaml", _yaml(_PRICES), read_prices),
        Kind("quotas", "tenants.yaml", _yaml(_QUOTAS), read_quotas),
        Kind("pairs", "pairs.csv", text_break(_PAIRS), read_pairs),
        Kind("steps", "steps.csv", text_break(_STEPS), read_steps_file),
        Kind("proposal", "own.csv", text_break(OWN_TRACE), read_proposal),
        Kind("sacct", "sacct.txt", text_break(_ACCOUNTING), read_accounting),
        Kind("squeue", "squeue.txt", text_break(_QUEUE), read_accounting),
        Kind("images", "i.yaml", _yaml(_shipped("images.yaml")), read_images),
        Kind("workload-text", "w.txt", text_break(_resnet_text(), _SMALL), read_workload),
        Kind("workload-chakra", "w.0.et", text_break(_chakra()), read_chakra),
        Kind("recorded", "r.csv", text_break(_RECORDED), read_recorded),
        Kind("cases", "cases.csv", text_break(CASES), read_cases),
        Kind("astra-system", "system.json", _json(_SYSTEM), read_system),
        Kind("services", "s.csv", text_break("gpu_s\n1\n20.5\n3e3\n"), read_services),
        Kind("measurements", "m.csv", text_break(_MEASURED), read_measured),
        Kind("nccl-log", "log.txt", text_break(nccl_log()), read_log),
        Kind("profile", "trace.json", _json(_profile()), read_profile),
        Kind("mapping", "m.yaml", _yaml(_MAPPING), read_mapping),
        Kind("mapped-trace", "own.csv", text_break(OWN_TRACE), read_mapped_trace),
        Kind("policy-file", "mine.py", text_break(POLICY), read_policy_file),
        Kind("weights", "policy.npz", text_break(_weights()), read_policy_weights),
        Kind("trace-parquet", "t.parquet", text_break(_parquet_trace()), read_parquet_trace),
        *(
            Kind(f"run-{name.partition('.')[0]}", name, break_run_file(name), read_report)
            for name in (
                "manifest.json", "summary.json", "jobs.parquet", "placements.parquet",
                "timeline.parquet",
            )
        ),
    ]  # fmt: skip
    return {kind.id: kind for kind in all_kinds}


_SMALL = (
    "DATA\n2\nconv\t-1\t5\tNONE\t0\t5\tNONE\t0\t5\tALLREDUCE\t1000\t1\n"
    "fc\t-1\t5.5\tNONE\t0\t5\tALLGATHER\t64\t5\tALLREDUCE\t4096\t1\n"
)
_MEASURED = (
    "# source: a test\n# hardware: 8 x X\n# who: us\n# when: 2026\n"
    "model,placement,comm_percent,use,note\nresnet50,4+4,12,fit,\n"
    'resnet50,"4,4",38,compare,"why, then"\nvgg11,4/4,1,fit,\n'
)

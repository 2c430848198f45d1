"""Random scenarios of everything together: a trace, a cluster file and settings for both."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from artist.policies.table import POLICIES

PLAIN = [one.id for one in POLICIES if not one.wraps and one.id not in ("learned", "slurm")]
"""Without those that need files of their own."""
WRAPPERS = [one.id for one in POLICIES if one.wraps]
OF_KINDS = (
    "gavel", "gavel-ftf", "gavel-makespan", "sia", "mast", "federated", "fifo", "las", "srtf",
    "easy", "conservative", "tiresias", "dally", "gandiva", "themis", "lucid", "slurm", "optimus",
)  # fmt: skip
OF_HOSTS = ("fifo", "fifo-backfill", "sjf", "las", "srtf", "srsf", "easy", "dally", "tiresias")
OF_SHARES = ("fifo", "sjf", "srtf", "srsf", "las", "tiresias", "easy", "dally")
MODELS = ("resnet50", "vgg11", "bert-large", "mobilenetv3", "alexnet", "resnet50@batch=64")
KINDS = ("a100", "h100")
MIG = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


def random_scenario(seed: int, folder: Path) -> dict[str, Any]:
    """The settings of a `Scenario`, whose files are in the folder."""
    draw = Random(seed)
    asks = draw.choice(("", "", "kinds", "hosts", "shares"))
    served = {"kinds": OF_KINDS, "hosts": OF_HOSTS, "shares": OF_SHARES}.get(asks, PLAIN)
    policy = name = draw.choice(served)
    if not asks or draw.random() < 0.1:
        for _ in range(draw.choice((0, 0, 1, 2))):
            policy = f"{draw.choice(WRAPPERS)}({policy})"
    tenants = draw.random() < 0.5
    contention = draw.choice(("none", "none", "mean", "mean", "phase", "fluid"))
    # Futures, events of iterations, and estimates of shapes that never come again.
    costly = any(word in policy for word in ("lookahead", "random"))
    jobs = draw.randint(4, 10 if costly or contention in ("phase", "fluid") else 40)
    settings: dict[str, Any] = {
        "policy": policy,
        "trace": _trace(draw, folder / "jobs.csv", jobs, asks, tenants),
        "cluster": _cluster(draw, folder / "cluster.yaml", asks, name in ("mast", "federated")),
        "contention": contention,
        "restart_s": draw.choice((None, 0, 5, 30)),  # rounds come every minute
        "permutation": draw.randint(0, 3),
        "seed": seed,
    }
    if seed % 4 == 1:
        known = settings["restart_s"] is not None
        settings["first_start_s"] = "restart" if seed % 8 == 5 and known else 20
    if seed % 5 == 2:
        settings["communication"] = "absolute"
    if draw.random() < 0.3:
        routed = ({}, {"links": 4, "routing": "ecmp"}, {"links": 4, "routing": "static"})[seed % 3]
        settings["fabric_options"] = {"rack": {"oversubscription": 4, **routed}}
    if asks == "kinds" and draw.random() < 0.7:
        settings["speeds"] = _file(
            folder / "speeds.yaml", "name: s", "summary: s", "source: drawn", "reference: a100",
            "speeds: {any: {a100: 1, h100: 1.8}}",
        )  # fmt: skip
    if draw.random() < 0.5:
        settings |= _failures(draw, folder / "failures.yaml")
    if tenants and draw.random() < 0.8:
        web = {"quota": draw.randint(1, 12), "weight": 2}
        settings["tenants"] = {"ads": draw.randint(1, 12), "web": web}
    return settings | _sharing(draw, name)


def _trace(draw: Random, path: Path, jobs: int, asks: str, tenants: bool) -> str:
    elastic = asks in ("", "kinds") and draw.random() < 0.4
    columns = ["job_id", "arrival_s", "gpus", "model", "iterations", "compute_s"]
    columns += ["gpus_min", "gpus_max"] * elastic + ["tenant", "priority"] * tenants
    columns += {"kinds": ["gpu_kinds"], "hosts": ["cpu_cores", "memory_gib"]}.get(asks, [])
    columns += ["gpu_share", "gpu_memory_gib", "mig"] * (asks == "shares")
    instances = draw.random() < 0.5
    arrival_s, rows = 0.0, []
    for number in range(jobs):
        arrival_s += draw.choice((0.0, draw.expovariate(1 / 60)))
        gpus = draw.choice((1, 1, 1, 2, 4, 8, 8, 16))
        row: list[object] = [f"j{number}", round(arrival_s, 3), gpus, draw.choice(MODELS)]
        row += [draw.randint(1, 500), round(draw.uniform(0.01, 2), 4)]
        if elastic:
            row += draw.choice(([max(1, gpus // 2), 2 * gpus], [gpus, gpus]))
        if tenants:
            row += [draw.choice(("ads", "web")), draw.randint(1, 7)]
        if asks == "kinds":
            row += [draw.choice((*KINDS, "h100 a100", "a100 h100"))]
        if asks == "hosts":
            row += [gpus * draw.randint(1, 8), gpus * draw.choice((8, 32, 64))]
        if asks == "shares":
            mig = draw.choice((*MIG, "", "")) if instances and gpus == 1 else ""
            row += [draw.choice((0.001, 0.25, 0.5, 0.7, "")) if gpus == 1 and not mig else ""]
            row += ["" if mig else draw.choice(("", 0.5, 20, 45, 79.9)), mig]
        rows.append(row)
    return _file(path, *(",".join(map(str, row)) for row in (columns, *rows)))


def _cluster(draw: Random, path: Path, asks: str, regions: bool) -> str:
    machine = "gpus: 8" + ", cpu_cores: 64, memory_gib: 512" * (asks == "hosts")
    machine += ", gpu_memory_gib: 80" * (asks == "shares" and draw.random() < 0.7)
    machine += ", mig: h100-80gb" * (asks == "shares")
    lines = ["name: drawn", "summary: drawn", "source: drawn"]
    if regions or draw.random() < 0.3:
        lines += [
            "fabric: hgx-h100",
            "levels: [region, cluster, rack, machine]",
            "wide_area: {bandwidth: 100Gbit/s, latency: 30ms, source: drawn}",
        ]
        count = draw.randint(1, 2)
        unit = f"storage: 9TB, cluster: {{count: {count}, rack: {{machine: {{count: 2, %s}}}}}}"
    else:
        fabric = draw.choice(("hgx-h100", "a100", "dally2025"))
        lines += [f"fabric: {fabric}", "levels: [rack, machine]"]
        unit = f"machine: {{count: {draw.randint(2, 4)}, %s}}"
    of_kind = asks == "kinds" or draw.random() < 0.2
    kinds = (f"{machine}, kind: {kind}" if of_kind else machine for kind in KINDS)
    units = (f"  - {{name: u{place}, {unit % one}}}" for place, one in enumerate(kinds))
    return _file(path, *lines, "tree:", *units)


def _failures(draw: Random, path: Path) -> dict[str, Any]:
    lines = ["machine: {distribution: exponential, mtbf_s: 1.0e5, repair_s: 600}"]
    if draw.random() < 0.5:
        lines += ["gpu: {distribution: weibull, shape: 0.7, mtbf_s: 2.0e6, repair_s: 900}"]
    if draw.random() < 0.4:
        maintenance = "{kind: machine, unit: 0, at_s: 500, duration_s: 700, notice_s: 300}"
        lines += [f"maintenance: [{maintenance}]"]
    settings: dict[str, Any] = {"failures": _file(path, *lines)}
    if draw.random() < 0.6:
        interval_s = draw.choice((60, 600, "auto"))
        settings["checkpoint"] = {"interval_s": interval_s, "cost_s": draw.choice((1, 10))}
    return settings


def _sharing(draw: Random, policy: str) -> dict[str, Any]:
    """Jobs share whole GPUs where a policy lets them."""
    option = {"gandiva": "packing", "gavel": "space_sharing"}.get(policy)
    if policy != "lucid" and (option is None or draw.random() < 0.4):
        return {}
    options = {"policy_options": {option: True}} if option else {}
    return options | {"interference": draw.choice(("h200", "time-slicing"))}


def _file(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)

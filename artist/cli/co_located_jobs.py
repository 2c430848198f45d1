"""`artist latency --beside`: what a job loses to co-located jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.cli.output import Format, print_json, print_table, print_text
from artist.cli.query_options import ContentionModel
from artist.cli.questions import PlacedQuestion, workload_of
from artist.cluster.fabric import with_system
from artist.cluster.placement_shape import signature
from artist.cluster.tree import ClusterTree
from artist.cluster.with_units import read_quantity
from artist.config import Scenario
from artist.errors import ConfigError, shortened
from artist.estimates.latency_service import Asker
from artist.estimates.placements_from_text import WrittenPlacements
from artist.estimates.query_from_text import parse_system
from artist.network.co_located import CoLocation, JobAtPlace, LinkBusyness, co_locate
from artist.network.demand.curves import Curves
from artist.network.models.canonical import Model
from artist.network.models.mean import mean
from artist.network.models.patterns import ETA
from artist.network.models.phase import PhaseModel, fluid
from artist.run import build_cluster, open_backend
from artist.workload.layers import Workload


@dataclass(frozen=True, slots=True)
class CoLocatedJobs:
    """The options of `--beside`: the other jobs, the contention, the cluster, the offset."""

    texts: Sequence[str]
    contention: ContentionModel
    offset: str | None
    sizes: Mapping[str, int | None]
    """`racks`, `machines_per_rack` and `gpus_per_machine`; None is the default of runs."""

    def check(self, *, placed: bool, elsewhere: bool) -> None:
        """Refuse options that need `--beside`, and `--beside` where it has no meaning.

        `placed`: a placement is given, to which `gpus_per_machine` also applies.

        Raises:
            ConfigError: one of them.
        """
        if not self.texts:
            given = [name for name, size in self.sizes.items() if size is not None]
            given += ["offset"] if self.offset is not None else []
            if placed and "gpus_per_machine" in given:
                given.remove("gpus_per_machine")
            if given:
                flag = given[0].replace("_", "-")
                raise ConfigError(f"--{flag}: only --beside MODEL:PLACEMENT needs it")
        elif elsewhere:
            raise ConfigError(
                "--beside asks about one placement on a fabric; give --placement once, without "
                "--sweep, --cases and bare dimensions"
            )


def answer_beside(asks: PlacedQuestion, neighbours: CoLocatedJobs, format_: Format) -> None:
    """Print what a job loses to co-located jobs.

    Raises:
        ConfigError: a neighbour that cannot be read or has no room, or an unknown model.
        BackendError: the backend cannot answer.
    """
    fabric = with_system(asks.fabric, parse_system(list(asks.system)))
    sizes = {name: size for name, size in neighbours.sizes.items() if size is not None}
    tree = build_cluster(Scenario(fabric=fabric.name, **sizes), fabric)  # type: ignore[arg-type]
    workloads: dict[str, Workload] = {}
    constant_shares: dict[str, float] = {}

    def name_of(model: str | None, file: Path | None) -> str:
        """Read a workload of the catalogue or a file; return its name."""
        workload = workload_of(model, file, asks.models)
        name = model if model is not None else str(file)
        workloads[name] = workload
        # A calibration does not scale workloads from files.
        constant_shares[name] = 0.0 if model is None else asks.models.constant_share(model)
        return name

    own = name_of(asks.model, asks.workload)
    room = WrittenPlacements(tree, fabric.gpus_per_socket)
    jobs = [JobAtPlace(own, room.take(asks.placements[0]))]
    offset_s = _seconds(neighbours.offset)
    for text in neighbours.texts:
        named, placement = _neighbour(text)
        name = name_of(*named)
        jobs.append(JobAtPlace(name, room.take(placement), len(jobs) * offset_s))
    asker = Asker(
        fabric,
        open_backend(asks.backend),
        workloads.__getitem__,
        constant_share_of=constant_shares.__getitem__,
    )
    answer = co_locate(tree, fabric, jobs, Curves(asker), *_model(neighbours.contention))
    facts = _facts(tree, jobs, answer, neighbours.contention, asks.models.name)
    if format_ is Format.JSON:
        print_json(facts)
    else:
        _print(facts)


def _neighbour(text: str) -> tuple[tuple[str | None, Path | None], str]:
    """Model or file, and placement, of `MODEL:PLACEMENT[@LEAVES]`."""
    named, colon, placement = text.rpartition(":")
    if not (named and colon and placement):
        raise ConfigError(
            f"--beside {shortened(text)}: expected MODEL:PLACEMENT or MODEL:PLACEMENT@LEAVES, such "
            "as bert-large:8/8 or bert-large:8/8@0,8"
        )
    file = Path(named)
    return ((None, file) if file.suffix == ".txt" else (named, None)), placement


def _seconds(offset: str | None) -> float:
    """The offset between neighbours, in seconds; 0 without one."""
    if offset is None:
        return 0.0
    try:
        return read_quantity(offset, "latency") / 1e9
    except ValueError:
        raise ConfigError(
            f"--offset {shortened(offset)}: expected a time with a unit, such as 20ms"
        ) from None


def _model(name: ContentionModel) -> tuple[Model, float]:
    """The model, and the efficiency of links where the fabric states none: 1 for a fluid."""
    models: dict[str, tuple[Model, float]] = {
        "mean": (mean, ETA),
        "phase": (PhaseModel(), ETA),
        "fluid": (fluid, 1.0),
    }
    return models[name.value]


def _facts(
    tree: ClusterTree,
    jobs: Sequence[JobAtPlace],
    answer: CoLocation,
    contention: ContentionModel,
    calibration: str,
) -> dict[str, Any]:
    """What the command prints: numbers of the first job, all jobs, the links it shares."""
    rows = [
        {
            "model": job.model,
            "placement": signature(tree, job.placement),
            f"{tree.level_names[0]}s": list(job.placement.leaves),
            "iteration_alone_ms": shared.alone_s * 1e3,
            "iteration_beside_ms": shared.iteration_s * 1e3,
            "slowdown": shared.iteration_s / shared.alone_s,
            "bandwidth_share": shared.share,
            "own_share": shared.own_share,
        }
        for job, shared in zip(jobs, answer.jobs, strict=True)
    ]
    return {
        **{key: rows[0][key] for key in list(rows[0])[3:]},
        "contention": contention.value,
        "source": answer.source
        + (", own uplinks" if answer.jobs[0].own_share < 1 else "")
        + f", contention {contention.value}",
        "calibration": calibration,
        "cluster": tree.text,
        "jobs": rows,
        "links": [_link(use) for use in answer.links if 0 in use.co_located],
    }


def _link(use: LinkBusyness) -> dict[str, Any]:
    return {
        "link": use.link.name,
        "capacity_gib_per_s": use.link.capacity_gib_per_s,
        "eta": use.eta,
        "jobs": sorted(use.co_located),
        "utilisation_alone": use.alone[0],
        "utilisation": use.utilisation,
    }


def _print(facts: Mapping[str, Any]) -> None:
    """Print the jobs, the links that the first one shares, and what it loses."""
    rows = facts["jobs"]
    own_share = facts["own_share"]
    others = ", ".join(f"{row['model']} on {row['placement']}" for row in rows[1:])
    title = f"{rows[0]['model']} on {rows[0]['placement']} beside {others} ({facts['source']})"
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])
    if own_share < 1:
        print_text(
            f"Even in isolation, its own uplinks carry only {100 * own_share:.1f} % of the "
            "bandwidth that its levels give it."
        )
    if not facts["links"]:
        print_text(
            "It shares no link with them, so it loses nothing. Its iteration takes as long as "
            "in isolation."
        )
        return
    links = [dict(link) for link in facts["links"]]
    print_table("links that it shares", list(links[0]), [list(link.values()) for link in links])
    lost_ms = facts["iteration_beside_ms"] - facts["iteration_alone_ms"]
    print_text(
        f"An iteration takes {facts['iteration_beside_ms']:.3f} ms instead of "
        f"{facts['iteration_alone_ms']:.3f} ms: {lost_ms:.3f} ms or "
        f"{100 * (facts['slowdown'] - 1):.1f} % more."
    )

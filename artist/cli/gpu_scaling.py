"""`artist latency --gpus`: what a model gains from more GPUs, placed as `pack` places them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.cli.output import note, or_null, print_csv, print_json, print_table, print_text
from artist.cli.query_options import SweepFormat
from artist.cli.questions import (
    PlacedQuestion,
    about_models,
    beyond_memory,
    run_as,
    spread_of_experts,
    too_few_microbatches,
    trained_as_published,
    workload_of,
)
from artist.cli.split_text import flat_splits, print_splits, split_facts
from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape, shape_text
from artist.cluster.tree import ClusterTree
from artist.config import Scenario
from artist.errors import ConfigError, DivisionError, shortened
from artist.estimates.divided.with_split import iteration_split
from artist.estimates.goodput_table import load_goodput
from artist.estimates.query_from_text import on_placement, parse_system
from artist.estimates.sensitivity import ScalingPoint
from artist.estimates.shape_queries import in_groups
from artist.io.figures import check_figure
from artist.policies.shared.placers import PackPlacer
from artist.report.command_plots import plot_scaling
from artist.results.terms.number_text import listed
from artist.run import open_backend
from artist.workload.goodput import Goodput, Useful, useful
from artist.workload.models import canonical_if_known

MOST_GPUS = 65_536
"""More GPUs than any published job trains on."""

MOST_COUNTS = 1_000

# A message names at most this many of the counts that have no row.
_NAMED = 10


@dataclass(frozen=True, slots=True)
class GpuScaling:
    """The options of `--gpus` itself."""

    gpus: str
    machines_per_rack: int | None
    goodput: str | None
    gpu_kind: str | None
    progress: float
    plot: Path | None
    format: SweepFormat
    overwrite: bool = False
    """Whether the plot may replace a file."""

    def run(self, asked: PlacedQuestion) -> None:
        """Ask, print and draw.

        Raises:
            ConfigError: bad counts, a bad goodput file, or a plot that cannot be written.
            BackendError: a query has no answer.
        """
        counts = gpu_counts(self.gpus)
        if not 0 <= self.progress < 1:
            raise ConfigError(f"--progress {self.progress:g}: expected a share from 0 to below 1")
        goodput = None
        if self.goodput is not None:
            goodput = _goodput_of(self.goodput, asked.model, self.gpu_kind)
        if self.plot is not None:  # before the backend works
            check_figure(self.plot, overwrite=self.overwrite)
        points = self._points(counts, asked, goodput)
        alone = None if goodput is None else useful(goodput, 1, self.progress, one_machine=True)
        goodput_of_one = math.nan if alone is None else alone.goodput_per_s
        made = workload_of(asked.model, asked.workload, asked.models)
        workload = made.name
        self._print(
            points, asked, workload, spread_of_experts(made, points[0].gpus), goodput_of_one
        )
        if self.plot is not None:
            plot_scaling(points, workload, self.plot, goodput_of_one)
            note(f"wrote {self.plot}")

    def _points(
        self, counts: Sequence[int], asked: PlacedQuestion, goodput: Goodput | None
    ) -> list[ScalingPoint]:
        """A point for each count. Speedup is relative to one GPU, which does not communicate.

        For a model divided into groups it is relative to the first count: one GPU would not hold
        the model, and has no pipeline stages that wait for each other. Counts into which the axes
        do not divide are left out with a note.

        Raises:
            DivisionError: the axes divide into none of the counts; the error is that of the first.
        """
        machines = self.machines_per_rack or Scenario().machines_per_rack
        racks = -(-counts[-1] // (machines * asked.gpus_per_machine))
        tree = asked.fabric.cluster(
            racks=racks, machines_per_rack=machines, gpus_per_machine=asked.gpus_per_machine
        )
        workload = workload_of(asked.model, asked.workload, asked.models)
        system, backend = parse_system(list(asked.system)), open_backend(asked.backend)
        points: list[ScalingPoint] = []
        refused: dict[int, DivisionError] = {}
        divided = in_groups(workload, counts[-1])
        for gpus in counts:
            text = shape_text(shape(tree, _packed(tree, gpus)), tree.level_names)
            try:
                question = on_placement(
                    workload, text, asked.fabric, system, asked.gpus_per_machine
                )
                answer = question.answer(backend)
            except DivisionError as cause:
                refused[gpus] = cause
                continue
            estimate = answer.estimate
            query = question.asked[answer.index].query
            if asked.model is not None:
                estimate = asked.models.complete(asked.model, query, estimate)
            one_machine = gpus <= asked.gpus_per_machine
            of_goodput = (
                None
                if goodput is None
                else useful(goodput, gpus, self.progress, one_machine=one_machine)
            )
            compute_s = estimate.compute_ns / 1e9
            comm_s = compute_s * estimate.comm_ratio
            base = (gpus, compute_s + comm_s) if divided else (1, compute_s)
            if divided and points:
                base = points[0].base_gpus, points[0].base_s
            split = iteration_split(backend, query, estimate)
            points.append(ScalingPoint(gpus, text, compute_s, comm_s, of_goodput, *base, split))
        if refused:
            _say_left_out(refused, none_left=not points)
        return points

    def _print(
        self,
        points: Sequence[ScalingPoint],
        asked: PlacedQuestion,
        workload: str,
        spread: str,
        goodput_of_one: float,
    ) -> None:
        """Print the points as a table, CSV or JSON, and what they assume."""
        shown = self.goodput is not None
        rows = (
            _rows_of_goodput(points, goodput_of_one) if shown else [_row(point) for point in points]
        )
        if self.format is SweepFormat.CSV:
            if not shown:
                rows = flat_splits(rows)
            print_csv(list(rows[0]), [list(row.values()) for row in rows])
            return
        facts = {"model": workload, "fabric": asked.fabric.name, "calibration": asked.models.name}
        if self.format is SweepFormat.JSON:
            print_json({**facts, "fabric_changes": asked.changes, "points": rows})
            return
        over = points[0].base_gpus
        speedup = "speedup" if over == 1 else f"speedup over {over} GPUs"
        columns = ["GPUs", "placement", "iteration, ms", "communication, ms", speedup]
        title = f"{workload} on fabric {asked.fabric.name}, one iteration"
        cells = [_cells(point) for point in points]
        if shown:
            columns[2:] = ["batch", "step, ms", "samples/s", "efficiency", "goodput, samples/s",
                           "speedup"]  # fmt: skip
            title = f"{workload} by {self.goodput}, one step"
            cells = [_goodput_cells(row) for row in rows]
        print_table(title, columns, cells)
        if not shown:
            print_splits([(point.gpus, point.split) for point in points])
        print_text("GPUs lie as close together as an empty cluster allows (placement pack).")
        if shown:
            print_text(
                f"All numbers are those of {self.goodput}"
                f"{f' on {self.gpu_kind}' if self.gpu_kind else ''}, as elastic jobs have them: "
                f"the batch of the largest goodput, after {100 * self.progress:.0f} % of the "
                "iterations; on one GPU, one above the submitted batch takes two passes or more, "
                "as in the program of Pollux' authors. The fabric does not affect them; leave out "
                "--goodput for the latency model."
            )
            if any(row["batch"] is None for row in rows):
                print_text("A row is empty if not even batch_max gives each GPU its per_gpu_min.")
            if math.isnan(goodput_of_one):
                print_text(
                    "No speedups: no batch on one GPU is within per_gpu_min and per_gpu_max."
                )
            return
        if asked.changes:
            print_text(f"The fabric is changed: {asked.changes}.")
        for sentence in about_models(asked.model, asked.models, asked.fabric, asked.system):
            print_text(sentence)
        names = [run_as(asked.model, point.gpus) for point in points]
        differ = names[-1] is not None and len(set(names)) > 1
        for told in (
            spread,
            trained_as_published(asked.model, points[-1].gpus),
            "On other numbers of GPUs, runs take other axes." if differ else "",
            beyond_memory(asked.model, points[0].gpus, asked.models),
            too_few_microbatches(asked.model),
        ):
            if told:
                print_text(told)


def gpu_counts(text: str) -> list[int]:
    """Numbers of GPUs, ascending: `1,6,12`, or `1..64` for both ends and the powers of 2 between.

    Raises:
        ConfigError: the text is neither.
    """
    low, dots, high = text.partition("..")
    texts = [low, high] if dots else text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in texts):
        raise ConfigError(f"--gpus {shortened(text)}: expected FROM..TO, such as 1..64, or 1,6,12")
    counts = sorted({int(part) for part in texts})
    if not 1 <= counts[0] <= counts[-1] <= MOST_GPUS or len(counts) > MOST_COUNTS:
        raise ConfigError(
            f"--gpus {shortened(text)}: expected up to {MOST_COUNTS} counts from 1 to {MOST_GPUS}"
        )
    if dots:
        if int(low) > int(high):
            raise ConfigError(f"--gpus {shortened(text)}: FROM must not be more than TO")
        powers = (1 << power for power in range(counts[-1].bit_length()))
        counts = sorted({*counts, *(x for x in powers if counts[0] <= x <= counts[-1])})
    return counts


def _say_left_out(refused: Mapping[int, DivisionError], *, none_left: bool) -> None:
    """Note which counts have no row, and why the first has none; raise that if no count has one."""
    counts, reason = list(refused), next(iter(refused.values()))
    if none_left:
        raise reason
    rest = len(counts) - _NAMED
    names = [str(count) for count in counts[:_NAMED]] + ([f"{rest} more"] if rest > 0 else [])
    note(f"--gpus: left out {listed(names)}: {reason}")


def _packed(tree: ClusterTree, gpus: int) -> Placement:
    placement = PackPlacer().place(FreeGpus(tree), gpus)
    assert placement is not None  # the cluster was made large enough
    return placement


def _goodput_of(file: str, model: str | None, kind: str | None) -> Goodput:
    """The model's parameters in a goodput file, on one kind of GPU if it is given."""
    table = load_goodput(file)
    rows = {canonical_if_known(name): row for name, row in table.models.items()}
    row = rows.get(canonical_if_known(model or ""))
    if row is None:
        raise ConfigError(
            f"--goodput {file}: no parameters of {shortened(model or 'a workload of a file')}; it "
            f"has {', '.join(map(shortened, table.models))}"
        )
    if kind is None:
        return row.goodput()
    if kind not in row.kinds:
        has = f"it has {', '.join(map(shortened, row.kinds))}" if row.kinds else "it has none"
        raise ConfigError(
            f"--gpu-kind {shortened(kind)}: no such kind of {shortened(model or '')} in {file}; "
            f"{has}"
        )
    return row.goodput([kind])


def _row(point: ScalingPoint) -> dict[str, Any]:
    """A point of the latency model as plain numbers, in seconds, for JSON and CSV."""
    return {
        "gpus": point.gpus,
        "placement": point.placement,
        "iteration_s": point.iteration_s,
        "compute_s": point.compute_s,
        "comm_s": point.comm_s,
        "speedup": point.speedup,
        **split_facts(point.split),
    }


def _rows_of_goodput(points: Sequence[ScalingPoint], goodput_of_one: float) -> list[dict[str, Any]]:
    """The points of a goodput file for JSON and CSV; None where no batch is large enough.

    `speedup` is relative to the goodput of one GPU, even if that is not a point; None if it has
    none.
    """
    rows = []
    for point in points:
        facts: dict[str, Any] = dict.fromkeys((*Useful._fields, "speedup"))
        if point.useful is not None:
            speedup = point.useful.goodput_per_s / goodput_of_one
            facts = {**point.useful._asdict(), "speedup": or_null(speedup)}
        rows.append({"gpus": point.gpus, "placement": point.placement, **facts})
    return rows


def _goodput_cells(row: Mapping[str, Any]) -> list[str | float]:
    """The cells of a row, without values that are unknown."""
    gpus, placement, batch, step_s, *rest = row.values()
    known = [fact for fact in rest if fact is not None]
    told = [] if batch is None else [str(batch), 1000 * step_s, *known]
    return [str(gpus), placement, *told]


def _cells(point: ScalingPoint) -> list[str | float]:
    times = [1000 * point.iteration_s, 1000 * point.comm_s, point.speedup]
    return [str(point.gpus), point.placement, *times]

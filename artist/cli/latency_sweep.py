"""`artist latency --sweep`: iteration times over a range of one setting of a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.cli.output import note, print_csv, print_json, print_table, print_text
from artist.cli.query_options import SweepFormat
from artist.cli.questions import PlacedQuestion, about_models, workload_of
from artist.cli.remarks import fitted_before
from artist.cluster.fabric import Fabric
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.estimates.query import Estimate, LatencyQuery
from artist.estimates.query_from_text import Question, on_placement, parse_system
from artist.estimates.sensitivity import (
    LevelShares,
    Point,
    RememberingBackend,
    SettingSweep,
    asking,
    level_shares,
    little_gained,
    parse_sweep,
    sweep_fabric,
    where_it_hurts,
)
from artist.io.figures import check_figure
from artist.report.command_plots import plot_sweep
from artist.run import open_backend
from artist.workload.layers import Workload


@dataclass(frozen=True, slots=True)
class NetworkSweep:
    """The options of the sweep itself."""

    sweep: str | None
    points: int
    plot: Path | None
    format: SweepFormat
    overwrite: bool = False
    """Whether the plot may replace a file."""

    def check(self, placements: int) -> None:
        """Refuse options that need each other.

        Raises:
            ConfigError: says which one is missing.
        """
        if self.sweep is None:
            if placements > 1:
                raise ConfigError("several --placement need --sweep; give one")
            if self.plot is not None or self.format is SweepFormat.CSV:
                wanted = "--plot" if self.plot is not None else "--format csv"
                raise ConfigError(
                    f"{wanted} needs --sweep fabric.LEVEL.KEY=FROM..TO or --gpus FROM..TO"
                )
        elif not placements:
            raise ConfigError(
                "--sweep needs --placement, such as 8/8: bare dimensions have no fabric"
            )

    def run(self, asked: PlacedQuestion) -> None:
        """Ask, print and draw.

        Raises:
            ConfigError: a bad setting, value or placement, or a plot that cannot be written.
            BackendError: a query has no answer.
        """
        sweep = parse_sweep(self.sweep or "", self.points)
        if self.plot is not None:  # before the backend works
            check_figure(self.plot, overwrite=self.overwrite)
        workload = workload_of(asked.model, asked.workload, asked.models)
        points, why = _points(sweep, asked, workload)
        self._print(sweep, points, asked, workload.name, why)
        if self.plot is not None:
            plot_sweep(sweep, points, workload.name, self.plot)
            note(f"wrote {self.plot}")

    def _print(
        self,
        sweep: SettingSweep,
        points: Sequence[Point],
        asked: PlacedQuestion,
        workload: str,
        why: Sequence[str],
    ) -> None:
        """Print the points as a table with sentences, as CSV or as JSON."""
        if self.format is not SweepFormat.TABLE:
            rows = [_row(sweep, point) for point in points]
            facts = {"model": workload, "fabric": asked.fabric.name}
            facts |= {"fabric_changes": asked.changes, "calibration": asked.models.name}
            if self.format is SweepFormat.CSV:
                cells = [
                    [str(x).lower() if isinstance(x, bool) else x for x in row.values()]
                    for row in rows
                ]
                print_csv(list(rows[0]), cells)
            else:
                print_json({**facts, "points": rows})
            return
        columns = ("placement", sweep.setting, "iteration, ms", "communication, ms", "comm ratio")
        print_table(
            f"{workload} on fabric {asked.fabric.name}, one iteration",
            (*columns, "slowdown", ""),
            [_cells(point) for point in points],
        )
        for sentence in (*where_it_hurts(sweep, points), *why):
            print_text(sentence)
        if asked.changes:
            print_text(f"The fabric is changed: {asked.changes}.")
        another = f"another {sweep.setting.partition(', ')[0]}"
        every = ", ".join(filter(None, (asked.changes, another)))
        if sentence := fitted_before(asked.models.calibration, asked.fabric, every):
            print_text(sentence)
        for sentence in about_models(asked.model, asked.models, asked.fabric, asked.system):
            print_text(sentence)


def _points(
    sweep: SettingSweep, asked: PlacedQuestion, workload: Workload
) -> tuple[list[Point], list[str]]:
    """The estimates over the range, on each placement, and why more bandwidth gains little."""
    system = parse_system(list(asked.system))

    def question_on(fabric: Fabric, placement: str) -> Question:
        return on_placement(workload, placement, fabric, system, asked.gpus_per_machine)

    def complete(query: LatencyQuery, answer: Estimate) -> Estimate:
        return answer if asked.model is None else asked.models.complete(asked.model, query, answer)

    with open_store() as store:
        ask = asking(question_on, RememberingBackend(open_backend(asked.backend), store), complete)
        points = sweep_fabric(sweep, asked.fabric, asked.placements, ask)
        shares = {
            one: level_shares(asked.fabric, sweep.level, one, ask)
            for one in little_gained(sweep, points)
        }
    return points, [_why_little(placement, sweep.level, one) for placement, one in shares.items()]


def _why_little(placement: str, level: str, shares: LevelShares) -> str:
    if shares.elsewhere == 1:
        return f"{placement}: nothing that it sends on level {level} makes an iteration longer"
    return f"{placement}: more bandwidth of {level} gains little: of the communication, {shares}"


def _row(sweep: SettingSweep, point: Point) -> dict[str, Any]:
    """A point for programs: plain numbers, seconds."""
    setting, _, unit = sweep.setting.partition(", ")
    return {
        "placement": point.placement,
        "setting": setting,
        "value": point.value,
        "unit": unit,
        "present": point.present,
        "iteration_s": point.iteration_s,
        "compute_s": point.compute_s,
        "comm_s": point.comm_s,
        "comm_ratio": point.comm_ratio,
        "slowdown": point.slowdown,
    }


def _cells(point: Point) -> tuple[str | float, ...]:
    return (
        point.placement,
        f"{float(f'{point.value:.4g}'):.12g}",
        1000 * point.iteration_s,
        1000 * point.comm_s,
        point.comm_ratio,
        point.slowdown,
        "present value" if point.present else "",
    )

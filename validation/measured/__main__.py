"""`make measured`: predict measured step times, write both into one file, print errors."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from artist.calibrate.fit_machine import MachineFit, MachineNumbers, fit_machine
from artist.calibrate.measured_steps import PlacedStep, read_steps
from artist.calibrate.step_prediction import predict
from artist.cluster.fabric import Fabric, fabric_names, load_fabric, with_system
from artist.errors import ArtistError, ConfigError
from artist.io.reading import read_bytes
from artist.io.writing import check_file, write_whole
from artist.run import open_backend
from artist.trace.native.read_table import read_csv
from validation.measured.accuracy import Prediction
from validation.measured.report import (
    FITTED_TASK,
    choices_table,
    draw,
    errors_table,
    numbers_table,
    summary_table,
    transfer_table,
)

TASKS: Mapping[str, str] = {"bert": "bert-base"}
"""Tasks whose name means another model here than in the catalogue: `bert` is BERT-base on SQuAD."""

PREDICTED = "predicted_s"

AS_SHIPPED: Mapping[str, str] = {}
CHOICES: Sequence[Mapping[str, str]] = (
    {"rings": "one", "collectives": "bucketed"},
    {"rings": "one", "collectives": "per-layer"},
    *(
        {"rings": "per-level", "collectives": "bucketed", "uneven": rule}
        for rule in ("wider", "bounded", "flat")
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Predictions of all rows, in their order, and the fit of each kind of machine."""

    steps: list[PlacedStep]
    predicted_s: list[float | None]
    fitted: dict[str, MachineFit]

    @property
    def several(self) -> list[Prediction]:
        """The rows of several GPUs that have a prediction."""
        return [
            Prediction(step, value)
            for step, value in zip(self.steps, self.predicted_s, strict=True)
            if value is not None and step.gpus > 1
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict, write, print."""
    options = _parser().parse_args(arguments)
    try:
        check_file(options.out, "OUT")
        outcome = predicted(read_steps(options.steps, TASKS), options.fabrics)
        write_steps(options.steps, options.out, outcome.predicted_s)
        parts = [
            numbers_table(outcome.fitted),
            summary_table(outcome.several),
            errors_table(outcome.several),
        ]
        if options.picture:
            parts.append(choices_table(_by_choice(outcome.steps, options.fabrics)))
            parts.append(transfer_table(_by_origin(outcome, options.fabrics)))
            draw(outcome.several, options.picture)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return cause.exit_code if isinstance(cause, ArtistError) else 3
    without = sum(value is None for value in outcome.predicted_s)
    sys.stdout.write("\n".join(parts))
    sys.stdout.write(f"\n{options.out}: {len(outcome.steps)} rows, {without} without prediction\n")
    return 0


def predicted(
    steps: list[PlacedStep],
    fabrics: Path | None,
    system: Mapping[str, str] = AS_SHIPPED,
    task: str = FITTED_TASK,
) -> Outcome:
    """Predictions of all rows, kind by kind of machine, with numbers fitted to one task's steps.

    `system` replaces the fabrics' settings.
    """
    backend = open_backend("analytical")
    values: dict[int, float | None] = {}
    fitted: dict[str, MachineFit] = {}
    for hardware in dict.fromkeys(step.hardware for step in steps):
        mine = [step for step in steps if step.hardware == hardware]
        fabric = with_system(as_measured(_fabric(hardware, fabrics)), system)
        to_fit = [step for step in mine if step.task == task]
        fitted[hardware] = fit_machine(to_fit, fabric, backend)
        predicted_s = predict(mine, fitted[hardware].numbers.on(fabric), backend)
        values |= {step.line: value for step, value in zip(mine, predicted_s, strict=True)}
    return Outcome(steps, [values[step.line] for step in steps], fitted)


def as_measured(fabric: Fabric) -> Fabric:
    """The fabric as the framework of the measured steps uses it, where the file leaves that open.

    DistributedDataParallel sends buckets, and NCCL makes one ring through all GPUs of a job.
    """
    sent = {"rings": "one", "collectives": "bucketed"}
    missing = {key: sent[key] for key in sent if key not in fabric.system.model_fields_set}
    return with_system(fabric, missing)


def write_steps(path: Path, out: Path, predicted_s: Sequence[float | None]) -> None:
    """Write the rows of a file with the column `predicted_s` at the end."""
    columns = read_csv(path, read_bytes(path)).columns
    kept = {name: cells for name, cells in columns.items() if name != PREDICTED}
    predicted = ["" if value is None else f"{value:.9g}" for value in predicted_s]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*kept, PREDICTED])
    writer.writerows(zip(*kept.values(), predicted, strict=True))
    write_whole(out, text.getvalue())


def _by_choice(steps: list[PlacedStep], fabrics: Path | None) -> dict[str, list[Prediction]]:
    """Predictions for each way to ask ASTRA-sim, each with numbers fitted for it."""
    compute_only = [
        Prediction(step, step.compute_s)
        for step in steps
        if step.compute_s is not None and step.model is not None and step.gpus > 1
    ]
    asked = {
        ", ".join(f"`{value}`" for value in system.values()): predicted(
            steps, fabrics, system
        ).several
        for system in CHOICES
    }
    return {"nothing: computation alone": compute_only, **asked}


def _by_origin(outcome: Outcome, fabrics: Path | None) -> dict[str, list[Prediction]]:
    """Predictions with numbers from elsewhere: from one task each, or from no step of the kind.

    A kind without steps has the bandwidths of its data sheet and the shares of the other kinds.
    """
    by_origin = {
        f"fitted to {task}": predicted(outcome.steps, fabrics, task=task).several
        for task in sorted({step.task for step in outcome.steps} - {FITTED_TASK})
    }
    backend = open_backend("analytical")
    sheets: list[Prediction] = []
    for hardware in outcome.fitted:
        fabric = as_measured(_fabric(hardware, fabrics))
        others = [fit.numbers for kind, fit in outcome.fitted.items() if kind != hardware]
        machine = fabric.levels[fabric.level_names.index("machine")]
        card = machine.uplink
        if not others or card is None or card.rate_gib_per_s is None or card.count is None:
            continue
        sheet = MachineNumbers(
            inside_gib_per_s=machine.bandwidth_gib_per_s,
            outside_gib_per_s=card.rate_gib_per_s * card.count,
            pair_share=mean(numbers.pair_share for numbers in others),
            hidden_share=mean(numbers.hidden_share for numbers in others),
        )
        mine = [step for step in outcome.steps if step.hardware == hardware and step.gpus > 1]
        values = predict(mine, sheet.on(fabric), backend)
        pairs = zip(mine, values, strict=True)
        sheets += [Prediction(step, value) for step, value in pairs if value is not None]
    return {**by_origin, "data sheet, shares of the other kinds": sheets}


def _fabric(hardware: str, folder: Path | None) -> Fabric:
    own = folder / f"{hardware}.yaml" if folder is not None else None
    if own is not None and own.is_file():
        return load_fabric(str(own))
    if hardware not in fabric_names():
        raise ConfigError(
            f"hardware {hardware!r}: no fabric of this name; write FABRICS/{hardware}.yaml or name "
            f"one of {', '.join(fabric_names())}"
        )
    return load_fabric(hardware)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make measured", description=__doc__)
    parser.add_argument("--steps", type=Path, required=True, help="measured steps, CSV")
    parser.add_argument("--fabrics", type=_path, help="folder of fabrics, HARDWARE.yaml")
    parser.add_argument("--out", type=Path, required=True, help="the same with predicted_s, CSV")
    parser.add_argument(
        "--picture", type=_path, help="also compare configurations of ASTRA-sim, and draw this SVG"
    )
    return parser


def _path(text: str) -> Path | None:
    return Path(text) if text else None


if __name__ == "__main__":
    sys.exit(main())

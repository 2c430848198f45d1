"""`artist train`: trains a network that schedules the jobs of a scenario."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, print_facts
from artist.cli.progress_bar import bar_of_runs


def train(
    context: typer.Context,
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.yaml", help="Scenario to train on.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for weights, checkpoint and curves.")],
    steps: Annotated[int, typer.Option(min=1, help="Environment steps.")] = 300_000,
    algorithm: Annotated[str, typer.Option(help="Only maskable-ppo.")] = "maskable-ppo",
    task: Annotated[str, typer.Option(help="schedule or place.")] = "schedule",
    observation: Annotated[str, typer.Option(help="sensitivity or grid.")] = "sensitivity",
    reward: Annotated[
        str, typer.Option(help="jobs-in-system, jct, paper:W1, or a sum of them.")
    ] = "jobs-in-system",
    network: Annotated[str, typer.Option(help="mlp or shared.")] = "mlp",
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the scenario, task.KEY (candidates, order, placement, preemption, "
            "may_wait, one_machine) or ppo.KEY (learning_rate, gamma ...).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random draws.")] = 0,
    processes: Annotated[
        int,
        typer.Option(min=1, help="1: train in this process; more: one process per environment."),
    ] = 1,
    checkpoint_every_s: Annotated[
        float, typer.Option(min=0, help="Seconds between checkpoints.")
    ] = 30.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint.")] = False,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Train a network to schedule a scenario's jobs; `artist sim --policy learned` runs it."""
    from artist.io.optional_libraries import check_extra

    check_extra("artist train", "gymnasium", "stable_baselines3", "sb3_contrib", "torch")
    from artist.io.documents import validate
    from artist.rl.training.checkpoint import CHECKPOINT, check_training_folder
    from artist.rl.training.settings import TrainingSettings
    from artist.rl.training.train import train as run
    from artist.settings import load_scenario

    ours, of_scenario = _by_group(sets or [])
    settings = validate(
        {
            "algorithm": algorithm,
            "steps": steps,
            "seed": seed,
            "task": {"task": task, "observation": observation, **ours["task"]},
            "reward": reward,
            "network": network,
            "hyperparameters": ours["ppo"],
        },
        TrainingSettings,
        "training",
    )
    chosen = load_scenario(scenario, {}, of_scenario)
    check_training_folder(out, resume=resume, overwrite=overwrite)
    progress = _TrainingReport(quiet=quiet)
    try:
        with bar_of_runs(quiet=quiet, what="steps") as show:

            def on_update(done: int, total: int) -> None:
                raise_if_lost()
                show(min(done, total), total)
                progress(done, total)

            trained = run(
                chosen,
                settings,
                out,
                resume=resume,
                processes=processes,
                checkpoint_every_s=checkpoint_every_s,
                on_update=on_update,
            )
    except Interrupted as interrupted:
        kept = (out / CHECKPOINT).exists()
        interrupted.how_far = f"with {progress.done:,} of {steps:,} steps done" + (
            f"; add --resume to continue from the last checkpoint in {out}"
            if kept
            else "; nothing was written"
        )
        raise
    facts: dict[str, Any] = {
        "weights": str(trained.weights),
        "digest": trained.digest,
        "steps": trained.steps,
        "resumed_at": trained.resumed_at,
        "episodes": trained.episodes,
        "jct_mean_s_of_last_episodes": trained.jct_mean_s,
        "wall_s": trained.wall_s,
        "steps_per_s": (trained.steps - trained.resumed_at) / trained.wall_s,
    }
    in_words = {name.replace("_", " "): value for name, value in facts.items() if value is not None}
    print_facts(f"trained on {scenario}", facts if format_ is Format.JSON else in_words, format_)
    if not quiet and format_ is Format.TABLE:
        note(f"hint: artist sim --policy learned --set policy.weights={trained.weights}")


class _TrainingReport:
    """Reports the progress of a training after each tenth of it, where there is no bar."""

    def __init__(self, *, quiet: bool) -> None:
        self.done = 0
        self._quiet = quiet or sys.stderr.isatty()
        self._tenths = 0

    def __call__(self, done: int, total: int) -> None:
        self.done = done
        if not self._quiet and 10 * done // total > self._tenths:
            self._tenths = 10 * done // total
            note(f"{min(done, total):,} of {total:,} steps")


def _by_group(sets: Sequence[str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The assignments of `task.KEY` and of `ppo.KEY`, and all others, which are for the scenario.

    Raises:
        ConfigError: the value of such an assignment is not valid YAML.
    """
    from artist.io.safe_yaml import parse_yaml

    ours: dict[str, dict[str, Any]] = {"task": {}, "ppo": {}}
    others = []
    for assignment in sets:
        key, equals, text = assignment.partition("=")
        group, dot, option = key.partition(".")
        if equals and dot and group in ours:
            ours[group][option] = parse_yaml(text, f"--set {assignment}")[1]
        else:
            others.append(assignment)
    return ours, others

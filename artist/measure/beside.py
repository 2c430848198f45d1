"""Measures how fast models train that share one device.

Each model trains in a process of its own, as jobs do, and a GPU without MIG or MPS gives its time
to one process after the other. A process trains without pause and counts the steps that lie within
a window of time. The other processes train before the window opens and after it has closed, so the
whole window is shared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from artist.errors import BackendError
from artist.measure.step import WARMUP, MeasuredLayer, build, synchroniser, train_once
from artist.workload.gpus import Precision
from artist.workload.models import operators, settings

WINDOW_S = 3.0
"""How long steps are counted."""

_AROUND_S = 0.5
"""How long all models train before and after the window: many steps, or a very long one."""


@dataclass(frozen=True, slots=True)
class SharedSpeeds:
    """Steps per second of models that share a device, and of each of them alone on it."""

    models: tuple[str, ...]
    alone_steps_per_s: tuple[float, ...]
    shared_steps_per_s: tuple[float, ...]

    @property
    def speeds(self) -> tuple[float, ...]:
        """The speed of each model beside the others, over its speed alone."""
        rates = zip(self.shared_steps_per_s, self.alone_steps_per_s, strict=True)
        return tuple(shared / alone for shared, alone in rates)


def measure_shared(
    models: Sequence[str], groups: Sequence[tuple[int, ...]], device: str
) -> list[SharedSpeeds]:
    """The speeds of the models of each group, which is a tuple of positions in `models`.

    A model that shares the device with itself is listed twice in `models`. All models are in the
    device's memory at once.

    Raises:
        BackendError: a process failed, for example for lack of memory.
    """
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    pipes, processes = [], []
    for model in models:
        pipe, end = context.Pipe()
        # Half of the cores each: usually two train at once, and the others wait.
        arguments = (model, device, max(1, (os.cpu_count() or 1) // 2), end)
        processes.append(context.Process(target=_train_on_request, args=arguments, daemon=True))
        pipes.append(pipe)
        processes[-1].start()
        end.close()
    try:
        for model, pipe in zip(models, pipes, strict=True):
            _answer(model, pipe)

        def together(*chosen: int) -> list[float]:
            opens = time.monotonic() + _AROUND_S
            for number in chosen:
                pipes[number].send((opens, WINDOW_S))
            return [_answer(models[number], pipes[number]) for number in chosen]

        members = sorted({number for group in groups for number in group})
        alone = {number: together(number)[0] for number in members}
        return [
            SharedSpeeds(
                models=tuple(models[number] for number in group),
                alone_steps_per_s=tuple(alone[number] for number in group),
                shared_steps_per_s=tuple(together(*group)),
            )
            for group in groups
        ]
    finally:
        for pipe in pipes:
            with suppress(OSError):  # the process has gone
                pipe.send(None)
        for process in processes:
            process.join(timeout=10)
            process.kill()


def _answer(model: str, pipe: Any) -> float:
    """The next answer of a process: steps per second."""
    try:
        answer = pipe.recv()
    except EOFError:
        answer = "its process ended"
    if isinstance(answer, str):
        raise BackendError(
            f"measuring {model} beside others failed: {answer}; try a smaller batch "
            "(MODEL@batch=N) or fewer models at once"
        )
    return float(answer)


def _train_on_request(model: str, device: str, threads: int, pipe: Any) -> None:
    """The main function of a process: answer each window with steps per second."""
    import torch

    try:
        torch.set_num_threads(threads)
        setting = settings(model)
        precision = Precision(setting.precision)
        layers = build(operators(model), setting.batch, device, precision)
        for _ in range(WARMUP):
            train_once(layers, reduce=False)
        synchroniser(device)()
        pipe.send(0.0)
        while (window := pipe.recv()) is not None:
            pipe.send(_steps_per_s(layers, device, *window))
    except (RuntimeError, ValueError) as cause:  # torch raises the former for lack of memory
        pipe.send(str(cause).strip()[-300:])


def _steps_per_s(layers: list[MeasuredLayer], device: str, opens: float, window_s: float) -> float:
    """Train until well after the window; the rate of the steps that lie within it."""
    wait = synchroniser(device)
    begins: list[float] = []
    while (begun := time.monotonic()) < opens + window_s + _AROUND_S:
        if begun >= opens:
            begins.append(begun)
        train_once(layers, reduce=False)
        wait()
    begins.append(begun)
    counted = [begun for begun in begins if begun <= opens + window_s]
    if len(counted) < 2:
        raise ValueError(f"one step takes longer than {window_s:g} s")
    return (len(counted) - 1) / (counted[-1] - counted[0])

"""Fits four numbers of a kind of machine to measured steps of one model.

    step = compute + exposed communication of the model on the placement and fabric

The four numbers are the bandwidth inside a machine, the bandwidth between machines, the share of
it that a pair of machines reaches, and the share of the backward pass that hides communication
(`workload/gradients.py`). They are fitted together, by the least mean |log(predicted / measured)|.
The search covers every bandwidth that hardware has, so its result does not depend on the numbers
of the base fabric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from statistics import fmean

from artist import __version__
from artist.calibrate.asked_otherwise import as_asked
from artist.calibrate.measured_steps import PlacedStep
from artist.calibrate.step_prediction import (
    MOST_P90,
    PredictedStep,
    compute_scale,
    mean_log_error,
    predict,
)
from artist.cluster.fabric import Fabric, with_system
from artist.cluster.placement_shape import parse_signature
from artist.errors import TraceError
from artist.estimates.calibration import Calibration, ModelCalibration
from artist.estimates.dimensions import asked_shapes, dimensions
from artist.estimates.query import LatencyBackend

BANDWIDTHS_GIB_PER_S = tuple(2.0**power for power in range(-8, 13))
"""From a thirtieth of a Gigabit Ethernet link to four times a B200's NVLink."""

TOLERANCE = 1e-3
"""Numbers whose mean |log error| differs by less fit equally well: steps are far noisier. If a
share of 1 fits equally well, it is taken; of such bandwidths, the smallest one is a bound."""

FINEST = 1.01
"""The last steps of the search change a number by 1 %."""

_SHARES = (0.25, 0.5, 0.75, 1.0)
_FINE_BANDWIDTHS = tuple(2.0 ** (power / 8) for power in range(-64, 97))

Loss = Callable[["MachineNumbers"], float]


@dataclass(frozen=True, slots=True)
class MachineNumbers:
    """The four numbers that are fitted."""

    inside_gib_per_s: float
    """Bandwidth of the level `machine`. Levels inside it keep their ratio to it."""
    outside_gib_per_s: float
    """Bandwidth of the levels beyond the machine."""
    pair_share: float = 1.0
    """The share of that bandwidth that a pair of machines reaches."""
    hidden_share: float = 1.0
    """The share of the backward pass that communication can hide behind."""

    @classmethod
    def of(cls, fabric: Fabric) -> MachineNumbers:
        """The numbers that a fabric has."""
        inside, outside = _around(fabric)
        return cls(
            fabric.levels[inside].bandwidth_gib_per_s,
            fabric.levels[outside].bandwidth_gib_per_s,
            fabric.levels[outside].pair_share,
            fabric.system.hidden_share,
        )

    def on(self, fabric: Fabric) -> Fabric:
        """The fabric with these numbers."""
        inside, _ = _around(fabric)
        factor = self.inside_gib_per_s / fabric.levels[inside].bandwidth_gib_per_s
        levels = [
            level.model_copy(update={"bandwidth_gib_per_s": level.bandwidth_gib_per_s * factor})
            for level in fabric.levels[: inside + 1]
        ] + [
            level.model_copy(
                update={
                    "bandwidth_gib_per_s": self.outside_gib_per_s,
                    "pair_share": self.pair_share,
                }
            )
            for level in fabric.levels[inside + 1 :]
        ]
        changed = fabric.model_copy(update={"levels": tuple(levels)})
        return with_system(changed, {"hidden_share": self.hidden_share})


@dataclass(frozen=True, slots=True)
class MachineFit:
    """The numbers, and which of them the steps determine."""

    numbers: MachineNumbers
    at_least: Mapping[str, float]
    """Bandwidths for which the steps give only a lower bound, in GiB/s."""
    undetermined: frozenset[str] = frozenset()
    """Numbers that the steps do not determine at all."""

    @property
    def facts(self) -> dict[str, float]:
        """The facts to print: the numbers, or their lower bounds."""
        return {
            f"{name}_at_least" if name in self.at_least else name: self.at_least.get(name, value)
            for name, value in asdict(self.numbers).items()
            if name not in self.undetermined
        }

    def on(self, fabric: Fabric, source: str = "fitted to measured steps") -> Fabric:
        """The fabric with the fitted numbers; what changes gets a new source.

        A bandwidth that has only a bound stays as in the fabric if it is above the bound. Numbers
        that the steps do not determine stay too.
        """
        own = MachineNumbers.of(fabric)
        kept = {name: max(getattr(own, name), least) for name, least in self.at_least.items()}
        kept |= {name: getattr(own, name) for name in self.undetermined}
        fitted = replace(self.numbers, **kept).on(fabric)
        levels = tuple(
            new if new == old else new.model_copy(update={"source": source})
            for new, old in zip(fitted.levels, fabric.levels, strict=True)
        )
        system = fitted.system
        if system != fabric.system:
            words = f"hidden share {source}; the rest as in {fabric.name}: {system.source}"
            system = system.model_copy(update={"source": words})
        return fitted.model_copy(update={"levels": levels, "system": system})


def fit_machine(steps: Iterable[PlacedStep], fabric: Fabric, backend: LatencyBackend) -> MachineFit:
    """The numbers that fit the steps on several GPUs best.

    Raises:
        TraceError: no step on several GPUs has a model of the catalogue and a compute time.
    """
    fitted = [step for step in steps if step.gpus > 1 and step.is_predictable]
    if not fitted:
        raise TraceError(
            "no step on two or more GPUs can be fitted: each needs a model of the catalogue "
            "(artist list models), and a row of the same batch on one GPU (placement 1)"
        )

    asked, of_step = _distinct(fitted, fabric)
    # With fewer steps than numbers, any hidden share fits as well as any other.
    inside = any(step.gpus > step.machines for step in fitted)
    outside = any(step.machines > 1 for step in fitted)
    tells_hidden_share = len(asked) > inside + outside

    @cache
    def loss(numbers: MachineNumbers) -> float:
        predicted_s = predict(asked, numbers.on(fabric), backend)
        return mean_log_error(fitted, [predicted_s[index] for index in of_step])

    shares = (0.0, *_SHARES) if tells_hidden_share else (MachineNumbers.of(fabric).hidden_share,)
    ways = (-1, 0, 1) if tells_hidden_share else (0,)
    best = _refined(min((_scanned(share, loss) for share in shares), key=loss), loss, ways)
    return _determined(best, loss, tells_hidden_share=tells_hidden_share)


MOST_REFITS = 8
"""How many other steps are left out, one at a time, to find one that contradicts the worst."""


def contradicting(
    worst: PredictedStep, ranked: Sequence[PredictedStep], fabric: Fabric, backend: LatencyBackend
) -> PlacedStep | None:
    """The step without which a fit to the others meets the worst one; None if there is none.

    A fit with the least mean error meets most steps and misses few. So it may meet a wrong step and
    miss a right one.
    """
    steps = [one.step for one in ranked]
    for other in sorted(ranked, key=lambda one: abs(one.error))[:MOST_REFITS]:
        rest = [one for one in steps if one is not other.step]
        if other.step is worst.step or len(rest) < 2:
            continue
        fitted = fit_machine(rest, fabric, backend).on(fabric)
        (predicted_s,) = predict([worst.step], fitted, backend)
        if predicted_s is not None and abs(predicted_s / worst.step.step_s - 1) <= MOST_P90:
            return other.step
    return None


def compute_times(
    name: str, steps: Iterable[PlacedStep], fabric: Fabric, source: str
) -> Calibration:
    """The calibration that gives each model the compute time of its step on one GPU.

    A simulation takes compute times from the trace, and communication as a share of the model's
    compute time. Without these scales the share would be that of the catalogue's GPU. Batches that
    were not measured have the mean scale of those that were.
    """
    scales: dict[str, dict[str, float]] = {}
    for step in steps:
        if step.model is not None and step.compute_s is not None:
            plain = step.model.partition("@")[0]
            scales.setdefault(plain, {})[step.model] = compute_scale(step)
    rows = {
        model: scale
        for plain, by_batch in scales.items()
        for model, scale in {plain: fmean(by_batch.values()), **by_batch}.items()
    }
    return Calibration(
        name=name,
        source=source,
        fabric=fabric.name,
        asked=as_asked(fabric),
        artist_version=__version__,
        models={model: ModelCalibration(compute_scale=scale) for model, scale in rows.items()},
    )


def _distinct(steps: Sequence[PlacedStep], fabric: Fabric) -> tuple[list[PlacedStep], list[int]]:
    """The steps that need different queries, and for each step the index of one with its queries.

    Shapes with the same dimensions have the same answer. No two numbers of `probe` are equal, so
    dimensions that are equal on it are equal with any numbers.
    """
    probe = MachineNumbers(1.1, 2.3, 0.7).on(fabric)
    first: dict[object, int] = {}
    asked: list[PlacedStep] = []
    of_step = []
    for step in steps:
        shape = parse_signature(step.placement, probe.level_names, probe.gpus_per_socket)
        dims = tuple(dimensions(one, probe, of=shape) for one in asked_shapes(shape, probe))
        key = (step.model, step.compute_s, dims)
        if key not in first:
            first[key] = len(asked)
            asked.append(step)
        of_step.append(first[key])
    return asked, of_step


def _scanned(hidden_share: float, loss: Loss) -> MachineNumbers:
    """The best numbers on coarse grids at one hidden share; each number is scanned in turn."""
    start = MachineNumbers(BANDWIDTHS_GIB_PER_S[-1], BANDWIDTHS_GIB_PER_S[-1])
    numbers = replace(start, hidden_share=hidden_share)
    scanned = {
        "outside_gib_per_s": BANDWIDTHS_GIB_PER_S,
        "pair_share": _SHARES,
        "inside_gib_per_s": BANDWIDTHS_GIB_PER_S,
    }
    for name, values in 2 * list(scanned.items()):
        numbers = min((replace(numbers, **{name: value}) for value in values), key=loss)
    return numbers


def _refined(numbers: MachineNumbers, loss: Loss, ways: Sequence[int]) -> MachineNumbers:
    """Search around some numbers with ever smaller steps; `ways` are the steps of the hidden share.

    More hidden communication and less bandwidth almost cancel, so the other numbers are searched
    again after each step of the hidden share.
    """
    ratio = 2.0
    while ratio > FINEST:
        ratio **= 0.5
        moved, last = numbers, None
        while moved != last:
            last = moved
            shares = (moved.hidden_share + (ratio - 1) * way / 2 for way in ways)
            candidates = [
                _followed(moved, share, ratio, loss) for share in shares if 0 <= share <= 1
            ]
            moved = min([moved, *candidates], key=loss)
        numbers = moved
    return numbers


def _followed(
    numbers: MachineNumbers, hidden_share: float, ratio: float, loss: Loss
) -> MachineNumbers:
    """The numbers at another hidden share, each moved by one step if that is better."""
    numbers = replace(numbers, hidden_share=hidden_share)
    for name in ("outside_gib_per_s", "pair_share", "inside_gib_per_s"):
        value = getattr(numbers, name)
        # A pair of machines is not faster than several.
        most = 1.0 if name == "pair_share" else BANDWIDTHS_GIB_PER_S[-1]
        values = (value, value / ratio, min(value * ratio, most))
        numbers = min((replace(numbers, **{name: value}) for value in values), key=loss)
    return numbers


def _determined(best: MachineNumbers, loss: Loss, *, tells_hidden_share: bool) -> MachineFit:
    """The fit: shares of 1 where these fit equally well, bounds, and undetermined numbers."""
    enough = loss(best) + TOLERANCE
    numbers = best
    undetermined = set() if tells_hidden_share else {"hidden_share"}
    for name in ("pair_share", "hidden_share") if tells_hidden_share else ("pair_share",):
        if loss(replace(numbers, **{name: 1.0})) <= enough:
            numbers = replace(numbers, **{name: 1.0})
    at_least = {}
    for name in ("inside_gib_per_s", "outside_gib_per_s"):
        slower = (replace(numbers, **{name: value}) for value in _FINE_BANDWIDTHS)
        bounds = [getattr(other, name) for other in slower if loss(other) <= enough]
        if bounds == [*_FINE_BANDWIDTHS]:
            undetermined |= {name, "pair_share"} if name == "outside_gib_per_s" else {name}
        elif bounds and bounds[-1] == _FINE_BANDWIDTHS[-1]:
            at_least[name] = bounds[0]
    return MachineFit(numbers, at_least, frozenset(undetermined))


def _around(fabric: Fabric) -> tuple[int, int]:
    """The indices of the level `machine` and of the next one."""
    machine = fabric.level_names.index("machine")
    return machine, machine + 1

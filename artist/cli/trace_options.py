"""Options that say how to read a trace's file, and what a command says about the reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.output import note

if TYPE_CHECKING:
    from artist.trace.native.trace import Trace

Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="gpus=n_gpus,...|FILE.yaml", help="Artist's column=the file's column."),
]
Units = Annotated[
    list[str] | None,
    typer.Option(metavar="duration=h,...", help="us, ms, s, min, h, d; arrivals also date."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(metavar="'ResNet 18=resnet18',...", help="The file's model=artist's model."),
]
ModelRule = Annotated[
    str | None,
    typer.Option(metavar="RULE", help="For jobs without a model: uniform, mix, keep or a model."),
]


def given_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a scenario that these options of a command give.

    Raises:
        ConfigError: no pairs.
    """
    given: dict[str, Any] = {}
    for name in ("columns", "units", "models"):
        texts = parameters.get(name)
        if texts:
            given[name] = _file_or_pairs(texts) if name == "columns" else pairs_of(name, texts)
    if parameters.get("model_rule") is not None:
        given["model_rule"] = parameters["model_rule"]
    return given


def pairs_of(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The pairs in the values of an option that may be repeated: `a=b,c=d`.

    A comma without a `=` up to the next one belongs to a name, and after an `@` a comma belongs to
    the settings of a model, as in `VGG=vgg11@gpu=A100,batch=64`.

    Raises:
        ConfigError: no pairs, or a name given twice.
    """
    from artist.errors import ConfigError, shortened

    pairs: dict[str, str] = {}
    for text in texts:
        for pair in [text] if "@" in text else _pieces(text):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not key or not equals or not value:
                raise ConfigError(f"--{name} {shortened(text)}: expected pairs, a=b or a=b,c=d")
            if pairs.setdefault(key, value) != value:
                raise ConfigError(f"--{name}: {shortened(key)} is given twice; give it once")
    return pairs


def say_what_was_read(trace: Trace, *, quiet: bool = False) -> None:
    """Say how the reader changed a trace, on stderr and before anything is simulated.

    Models that were drawn at random are told with `quiet` too: they are data, and nobody gave them.
    """
    if trace.mapped and not quiet:
        note(f"trace {trace.name}: {'; '.join(trace.mapped)}")
    filled = [text for text in trace.filled if text not in trace.drawn]
    if filled and not quiet:
        note(f"trace {trace.name}: filled in {'; '.join(filled)}")
    if trace.drawn:
        note(
            f"trace {trace.name}: models are drawn at random: {'; '.join(trace.drawn)}; say which "
            "they are with --models NAME=MODEL or --model-rule MODEL"
        )
    if trace.dropped and not quiet:
        reasons = "; ".join(f"{reason}: {rows}" for reason, rows in trace.dropped.items())
        note(f"trace {trace.name}: dropped {sum(trace.dropped.values())} rows ({reasons})")


def _file_or_pairs(texts: Sequence[str]) -> dict[str, str] | str:
    """The name of a mapping file, or pairs."""
    if len(texts) == 1 and texts[0].endswith((".yaml", ".yml")):
        return texts[0]
    return pairs_of("columns", texts)


def _pieces(text: str) -> list[str]:
    """The text cut at the commas that begin a new pair."""
    pieces: list[str] = []
    begun = ""
    for piece in text.split(","):
        begun = f"{begun},{piece}" if begun else piece
        if "=" in begun:
            pieces.append(begun)
            begun = ""
    return [*pieces, begun] if begun else pieces

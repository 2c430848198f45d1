"""How far are the catalogue's compute times from a real GPU's, as `docs/fidelity.md` says?"""

import csv
from pathlib import Path
from statistics import median

from artist.workload.models import workload

STEPS = Path(__file__).with_name("h200_steps.csv")


def _compute_ms(model: str, precision: str) -> float:
    layers = workload(f"{model}@gpu=h200,precision={precision}").layers
    passes = (x for layer in layers for x in (layer.forward, layer.input_grad, layer.weight_grad))
    return sum(x.compute_us for x in passes) / 1e3


def test_steps_take_longer_than_the_catalogue_says() -> None:
    with STEPS.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    ratios = {
        (row["model"], row["precision"]): float(row["step_ms"])
        / _compute_ms(row["model"], row["precision"])
        for row in rows
    }
    assert len(ratios) == 22
    assert round(median(ratios.values()), 1) == 2.2
    assert round(ratios["bert-large", "tf32"], 1) == 1.0
    assert round(ratios["gpt2-medium", "tf32"], 1) == 1.4
    assert round(ratios["vgg16", "tf32"], 1) == min(round(x, 1) for x in ratios.values()) == 0.7
    assert round(ratios["mobilenetv3", "bf16"]) == max(round(x) for x in ratios.values()) == 46

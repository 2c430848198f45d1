"""Can everyone distinguish the colours of policies and levels, and see them on the background?

Colour blindness is simulated as by Machado, Oliveira and Fernandes (2009), severity 1.
"""

from __future__ import annotations

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest

VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
TO_XYZ = np.array([
    [0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
])  # fmt: skip
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    x = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def colours(sheet: str, pattern: str) -> list[str]:
    css = files("artist.report").joinpath("assets", sheet).read_text()
    return re.findall(rf"--{pattern}: (#[0-9a-f]{{6}});", css)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("family", [r"s\d", "l[012]"])
@pytest.mark.parametrize("sheet", ["page.css", "dark.css"])
def test_colours_differ_for_everyone(sheet: str, family: str, vision: str) -> None:
    seen = [lab(np.array(VISION[vision]) @ linear(c)) for c in colours(sheet, family)]
    assert len(seen) in (3, 8)
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest > (22 if vision == "usual" else 18)


@pytest.mark.parametrize("sheet", ["page.css", "dark.css"])
@pytest.mark.parametrize(
    ("below", "pattern", "least"),
    [
        ("card", r"[sloj]\d", 3.0), ("card", "ink", 7.0), ("card", "quiet", 4.5),
        ("card", "accent", 4.5),
        ("idle", r"[lj]\d", 3.0),  # the cluster timeline draws on the colour of idle GPUs
    ],
)  # fmt: skip
def test_colours_stand_out_from_their_ground(
    sheet: str, below: str, pattern: str, least: float
) -> None:
    ground = linear(colours(sheet, below)[0]) @ TO_XYZ[1]
    for colour in colours(sheet, pattern):
        light = linear(colour) @ TO_XYZ[1]
        assert (max(light, ground) + 0.05) / (min(light, ground) + 0.05) >= least, colour

"""Do products, scalings and step lengths of cones follow their definitions?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.policies.gavel.cones import (
    Floats,
    Scaling,
    inside_by,
    ones,
    product,
    quotient,
    speed_out,
)

LINEAR, TRIPLES = 3, 4


def inside(seed: int) -> Floats:
    """A random vector inside the cones: three numbers and four triples."""
    draw = np.random.default_rng(seed)
    rest = draw.normal(size=(TRIPLES, 2))
    first = np.hypot(rest[:, 0], rest[:, 1]) + draw.uniform(0.1, 2, TRIPLES)
    return np.append(draw.uniform(0.1, 2, LINEAR), np.column_stack([first, rest]))


def test_products_by_hand() -> None:
    a, b = np.array([2.0, 3, 1, 2]), np.array([5.0, 4, 3, 1])
    assert product(1, a, b) == pytest.approx([10, 17, 13, 11])
    assert product(LINEAR, inside(0), ones(LINEAR, TRIPLES)) == pytest.approx(inside(0))


@pytest.mark.parametrize("seed", range(5))
def test_a_quotient_undoes_a_product(seed: int) -> None:
    a, b = inside(seed), inside(seed + 100)
    assert quotient(LINEAR, product(LINEAR, a, b), b) == pytest.approx(a)


@pytest.mark.parametrize("seed", range(5))
def test_a_scaling_takes_multipliers_and_slack_to_one_point(seed: int) -> None:
    s, u = inside(seed), inside(seed + 100)
    scaling = Scaling(LINEAR, s, u)
    assert scaling.times(u) == pytest.approx(scaling.over(s))
    assert scaling.over(scaling.times(u)) == pytest.approx(u)
    squared = np.append(
        scaling.weights * s[:LINEAR], scaling.matrices @ s[LINEAR:].reshape(-1, 3, 1)
    )
    assert squared == pytest.approx(u)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_reaches_the_edge_of_the_first_cone(seed: int) -> None:
    point, by = inside(seed), -inside(seed + 100)
    part = 1 / speed_out(LINEAR, point, by)
    assert inside_by(LINEAR, point + part * by) == pytest.approx(0, abs=1e-9)
    assert inside_by(LINEAR, point) > 0
    assert inside_by(
        LINEAR, point - inside_by(LINEAR, point) * ones(LINEAR, TRIPLES)
    ) == pytest.approx(0, abs=1e-12)

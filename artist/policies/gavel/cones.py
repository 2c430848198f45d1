"""Points in a product of cones, as an interior point method needs them.

The first `linear` numbers of a vector must be at least 0 each. The others are triples, each in a
second-order cone: the first number is at least the length of the other two.

Source: A. Domahidi, E. Chu, S. Boyd, *ECOS: an SOCP solver for embedded systems*, ECC 2013, section
II, with the products and the scaling of Nesterov and Todd.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

_MIRROR = np.array([1.0, -1.0, -1.0])


def product(linear: int, a: Floats, b: Floats) -> Floats:
    """The product of two vectors, cone by cone."""
    one, other = _triples(linear, a), _triples(linear, b)
    first = (one * other).sum(axis=1, keepdims=True)
    others = one[:, :1] * other[:, 1:] + other[:, :1] * one[:, 1:]
    return np.append(a[:linear] * b[:linear], np.hstack([first, others]))


def quotient(linear: int, a: Floats, b: Floats) -> Floats:
    """The vector whose product with `b` is `a`."""
    of, by = _triples(linear, a), _triples(linear, b)
    first = (by * of * _MIRROR).sum(axis=1, keepdims=True) / _size(by)[:, None] ** 2
    others = (of[:, 1:] - first * by[:, 1:]) / by[:, :1]
    return np.append(a[:linear] / b[:linear], np.hstack([first, others]))


def ones(linear: int, triples: int) -> Floats:
    """The vector that changes nothing as a factor."""
    return np.append(np.ones(linear), np.tile([1.0, 0.0, 0.0], triples))


def inside_by(linear: int, numbers: Floats) -> float:
    """The largest t for which `numbers` - t `ones` is still in every cone."""
    triples = _triples(linear, numbers)
    room = triples[:, 0] - np.hypot(triples[:, 1], triples[:, 2])
    return float(min(numbers[:linear].min(), room.min(initial=np.inf)))


def speed_out(linear: int, point: Floats, by: Floats) -> float:
    """1 / the part of a step from inside the cones at which the first one is left."""
    at, change = _triples(linear, point), _triples(linear, by)
    size = _size(at)[:, None]
    unit = at / size
    along = (unit * change * _MIRROR).sum(axis=1, keepdims=True)
    across = change[:, 1:] - (along + change[:, :1]) / (unit[:, :1] + 1.0) * unit[:, 1:]
    left = (np.hypot(across[:, 0], across[:, 1]) - along[:, 0]) / size[:, 0]
    return float(max((-by[:linear] / point[:linear]).max(), left.max(initial=-np.inf)))


class Scaling:
    """The symmetric W with W u = s / W, for s and u inside the cones."""

    def __init__(self, linear: int, s: Floats, u: Floats) -> None:
        self._linear = linear
        self._root = np.sqrt(s[:linear] / u[:linear])
        of_s, of_u = _triples(linear, s), _triples(linear, u)
        size_s, size_u = _size(of_s), _size(of_u)
        one, other = of_s / size_s[:, None], of_u / size_u[:, None]
        middle = one + other * _MIRROR
        middle /= np.sqrt(2.0 + 2.0 * (one * other).sum(axis=1, keepdims=True))
        eta = np.sqrt(size_s / size_u)[:, None, None]
        w, tail = np.zeros((len(middle), 3, 3)), middle[:, 1:]
        w[:, 0], w[:, 1:, 0] = middle, tail
        w[:, 1:, 1:] = np.eye(2) + tail[:, :, None] * tail[:, None, :] / (1 + middle[:, :1, None])
        self._w, self._inverse = eta * w, w * np.outer(_MIRROR, _MIRROR) / eta
        self.weights = u[:linear] / s[:linear]
        """W^-2 of single numbers."""
        self.matrices = self._inverse @ self._inverse
        """[triples, 3, 3] W^-2 of triples."""

    def times(self, a: Floats) -> Floats:
        """W a."""
        return np.append(self._root * a[: self._linear], _each(self._w, self._linear, a))

    def over(self, a: Floats) -> Floats:
        """W^-1 a."""
        return np.append(a[: self._linear] / self._root, _each(self._inverse, self._linear, a))


def _each(matrices: Floats, linear: int, a: Floats) -> Floats:
    result: Floats = matrices @ _triples(linear, a)[:, :, None]
    return result


def _triples(linear: int, numbers: Floats) -> Floats:
    return numbers[linear:].reshape(-1, 3)


def _size(triples: Floats) -> Floats:
    """How far inside its cone each triple is: 0 on the edge."""
    first, rest = triples[:, 0], np.hypot(triples[:, 1], triples[:, 2])
    result: Floats = np.sqrt((first - rest) * (first + rest))
    return result

"""A warehouse as arrays: tables, regions, jobs, and who reads what.

A job is in region r if at least `need` of its tables have their home there: all of them for
training, more than half for analytics (section 3.3). Otherwise it is in no region (the paper's
NULL).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PRIORITIES = 7


def starts_of(lengths: Ints) -> Ints:
    """The starts of lists that are stored one after the other, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)])


@dataclass(frozen=True)
class NumberLists:
    """Lists of numbers, one after the other: list i is `items[starts[i]:starts[i + 1]]`."""

    starts: Ints
    items: Ints

    @property
    def lengths(self) -> Ints:
        """How many numbers each list has."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> Ints:
        """The list that each item is in."""
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)

    def of(self, index: int) -> Ints:
        """One list."""
        return self.items[self.starts[index] : self.starts[index + 1]]

    def of_many(self, lists: Ints) -> tuple[Ints, Ints]:
        """Positions in `lists`, and items, of several lists one after the other."""
        lengths = self.starts[lists + 1] - self.starts[lists]
        owners = np.repeat(np.arange(len(lists)), lengths)
        offsets = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return owners, self.items[self.starts[lists][owners] + offsets]

    def inverted(self, count: int) -> NumberLists:
        """For each of `count` items the lists that it is in, ascending."""
        order = np.argsort(self.items, kind="stable")
        lengths = np.bincount(self.items, minlength=count)
        return NumberLists(starts_of(lengths), self.owners[order])


@dataclass(frozen=True)
class Instance:
    """A warehouse to plan: T tables, R regions, J jobs, K kinds of GPUs, A applications."""

    tables: Sequence[str]
    regions: tuple[str, ...]
    kinds: tuple[str, ...]
    applications: tuple[str, ...]
    jobs: Sequence[str]
    size: Ints
    """[T] bytes."""
    home: Ints
    """[T] the region where each table is now."""
    storage: Ints
    """[R] bytes."""
    supply: Floats
    """[R, K] GPU hours."""
    reads: NumberLists
    """The tables of each job, each once."""
    kind: Ints
    """[J] kind of GPU; -1 for analytics."""
    priority: Ints
    """[J] 0 is the highest."""
    gpu_h: Floats
    cpu_h: Floats
    application: Ints
    """[J] -1 for a job without an application."""
    cpu_limit: Floats
    """[A, R] CPU hours, infinite without a limit."""

    @cached_property
    def readers(self) -> NumberLists:
        """The jobs of each table."""
        return self.reads.inverted(len(self.size))

    @cached_property
    def need(self) -> Ints:
        """[J] how many of its tables must have their home in a region for the job to be there."""
        lengths = self.reads.lengths
        return np.where(self.kind >= 0, lengths, lengths // 2 + 1)

    @cached_property
    def read_bytes(self) -> Floats:
        """[J] the bytes of a job's tables."""
        weights = self.size[self.reads.items].astype(float)
        return np.bincount(self.reads.owners, weights, len(self.kind)).astype(float)

    @cached_property
    def all_read_bytes(self) -> float:
        """The bytes of the tables of all jobs."""
        return float(self.read_bytes.sum())

    @cached_property
    def demand(self) -> Floats:
        """[K, P] GPU hours of all jobs, wherever they are."""
        training = self.kind >= 0
        cell = self.kind[training] * PRIORITIES + self.priority[training]
        cells = len(self.kinds) * PRIORITIES
        counted = np.bincount(cell, self.gpu_h[training], cells).astype(float)
        return counted.reshape(len(self.kinds), PRIORITIES)

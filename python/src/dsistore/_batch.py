"""Batches as numpy arrays over the engine's memory, without a copy.

words.go in package engine says what the words are; this module reads them in that order.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._engine import Words

_VERSION = 1


@dataclass
class Matrix:
    """[B, width] float32, row-major, a column a feature (or the numbers of one embedding). Null is 0."""

    features: list[int]
    width: int
    values: npt.NDArray[np.float32]
    present: npt.NDArray[np.uint64] | None  # [features, words]: bitmaps of B bits


@dataclass
class Jagged:
    """For each feature in turn, B lists (in a group: as many as it has slots)."""

    features: list[int]
    lengths: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    values: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    present: npt.NDArray[np.uint64] | None


@dataclass
class Group:
    """Features that share one inverse: row -> slot."""

    features: list[int]
    slots: int
    inverse: npt.NDArray[np.int32]
    sparse: Jagged
    weighted: Jagged
    floats: Jagged


@dataclass
class Column:
    """An exact column: a key, a string, a partition value, ..."""

    place: int
    rows: int
    slots: int
    present: npt.NDArray[np.uint64]
    inverse: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    ints: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    doubles: npt.NDArray[np.float64]
    data: npt.NDArray[np.uint8]
    score_floats: npt.NDArray[np.float32]
    score_doubles: npt.NDArray[np.float64]


@dataclass
class RawBatch:
    index: int
    first_row: int
    rows: int
    epoch: int
    dense: Matrix
    labels: Matrix
    embeddings: list[Matrix]
    sparse: Jagged
    weighted: Jagged
    floats: Jagged
    groups: list[Group]
    columns: dict[int, Column] = field(default_factory=dict)


class _Reader:
    """Takes one thing after the other off the words. Arrays hold the batch."""

    def __init__(self, words: Words):
        self._owner = words
        self._words = words.words
        self._at = 0

    def number(self) -> int:
        self._at += 1
        return self._words[self._at - 1]

    def features(self) -> list[int]:
        n = self.number()
        self._at += n
        return self._words[self._at - n: self._at]

    def array(self, dtype: Any) -> npt.NDArray[Any]:
        address, n = self.number(), self.number()
        if n == 0:
            return np.empty(0, dtype)
        memory = (ctypes.c_byte * (n * np.dtype(dtype).itemsize)).from_address(address)
        memory.owner = self._owner  # the array holds memory, and memory the batch
        return np.frombuffer(memory, dtype)

    def present(self, features: int) -> npt.NDArray[np.uint64] | None:
        bits = self.array(np.uint64)
        return bits.reshape(features, -1) if len(bits) else None

    def matrix(self, rows: int) -> Matrix:
        features, width = self.features(), self.number()
        values = self.array(np.float32).reshape(rows, width)
        return Matrix(features, width, values, self.present(len(features)))

    def jagged(self) -> Jagged:
        features = self.features()
        return Jagged(
            features, self.array(np.int32), self.array(np.int32), self.array(np.int32), self.array(np.int64),
            self.array(np.float32), self.array(np.float32), self.present(len(features)),
        )

    def group(self) -> Group:
        return Group(
            self.features(), self.number(), self.array(np.int32), self.jagged(), self.jagged(), self.jagged(),
        )

    def column(self) -> Column:
        return Column(
            self.number(), self.number(), self.number(), self.array(np.uint64), self.array(np.int32),
            self.array(np.int32), self.array(np.int32), self.array(np.int64), self.array(np.float32),
            self.array(np.float64), self.array(np.uint8), self.array(np.float32), self.array(np.float64),
        )


def read(words: Words) -> RawBatch:
    """The batch that words describe. Its memory is given back when the last of its arrays is gone."""
    r = _Reader(words)
    version = r.number()
    if version != _VERSION:
        raise ImportError(f"the engine describes batches in version {version}, this package reads {_VERSION}")
    r.number()  # id
    index, first_row, rows, epoch = r.number(), r.number(), r.number(), r.number()
    dense, labels = r.matrix(rows), r.matrix(rows)
    embeddings = [r.matrix(rows) for _ in range(r.number())]
    sparse, weighted, floats = r.jagged(), r.jagged(), r.jagged()
    groups = [r.group() for _ in range(r.number())]
    out = RawBatch(index, first_row, rows, epoch, dense, labels, embeddings, sparse, weighted, floats, groups)
    for _ in range(r.number()):
        c = r.column()
        out.columns[c.place] = c
    return out

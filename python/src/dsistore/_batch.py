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

_VERSION = 5


@dataclass(slots=True)
class Matrix:
    """[B, width] float32, row-major, a column a feature (or the numbers of one embedding). Null is 0."""

    features: list[int]
    width: int
    values: npt.NDArray[np.float32]
    present: npt.NDArray[np.uint64] | None  # [features, words]: bitmaps of B bits


@dataclass(slots=True)
class Lists:
    """The lists of one kind, those of each feature in turn: a slot of its group each, or a row each."""

    features: list[int]
    sizes: list[int]  # lists of each
    counts: list[int]  # values of each
    dedup: int  # so many of features, the first, may be in groups
    groups: npt.NDArray[np.int32]  # of each feature; the number of groups: none; empty where none may be in one
    offsets: npt.NDArray[np.int32]  # from 0: one more than lists
    lengths: npt.NDArray[np.int32]
    values: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    present: npt.NDArray[np.uint64]  # bitmaps, each beginning a word


@dataclass(slots=True)
class Group:
    """Features that share one inverse: row -> slot."""

    features: list[int]
    slots: int


@dataclass(slots=True)
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


@dataclass(slots=True)
class RawBatch:
    index: int
    first_row: int
    rows: int
    epoch: int
    dense: Matrix
    labels: Matrix
    embeddings: list[Matrix]
    groups: list[Group]
    inverses: npt.NDArray[np.int32]  # [groups, B]
    sparse: Lists | None  # None: no feature has lists of the kind
    weighted: Lists | None
    floats: Lists | None
    columns: dict[int, Column] = field(default_factory=dict)


class _Memory(ctypes.c_char * (1 << 62)):  # type: ignore[misc]
    """All memory, from address 1 on, for numpy to look at: arrays are at an offset in it, hold it, and it the batch.

    A type of ctypes is made for every length that there is, which takes 30 times longer than an array; so there is one length. An object
    with __array_interface__ for each array takes twice as long as this.
    """

    owner: Words


_FIRST = 1  # where _Memory begins: numpy takes 0 for no memory

# The dtype and the array where there is none, which is the rule: one for all batches.
_TYPES = {t: (np.dtype(t), np.empty(0, t)) for t in (np.int32, np.int64, np.uint64, np.uint8, np.float32, np.float64)}


class _Reader:
    """Takes one thing after the other off the words. Arrays hold the batch."""

    def __init__(self, words: Words):
        self._memory = _Memory.from_address(_FIRST)
        self._memory.owner = words
        self._words = words.words
        self._at = 0

    def number(self) -> int:
        self._at += 1
        return self._words[self._at - 1]

    def features(self) -> list[int]:
        first = self._at + 1
        self._at = first + self._words[first - 1]
        return self._words[first: self._at]

    def array(self, dtype: Any) -> npt.NDArray[Any]:
        at = self._at
        self._at = at + 2
        n = self._words[at + 1]
        of, empty = _TYPES[dtype]
        return np.ndarray(n, of, self._memory, self._words[at] - _FIRST) if n else empty

    def present(self, features: int) -> npt.NDArray[np.uint64] | None:
        bits = self.array(np.uint64)
        return bits.reshape(features, -1) if len(bits) else None

    def matrix(self, rows: int) -> Matrix:
        features, width = self.features(), self.number()
        values = self.array(np.float32).reshape(rows, width)
        return Matrix(features, width, values, self.present(len(features)))

    def lists(self) -> Lists | None:
        if not self.number():
            return None
        features = self.features()
        at, n = self._at, len(features)
        self._at += 2 * n
        return Lists(
            features, self._words[at: at + n], self._words[at + n: at + 2 * n], self.number(), self.array(np.int32), self.array(np.int32),
            self.array(np.int32), self.array(np.int64), self.array(np.float32), self.array(np.float32), self.array(np.uint64),
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
    groups = [Group(r.features(), r.number()) for _ in range(r.number())]
    inverses = r.array(np.int32).reshape(len(groups), rows)
    sparse, weighted, floats = r.lists(), r.lists(), r.lists()
    out = RawBatch(index, first_row, rows, epoch, dense, labels, embeddings, groups, inverses, sparse, weighted, floats)
    for _ in range(r.number()):
        c = r.column()
        out.columns[c.place] = c
    return out

"""Batches as NumPy arrays over the engine's memory, without a copy.

The engine describes a batch in 64-bit integers, the batch descriptor. descriptor.go in package engine defines their
order, and this module reads them in that order. It is what every output (dsistore.torch, dsistore.numpy) is made of.
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ._engine import Descriptor

_VERSION = 5

Bits = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


def _mask(bits: Bits, features: int, n: int) -> Mask:
    """Bitmaps of n bits, one per feature, each in whole words, as [features, n] bool: a copy."""
    unpacked = np.unpackbits(bits.reshape(features, -1).view(np.uint8), axis=1, bitorder="little", count=n)
    return unpacked.view(np.bool_)


@dataclass(slots=True)
class Matrix:
    """[B, width] float32, row-major: one column per feature, or the numbers of one embedding. Null is 0."""

    features: list[int]
    width: int
    values: npt.NDArray[np.float32]
    present: Bits  # one bitmap of B bits per feature; empty: not asked for

    def mask(self) -> Mask | None:
        """[features, B] bool: where values are not null. None without presence."""
        return _mask(self.present, len(self.features), len(self.values)) if len(self.present) else None


@dataclass(slots=True)
class Lists:
    """The lists of one kind, feature after feature: one list per slot of the feature's group, or one per row."""

    features: list[int]
    sizes: list[int]  # lists of each
    counts: list[int]  # values of each
    dedup: int  # the first so many features may be in groups; the others never are
    groups: npt.NDArray[np.int32]  # of each feature; the number of groups: in none; empty where dedup is 0
    offsets: npt.NDArray[np.int32]  # from 0: one more than lists
    lengths: npt.NDArray[np.int32]
    values: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    present: Bits  # one bitmap per feature, each in whole words; empty: not asked for

    def mask(self) -> Mask | None:
        """[lists] bool, in the order of lengths: which lists are not null. None without presence."""
        if not len(self.present):
            return None
        out, bits = [], self.present
        for size, run in itertools.groupby(self.sizes):  # of equal sizes at once: they are hundreds
            n = sum(1 for _ in run)
            words = n * ((size + 63) // 64)
            out.append(_mask(bits[:words], n, size).reshape(-1))
            bits = bits[words:]
        return np.concatenate(out)


@dataclass(slots=True)
class Group:
    """Features that share one inverse: row -> slot."""

    features: list[int]
    slots: int


@dataclass(slots=True)
class Column:
    """An exact column: an integer, a key, a string, a partition value, ..."""

    place: int  # the feature's in the plan
    rows: int
    slots: int
    present: Bits  # one bitmap; empty: no row is null
    inverse: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    ints: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    doubles: npt.NDArray[np.float64]
    data: npt.NDArray[np.uint8]
    score_floats: npt.NDArray[np.float32]
    score_doubles: npt.NDArray[np.float64]

    def mask(self) -> Mask:
        """[B] bool: where the column is not null."""
        return _mask(self.present, 1, self.rows)[0] if len(self.present) else np.ones(self.rows, np.bool_)

    def numbers(self, elem: str) -> npt.NDArray[Any]:
        """The numbers of a column of an element type. Null is 0."""
        numbers: npt.NDArray[Any] = self.ints if len(self.ints) else self.floats if len(self.floats) else self.doubles
        return numbers.view(np.uint64) if elem == "uint64" else numbers

    def exact(self, kind: str, elem: str) -> npt.NDArray[Any] | list[Any]:
        """The values of a column of a kind: numbers without nulls as an array, else a list, None for null."""
        if kind in ("bytes", "string"):
            data, offsets = self.data.tobytes(), self.offsets.tolist()
            values: list[Any] = [data[a:b] for a, b in zip(offsets, offsets[1:])]
            if kind == "string":
                values = [v.decode() for v in values]
        elif not len(self.present):
            return self.numbers(elem)
        else:
            values = self.numbers(elem).tolist()
        return [v if p else None for v, p in zip(values, self.mask().tolist())] if len(self.present) else values


@dataclass(slots=True)
class RawBatch:
    """One batch: B rows. Features are named by their positions in the plan."""

    index: int  # in the global order
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
    """All memory, from address 1 on: a buffer for NumPy. Arrays are at an offset in it and keep it alive, and it keeps
    the batch alive.

    ctypes makes a type for every length, which takes 30 times longer than an array; so there is one length. An object
    with __array_interface__ for each array takes twice as long as this.
    """

    owner: Descriptor


_FIRST = 1  # where _Memory begins: NumPy takes 0 for no memory

# The dtype, and the array where there is none, which is the rule: one for all batches.
_TYPES = {t: (np.dtype(t), np.empty(0, t)) for t in (np.int32, np.int64, np.uint64, np.uint8, np.float32, np.float64)}


class _Reader:
    """Reads a descriptor from its first integer to its last. Arrays keep the batch alive."""

    def __init__(self, descriptor: Descriptor):
        self._memory = _Memory.from_address(_FIRST)
        self._memory.owner = descriptor
        self._words = descriptor.words
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

    def matrix(self, rows: int) -> Matrix:
        features, width = self.features(), self.number()
        return Matrix(features, width, self.array(np.float32).reshape(rows, width), self.array(np.uint64))

    def lists(self) -> Lists | None:
        if not self.number():
            return None
        features = self.features()
        at, n = self._at, len(features)
        self._at += 2 * n
        return Lists(
            features, self._words[at: at + n], self._words[at + n: at + 2 * n], self.number(), self.array(np.int32),
            self.array(np.int32), self.array(np.int32), self.array(np.int64), self.array(np.float32),
            self.array(np.float32), self.array(np.uint64),
        )

    def column(self) -> Column:
        return Column(
            self.number(), self.number(), self.number(), self.array(np.uint64), self.array(np.int32),
            self.array(np.int32), self.array(np.int32), self.array(np.int64), self.array(np.float32),
            self.array(np.float64), self.array(np.uint8), self.array(np.float32), self.array(np.float64),
        )


def read(descriptor: Descriptor) -> RawBatch:
    """The batch that a descriptor describes. Its memory is given back when the last of its arrays is gone."""
    r = _Reader(descriptor)
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

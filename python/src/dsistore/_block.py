"""Batches as the engine gives them: one block of memory each, read without a copy.

reader/BATCH.md has the layout of a block. A Schema says which arrays the blocks of a loader have, a Block has those of
one batch. Every output (dsistore.torch, dsistore.numpy, ...) is made of them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import errors
from ._engine import Held

Bits = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_VERSION = 1
_HEADER = 8  # words: magic, version and arrays, size, index, first row, rows, null labels
_ROWS, _NULL_LABELS = 5, 6
# Of each type, NumPy's and an array of none.
_TYPES: dict[str, tuple[np.dtype[Any], npt.NDArray[Any]]] = {
    name: (np.dtype(of), np.empty(0, of)) for name, of in {
        "int32": np.int32, "int64": np.int64, "uint64": np.uint64, "float32": np.float32, "float64": np.float64,
        "byte": np.uint8}.items()}


class Array(NamedTuple):
    """An array of a schema: the word of its entry in the table, and its type."""

    word: int
    dtype: np.dtype[Any]
    empty: npt.NDArray[Any]  # what it is where a block does not have it


@dataclass(frozen=True)
class Lists:
    """The features that have lists of one kind, in the order of a block, and whether each may be in a group."""

    features: list[int]
    dedup: list[bool]


class Schema:
    """Which arrays the blocks of a loader have, by the text that loader_open answers with. Features are places in the
    plan. Schema.of the same text is the same object, so that every epoch but the first has it at once."""

    def __init__(self, text: str):
        answer: dict[str, Any] = json.loads(text)
        self._text = text
        arrays = answer["arrays"].split()
        self.arrays = {
            name: Array(_HEADER + 2 * i, *_TYPES[of]) for i, (name, of) in enumerate(zip(arrays[::2], arrays[1::2]))}
        self.dense: list[int] = answer["dense"]
        self.labels: list[int] = answer["labels"]
        self.embeddings: list[tuple[int, int]] = list(zip(answer["embeddings"], answer["widths"]))
        self.columns: list[int] = answer["columns"]
        self.lists = {
            k: Lists(answer[k]["features"], list(map(bool, answer[k]["dedup"])))
            for k in ("sparse", "weighted", "floats")
        }

    @staticmethod
    @functools.lru_cache(16)
    def of(text: str) -> Schema:
        """The schema of a text."""
        return Schema(text)

    def __reduce__(self) -> Any:
        return Schema.of, (self._text,)


class _Memory(ctypes.c_char * (1 << 62)):  # type: ignore[misc]
    """All memory, from address 1 on: a buffer. Arrays are at an offset in it and keep it alive, and it keeps the batch
    alive.

    ctypes makes a type for every length, which takes 30 times longer than an array; so there is one length. An object
    with __array_interface__ for each array takes twice as long as this.
    """

    owner: Held


_FIRST = 1  # where _Memory begins: NumPy takes 0 for no memory
_WORD = np.dtype(np.int64)


class Block:
    """The memory of one batch of ``rows`` rows, which is given back when the last array over it is gone.

    index is the batch's in the global order, epoch the epoch that it is of. null_labels counts the labels that are
    null. words are the header and the table of
    arrays. The array at word w begins at byte ``words[w]``, and has ``words[w + 1]`` elements.
    """

    __slots__ = ("schema", "index", "epoch", "rows", "null_labels", "words", "size", "memory", "offset")

    def __init__(self, schema: Schema, held: Held):
        self.schema = schema
        self.memory = _Memory.from_address(_FIRST)
        self.memory.owner = held
        address, self.size, _, self.index, self.epoch = held.batch()
        self.offset = address - _FIRST  # of the block in memory
        self.words: list[int] = np.ndarray(_HEADER + 2 * len(schema.arrays), _WORD, self.memory, self.offset).tolist()
        if self.words[1] & 0xFFFFFFFF != _VERSION:
            raise ImportError(
                f"the engine gives batches in version {self.words[1] & 0xFFFFFFFF}, this package reads {_VERSION}")
        self.rows, self.null_labels = self.words[_ROWS], self.words[_NULL_LABELS]

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array by its name; empty where the block does not have it."""
        a = self.schema.arrays[name]
        n = self.words[a.word + 1]
        return np.ndarray(n, a.dtype, self.memory, self.offset + self.words[a.word]) if n else a.empty

    def groups(self) -> list[list[int]]:
        """The features of each group."""
        first = self.array("groups.first").tolist()
        features = self.array("groups.features").tolist()
        return [features[a:b] for a, b in zip(first, first[1:])]

    def sizes(self, kind: str) -> tuple[list[int], list[int]]:
        """How many lists each feature of a kind has, and how many values."""
        lists, values = (np.diff(self.array(f"{kind}.first_{of}")).tolist() for of in ("list", "value"))
        return lists, values

    def mask(self, name: str, features: int, bits: int) -> Mask | None:
        """The bitmaps of features, bits each and each in whole words, as [features, bits] bool: a copy. None where the
        block does not have them."""
        array = self.array(name)
        return unpacked(array, features, bits) if len(array) else None

    def lists_mask(self, kind: str) -> Mask | None:
        """[lists] bool: which lists of a kind are not null. None without presence."""
        bits, out = self.array(f"{kind}.present"), []
        if not len(bits):
            return None
        for size, run in itertools.groupby(self.sizes(kind)[0]):  # of equal sizes at once: they are hundreds
            n = sum(1 for _ in run)
            words = n * ((size + 63) // 64)
            out.append(unpacked(bits[:words], n, size).reshape(-1))
            bits = bits[words:]
        return np.concatenate(out)

    def column_mask(self, i: int) -> Mask:
        """[B] bool: where the i-th exact column is not null."""
        mask = self.mask(f"column.{i}.present", 1, self.rows)
        return np.ones(self.rows, np.bool_) if mask is None else mask[0]

    def numbers(self, i: int, elem: str) -> npt.NDArray[Any]:
        """The numbers of the i-th exact column, of an element type. Null is 0."""
        values = self.array(f"column.{i}.values")
        return values.view(np.uint64) if elem == "uint64" else values

    def exact(self, i: int, kind: str, elem: str) -> npt.NDArray[Any] | list[Any]:
        """The values of the i-th exact column, of a kind: numbers without nulls as an array, else a list, None for
        null."""
        mask = self.mask(f"column.{i}.present", 1, self.rows)
        if kind in TEXTS:
            return listed(texts(kind, self.array(f"column.{i}.values"), self.array(f"column.{i}.offsets")), mask)
        numbers = self.numbers(i, elem)
        return numbers if mask is None else listed(numbers.tolist(), mask)


TEXTS = ("bytes", "string")  # the kinds of exact columns that have offsets


def texts(kind: str, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> list[Any]:
    """The values of an exact column of one of TEXTS: bytes or str."""
    all_bytes, at = data.tobytes(), offsets.tolist()
    values = [all_bytes[a:b] for a, b in zip(at, at[1:])]
    return [v.decode() for v in values] if kind == "string" else values


def listed(values: list[Any], mask: Mask | None) -> list[Any]:
    """The values of an exact column, None for null: mask is its presence, [1, B]."""
    return values if mask is None else [v if p else None for v, p in zip(values, mask[0].tolist())]


def offset(values: int) -> int:
    """The offset after so many values, if an int32 holds it."""
    if values > 2**31 - 1:
        raise errors.UsageError(f"lists have {values} values: batch_size is too large")
    return values


def unpacked(bits: Bits, features: int, n: int) -> Mask:
    """Bitmaps of n bits, one per feature, each in whole words, as [features, n] bool: a copy."""
    out = np.unpackbits(bits.reshape(features, -1).view(np.uint8), axis=1, bitorder="little", count=n)
    return out.view(np.bool_)

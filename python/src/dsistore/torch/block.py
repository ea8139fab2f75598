"""The block of a batch as tensors, in the engine's memory or wherever it was copied to."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from .._block import Block, Schema
from . import pages

_TYPES = {
    np.dtype(a): b
    for a, b in ((np.int32, torch.int32), (np.int64, torch.int64), (np.uint64, torch.uint64),
                 (np.float32, torch.float32), (np.float64, torch.float64), (np.uint8, torch.uint8))
}


_CPU = torch.device("cpu")


class Array(NamedTuple):
    """An array of a schema: the word of its entry in the table, its types, and the bytes of an element."""

    word: int
    dtype: torch.dtype
    numpy: np.dtype[Any]
    size: int


class Layout:
    """What all blocks of a schema have in common as tensors. Layout.of the same schema is the same object."""

    __slots__ = ("schema", "arrays", "shares")

    def __init__(self, schema: Schema):
        self.schema = schema
        self.arrays = {
            name: Array(a.word, _TYPES[a.dtype], a.dtype, a.dtype.itemsize) for name, a in schema.arrays.items()}
        # Of each kind of lists that there is, whether features may be in groups.
        self.shares = {kind: any(of.dedup) for kind, of in schema.lists.items() if of.features}

    @staticmethod
    @functools.lru_cache(16)
    def of(schema: Schema) -> Layout:
        """The layout of a schema."""
        return Layout(schema)

    def __reduce__(self) -> Any:
        return Layout.of, (self.schema,)


class ListCounts(NamedTuple):
    """Of each feature that has lists of a kind, how many lists a batch has, how many values, and how long its lists are
    in sum: more than the values where lists are slices of others. alone: a feature is in no group."""

    sizes: list[int]
    counts: list[int]
    totals: list[int]
    alone: bool


class Counts(NamedTuple):
    """What the numbers of a block say of its tensors' shapes. It is read before the block leaves the engine's memory:
    later it may be where reading waits for a device."""

    groups: list[list[int]]  # the features of each
    slots: list[int]  # of each group
    lists: dict[str, ListCounts]  # by kind
    # by kind, of each feature: how many values the lists of all rows have. Where slots are kept to be expanded
    row_values: dict[str, list[int]]


class TensorBlock:
    """The arrays of a block as tensors, which are views.

    A block lies in the engine's memory at first. A copy of it is one tensor of bytes, on any device: it is copied
    whole, at once.
    """

    __slots__ = ("layout", "words", "rows", "index", "epoch", "_size", "_memory", "_offset", "_bytes", "_counts",
                 "_locked")

    def __init__(self, block: Block, layout: Layout, locked: bool = False):
        self.layout = layout
        self.words = block.words
        self.rows: int = block.rows
        self.index: int = block.index
        self.epoch: int = block.epoch
        self._size = block.size
        self._memory: Any = block.memory  # None: _bytes has the block
        self._offset = block.offset
        self._bytes: torch.Tensor | None = None
        self._counts: Counts | None = None
        self._locked = locked  # in memory that devices read by themselves

    def tensor(self, name: str) -> torch.Tensor:
        """An array by its name; empty where the block does not have it."""
        word, dtype, _, size = self.layout.arrays[name]
        at, n = self.words[word], self.words[word + 1]
        if self._bytes is not None:
            return self._bytes[at:at + n * size].view(dtype)
        if n == 0:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(self._memory, dtype=dtype, count=n, offset=self._offset + at)

    @property
    def device(self) -> torch.device:
        """Where the block is."""
        return _CPU if self._bytes is None else self._bytes.device

    def has(self, name: str) -> bool:
        """Whether the block has an array, with elements."""
        return self.words[self.layout.arrays[name].word + 1] > 0

    def bytes(self) -> torch.Tensor:
        """The whole block."""
        if self._bytes is not None:
            return self._bytes
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=self._size, offset=self._offset)

    def counts(self) -> Counts:
        """The numbers of the block that say what shapes its tensors have."""
        if self._counts is None:
            slots, groups = self._list("groups.slots"), []
            if slots:
                features = self._list("groups.features")
                groups = [features[a:b] for a, b in itertools.pairwise(self._list("groups.first"))]
            self._counts = Counts(
                groups, slots, {k: self._sizes(k, len(groups)) for k in self.layout.shares},
                {k: self._list(k + ".row_values") for k in self.layout.shares})
        return self._counts

    def _sizes(self, kind: str, groups: int) -> ListCounts:
        values = self._list(kind + ".first_value")
        counts = totals = list(map(operator.sub, values[1:], values))
        if groups == 0 and not self.has(kind + ".starts"):  # each feature has a list a row
            return ListCounts([self.rows] * len(counts), counts, totals, True)
        lists = self._list(kind + ".first_list")
        sizes = list(map(operator.sub, lists[1:], lists))
        if self.has(kind + ".starts"):
            ends = np.concatenate(([0], np.cumsum(self._array(kind + ".lengths"), dtype=np.int64)))
            totals = np.diff(ends[lists]).tolist()
        return ListCounts(sizes, counts, totals, groups in self._list(kind + ".groups"))

    def _list(self, name: str) -> list[int]:
        out: list[int] = self._array(name).tolist() if self.has(name) else []
        return out

    def _array(self, name: str) -> npt.NDArray[Any]:
        """An array in the engine's memory that the block has."""
        word, _, dtype, _ = self.layout.arrays[name]
        return np.ndarray(self.words[word + 1], dtype, self._memory, self._offset + self.words[word])

    def map(self, f: Callable[[torch.Tensor], torch.Tensor], stream: Any = None) -> TensorBlock:
        """A copy of the block that f makes of its bytes, on a stream; default: the device's current one. The block
        itself where f gives its bytes back, as pin_memory does of pages that are locked already: then they still are
        the engine's, and are kept until a later copy of them is through."""
        whole = self.bytes()
        copy = f(whole)
        if copy.device == whole.device and copy.data_ptr() == whole.data_ptr():
            return self
        out = TensorBlock.__new__(TensorBlock)
        if self._locked and copy.device.type == "cuda":
            pages.keep_until_copied(self._memory, copy.device, stream)
        out.__setstate__({**self.__getstate__(), "_bytes": copy})
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self.layout, "words": self.words, "rows": self.rows, "index": self.index, "epoch": self.epoch,
                "_size": self._size, "_bytes": self.bytes(), "_counts": self.counts()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._memory, self._offset, self._locked = None, 0, False


def unpacked(bits: torch.Tensor, features: int, n: int) -> torch.Tensor:
    """Bitmaps of n bits, one per feature, each in whole words, as [features, n] bool."""
    shifts = torch.arange(8, dtype=torch.uint8, device=bits.device)
    each = bits.view(torch.uint8).unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and_(1)
    return each.view(torch.bool).reshape(features, -1)[:, :n]

"""The lists of a batch, and which of them are deduplicated.

A batch holds the lists of one kind in one tensor each of lengths and values (Jagged), those of each feature in turn, in
the order of the request. Which features share slots follows from where the rows of that batch are stored: groups may
change from batch to batch, keys and their order do not.

    keys       a          b            c
    groups     0          none         0
    lengths    s0 s1      r0 r1 r2 r3  s0 s1          a list a slot, or a row
    inverses   [0 0 0 1]                              of group 0: the slot of each row
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch

from .._descriptor import Lists, RawBatch

Map = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Jagged:
    """Lists of several features, sizes[k] of feature k: a row of the batch each, or a slot of its group each.

    List i of all, one feature after the other, is ``values[offsets[i]:offsets[i + 1]]``. values are int64 ids (uint64
    bit for bit), or float32 numbers; weights belong to them one by one where the features are weighted, else are None.
    A null list and an empty one both have length 0; present, which a dataset with ``presence=True`` gives, tells them
    apart: bool, one per list, in the order of lengths.
    """

    keys: list[str]
    sizes: list[int]  # lists of each feature
    counts: list[int]  # values of each feature
    # so many of the keys, the first, are in groups where rows share their lists; the others always have a list a row
    dedup: int
    # [features] int32: the place in Batch.groups, whose length stands for none; None with dedup 0
    groups: torch.Tensor | None
    lengths: torch.Tensor  # int32
    offsets: torch.Tensor  # int32, from 0: one more than lists
    values: torch.Tensor
    weights: torch.Tensor | None = None
    present: torch.Tensor | None = None

    def feature(self, key: str) -> Jagged:
        """One feature alone: views, but for its offsets, which begin at 0."""
        k = self.keys.index(key)
        first, start = sum(self.sizes[:k]), sum(self.counts[:k])
        n, count = self.sizes[k], self.counts[k]
        lists, values = slice(first, first + n), slice(start, start + count)
        return Jagged([key], [n], [count], int(k < self.dedup), None if self.groups is None else self.groups[k:k + 1],
                      self.lengths[lists], self.offsets[first:first + n + 1] - start, self.values[values],
                      None if self.weights is None else self.weights[values],
                      None if self.present is None else self.present[lists])

    def map(self, f: Map) -> Jagged:
        """The lists with f applied to every tensor."""
        return Jagged(self.keys, self.sizes, self.counts, self.dedup, None if self.groups is None else f(self.groups),
                      f(self.lengths), f(self.offsets), f(
                          self.values), None if self.weights is None else f(self.weights),
                      None if self.present is None else f(self.present))


@dataclass
class DedupGroup:
    """Features whose rows share slots alike: row i has the lists of slot ``inverse[i]`` of each."""

    keys: list[str]
    slots: int
    inverse: torch.Tensor  # [B] int32


@dataclass
class BatchLists:
    """All lists of a batch, and its groups: their features and slots, and their inverses [groups, B] int32."""

    keys: list[list[str]]
    slots: list[int]
    inverses: torch.Tensor
    sparse: Jagged
    weighted: Jagged
    floats: Jagged

    def map(self, f: Map) -> BatchLists:
        return BatchLists(self.keys, self.slots, f(self.inverses), self.sparse.map(f), self.weighted.map(f),
                          self.floats.map(f))

    def groups(self) -> list[DedupGroup]:
        return list(map(DedupGroup, self.keys, self.slots, self.inverses))


_NO_INTS = torch.empty(0, dtype=torch.int32)
_NO_INVERSES = torch.empty((0, 0), dtype=torch.int32)
_NO_IDS = torch.empty(0, dtype=torch.int64)
_NO_NUMBERS = torch.empty(0, dtype=torch.float32)


def lists_of(raw: RawBatch, names: list[str]) -> BatchLists:
    """The lists of a batch, over its memory; names are those of the plan's features."""
    return BatchLists([[names[f] for f in g.features] for g in raw.groups], [g.slots for g in raw.groups],
                      torch.from_numpy(raw.inverses) if raw.groups else _NO_INVERSES, _jagged(raw.sparse, names),
                      _jagged(raw.weighted, names, weighted=True), _jagged(raw.floats, names, floats=True))


def _jagged(j: Lists | None, names: list[str], weighted: bool = False, floats: bool = False) -> Jagged:
    if j is None:
        return Jagged([], [], [], 0, None, _NO_INTS, torch.zeros(1, dtype=torch.int32),
                      _NO_NUMBERS if floats else _NO_IDS)
    values: npt.NDArray[Any] = j.floats if floats else j.values
    mask = j.mask()
    return Jagged(
        [names[f] for f in j.features], j.sizes, j.counts, j.dedup, torch.from_numpy(j.groups) if j.dedup else None,
        torch.from_numpy(j.lengths), torch.from_numpy(j.offsets), torch.from_numpy(values),
        torch.from_numpy(j.weights) if weighted else None,  # also where all lists of the batch are empty
        None if mask is None else torch.from_numpy(mask))

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

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .. import errors
from .block import TensorBlock, unpacked

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
        groups, weights, present = (None if t is None else f(t) for t in (self.groups, self.weights, self.present))
        return Jagged(self.keys, self.sizes, self.counts, self.dedup, groups, f(self.lengths), f(self.offsets),
                      f(self.values), weights, present)


@dataclass
class DedupGroup:
    """Features whose rows share slots alike: row i has the lists of slot ``inverse[i]`` of each."""

    keys: list[str]
    slots: int
    inverse: torch.Tensor  # [B] int32

    def map(self, f: Map) -> DedupGroup:
        """The group with f applied to its tensor."""
        return DedupGroup(self.keys, self.slots, f(self.inverse))


def jagged(block: TensorBlock, kind: str, names: list[str]) -> Jagged:
    """The lists of a kind, over the block's memory; names are those of the plan's features."""
    of = block.schema.lists[kind]
    if not of.features:
        none = torch.empty(0, dtype=torch.float32 if kind == "floats" else torch.int64)
        return Jagged([], [], [], 0, None, torch.empty(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), none)
    sizes, counts = block.counts().lists[kind]
    present = block.tensor(f"{kind}.present")
    return Jagged(
        [names[f] for f in of.features], sizes, counts, of.dedup,
        block.tensor(f"{kind}.groups") if of.dedup else None, block.tensor(f"{kind}.lengths"),
        block.tensor(f"{kind}.offsets"), block.tensor(f"{kind}.values"),
        block.tensor(f"{kind}.weights") if kind == "weighted" else None,  # also where all lists are empty
        _mask(present, sizes) if len(present) else None)


def expanded(block: TensorBlock, kind: str, j: Jagged, inverses: torch.Tensor) -> Jagged:
    """The lists of a block that keeps slots, with a list a row: gathered on the device where the block is, which is not
    waited for.

        src       [features * B]  the list of each feature and row: the feature's first + its group's inverse
        lengths   lengths[src]
        values    values[offsets[src] + 0, 1, ... lengths]
    """
    rows = block.rows
    counts = block.counts().row_values[kind]
    if sum(counts) > _MOST:
        raise errors.UsageError(f"the lists of {rows} rows have {sum(counts)} values: batch_size is too large")
    assert j.groups is not None
    # A row a group, and one of the rows themselves for features in none.
    table = torch.cat([inverses, torch.arange(rows, dtype=torch.int32, device=inverses.device).view(1, rows)])
    src = (table.index_select(0, j.groups) + block.tensor(f"{kind}.first_list")[:-1].unsqueeze(1)).view(-1)
    lengths = j.lengths.index_select(0, src)
    offsets = torch.zeros(len(src) + 1, dtype=torch.int32, device=lengths.device)
    torch.cumsum(lengths, 0, dtype=torch.int32, out=offsets[1:])
    by = (j.offsets.index_select(0, src) - offsets[:-1]).repeat_interleave(lengths, output_size=sum(counts))
    at = by + torch.arange(sum(counts), dtype=torch.int32, device=by.device)
    return Jagged(
        j.keys, [rows] * len(j.keys), counts, 0, None, lengths, offsets, j.values.index_select(0, at),
        None if j.weights is None else j.weights.index_select(0, at),
        None if j.present is None else j.present.index_select(0, src))


_MOST = 2**31 - 1  # what an offset holds


def _mask(bits: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """[lists] bool: which lists are not null, of bitmaps of sizes[k] bits each."""
    out = []
    for size, run in itertools.groupby(sizes):  # of equal sizes at once: they are hundreds
        n = sum(1 for _ in run)
        words = n * ((size + 63) // 64)
        out.append(unpacked(bits[:words], n, size).reshape(-1))
        bits = bits[words:]
    return torch.cat(out)

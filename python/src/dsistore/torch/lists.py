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

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from .._block import offset
from .block import TensorBlock, unpacked

T = TypeVar("T")
Map = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Jagged:
    """Lists of several features, one feature after the other: sizes[k] lists of feature k, one per row of the batch, or
    one per slot of its group.

    List i is ``values[offsets[i]:offsets[i + 1]]``. With output="partial" offsets is empty and starts is not None: list
    i is ``values[starts[i]:starts[i] + lengths[i]]``, and lists of a feature may overlap, because one may be a slice of
    another; contiguous() copies them. values are int64 ids (the bits of uint64 ids), or float32 numbers. weights has
    one weight per value for weighted features, else it is None. Null lists and empty lists both have length 0; present,
    which needs ``presence=True``, tells them apart: one bool per list, in the order of lengths.
    """

    keys: list[str]
    sizes: list[int]  # lists of each feature
    counts: list[int]  # values of each feature
    totals: list[int]  # the lengths of each feature's lists in sum: counts, but with output="partial"
    # of each feature, whether it is in a group where rows share its lists; else it always has a list a row
    dedup: list[bool]
    # [features] int32: the place in Batch.groups, whose length stands for none; None where no feature may be in one
    groups: torch.Tensor | None
    lengths: torch.Tensor  # int32
    offsets: torch.Tensor  # int32, from 0: one more than lists
    values: torch.Tensor
    weights: torch.Tensor | None = None
    present: torch.Tensor | None = None
    starts: torch.Tensor | None = None  # int32, one a list; None but with output="partial"

    def feature(self, key: str) -> Jagged:
        """One feature alone: views, except for its offsets, which begin at 0."""
        k = self.keys.index(key)
        return self._stretch(k, k + 1)

    def select(self, wanted: list[bool]) -> Jagged:
        """The features for which wanted is true, in their order: views if they are adjacent, else copies."""
        if all(wanted):
            return self
        ends = [k for k, (a, b) in enumerate(itertools.pairwise([False, *wanted, False])) if a != b]
        parts = [self._stretch(a, b) for a, b in zip(ends[::2], ends[1::2])] or [self._stretch(0, 0)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _stretch(self, a: int, b: int) -> Jagged:
        """The features from the a-th to before the b-th."""
        first, start = sum(self.sizes[:a]), sum(self.counts[:a])
        end, stop = first + sum(self.sizes[a:b]), start + sum(self.counts[a:b])
        offsets = self.offsets if self.starts is not None else self.offsets[first:end + 1] - start
        return Jagged(self.keys[a:b], self.sizes[a:b], self.counts[a:b], self.totals[a:b], self.dedup[a:b],
                      None if self.groups is None else self.groups[a:b], self.lengths[first:end], offsets,
                      self.values[start:stop], None if self.weights is None else self.weights[start:stop],
                      None if self.present is None else self.present[first:end],
                      None if self.starts is None else self.starts[first:end] - start)

    def contiguous(self) -> Jagged:
        """The lists one after the other, with offsets: the object itself, except with output="partial". This does not
        wait for a device. UsageError: there are more values than int32 can count."""
        if self.starts is None:
            return self
        total = offset(sum(self.totals))
        offsets = torch.zeros(len(self.lengths) + 1, dtype=torch.int32, device=self.lengths.device)
        torch.cumsum(self.lengths, 0, dtype=torch.int32, out=offsets[1:])
        at = torch.arange(total, dtype=torch.int32, device=self.lengths.device)
        at += torch.repeat_interleave(self.starts - offsets[:-1], self.lengths, output_size=total)
        return Jagged(self.keys, self.sizes, self.totals, self.totals, self.dedup, self.groups, self.lengths, offsets,
                      self.values.index_select(0, at),
                      None if self.weights is None else self.weights.index_select(0, at), self.present)

    def map(self, f: Map) -> Jagged:
        """The lists with f applied to every tensor."""
        groups, weights, present, starts = (
            None if t is None else f(t) for t in (self.groups, self.weights, self.present, self.starts))
        return Jagged(self.keys, self.sizes, self.counts, self.totals, self.dedup, groups, f(self.lengths),
                      f(self.offsets), f(self.values), weights, present, starts)


@dataclass
class DedupGroup:
    """Features that share one inverse: row i has the list of slot ``inverse[i]`` of each feature."""

    keys: list[str]
    slots: int
    inverse: torch.Tensor  # [B] int32

    def map(self, f: Map) -> DedupGroup:
        """The group with f applied to its tensor."""
        return DedupGroup(self.keys, self.slots, f(self.inverse))


def _joined(parts: list[Jagged]) -> Jagged:
    """The features of all parts, one part after the other."""
    def cat(of: Callable[[Jagged], torch.Tensor | None]) -> torch.Tensor | None:
        tensors = [t for p in parts if (t := of(p)) is not None]
        return torch.cat(tensors) if tensors else None

    def chain(of: Callable[[Jagged], list[T]]) -> list[T]:
        return [x for p in parts for x in of(p)]

    begins = list(itertools.accumulate([0, *(len(p.values) for p in parts)]))
    offsets = [parts[0].offsets[:1], *(p.offsets[1:] + begin for p, begin in zip(parts, begins))]
    starts = [p.starts + begin for p, begin in zip(parts, begins) if p.starts is not None]
    lengths, values = cat(lambda p: p.lengths), cat(lambda p: p.values)
    assert lengths is not None and values is not None
    return Jagged(chain(lambda p: p.keys), chain(lambda p: p.sizes), chain(lambda p: p.counts),
                  chain(lambda p: p.totals), chain(lambda p: p.dedup), cat(lambda p: p.groups), lengths,
                  torch.cat(offsets), values, cat(lambda p: p.weights), cat(lambda p: p.present),
                  torch.cat(starts) if starts else None)


def jagged(block: TensorBlock, kind: str, keys: list[str]) -> Jagged:
    """The lists of a kind, over the block's memory; keys are the names of their features."""
    of = block.layout.schema.lists[kind]
    if not of.features:
        lengths, offsets, values = _no_lists(torch.float32 if kind == "floats" else torch.int64, block.device)
        return Jagged([], [], [], [], [], None, lengths, offsets, values)
    sizes, counts, totals, _ = block.counts().lists[kind]
    return Jagged(
        keys[:], sizes, counts, totals, of.dedup,
        block.tensor(kind + ".groups") if block.layout.shares[kind] else None, block.tensor(kind + ".lengths"),
        block.tensor(kind + ".offsets"), block.tensor(kind + ".values"),
        block.tensor(kind + ".weights") if kind == "weighted" else None,  # also where all lists are empty
        _mask(block.tensor(kind + ".present"), sizes) if block.has(kind + ".present") else None,
        block.tensor(kind + ".starts") if block.has(kind + ".starts") else None)


@functools.lru_cache(16)
def _no_lists(dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The lengths, offsets and values of no feature: the same tensors for all batches, because to make them takes as
    long as those of a batch that has lists."""
    lengths = torch.empty(0, dtype=torch.int32, device=device)
    return lengths, torch.zeros(1, dtype=torch.int32, device=device), torch.empty(0, dtype=dtype, device=device)


def expanded(block: TensorBlock, kind: str, j: Jagged, inverses: torch.Tensor) -> Jagged:
    """The lists of a block that keeps slots, with a list a row: gathered on the device where the block is, which is not
    waited for.

        src       [features * B]  the list of each feature and row: the feature's first + its group's inverse
        lengths   lengths[src]
        values    values[offsets[src] + 0, 1, ... lengths]
    """
    rows = block.rows
    counts = block.counts().row_values[kind]
    total = offset(sum(counts))
    src = (of_features(j, inverses, block.counts().lists[kind].alone) +
           block.tensor(f"{kind}.first_list")[:-1].unsqueeze(1)).view(-1)
    lengths = j.lengths.index_select(0, src)
    offsets = torch.zeros(len(src) + 1, dtype=torch.int32, device=lengths.device)
    torch.cumsum(lengths, 0, dtype=torch.int32, out=offsets[1:])
    by = (j.offsets.index_select(0, src) - offsets[:-1]).repeat_interleave(lengths, output_size=total)
    at = by + torch.arange(total, dtype=torch.int32, device=by.device)
    return Jagged(
        j.keys, [rows] * len(j.keys), counts, counts, [False] * len(j.keys), None, lengths, offsets,
        j.values.index_select(0, at),
        None if j.weights is None else j.weights.index_select(0, at),
        None if j.present is None else j.present.index_select(0, src))


def of_features(j: Jagged, inverses: torch.Tensor, alone: bool = True) -> torch.Tensor:
    """[features, B] int32: the inverse of each feature's group, and the rows themselves of a feature that is in none.
    alone says whether there may be one."""
    assert j.groups is not None
    if alone:  # it has the number of groups: the rows are added there
        rows = torch.arange(inverses.shape[1], dtype=torch.int32, device=inverses.device)
        inverses = torch.cat((inverses, rows.unsqueeze(0)))
    return inverses.index_select(0, j.groups)


def _mask(bits: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """[lists] bool: which lists are not null, of bitmaps of sizes[k] bits each."""
    out = []
    for size, run in itertools.groupby(sizes):  # of equal sizes at once: they are hundreds
        n = sum(1 for _ in run)
        words = n * ((size + 63) // 64)
        out.append(unpacked(bits[:words], n, size).reshape(-1))
        bits = bits[words:]
    return torch.cat(out)

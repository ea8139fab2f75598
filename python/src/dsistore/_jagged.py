"""The lists of a batch, and which of them are deduplicated.

A batch holds the lists of one kind in one tensor each of lengths and values (Lists), those of each dedup group in turn and then
the plain ones, as the engine lays them out. Users see it as a Jagged of the plain ones, and a DedupGroup a group:

    slots      group 0   group 1   plain: a row each
    lengths    a a  b b  c c c     d d d d d
    inverses   [0 0 1 1 1]  [0 1 1 2 2]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from . import errors

Map = Callable[[torch.Tensor], torch.Tensor]


def mask(bits: npt.NDArray[np.uint64] | None, n: int) -> torch.Tensor | None:
    """Bitmaps of n bits, a row each, as [features, n] bool: a copy. None stays None."""
    if bits is None:
        return None
    return torch.from_numpy(np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little", count=n).view(np.bool_))


@dataclass
class Jagged:
    """Lists of several features. List i of feature k is ``values[offsets[k*n+i]:offsets[k*n+i+1]]``, n a feature.

    values are int64 ids (uint64 bit for bit), or float32 numbers; weights belong to them one by one where the features are
    weighted, else are None. A null list and an empty one both have length 0; present, which a dataset with ``presence=True``
    gives, tells them apart: bool, one a list, in the order of lengths.
    """

    keys: list[str]
    lengths: torch.Tensor
    offsets: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor | None = None
    present: torch.Tensor | None = None

    def empty(self) -> Jagged:
        """No features, of the same types and on the same device."""
        return Jagged([], self.lengths[:0], self.offsets[:1], self.values[:0],
                      None if self.weights is None else self.weights[:0])


@dataclass
class DedupGroup:
    """Features whose rows share slots alike: an IKJT. Row i has the lists of slot ``inverse[i]``."""

    inverse: torch.Tensor  # [B] int32
    slots: int
    sparse: Jagged
    weighted: Jagged
    floats: Jagged


@dataclass
class Lists:
    """The lists of one kind of all features of a batch."""

    keys: list[list[str]]  # of each group's features, then of the plain ones
    sizes: list[int]  # lists a feature: the slots of each group, then the rows
    counts: list[int]  # values of each group, then of the plain ones
    lengths: torch.Tensor
    offsets: torch.Tensor  # from 0 for each group, and for the plain ones: one more than lists each
    values: torch.Tensor
    weights: torch.Tensor | None
    present: torch.Tensor | None

    def map(self, f: Map) -> Lists:
        return Lists(
            self.keys, self.sizes, self.counts, f(self.lengths), f(self.offsets), f(self.values),
            None if self.weights is None else f(self.weights), None if self.present is None else f(self.present))

    def parts(self) -> list[Jagged]:
        """A Jagged a group, and one of the plain lists: views."""
        if len(self.keys) == 1:
            return [self.plain()]
        if not any(self.keys):  # no features of this kind: one set of views for all parts
            offsets = self.offsets[:1]
            return [Jagged(keys, self.lengths, offsets, self.values, self.weights, self.present) for keys in self.keys]
        # One call a tensor for the views of all parts: one a view takes longer than the rest of a batch in Python.
        lists = [len(keys) * size for keys, size in zip(self.keys, self.sizes)]
        none = [None] * len(lists)
        return list(map(
            Jagged, self.keys, self.lengths.split_with_sizes(lists), self.offsets.split_with_sizes([n + 1 for n in lists]),
            self.values.split_with_sizes(self.counts),
            none if self.weights is None else self.weights.split_with_sizes(self.counts),
            none if self.present is None else self.present.split_with_sizes(lists)))

    def plain(self) -> Jagged:
        """The last of parts, the plain lists, without the others."""
        if len(self.keys) == 1:  # all of it: no views, which take as long as all else that is done for a batch
            return Jagged(self.keys[0], self.lengths, self.offsets, self.values, self.weights, self.present)
        return self._part(len(self.keys) - 1, len(self.lengths) - len(self.keys[-1]) * self.sizes[-1], len(self.values) - self.counts[-1])

    def _part(self, i: int, at: int, first: int) -> Jagged:
        """Part i, whose lists begin at one place and whose values at another."""
        n = len(self.keys[i]) * self.sizes[i]
        lists, values = slice(at, at + n), slice(first, first + self.counts[i])
        return Jagged(
            self.keys[i], self.lengths[lists], self.offsets[at + i: at + i + n + 1], self.values[values],
            None if self.weights is None else self.weights[values], None if self.present is None else self.present[lists])


@dataclass
class BatchLists:
    """All lists of a batch, and the inverses [groups, B] int32."""

    inverses: torch.Tensor
    sparse: Lists
    weighted: Lists
    floats: Lists

    def map(self, f: Map) -> BatchLists:
        return BatchLists(f(self.inverses), self.sparse.map(f), self.weighted.map(f), self.floats.map(f))

    def groups(self) -> list[DedupGroup]:
        if len(self.sparse.keys) == 1:
            return []
        parts = [self.sparse.parts(), self.weighted.parts(), self.floats.parts()]
        return [
            DedupGroup(inverse, self.sparse.sizes[i], *(p[i] for p in parts)) for i, inverse in enumerate(self.inverses)
        ]


def check_size(values: int) -> None:
    """The engine refuses more values than an int32 offset can tell in one group, this in all that are joined."""
    if values >= 1 << 31:
        raise errors.UsageError(f"the lists of a batch have {values:,} values, an offset counts to 2^31 - 1: use a smaller batch_size")


def offsets_of(lengths: torch.Tensor) -> torch.Tensor:
    """Where each list begins, and the last ends, for lists one after the other."""
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=lengths.device)
    torch.cumsum(lengths, 0, out=offsets[1:])
    return offsets

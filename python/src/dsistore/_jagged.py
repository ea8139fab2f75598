"""Lists of several features, and which of them are deduplicated.

Segments may group features differently, so a batch of the engine may. A model wants the same features in the same places in
every batch: Canonical makes it so. Where segments are alike, which is the rule, nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from . import _batch


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

    def map(self, f: Callable[[torch.Tensor], torch.Tensor]) -> Jagged:
        return Jagged(self.keys, f(self.lengths), f(self.offsets), f(self.values),
                      None if self.weights is None else f(self.weights),
                      None if self.present is None else f(self.present))

    def empty(self) -> Jagged:
        """No features, of the same types and on the same device."""
        return Jagged([], self.lengths[:0], self.offsets[:1], self.values[:0],
                      None if self.weights is None else self.weights[:0])


# What a batch has where no feature has lists of a kind, which is the rule for the parts of a group: one for all batches.
_NO_IDS = Jagged([], torch.empty(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), torch.empty(0, dtype=torch.int64))
_NO_FLOATS = Jagged([], _NO_IDS.lengths, _NO_IDS.offsets, torch.empty(0, dtype=torch.float32))


@dataclass
class DedupGroup:
    """Features whose rows share slots alike: an IKJT. Row i has the lists of slot ``inverse[i]``."""

    inverse: torch.Tensor  # [B] int32
    slots: int
    sparse: Jagged
    weighted: Jagged
    floats: Jagged

    def map(self, f: Callable[[torch.Tensor], torch.Tensor]) -> DedupGroup:
        return DedupGroup(f(self.inverse), self.slots, self.sparse.map(f), self.weighted.map(f), self.floats.map(f))


@dataclass
class _Lists:
    """The lists of one feature: one a row, or one a slot where there is an inverse."""

    lengths: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor | None
    present: torch.Tensor | None
    inverse: torch.Tensor | None = None

    def expanded(self) -> _Lists:
        if self.inverse is None:
            return self
        slots = self.inverse.long()
        lengths = self.lengths[slots]
        starts = torch.cumsum(self.lengths, 0, dtype=torch.int64) - self.lengths
        rows = torch.repeat_interleave(torch.arange(len(slots)), lengths)
        first = torch.cumsum(lengths, 0, dtype=torch.int64) - lengths
        at = starts[slots][rows] + torch.arange(len(rows)) - first[rows]
        return _Lists(lengths, self.values[at], None if self.weights is None else self.weights[at],
                      None if self.present is None else self.present[slots])


def _features(j: Jagged, inverse: torch.Tensor | None) -> dict[str, _Lists]:
    n = len(j.lengths) // max(len(j.keys), 1)
    out = {}
    for k, key in enumerate(j.keys):
        a, b = int(j.offsets[k * n]), int(j.offsets[(k + 1) * n])
        lists = slice(k * n, (k + 1) * n)
        out[key] = _Lists(j.lengths[lists], j.values[a:b], None if j.weights is None else j.weights[a:b],
                          None if j.present is None else j.present[lists], inverse)
    return out


def _joined(keys: list[str], lists: list[_Lists], like: Jagged) -> Jagged:
    if not keys:
        return like.empty()
    lengths = torch.cat([x.lengths for x in lists])
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.int32)
    torch.cumsum(lengths, 0, out=offsets[1:])
    weights = [x.weights for x in lists if x.weights is not None]
    present = [x.present for x in lists if x.present is not None]
    return Jagged(keys, lengths, offsets, torch.cat([x.values for x in lists]), torch.cat(weights) if weights else None,
                  torch.cat(present) if present else None)


_PARTS = ("sparse", "weighted", "floats")


class Canonical:
    """Which features are deduplicated in every batch of a plan, and in which order."""

    def __init__(self, names: list[str], kinds: list[tuple[str, str]], groups: list[list[int]]):
        self._names = names
        self._groups = groups
        self._part = {
            place: "weighted" if kind == "weighted" else "floats" if elem.startswith("float") else "sparse"
            for place, (kind, elem) in enumerate(kinds) if kind in ("sparse", "weighted")
        }
        self._dedup = [place for group in groups for place in group]

    def lists(self, raw: _batch.RawBatch) -> tuple[Jagged, Jagged, Jagged, list[DedupGroup]]:
        """The lists of a batch: sparse, weighted, floats and the groups."""
        sparse, weighted, floats = (self._jagged(getattr(raw, part), part, raw.rows) for part in _PARTS)
        groups = [
            DedupGroup(torch.from_numpy(g.inverse), g.slots, *(self._jagged(getattr(g, part), part, g.slots) for part in _PARTS))
            for g in raw.groups
        ]
        if [g.features for g in raw.groups] == self._groups:
            return sparse, weighted, floats, groups
        return self._rebuilt(raw.rows, {"sparse": sparse, "weighted": weighted, "floats": floats}, groups)

    def _jagged(self, j: _batch.Jagged, part: str, n: int) -> Jagged:
        if not j.features:
            return _NO_FLOATS if part == "floats" else _NO_IDS
        present = mask(j.present, n)
        return Jagged(
            [self._names[f] for f in j.features], torch.from_numpy(j.lengths), torch.from_numpy(j.offsets),
            torch.from_numpy(j.floats if part == "floats" else j.values),
            torch.from_numpy(j.weights) if part == "weighted" else None,  # also where all lists of the batch are empty
            None if present is None else present.view(-1),
        )

    def _rebuilt(self, rows: int, plain: dict[str, Jagged], groups: list[DedupGroup]
                 ) -> tuple[Jagged, Jagged, Jagged, list[DedupGroup]]:
        """The batch with the plan's groups. A group whose features no longer share an inverse is expanded: its inverse is the
        rows themselves."""
        of: dict[str, _Lists] = {}
        for j in plain.values():
            of |= _features(j, None)
        for g in groups:
            for part in _PARTS:
                of |= _features(getattr(g, part), g.inverse)
        out = []
        for members in self._groups:
            lists = [of[self._names[f]] for f in members]
            inverse = lists[0].inverse
            if inverse is None or any(x.inverse is not inverse for x in lists):
                inverse = torch.arange(rows, dtype=torch.int32)
                lists = [x.expanded() for x in lists]
            parts = {}
            for part in _PARTS:
                chosen = [(self._names[f], x) for f, x in zip(members, lists) if self._part[f] == part]
                parts[part] = _joined([n for n, _ in chosen], [x for _, x in chosen], plain[part])
            slots = len(lists[0].lengths)
            out.append(DedupGroup(inverse, slots, parts["sparse"], parts["weighted"], parts["floats"]))
        rest = {
            part: [self._names[f] for f, p in self._part.items() if p == part and f not in self._dedup] for part in _PARTS
        }
        sparse, weighted, floats = (
            _joined(rest[part], [of[n].expanded() for n in rest[part]], plain[part]) for part in _PARTS
        )
        return sparse, weighted, floats, out

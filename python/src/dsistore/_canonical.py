"""The same dedup groups in every batch of a plan.

Segments may group features differently, so a batch of the engine may. A model wants the same features in the same places in
every batch: Canonical makes it so. Where segments are alike, which is the rule, nothing is copied.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from . import _batch
from ._jagged import BatchLists, Jagged, Lists, check_size, mask, offsets_of

_PARTS = ("sparse", "weighted", "floats")

_NO_LENGTHS = torch.empty(0, dtype=torch.int32)
_NO_VALUES = {part: torch.empty(0, dtype=torch.float32 if part == "floats" else torch.int64) for part in _PARTS}
_NO_INVERSES = torch.empty((0, 0), dtype=torch.int32)


@dataclass
class _Feature:
    """The lists of one feature: one a row, or one a slot where there is an inverse."""

    lengths: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor | None
    present: torch.Tensor | None
    inverse: torch.Tensor | None = None

    def expanded(self) -> _Feature:
        if self.inverse is None:
            return self
        slots = self.inverse.long()
        lengths = self.lengths[slots]
        starts = torch.cumsum(self.lengths, 0, dtype=torch.int64) - self.lengths
        rows = torch.repeat_interleave(torch.arange(len(slots)), lengths)
        first = torch.cumsum(lengths, 0, dtype=torch.int64) - lengths
        at = starts[slots][rows] + torch.arange(len(rows)) - first[rows]
        return _Feature(lengths, self.values[at], None if self.weights is None else self.weights[at],
                        None if self.present is None else self.present[slots])


def _features(j: Jagged, inverse: torch.Tensor | None) -> dict[str, _Feature]:
    n = len(j.lengths) // max(len(j.keys), 1)
    out = {}
    for k, key in enumerate(j.keys):
        a, b = int(j.offsets[k * n]), int(j.offsets[(k + 1) * n])
        lists = slice(k * n, (k + 1) * n)
        out[key] = _Feature(j.lengths[lists], j.values[a:b], None if j.weights is None else j.weights[a:b],
                            None if j.present is None else j.present[lists], inverse)
    return out


class Canonical:
    """Which features are deduplicated in every batch of a plan, and in which order."""

    def __init__(self, names: list[str], kinds: list[tuple[str, str]], groups: list[list[int]]):
        self._names = names
        self._groups = groups
        self._part = {
            place: "weighted" if kind == "weighted" else "floats" if elem.startswith("float") else "sparse"
            for place, (kind, elem) in enumerate(kinds) if kind in ("sparse", "weighted")
        }
        dedup = {place for group in groups for place in group}
        rest = [place for place in self._part if place not in dedup]
        self._keys = {part: self._named(part, [*groups, rest]) for part in _PARTS}

    def _named(self, part: str, groups: list[list[int]]) -> list[list[str]]:
        """The names of one part's features, a list a group."""
        return [[self._names[f] for f in group if self._part[f] == part] for group in groups]

    def lists(self, raw: _batch.RawBatch) -> BatchLists:
        """The lists of a batch."""
        groups = [g.features for g in raw.groups]
        same = groups == self._groups
        sizes = [*(g.slots for g in raw.groups), raw.rows]
        parts = {}
        for part in _PARTS:
            j: _batch.Lists | None = getattr(raw, part)
            keys = self._keys[part] if same else self._named(part, [*groups, j.features if j is not None else []])
            parts[part] = _empty(part, keys, sizes) if j is None else _lists(j, part, keys, sizes)
        out = BatchLists(torch.from_numpy(raw.inverses) if groups else _NO_INVERSES, **parts)
        return out if same else self._rebuilt(raw.rows, out)

    def _rebuilt(self, rows: int, lists: BatchLists) -> BatchLists:
        """The batch with the plan's groups. A group whose features no longer share an inverse is expanded: its inverse is the
        rows themselves."""
        of: dict[str, _Feature] = {}
        given = lists.groups()
        for part in _PARTS:
            for g in given:
                of |= _features(getattr(g, part), g.inverse)
            of |= _features(getattr(lists, part).plain(), None)
        inverses = []
        sizes = []
        for i, members in enumerate(self._groups):
            names = [self._names[f] for f in members]
            inverse = of[names[0]].inverse
            if inverse is None or any(of[n].inverse is not inverse for n in names):
                inverse = torch.arange(rows, dtype=torch.int32)
                of |= {n: of[n].expanded() for n in names}
            inverses.append(inverse)
            sizes.append(len(of[names[0]].lengths))
        for part in _PARTS:
            of |= {n: of[n].expanded() for n in self._keys[part][-1]}
        return BatchLists(torch.stack(inverses) if inverses else _NO_INVERSES, *(
            _joined(part, self._keys[part], [*sizes, rows], of) for part in _PARTS))


@functools.cache
def _no_offsets(parts: int) -> torch.Tensor:
    return torch.zeros(parts, dtype=torch.int32)


def _empty(part: str, keys: list[list[str]], sizes: list[int]) -> Lists:
    return Lists(keys, sizes, [0] * len(sizes), _NO_LENGTHS, _no_offsets(len(sizes)), _NO_VALUES[part], None, None)


def _lists(j: _batch.Lists, part: str, keys: list[list[str]], sizes: list[int]) -> Lists:
    values = j.floats if part == "floats" else j.values
    return Lists(
        keys, sizes, [*j.counts, len(values) - sum(j.counts)], torch.from_numpy(j.lengths),
        torch.from_numpy(j.offsets), torch.from_numpy(values),
        torch.from_numpy(j.weights) if part == "weighted" else None,  # also where all lists of the batch are empty
        _present(j.present, keys, sizes))


def _present(bits: npt.NDArray[np.uint64], keys: list[list[str]], sizes: list[int]) -> torch.Tensor | None:
    """The masks of a part's features one after the other: a copy."""
    if not len(bits):
        return None
    out = []
    for names, size in zip(keys, sizes):
        words = len(names) * ((size + 63) // 64)
        if (m := mask(bits[:words].reshape(len(names), -1) if words else None, size)) is not None:
            out.append(m.view(-1))
        bits = bits[words:]
    return torch.cat(out)


def _joined(part: str, keys: list[list[str]], sizes: list[int], of: dict[str, _Feature]) -> Lists:
    features = [of[n] for names in keys for n in names]
    if not features:
        return _empty(part, keys, sizes)
    check_size(sum(len(x.values) for x in features))
    lengths = torch.cat([x.lengths for x in features])
    weights = [x.weights for x in features if x.weights is not None]
    present = [x.present for x in features if x.present is not None]
    ends = np.cumsum([len(names) * size for names, size in zip(keys, sizes)])
    offsets = [offsets_of(x) for x in torch.tensor_split(lengths, ends[:-1].tolist())]
    return Lists(
        keys, sizes, [sum(len(of[n].values) for n in names) for names in keys], lengths,
        torch.cat(offsets), torch.cat([x.values for x in features]),
        torch.cat(weights) if weights else None, torch.cat(present) if present else None)

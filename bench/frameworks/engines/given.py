"""What a framework gave, as the arrays that are digested."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from baselines.tensors import Batch, Lists, Projection

# An array of numbers, or the values of lists and where each begins, with one more offset at the end.
Part = Any


class Given:
    """A batch of a framework. A reader that is timed asks for its rows alone: the arrays of baselines.tensors.Batch are
    made when the digest asks for them."""

    def __init__(self, projection: Projection, rows: int, part: Callable[[str], Part]):
        self.rows = rows
        self._projection, self._part = projection, part

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # an AttributeError of _batch itself
            raise AttributeError(name)
        return getattr(self._batch, name)

    @functools.cached_property
    def _batch(self) -> Batch:
        p = self._projection
        if p.weighted:
            raise ValueError("weighted lists are not compared here")
        dense = [_array(self._part(name), np.float32, self.rows, name) for name in p.dense]
        lengths, values = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for name in p.sparse:
            of, offsets = (np.asarray(a) for a in self._part(name))
            lengths.append(np.diff(_array(offsets, offsets.dtype, self.rows + 1, name)).astype(np.int32))
            values.append(_array(of, np.int64, int(offsets[-1]), name))
        lists = Lists(np.concatenate(lengths), np.empty(0, np.int32), np.concatenate(values))
        lists.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lists.lengths, dtype=np.int64)])
        empty = Lists(np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.int64), np.empty(0, np.float32))
        return Batch(self.rows, list(p.dense), np.stack(dense, 1) if dense else np.empty((self.rows, 0), np.float32),
                     (list(p.sparse), lists), ([], empty))


def _array(a: Any, dtype: Any, length: int, name: str) -> np.ndarray:
    """The array, which must have the type and length that all engines give."""
    out = np.asarray(a)
    if out.dtype != dtype or out.shape != (length,):
        raise ValueError(f"{name}: {out.dtype}{list(out.shape)}, want {np.dtype(dtype)}[{length}]")
    return out

"""Batches as NumPy arrays, for JAX, scikit-learn and whatever takes arrays. PyTorch is not needed.

    for batch in table.numpy(["user_*", "age"], labels=["click"], batch_size=4096, shuffle="session", seed=7):
        batch["age"], batch["click"]                # [B] float32
        batch["user_history"].values                # ids of all rows
        batch["user_history"].offsets               # list i is values[offsets[i]:offsets[i + 1]]

Batches are plain dicts, and Ragged and Masked are named tuples: jax.tree.map and jax.device_put take a batch as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._block import Block, Mask, offset
from ._dataset import Dataset, Options
from ._epoch_start import EpochStart
from ._plan import TableRef

__all__ = ["Masked", "NumpyDataset", "Ragged", "Slices"]


class Ragged(NamedTuple):
    """The lists of one feature. List i is ``values[offsets[i]:offsets[i + 1]]``, and its weights have the same
    positions.

    values is int64 ids (the bits of uint64 ids) or float32 numbers; offsets is int32 and starts with 0. weights is
    float32, or None if the feature has no weights. inverse, [B] int32, is the list of each row; if it is None, list i
    belongs to row i. present is False for null lists; it is None without ``presence=True``.
    """

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32] | None = None
    inverse: npt.NDArray[np.int32] | None = None
    present: Mask | None = None

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """The length of each list."""
        return np.diff(self.offsets)

    def row(self, row: int) -> npt.NDArray[Any]:
        """The values of a row of the batch."""
        i = row if self.inverse is None else int(self.inverse[row])
        return self.values[self.offsets[i]: self.offsets[i + 1]]


class Slices(NamedTuple):
    """The lists of one feature with ``dedup="partial"``: some are slices of others. List i is
    ``values[starts[i]:starts[i] + lengths[i]]``, and its weights have the same positions. starts and lengths are
    int32; the rest is as in Ragged.
    """

    values: npt.NDArray[Any]
    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32] | None = None
    inverse: npt.NDArray[np.int32] | None = None
    present: Mask | None = None

    def row(self, row: int) -> npt.NDArray[Any]:
        """The values of a row of the batch."""
        i = row if self.inverse is None else int(self.inverse[row])
        return self.values[self.starts[i]: self.starts[i] + self.lengths[i]]

    def ragged(self) -> Ragged:
        """The same lists one after the other, as copies. UsageError: there are more values than int32 can count."""
        offset(int(self.lengths.sum(dtype=np.int64)))
        offsets = np.zeros(len(self.lengths) + 1, np.int32)
        np.cumsum(self.lengths, out=offsets[1:])
        at = np.arange(offsets[-1], dtype=np.int32) + np.repeat(self.starts - offsets[:-1], self.lengths)
        return Ragged(self.values[at], offsets, None if self.weights is None else self.weights[at], self.inverse,
                      self.present)


class Masked(NamedTuple):
    """Values of one feature, and present, [B] bool, which is False for nulls. A null is 0 in values."""

    values: npt.NDArray[Any]
    present: Mask


NumpyBatch = dict[str, npt.NDArray[Any] | Ragged | Slices | Masked]


class NumpyDataset(Dataset[NumpyBatch]):
    """Training batches as dicts of NumPy arrays, in an order that depends only on the arguments and the epoch. Made by
    Table.numpy.

    A batch has each requested feature, in the order of the request, labels and integers first. The arrays share the
    engine's memory, which returns to the engine when the last of them is gone.

        a number or label                       [B] float32
        among ``integers``                      [B] int64, or uint64 if it is stored as such
        a key, string, bytes, partition key     [B] int64, uint64, float32 or float64; objects if they are not numbers
                                                or if some are null
        a list, weighted list, list of floats   Ragged, with dedup="partial" Slices
        an embedding                            [B, dim] float32
        sample_weight, with ``downsample``      [B] float32, the last

    Null numbers are 0 and null lists are empty. With ``presence=True`` a number, label, integer or embedding is a
    Masked, and Ragged has present.
    """

    def __init__(self, table: TableRef, options: Options):
        super().__init__(table, options, EpochStart())
        self._maker = NumpyMaker(self)

    def _make(self, block: Block) -> NumpyBatch:
        return self._maker.make(block)


class NumpyMaker:
    """Makes batches of NumPy arrays of a dataset's blocks."""

    def __init__(self, of: Dataset[Any]):
        self._names, self._integers, self._presence = of._names, of._integers, of._presence
        self._plan, self._weighted, self._partial = of._plan, of._weighted, of._partial

    def make(self, block: Block) -> NumpyBatch:
        """The batch of a block, over its memory."""
        parts: NumpyBatch = {}
        names, schema, rows = self._names, block.schema, block.rows
        for kind, features in (("dense", schema.dense), ("labels", schema.labels)):
            values, mask = block.array(f"{kind}.values").reshape(rows, -1), block.mask(f"{kind}.present", len(features),
                                                                                      rows)
            for k, f in enumerate(features):
                parts[names[f]] = _masked(values[:, k], None if mask is None else mask[k])
        if self._weighted:  # the last label, which is never null
            parts[names[schema.labels[-1]]] = values[:, -1]
        for i, (f, _) in enumerate(schema.embeddings):
            mask = block.mask(f"embedding.{i}.present", 1, rows)
            parts[names[f]] = _masked(
                block.array(f"embedding.{i}.values").reshape(rows, -1), None if mask is None else mask[0])
        for kind in schema.lists:
            self._add_lists(parts, block, kind)
        for i, f in enumerate(schema.columns):
            name, feature = names[f], self._plan.features[f]
            if name in self._integers:
                parts[name] = _masked(
                    block.numbers(i, feature["elem"]), block.column_mask(i) if self._presence else None)
            else:
                exact = block.exact(i, feature["kind"], feature["elem"])
                parts[name] = np.array(exact, dtype=object) if isinstance(exact, list) else exact
        return {name: parts[name] for name in names}

    def _add_lists(self, parts: NumpyBatch, block: Block, kind: str) -> None:
        """Adds the features of one kind of list."""
        lists = block.schema.lists[kind]
        if not lists.features:
            return
        values, weights, offsets, groups, inverses = (
            block.array(name) for name in (f"{kind}.values", f"{kind}.weights", f"{kind}.offsets", f"{kind}.groups",
                                           "groups.inverses"))
        starts, lengths = block.array(f"{kind}.starts"), block.array(f"{kind}.lengths")
        inverses, mask = inverses.reshape(-1, block.rows), block.lists_mask(kind)
        first = start = 0  # list and value of the feature
        for k, (f, size, count) in enumerate(zip(lists.features, *block.sizes(kind))):
            end, stop = first + size, start + count
            group = int(groups[k]) if lists.dedup[k] else len(inverses)
            more = (weights[start:stop] if kind == "weighted" else None,
                    inverses[group] if group < len(inverses) else None, None if mask is None else mask[first:end])
            if self._partial:
                parts[self._names[f]] = Slices(
                    values[start:stop], starts[first:end] - np.int32(start), lengths[first:end], *more)
            else:
                parts[self._names[f]] = Ragged(values[start:stop], offsets[first:end + 1] - np.int32(start), *more)
            first, start = end, stop


def _masked(values: npt.NDArray[Any], mask: Mask | None) -> npt.NDArray[Any] | Masked:
    return values if mask is None else Masked(values, mask)

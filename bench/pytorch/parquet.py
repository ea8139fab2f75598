"""The baseline: pyarrow reads the same rows of Parquet into the same tensors, as a careful trainer would.

Batches are decoded by column, ids taken over without a copy per feature and joined once, nulls filled by Arrow's
kernels, and nothing is done a row at a time in Python.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

C1, C2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass
class Lists:
    """Lists of features in turn: lengths [F * B] int32, values int64, weights float32 or None."""

    keys: list[str]
    lengths: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor | None = None


@dataclass
class ParquetBatch:
    rows: int
    dense: torch.Tensor
    labels: torch.Tensor
    ids: Lists
    weighted: Lists
    groups: list[tuple[torch.Tensor, int, Lists, Lists]]  # inverse, slots, ids, weighted


def _column(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A list column's offsets, values and weights. Null lists have length 0."""
    offsets = array.offsets.to_numpy()
    values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
    offsets = offsets - offsets[0]
    if pa.types.is_struct(values.type):
        return offsets, values.field("id").to_numpy(), values.field("score").to_numpy()
    return offsets, values.to_numpy(), None


def _lists(keys: list[str], columns: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]) -> Lists:
    if not keys:
        return Lists([], torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int64))
    lengths = np.concatenate([np.diff(o) for o, _, _ in columns])
    values = np.concatenate([v for _, v, _ in columns])
    weights = [w for _, _, w in columns if w is not None]
    return Lists(keys, torch.from_numpy(lengths), torch.from_numpy(values),
                 torch.from_numpy(np.concatenate(weights)) if weights else None)


def hash_lists(offsets: np.ndarray, values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """A 64-bit hash of each list."""
    lengths = np.diff(offsets)
    position = np.arange(len(values), dtype=np.uint64) - np.repeat(offsets[:-1].astype(np.uint64), lengths)
    h = values.view(np.uint64) * C1
    if weights is not None:
        h ^= weights.view(np.uint32).astype(np.uint64) * C2
    h ^= h >> np.uint64(29)
    h *= (position + np.uint64(1)) * C2 | np.uint64(1)
    h ^= h >> np.uint64(32)
    total = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(h, out=total[1:])
    return (total[offsets[1:]] - total[offsets[:-1]]) * C1 + lengths.astype(np.uint64)


def _taken(column: tuple[np.ndarray, np.ndarray, np.ndarray | None], rows: np.ndarray
           ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The lists of some rows."""
    offsets, values, weights = column
    lengths = np.diff(offsets)[rows]
    out = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(lengths, out=out[1:])
    at = np.arange(out[-1]) + np.repeat(offsets[rows] - out[:-1], lengths)
    return out, values[at], None if weights is None else weights[at]


class ParquetSide:
    """Reads Parquet files into batches. groups: names of features that share an inverse, which is found by hashing the
    rows of each batch: output ikjt."""

    def __init__(self, path: pathlib.Path, features: list[str], labels: list[str], batch_size: int, threads: int,
                 groups: list[list[str]] = (), modulus: int = 0):
        self._files = sorted(path.glob("*.parquet"))
        self._labels, self._batch_size, self._threads, self._groups = labels, batch_size, threads, groups
        self._modulus = modulus
        schema = pq.read_schema(self._files[0])
        lists = [f for f in features if pa.types.is_list(schema.field(f).type)]
        self._weighted = [f for f in lists if pa.types.is_struct(schema.field(f).type.value_type)]
        self._ids = [f for f in lists if f not in self._weighted]
        self.dense = [f for f in features if f not in lists]
        self._columns = [*lists, *self.dense, *labels]

    def __iter__(self) -> Iterator[ParquetBatch]:
        pa.set_cpu_count(self._threads)
        for path in self._files:
            with pq.ParquetFile(path, pre_buffer=True) as f:
                for batch in f.iter_batches(self._batch_size, columns=self._columns, use_threads=self._threads > 1):
                    yield self._make(batch)

    def _matrix(self, batch: pa.RecordBatch, names: list[str]) -> torch.Tensor:
        out = np.empty((batch.num_rows, len(names)), np.float32)
        for i, name in enumerate(names):
            column = batch.column(name)
            if pa.types.is_boolean(column.type):
                column = column.cast(pa.uint8())
            out[:, i] = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
        return torch.from_numpy(out)

    def _make(self, batch: pa.RecordBatch) -> ParquetBatch:
        columns = {name: _column(batch.column(name)) for name in [*self._ids, *self._weighted]}
        if self._modulus:
            columns = {k: (o, v % self._modulus, w) for k, (o, v, w) in columns.items()}
        groups, grouped = [], set()
        for members in self._groups:
            hashes = [hash_lists(*columns[m]) for m in members]
            both = hashes[0]
            for h in hashes[1:]:
                both = (both ^ h) * C1 + h
            _, first, inverse = np.unique(both, return_index=True, return_inverse=True)
            taken = {m: _taken(columns[m], first) for m in members}
            parts = [_lists(ks, [taken[k] for k in ks])
                     for ks in ([m for m in members if m in self._ids], [m for m in members if m in self._weighted])]
            groups.append((torch.from_numpy(inverse.astype(np.int32)), len(first), parts[0], parts[1]))
            grouped.update(members)
        plain = [[n for n in names if n not in grouped] for names in (self._ids, self._weighted)]
        return ParquetBatch(
            batch.num_rows, self._matrix(batch, self.dense), self._matrix(batch, self._labels),
            *(_lists(names, [columns[n] for n in names]) for names in plain), groups)

"""Uncompressed arrays, one file each, mapped: the least that can be done to bytes on disk."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..tensors import BATCH, Batch, Lists, Maker, Projection, dense_array, list_extent, number_array
from .engine import Engine


class Raw(Engine):
    """A column a file: a dense feature as float32, a list as offsets (int64 from 0), ids (int64) and scores
    (float32)."""


    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        os.makedirs(path)
        for name in table.column_names:
            a = table.column(name).combine_chunks()
            if isinstance(a, pa.ChunkedArray):
                a = a.chunk(0)
            to = pathlib.Path(path) / name
            if pa.types.is_fixed_size_list(a.type):
                number_array(a.values).tofile(to.with_suffix(".embedding"))
            elif pa.types.is_list(a.type):
                extent = list_extent(a)
                (extent - extent[0]).astype(np.int64).tofile(to.with_suffix(".offsets"))
                inner, part = a.values, slice(int(extent[0]), int(extent[-1]))
                if pa.types.is_struct(inner.type):
                    number_array(inner.field(1))[part].tofile(to.with_suffix(".scores"))
                    inner = inner.field(0)
                number_array(inner)[part].tofile(to.with_suffix(".ids"))
            else:
                exact = name.endswith(("_id", "_time"))
                dense_array(a).astype(np.int64 if exact else np.float32).tofile(to.with_suffix(".dense"))

    def open(self, path: str) -> pathlib.Path:
        return pathlib.Path(path)

    def batches(self, opened: pathlib.Path, projection: Projection, groups: list[list[str]] | None) -> Iterator[Batch]:
        def mapped(name: str, suffix: str, kind: Any) -> np.ndarray:
            path = opened / f"{name}.{suffix}"
            return np.memmap(path, kind, "r").view(np.ndarray) if path.stat().st_size else np.empty(0, kind)

        dense = [mapped(n, "dense", np.float32) for n in projection.dense]
        lists = [[(mapped(n, "offsets", np.int64), mapped(n, "ids", np.int64),
                   mapped(n, "scores", np.float32) if weighted else None) for n in names]
                 for names, weighted in ((projection.sparse, False), (projection.weighted, True))]
        make = Maker(projection, groups)
        memory = make._memory
        total = len(dense[0]) if dense else len(next(x for part in lists for x in part)[0]) - 1
        for first in range(0, total, BATCH):
            rows = min(BATCH, total - first)
            matrix = memory("dense", rows * len(dense), np.float32).reshape(rows, len(dense))
            for i, column in enumerate(dense):
                matrix[:, i] = column[first: first + rows]
            parts = []
            for part, files in zip(("sparse", "weighted"), lists):
                extents = [offsets[first: first + rows + 1] for offsets, _, _ in files]
                n = sum(int(e[-1] - e[0]) for e in extents)
                lengths = memory(part + " lengths", rows * len(files), np.int32)
                offsets = memory(part + " offsets", rows * len(files) + 1, np.int32)
                values = memory(part + " values", n, np.int64)
                weights = memory(part + " weights", n, np.float32) if part == "weighted" else None
                offsets[0] = at = 0
                for k, (extent, (_, ids, scores)) in enumerate(zip(extents, files)):
                    here = slice(k * rows, (k + 1) * rows)
                    np.subtract(extent[1:], extent[:-1], out=lengths[here], casting="same_kind")
                    np.add(extent[1:], at - extent[0], out=offsets[1:][here], casting="same_kind")
                    end = at + int(extent[-1] - extent[0])
                    values[at:end] = ids[extent[0]: extent[-1]]
                    if weights is not None and scores is not None:
                        weights[at:end] = scores[extent[0]: extent[-1]]
                    at = end
                parts.append(Lists(lengths, offsets, values, weights))
            b = Batch(rows, list(projection.dense), matrix, (list(projection.sparse), parts[0]),
                      (list(projection.weighted), parts[1]))
            yield make._hashed(b) if groups else b

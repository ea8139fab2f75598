"""MosaicML streaming's MDS files: a sample a row. Rows are few, since a sample is made in Python: see ROWS."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..objects import filesystem
from ..tensors import BATCH, Batch, Lists, Maker, Projection, dense_array, list_extent, number_array
from .engine import Engine


def _without_models() -> None:
    """Lets the modules of MDS be imported without what the package's own __init__ loads: models, images, clouds."""
    found = importlib.util.find_spec("streaming")
    if found is None or not found.submodule_search_locations:
        raise ImportError("mosaicml-streaming is not installed")
    root = found.submodule_search_locations[0]
    for name, path in (("streaming", root), ("streaming.base", root + "/base")):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module


_without_models()

from streaming.base.format.mds.writer import MDSWriter  # noqa: E402
from streaming.base.local import LocalDataset  # noqa: E402

_DENSE = "dense"
_NAMES = "dense.txt"  # the names of dense features


class MDS(Engine):
    """A list is a column of bytes. All dense features are one column, since every column of a sample is decoded."""

    _local = ""  # where a remote dataset's files are

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        lists = [n for n in table.column_names if pa.types.is_list(table.schema.field(n).type)]
        dense = [n for n in table.column_names if n not in lists]
        columns = {**{n: "bytes" for n in lists}, _DENSE: "bytes"}
        with MDSWriter(out=path, columns=columns, compression=None, size_limit=1 << 28) as out:
            for b in table.to_batches():
                matrix = np.stack([_exact(b.column(n)) for n in dense], axis=1)
                cut = {n: _cut(b.column(n)) for n in lists}
                for i in range(b.num_rows):
                    out.write({**{n: cut[n][i] for n in lists}, _DENSE: matrix[i].tobytes()})
        with open(f"{path}/{_NAMES}", "w") as f:
            f.write("\n".join(dense))

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> Any:
        """A StreamingDataset, which downloads what it reads into a directory of its own."""
        from streaming.base.dataset import StreamingDataset

        os.environ |= server | {"S3_ENDPOINT_URL": server["AWS_ENDPOINT_URL"],
                                "AWS_DEFAULT_REGION": server["AWS_REGION"]}
        self._local = tempfile.mkdtemp()
        dataset = StreamingDataset(remote=f"s3://{bucket}/{key}", local=self._local, shuffle=False, batch_size=BATCH)
        with filesystem(server).open_input_stream(f"{bucket}/{key}/{_NAMES}") as f:
            return dataset, f.read().decode().split("\n")

    def close(self, opened: Any) -> None:
        if self._local:
            shutil.rmtree(self._local)
            self._local = ""

    def open(self, path: str) -> Any:
        with open(f"{path}/{_NAMES}") as f:
            return LocalDataset(path), f.read().split("\n")

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Batch]:
        dataset, dense = opened
        positions = [dense.index(n) for n in projection.dense]
        make = Maker(projection, groups)
        for first in range(0, len(dataset), BATCH):
            samples = [dataset[i] for i in range(first, min(first + BATCH, len(dataset)))]
            rows = len(samples)
            matrix = np.frombuffer(b"".join(s[_DENSE] for s in samples), np.float64).reshape(rows, len(dense))
            parts = []
            for names, width in ((projection.sparse, 8), (projection.weighted, 12)):
                cells = [s[n] for n in names for s in samples]
                lengths = np.fromiter((len(c) // width for c in cells), np.int32, len(cells))
                offsets = np.zeros(len(cells) + 1, np.int32)
                np.cumsum(lengths, out=offsets[1:])
                if width == 8:
                    parts.append(Lists(lengths, offsets, np.frombuffer(b"".join(cells), np.int64)))
                else:
                    parts.append(
                        Lists(lengths, offsets, np.frombuffer(b"".join(c[:len(c) // 12 * 8] for c in cells), np.int64),
                              np.frombuffer(b"".join(c[len(c) // 12 * 8:] for c in cells), np.float32)))
            b = Batch(rows, list(projection.dense), matrix[:, positions].astype(np.float32),
                      (list(projection.sparse), parts[0]), (list(projection.weighted), parts[1]))
            yield make._hashed(b) if groups else b


def _exact(a: pa.Array) -> np.ndarray:
    """A dense column as float64: null is 0. Embeddings and keys are not asked for, and are not kept exactly."""
    if pa.types.is_fixed_size_list(a.type):
        return np.zeros(len(a))
    return dense_array(a).astype(np.float64)


def _cut(a: pa.Array) -> list[bytes]:
    """The bytes of each list: ids, then scores."""
    extent = list_extent(a)
    inner = a.values
    arrays = [
        number_array(x) for x in ([inner.field(0), inner.field(1)] if pa.types.is_struct(inner.type) else [inner])
    ]
    whole = [x.tobytes() for x in arrays]
    widths = [x.itemsize for x in arrays]
    return [b"".join(w[int(p) * n: int(q) * n] for w, n in zip(whole, widths)) for p, q in zip(extent[:-1], extent[1:])]

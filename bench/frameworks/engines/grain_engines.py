"""Grain: rows by position, as dicts, which batch_fn makes one batch of. The same collate for all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grain
import numpy as np
import pyarrow as pa
from array_record.python.array_record_module import ArrayRecordWriter

from baselines.engines.dsistore_engine import Dsistore
from baselines.engines.engine import Engine
from baselines.tensors import BATCH, Projection, dense_array, list_extent, number_array

from .given import Given

Row = dict[str, Any]


def collate(p: Projection, rows: Sequence[Row]) -> dict[str, Any]:
    """A batch of rows: [B] float32 of a dense feature, values and offsets of lists. What is None or absent is 0 and
    empty."""
    out: dict[str, Any] = {}
    empty = np.empty(0, np.int64)
    for name in p.dense:
        column = (row.get(name) for row in rows)
        out[name] = np.fromiter((0 if x is None else x for x in column), np.float32, len(rows))
    for name in p.sparse:
        lists = [empty if (x := row.get(name)) is None else x for row in rows]
        offsets = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, lists), np.int32, len(rows)), out=offsets[1:])
        out[name] = np.concatenate(lists), offsets
    return out


class _Grain(Engine):
    """Batches in order, or shuffled by Grain, which its users want."""

    exact_order = True

    def __init__(self, threads: int, shuffled: bool = False):
        super().__init__(threads)
        self.shuffled = shuffled

    def given(self, opened: Any, p: Projection) -> grain.IterDataset:
        raise NotImplementedError

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Given]:
        first = projection.columns[0]
        for b in self.given(opened, projection):
            yield Given(projection, len(b[first][1]) - 1 if isinstance(b[first], tuple) else len(b[first]),
                        b.__getitem__)

    def ordered(self, dataset: grain.MapDataset) -> grain.MapDataset:
        return dataset.shuffle(seed=7) if self.shuffled else dataset

    def of_rows(self, rows: grain.MapDataset, p: Projection) -> grain.IterDataset:
        """Batches of rows, of which Grain reads 500 ahead, as it does by default."""
        read = grain.ReadOptions(num_threads=self.threads, prefetch_buffer_size=500)
        return rows.to_iter_dataset(read).batch(BATCH, drop_remainder=False, batch_fn=lambda r: collate(p, r))

    def of_batches(self, rows: int, read: Callable[[Any], Sequence[Row]], p: Projection) -> grain.IterDataset:
        """Batches of row positions, of which each is read at once, with as many ahead as there are threads."""
        positions = self.ordered(grain.MapDataset.range(rows)).batch(BATCH)
        ahead = grain.ReadOptions(num_threads=self.threads, prefetch_buffer_size=self.threads)
        return positions.map(lambda at: collate(p, read(at))).to_iter_dataset(ahead)


class DsistoreRows(_Grain, Dsistore):
    """table.grain as a source. Grain asks for a row after the other: it knows of sources that read several at once, but
    its build of PyPI does not use that."""

    def given(self, opened: Any, p: Projection) -> grain.IterDataset:
        return self.of_rows(self.ordered(grain.MapDataset.source(opened.grain(p.columns))), p)


class DsistoreBatches(_Grain, Dsistore):

    def given(self, opened: Any, p: Projection) -> grain.IterDataset:
        source = opened.grain(p.columns)
        return self.of_batches(len(source), source.take, p)


class _ArrayRecord(_Grain):
    """A record per row, each compressed alone, as is advised for reading in random order."""

    at_once = False  # whether the records of a batch are read together

    def records(self, table: pa.Table) -> Iterator[bytes]:
        raise NotImplementedError

    def parse(self, p: Projection) -> Callable[[bytes], Row]:
        raise NotImplementedError

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        writer = ArrayRecordWriter(path, "group_size:1")
        for record in self.records(table):
            writer.write(record)
        writer.close()

    def open(self, path: str) -> str:
        return path

    def given(self, opened: str, p: Projection) -> grain.IterDataset:
        source, parse = grain.sources.ArrayRecordDataSource([opened]), self.parse(p)
        if self.at_once:
            return self.of_batches(len(source), lambda at: [parse(r) for r in source.__getitems__(at)], p)
        return self.of_rows(self.ordered(grain.MapDataset.source(source)).map(parse), p)


class ArrayRecordExamples(_ArrayRecord):
    """Serialized tf.train.Examples, which protobuf parses."""

    def records(self, table: pa.Table) -> Iterator[bytes]:
        from .rows import examples

        return examples(table)

    def parse(self, p: Projection) -> Callable[[bytes], Row]:
        from tensorflow.core.example.example_pb2 import Example

        def parse(record: bytes) -> Row:
            feature = Example.FromString(record).features.feature
            out: Row = {name: np.array(feature[name].int64_list.value, np.int64) for name in p.sparse}
            for name in p.dense:
                if values := feature[name].float_list.value:
                    out[name] = values[0]
            return out

        return parse


class ArrayRecordPickles(_ArrayRecord):
    """Pickled dicts of arrays and numbers: fewer bytes for Python to look at."""

    def records(self, table: pa.Table) -> Iterator[bytes]:
        p = Projection.of(table.schema, table.column_names)
        for batch in table.to_batches(max_chunksize=BATCH):
            columns: dict[str, Any] = {}
            for name in p.sparse:
                column = batch.column(name)
                extent, values = list_extent(column), number_array(column.values)
                columns[name] = [values[a:b] for a, b in zip(extent, extent[1:])]
            for name in p.dense:
                columns[name] = dense_array(batch.column(name)).astype(np.float32).tolist()
            for row in range(batch.num_rows):
                yield pickle.dumps({name: column[row] for name, column in columns.items()}, pickle.HIGHEST_PROTOCOL)

    def parse(self, p: Projection) -> Callable[[bytes], Row]:
        return pickle.loads


class ArrayRecordPickleBatches(ArrayRecordPickles):
    at_once = True

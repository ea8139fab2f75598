"""tf.data: dense features as [B] float32, id lists as RaggedTensors of int64."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import tensorflow as tf  # noqa: E402

from baselines.engines.arrow import ParquetZstd  # noqa: E402
from baselines.engines.dsistore_engine import Dsistore  # noqa: E402
from baselines.engines.engine import Engine  # noqa: E402
from baselines.tensors import BATCH, Projection, dense_array, list_extent, number_array  # noqa: E402

from .given import Given, Part  # noqa: E402


class _TensorFlow(Engine):
    exact_order = True

    def __init__(self, threads: int):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        super().__init__(threads)

    def given(self, opened: Any, p: Projection) -> tf.data.Dataset:
        raise NotImplementedError

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Given]:
        first = projection.columns[0]
        for b in self.given(opened, projection):
            def part(name: str, b: Any = b) -> Part:
                x = b[name]
                return (x.values.numpy(), x.row_splits.numpy()) if isinstance(x, tf.RaggedTensor) else x.numpy()

            yield Given(projection, int(b[first].shape[0]), part)

    def _as_set(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """The dataset, which works with as many threads as it may have, and one batch ahead or more."""
        options = tf.data.Options()
        options.threading.private_threadpool_size = self.threads
        options.threading.max_intra_op_parallelism = self.threads
        return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


class DsistoreDataset(_TensorFlow, Dsistore):

    def given(self, opened: Any, p: Projection) -> tf.data.Dataset:
        return opened.tensorflow(p.columns, batch_size=BATCH, workers=self.threads).dataset()


class TFRecord(_TensorFlow):
    """Without compression, a record per row; parsed a batch at once, which is faster than each alone."""

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        from .rows import examples

        with tf.io.TFRecordWriter(path) as w:
            for record in examples(table):
                w.write(record)

    def open(self, path: str) -> str:
        return path

    def given(self, opened: str, p: Projection) -> tf.data.Dataset:
        features: dict[str, Any] = {name: tf.io.RaggedFeature(tf.int64) for name in p.sparse}
        features |= {name: tf.io.FixedLenFeature([], tf.float32, 0.0) for name in p.dense}
        records = tf.data.TFRecordDataset(opened, buffer_size=8 << 20).batch(BATCH)
        return self._as_set(records.map(lambda batch: tf.io.parse_example(batch, features), tf.data.AUTOTUNE))


class Parquet(_TensorFlow, ParquetZstd):
    """A generator of what pyarrow reads, over its memory."""

    def given(self, opened: pq.ParquetFile, p: Projection) -> tf.data.Dataset:
        signature: dict[str, Any] = {
            name: tf.RaggedTensorSpec([None, None], tf.int64, row_splits_dtype=tf.int32) for name in p.sparse}
        signature |= {name: tf.TensorSpec([None], tf.float32) for name in p.dense}

        def read() -> Iterator[dict[str, Any]]:
            for b in opened.iter_batches(BATCH, columns=p.columns, use_threads=self.threads > 1):
                out: dict[str, Any] = {name: _ragged(b.column(name)) for name in p.sparse}
                for name in p.dense:
                    out[name] = dense_array(b.column(name)).astype("float32", copy=False)
                yield out

        return self._as_set(tf.data.Dataset.from_generator(read, output_signature=signature))


def _ragged(column: pa.Array) -> tf.RaggedTensor:
    extent = list_extent(column)
    values = number_array(column.values)[extent[0]: extent[-1]]
    return tf.RaggedTensor.from_row_splits(values, extent - extent[0], validate=False)

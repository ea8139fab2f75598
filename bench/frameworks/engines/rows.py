"""tf.train.Examples of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from tensorflow.core.example.example_pb2 import Example

from baselines.tensors import dense_array, list_extent, number_array
from baselines.workload import OTHERS

_BATCH = 1024  # rows that are in memory as Python's objects


def examples(table: pa.Table) -> Iterator[bytes]:
    """A serialized tf.train.Example of each row, as users write them: what is null or empty is absent, numbers are
    floats where they are features, and the scores of a weighted list are a feature NAME/scores."""
    for batch in table.to_batches(max_chunksize=_BATCH):
        parts = [p for name in batch.schema.names for p in _parts(name, batch.column(name))]
        for row in range(batch.num_rows):
            example = Example()
            feature = example.features.feature
            for name, kind, of in parts:
                values = of(row)
                if values:
                    getattr(feature[name], kind).value.extend(values)
            yield example.SerializeToString()


def _parts(name: str, column: pa.Array) -> list[tuple[str, str, Callable[[int], Any]]]:
    """The features that a column becomes: name, list of an Example, and its values in a row."""
    t = column.type
    if pa.types.is_list(t) and pa.types.is_struct(t.value_type):
        inner = column.values
        return [_lists(n, list_extent(column).tolist(), inner.field(i))
                for i, n in enumerate((name, name + "/scores"))]
    if pa.types.is_list(t):
        return [_lists(name, list_extent(column).tolist(), column.values)]
    if pa.types.is_fixed_size_list(t):
        first, n = column.offset, t.list_size
        return [_lists(name, list(range(first * n, (first + len(column) + 1) * n, n)), column.values)]
    null = column.is_null().to_pylist()
    exact = name in OTHERS
    values = dense_array(column).astype(np.int64 if exact else np.float32).tolist()
    return [(name, "int64_list" if exact else "float_list", lambda row: None if null[row] else [values[row]])]


def _lists(name: str, extent: list[int], values: pa.Array) -> tuple[str, str, Callable[[int], Any]]:
    kind = "int64_list" if pa.types.is_integer(values.type) else "float_list"
    array = number_array(values)
    return name, kind, lambda row: array[extent[row]: extent[row + 1]].tolist()

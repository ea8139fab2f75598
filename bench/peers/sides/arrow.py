"""pyarrow's formats: Arrow IPC and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from .side import Side


class _Arrow(Side):
    def __init__(self, threads: int):
        super().__init__(threads)
        pa.set_cpu_count(threads)
        pa.set_io_thread_count(threads)


class _IPC(_Arrow):
    """Record batches of 16,384 rows: compressed buffers are decompressed whole, those of columns that nobody wants not at all."""

    codec = ""

    def write(self, table: pa.Table, path: str) -> None:
        codec = pa.Codec(self.codec, 3) if self.codec == "zstd" else pa.Codec(self.codec)
        options = ipc.IpcWriteOptions(compression=codec, use_threads=self.threads > 1)
        with ipc.new_file(path, table.schema, options=options) as w:
            w.write_table(table.combine_chunks(), max_chunksize=16384)

    def open(self, path: str) -> Any:
        return path, pa.memory_map(path) if self.mapped else pa.OSFile(path)

    def _reader(self, opened: Any, columns: list[str]) -> ipc.RecordBatchFileReader:
        # The footer is read twice, since columns are asked for by number: once for the names.
        schema = ipc.open_file(opened[1]).schema
        options = ipc.IpcReadOptions(included_fields=[schema.get_field_index(c) for c in columns], use_threads=self.threads > 1)
        return ipc.open_file(opened[1], options=options)

    def chunks(self, opened: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        reader = self._reader(opened, columns)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)

    def plan(self, opened: Any, columns: list[str]) -> ipc.RecordBatchFileReader:
        return self._reader(opened, columns)

    def table(self, opened: Any, columns: list[str], plan: Any = None) -> pa.Table:
        return (plan or self._reader(opened, columns)).read_all()

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        reader = self._reader(opened, columns)
        places, out = np.asarray(rows), []
        begin = 0
        for i in range(reader.num_record_batches):
            b = reader.get_batch(i)
            here = places[(places >= begin) & (places < begin + b.num_rows)]
            if len(here):
                out.append(b.take(pa.array(here - begin)))
            begin += b.num_rows
        return pa.Table.from_batches(out)

    def close(self, opened: Any) -> None:
        opened[1].close()


class IPCLz4(_IPC):
    codec = "lz4"


class IPCZstd(_IPC):
    codec = "zstd"


class _Parquet(_Arrow):
    """Row groups of 32,768 rows, which two threads can share and pages of which fit the cache."""

    codec: dict[str, Any] = {}

    def write(self, table: pa.Table, path: str) -> None:
        pq.write_table(table, path, row_group_size=32768, **self.codec)

    def open(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(path, memory_map=self.mapped, pre_buffer=not self.mapped)

    def chunks(self, opened: pq.ParquetFile, columns: list[str]) -> Iterator[pa.Table]:
        for g in range(opened.num_row_groups):
            yield opened.read_row_group(g, columns=columns, use_threads=self.threads > 1)

    def take(self, opened: pq.ParquetFile, rows: list[int], columns: list[str]) -> pa.Table:
        places, out, begin = np.asarray(rows), [], 0
        for g in range(opened.num_row_groups):
            n = opened.metadata.row_group(g).num_rows
            here = places[(places >= begin) & (places < begin + n)]
            if len(here):
                out.append(opened.read_row_group(g, columns=columns, use_threads=self.threads > 1).take(pa.array(here - begin)))
            begin += n
        return pa.concat_tables(out)

    def close(self, opened: pq.ParquetFile) -> None:
        opened.close()


class ParquetZstd(_Parquet):
    codec = {"compression": "zstd", "compression_level": 3}


class ParquetSnappy(_Parquet):
    codec = {"compression": "snappy"}

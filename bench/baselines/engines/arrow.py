"""pyarrow's formats: Arrow IPC and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as dataset
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from ..objects import filesystem
from .engine import Engine


class _Arrow(Engine):
    def __init__(self, threads: int):
        super().__init__(threads)
        pa.set_cpu_count(threads)
        pa.set_io_thread_count(16)  # they wait

    def _remote(self, server: dict[str, str], bucket: str, key: str, form: Any) -> dataset.Dataset:
        """Datasets read ahead, and what lies together at once."""
        return dataset.dataset(f"{bucket}/{key}", filesystem=filesystem(server), format=form)

    # What datasets read a file as: they know which row groups a filter rules out.
    form: type[dataset.FileFormat]

    def filtered(self, opened: Any, columns: list[str], column: str, most: int) -> Iterator[pa.RecordBatch]:
        return dataset.dataset(self._path(opened),
                               format=self.form()).scanner(columns=columns, filter=dataset.field(column) <= most,
                                                           batch_size=16384, use_threads=self.threads > 1).to_batches()

    def _path(self, opened: Any) -> str:
        raise NotImplementedError

    def _scan(self, opened: dataset.Dataset, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        return opened.scanner(columns=columns, batch_size=rows, use_threads=True, batch_readahead=16).to_batches()


class _IPC(_Arrow):
    """Record batches of 16,384 rows, which decompress into the cache, of clustered rows; of others one for 131,072, so
    that compression finds a session's rows. Columns that nobody wants are not decompressed."""

    codec = ""
    form = dataset.IpcFileFormat

    def _path(self, opened: Any) -> str:
        return opened[0]

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        codec = pa.Codec(self.codec, 3) if self.codec == "zstd" else pa.Codec(self.codec)
        options = ipc.IpcWriteOptions(compression=codec, use_threads=self.threads > 1)
        with ipc.new_file(path, table.schema, options=options) as w:
            w.write_table(table.combine_chunks(), max_chunksize=16384 if clustered else 131072)

    def open(self, path: str) -> Any:
        return path, pa.memory_map(path) if self.mapped else pa.OSFile(path)

    def _reader(self, opened: Any, columns: list[str]) -> ipc.RecordBatchFileReader:
        # The footer is read twice, since columns are asked for by number: once for the names.
        schema = ipc.open_file(opened[1]).schema
        options = ipc.IpcReadOptions(included_fields=[schema.get_field_index(c) for c in columns],
                                     use_threads=self.threads > 1)
        return ipc.open_file(opened[1], options=options)

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> dataset.Dataset:
        return self._remote(server, bucket, key, dataset.IpcFileFormat())

    def chunks(self, opened: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if isinstance(opened, dataset.Dataset):
            yield from self._scan(opened, columns, 16384)
            return
        reader = self._reader(opened, columns)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)

    def plan(self, opened: Any, columns: list[str]) -> ipc.RecordBatchFileReader:
        return self._reader(opened, columns)

    def table(self, opened: Any, columns: list[str], plan: Any = None) -> pa.Table:
        return (plan or self._reader(opened, columns)).read_all()

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        reader = self._reader(opened, columns)
        positions, out = np.asarray(rows), []
        begin = 0
        for i in range(reader.num_record_batches):
            b = reader.get_batch(i)
            here = positions[(positions >= begin) & (positions < begin + b.num_rows)]
            if len(here):
                out.append(b.take(pa.array(here - begin)))
            begin += b.num_rows
        return pa.Table.from_batches(out)

    def close(self, opened: Any) -> None:
        if not isinstance(opened, dataset.Dataset):
            opened[1].close()


class IPCLz4(_IPC):
    codec = "lz4"


class IPCZstd(_IPC):
    codec = "zstd"


class _Parquet(_Arrow):
    """Clustered rows: row groups of 32,768, without dictionaries, which zstd does better without and faster. Others: as
    much as 131,072 rows per group, and dictionaries and pages large enough for what comes back far away."""

    codec: dict[str, Any] = {}
    form = dataset.ParquetFileFormat

    def _path(self, opened: Any) -> str:
        return self._opened

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        if clustered:
            pq.write_table(table, path, row_group_size=32768, use_dictionary=False, **self.codec)
        else:
            pq.write_table(table, path, row_group_size=131072, dictionary_pagesize_limit=8 << 20,
                           data_page_size=8 << 20, max_rows_per_page=131072, **self.codec)

    def open(self, path: str) -> pq.ParquetFile:
        self._opened = path
        return pq.ParquetFile(path, memory_map=self.mapped, pre_buffer=not self.mapped)

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> dataset.Dataset:
        return self._remote(server, bucket, key, dataset.ParquetFileFormat(pre_buffer=True))

    def chunks(self, opened: Any, columns: list[str]) -> Iterator[pa.RecordBatch | pa.Table]:
        if isinstance(opened, dataset.Dataset):
            yield from self._scan(opened, columns, 32768)
            return
        for g in range(opened.num_row_groups):
            yield opened.read_row_group(g, columns=columns, use_threads=self.threads > 1)

    def take(self, opened: pq.ParquetFile, rows: list[int], columns: list[str]) -> pa.Table:
        positions, out, begin = np.asarray(rows), [], 0
        for g in range(opened.num_row_groups):
            n = opened.metadata.row_group(g).num_rows
            here = positions[(positions >= begin) & (positions < begin + n)]
            if len(here):
                out.append(
                    opened.read_row_group(g, columns=columns, use_threads=self.threads > 1).take(
                        pa.array(here - begin)))
            begin += n
        return pa.concat_tables(out)

    def close(self, opened: Any) -> None:
        if not isinstance(opened, dataset.Dataset):
            opened.close()


class ParquetZstd(_Parquet):
    codec = {"compression": "zstd", "compression_level": 3}


class ParquetSnappy(_Parquet):
    codec = {"compression": "snappy"}

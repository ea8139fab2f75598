"""Lance: file format 2.2, which is the newest stable one, and 2.3, with which zstd takes half the bytes."""

from __future__ import annotations

from collections.abc import Iterator

import lance
import pyarrow as pa

from .engine import Engine


class Lance(Engine):
    version = "2.2"
    metadata: dict[str, str] = {}

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        schema = pa.schema([self._field(f) for f in table.schema])
        lance.write_dataset(table.cast(schema) if self.metadata else table, path, data_storage_version=self.version)

    def _field(self, f: pa.Field) -> pa.Field:
        """What a column holds says how it is compressed: the leaves."""
        if pa.types.is_list(f.type):
            return f.with_type(pa.list_(self._field(f.type.value_field)))
        if pa.types.is_struct(f.type):
            return f.with_type(pa.struct([self._field(g) for g in f.type]))
        return f.with_metadata(self.metadata)

    def open(self, path: str) -> lance.LanceDataset:
        return lance.dataset(path)

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> lance.LanceDataset:
        return lance.dataset(
            f"s3://{bucket}/{key}", storage_options={
                "aws_endpoint": server["AWS_ENDPOINT_URL"], "allow_http": "true", "aws_region": server["AWS_REGION"],
                "aws_access_key_id": server["AWS_ACCESS_KEY_ID"],
                "aws_secret_access_key": server["AWS_SECRET_ACCESS_KEY"]
            })

    def chunks(self, opened: lance.LanceDataset, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from opened.to_batches(columns=columns, batch_size=16384, batch_readahead=2 * self.threads)

    def filtered(self, opened: lance.LanceDataset, columns: list[str], column: str,
                 most: int) -> Iterator[pa.RecordBatch]:
        yield from opened.to_batches(columns=columns, filter=f"{column} <= {most}", batch_size=16384,
                                     batch_readahead=2 * self.threads)

    def take(self, opened: lance.LanceDataset, rows: list[int], columns: list[str]) -> pa.Table:
        return opened.take(rows, columns=columns)


class LanceZstd(Lance):
    version = "2.3"
    metadata = {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "3"}

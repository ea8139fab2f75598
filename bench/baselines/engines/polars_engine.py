"""Parquet by Polars."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from .engine import Engine


class Polars(Engine):

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        pl.DataFrame(table).write_parquet(path, compression="zstd", compression_level=3,
                                          row_group_size=32768 if clustered else 131072,
                                          statistics=False)

    def open(self, path: str) -> pl.LazyFrame:
        frame = pl.scan_parquet(path, use_statistics=False, glob=False)
        frame.collect_schema()
        return frame

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> pl.LazyFrame:
        frame = pl.scan_parquet(f"s3://{bucket}/{key}", use_statistics=False, glob=False, storage_options={
            "aws_endpoint_url": server["AWS_ENDPOINT_URL"], "aws_allow_http": "true",
            "aws_region": server["AWS_REGION"], "aws_access_key_id": server["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": server["AWS_SECRET_ACCESS_KEY"]})
        frame.collect_schema()
        return frame

    def chunks(self, opened: pl.LazyFrame, columns: list[str]) -> Iterator[pa.Table]:
        frame = opened.select(columns).collect()
        yield frame.to_arrow()

    def filtered(self, opened: pl.LazyFrame, columns: list[str], column: str, most: int) -> Iterator[pa.Table]:
        yield opened.filter(pl.col(column) <= most).select(columns).collect().to_arrow()

    def take(self, opened: pl.LazyFrame, rows: list[int], columns: list[str]) -> pa.Table:
        return opened.select(columns).select(pl.all().gather(rows)).collect().to_arrow()

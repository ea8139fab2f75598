"""DuckDB: its own file, and Parquet."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from .engine import Engine

_READ = 16384  # rows a record batch: eight of DuckDB's vectors


def _list(columns: list[str]) -> str:
    return ", ".join(f'"{c}"' for c in columns)


class DuckDB(Engine):

    def _config(self) -> dict[str, Any]:
        return {"threads": self.threads}

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        with duckdb.connect(path, config=self._config()) as con:
            con.register("source", table)
            con.execute("CREATE TABLE t AS SELECT * FROM source")

    def open(self, path: str) -> Any:
        con = duckdb.connect(path, read_only=True, config=self._config())
        con.execute("SELECT 1 FROM t LIMIT 0")
        return con, "t"

    def chunks(self, opened: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
        con, source = opened
        yield from con.sql(f"SELECT {_list(columns)} FROM {source}").to_arrow_reader(_READ)

    def filtered(self, opened: Any, columns: list[str], column: str, most: int) -> Iterator[pa.RecordBatch]:
        con, source = opened
        yield from con.sql(f'SELECT {_list(columns)} FROM {source} WHERE "{column}" <= {most}').to_arrow_reader(_READ)

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        con, source = opened
        con.register("wanted", pa.table({"place": pa.array(rows, pa.int64())}))
        return con.sql(
            f"SELECT {_list(columns)} FROM {source} SEMI JOIN wanted ON rowid = place ORDER BY rowid").to_arrow_table()

    def close(self, opened: Any) -> None:
        opened[0].close()


class DuckDBParquet(DuckDB):
    """Without dictionaries clustered rows take fewer bytes, and others more."""


    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        if os.path.exists(path):
            os.remove(path)
        with duckdb.connect(config=self._config()) as con:
            con.register("source", table)
            con.execute(f"COPY source TO '{path}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, "
                        + ("ROW_GROUP_SIZE 32768, DICTIONARY_SIZE_LIMIT 0)" if clustered else "ROW_GROUP_SIZE 131072)"))

    def open(self, path: str) -> Any:
        con = duckdb.connect(config=self._config())
        return con, f"read_parquet('{path}', file_row_number = true)"

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> Any:
        """By the extension that duckdb-extension-httpfs brings for this version: DuckDB downloads it else."""
        import duckdb_extension_httpfs

        path = next(pathlib.Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
        con = duckdb.connect(config=self._config())
        con.execute(f"LOAD '{path}'")
        con.execute(f"""CREATE SECRET (TYPE s3, KEY_ID '{server["AWS_ACCESS_KEY_ID"]}',
            SECRET '{server["AWS_SECRET_ACCESS_KEY"]}', REGION '{server["AWS_REGION"]}',
            ENDPOINT '{server["AWS_ENDPOINT_URL"].removeprefix("http://")}', URL_STYLE 'path', USE_SSL false)""")
        return con, f"read_parquet('s3://{bucket}/{key}')"

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        con, source = opened
        con.register("wanted", pa.table({"place": pa.array(rows, pa.int64())}))
        return con.sql(f"SELECT {_list(columns)} FROM {source} SEMI JOIN wanted ON file_row_number = place "
                       "ORDER BY file_row_number").to_arrow_table()

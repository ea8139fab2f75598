"""What an engine is asked for."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..tensors import BATCH, Batch, Maker, Projection, pieces


class Engine:
    """A format and the library that reads it. Everything is given threads to use; the process is pinned to as many
    cores."""

    exact_order = True  # whether rows come in the order in which they were written

    def __init__(self, threads: int):
        self.threads = threads
        self.mapped = True  # whether to map files, where there is a choice: best where they are in the page cache

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        """Writes a table, whose batches have BATCH rows each, as suits rows that are clustered by session, or are
        not."""
        raise NotImplementedError

    def open(self, path: str) -> Any:
        """What is needed before columns can be read: footers, schemas, snapshots."""
        raise NotImplementedError

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> Any:
        """The same from a server of S3 without TLS, which the variables of an environment say: for batches alone."""
        raise NotImplementedError

    def plan(self, opened: Any, columns: list[str]) -> Any:
        """What is done before the first column can be read, where open does not do it: for table."""

    def chunks(self, opened: Any, columns: list[str]) -> Iterator[pa.RecordBatch | pa.Table]:
        """The columns of all rows, in order, in pieces of any size; multiples of BATCH where there is a choice."""
        raise NotImplementedError

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Batch]:
        """Tensors; with groups, an IKJT."""
        make = Maker(projection, groups)
        for b in pieces(self.chunks(opened, projection.columns), BATCH):
            yield make(b)

    def table(self, opened: Any, columns: list[str], plan: Any = None) -> pa.Table:
        """The columns of all rows as Arrow."""
        whole = [
            pa.Table.from_batches([c]) if isinstance(c, pa.RecordBatch) else c for c in self.chunks(opened, columns)
        ]
        return pa.concat_tables(whole)

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        """The rows at row positions, ascending and different, as Arrow."""
        raise NotImplementedError

    def filtered(self, opened: Any, columns: list[str], column: str, most: int) -> Iterator[pa.RecordBatch | pa.Table]:
        """The columns of the rows in which an integer column, which may not be one of them, is at most so much."""
        raise NotImplementedError

    def keep_rows(self, path: str, name: str, rows: list[int], keys: list[str]) -> None:
        """Keeps, under a name, which rows listed gives: at row positions, with those request ids. For engines that have
        such a thing."""

    def listed(self, opened: Any, columns: list[str], name: str,
               rows: list[int]) -> Iterator[pa.RecordBatch | pa.Table]:
        """The columns of the rows at row positions, which are kept under a name where the engine keeps them."""
        yield self.take(opened, rows, columns)

    def selected(self, opened: Any, projection: Projection, how: dict[str, Any]) -> Iterator[Batch]:
        """Tensors of the rows that filtered or listed gives."""
        make, get = Maker(projection), self.listed if "name" in how else self.filtered
        for b in pieces(get(opened, projection.columns, **how), BATCH):
            yield make(b)

    def close(self, opened: Any) -> None:
        """Frees what open took."""

    def size(self, path: str) -> int:
        """Bytes on disk."""
        p = pathlib.Path(path)
        return p.stat().st_size if p.is_file() else sum(f.stat().st_size for f in p.rglob("*") if f.is_file())

    def drop(self, path: str) -> None:
        """Removes what write wrote."""
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)

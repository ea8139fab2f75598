"""Vortex."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import vortex

from .engine import Engine


class Vortex(Engine):

    def __init__(self, threads: int):
        super().__init__(threads)
        vortex.set_worker_threads(threads)

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        vortex.io.write(table, path)

    def open(self, path: str) -> vortex.VortexFile:
        return vortex.open(path, memory_map=self.mapped)

    def open_remote(self, endpoint: str, bucket: str, key: str) -> vortex.VortexFile:
        store = vortex.store.S3Store(
            bucket, config={
                "endpoint": f"http://{endpoint}", "skip_signature": True, "region": "us-east-1",
                "virtual_hosted_style_request": False
            }, client_options={"allow_http": True})
        return vortex.open(key, store=store)

    def chunks(self, opened: vortex.VortexFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from opened.to_arrow(columns, batch_size=16384)

    def filtered(self, opened: vortex.VortexFile, columns: list[str], column: str,
                 most: int) -> Iterator[pa.RecordBatch]:
        yield from opened.to_arrow(columns, expr=vortex.expr.column(column) <= most, batch_size=16384)

    def take(self, opened: vortex.VortexFile, rows: list[int], columns: list[str]) -> pa.Table:
        return opened.to_arrow(columns, indices=vortex.array(pa.array(rows, pa.uint64()))).read_all()

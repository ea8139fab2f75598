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

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> vortex.VortexFile:
        store = vortex.store.S3Store(
            bucket, config={
                "endpoint": server["AWS_ENDPOINT_URL"], "region": server["AWS_REGION"],
                "access_key_id": server["AWS_ACCESS_KEY_ID"], "secret_access_key": server["AWS_SECRET_ACCESS_KEY"],
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

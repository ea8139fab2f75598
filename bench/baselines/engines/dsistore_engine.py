"""dsistore, by its Python package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import dsistore
from dsistore import _engine

from ..tensors import BATCH, Batch, Digest, Lists, Projection
from .engine import Engine

TABLE = "workload"


class Dsistore(Engine):
    """Ingests with clustering and dedup, as `dsi ingest` does; rows come in the order of sessions."""

    exact_order = False

    def __init__(self, threads: int):
        super().__init__(threads)
        # loads the engine and waits until it runs, as an import does with the libraries of others
        _engine.call("version")

    def write(self, table: pa.Table, path: str, clustered: bool) -> None:
        dsistore.open(path).ingest(TABLE, table, session_key="session_id", time_key="event_time")

    def open(self, path: str) -> Any:
        return dsistore.open(path).table(TABLE)

    def open_remote(self, server: dict[str, str], bucket: str, key: str) -> Any:
        options = {name.lower(): value for name, value in server.items() if name != "AWS_EC2_METADATA_DISABLED"}
        return dsistore.open(f"s3://{bucket}/{key}", storage_options=options).table(TABLE)

    def dataset(self, opened: Any, projection: Projection, output: str) -> Any:
        return opened.torch(projection.columns, batch_size=BATCH, output=output, workers=self.threads)

    def groups(self, opened: Any, projection: Projection) -> list[list[str]]:
        """Which features share slots: what a baseline that hashes has to be told."""
        for b in self.dataset(opened, projection, "ikjt"):
            return [g.keys for g in b.groups]
        return []

    def batches(self, opened: Any, projection: Projection, groups: list[list[str]] | None) -> Iterator[Batch]:
        for b in self.dataset(opened, projection, "ikjt" if groups else "kjt"):
            inverses = [*b.inverses.numpy(), None]
            yield Batch(b.rows, b.dense_names, b.dense.numpy(), _lists(b.sparse, inverses), _lists(
                b.weighted, inverses))

    def partial(self, opened: Any, projection: Projection, digest: Digest | None = None) -> tuple[int, int]:
        """Reads all rows with partial duplicates. Returns how many they are, and the bytes of their tensors. digest is
        given the batches, their lists one after the other."""
        rows = size = 0
        for b in self.dataset(opened, projection, "partial"):
            rows += b.rows
            size += b.dense.nbytes + b.inverses.nbytes + sum(
                t.nbytes for x in (b.sparse, b.weighted) for t in (x.starts, x.lengths, x.values, x.weights)
                if t is not None)
            if digest is not None:
                inverses = [*b.inverses.numpy(), None]
                digest.add(Batch(b.rows, b.dense_names, b.dense.numpy(), _lists(b.sparse.contiguous(), inverses),
                                 _lists(b.weighted.contiguous(), inverses)))
        return rows, size

    def keep_rows(self, path: str, name: str, rows: list[int], keys: list[str]) -> None:
        report = dsistore.open(path).table(TABLE).samples.create(name, keys=keys, key="request_id", replace=True)
        if report["rows"] != len(rows):
            raise ValueError(f"{report['rows']} rows have {len(rows)} request ids: they are not one each")

    def selected(self, opened: Any, projection: Projection, how: dict[str, Any]) -> Iterator[Batch]:
        rows = {"sample_list": how["name"]} if "name" in how else {"filter": f"{how['column']} <= {how['most']}"}
        for b in opened.torch(projection.columns, batch_size=BATCH, workers=self.threads, **rows):
            yield Batch(b.rows, b.dense_names, b.dense.numpy(), _lists(b.sparse), _lists(b.weighted))

    def plan(self, opened: Any, columns: list[str]) -> Any:
        return opened.scan(columns, workers=self.threads)

    def table(self, opened: Any, columns: list[str], plan: Any = None) -> pa.Table:
        return (plan or self.plan(opened, columns)).to_arrow()

    def take(self, opened: Any, rows: list[int], columns: list[str]) -> pa.Table:
        if hasattr(opened, "take"):
            return opened.take(rows, columns)
        return self.table(opened, columns).take(np.asarray(rows))


def _lists(x: Any, inverses: list[Any] = []) -> tuple[list[str], Lists]:
    """The lists of a batch, whose inverses end with that of features in no group."""
    of = None if x.groups is None else [inverses[g] for g in x.groups.tolist()]
    return x.keys, Lists(x.lengths.numpy(), x.offsets.numpy(), x.values.numpy(),
                         None if x.weights is None else x.weights.numpy(), x.sizes, of)

"""The sides: dsistore, its peers, and what no reader can beat. A module a side, imported by the side's own process alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .side import Side

# name -> (module, class, what it is called in tables)
SIDES = {
    "dsistore": ("dsistore_side", "Dsistore", "dsistore"),
    "raw": ("raw", "Raw", "mapped raw buffers"),
    "ipc-lz4": ("arrow", "IPCLz4", "Arrow IPC lz4"),
    "ipc-zstd": ("arrow", "IPCZstd", "Arrow IPC zstd-3"),
    "parquet-pyarrow": ("arrow", "ParquetZstd", "Parquet zstd-3, pyarrow"),
    "parquet-snappy": ("arrow", "ParquetSnappy", "Parquet snappy, pyarrow"),
    "parquet-polars": ("polars_side", "Polars", "Parquet zstd-3, Polars"),
    "parquet-duckdb": ("duckdb_side", "DuckDBParquet", "Parquet zstd-3, DuckDB"),
    "duckdb": ("duckdb_side", "DuckDB", "DuckDB"),
    "lance": ("lance_side", "Lance", "Lance 2.2"),
    "lance-zstd": ("lance_side", "LanceZstd", "Lance 2.3 (unstable) zstd-3"),
    "vortex": ("vortex_side", "Vortex", "Vortex"),
    "mds": ("mds", "MDS", "MosaicML streaming"),
    "copy": ("copy", "Copy", "memory copy"),
}


def label(name: str) -> str:
    return SIDES[name][2]


def make(name: str, threads: int) -> Side:
    """A side in this process, which must have been started with the environment that worker.environment says."""
    module, cls, _ = SIDES[name]
    return getattr(importlib.import_module(f".{module}", __package__), cls)(threads)

"""The engines: dsistore, the baselines, and what no reader can beat. One module each, imported only by the engine's
process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine import Engine

# name -> (module, class, what it is called in tables)
ENGINES = {
    "dsistore": ("dsistore_engine", "Dsistore", "dsistore"),
    "raw": ("raw", "Raw", "mapped raw buffers"),
    "ipc-lz4": ("arrow", "IPCLz4", "Arrow IPC lz4"),
    "ipc-zstd": ("arrow", "IPCZstd", "Arrow IPC zstd-3"),
    "parquet-pyarrow": ("arrow", "ParquetZstd", "Parquet zstd-3, pyarrow"),
    "parquet-snappy": ("arrow", "ParquetSnappy", "Parquet snappy, pyarrow"),
    "parquet-polars": ("polars_engine", "Polars", "Parquet zstd-3, Polars"),
    "parquet-duckdb": ("duckdb_engine", "DuckDBParquet", "Parquet zstd-3, DuckDB"),
    "duckdb": ("duckdb_engine", "DuckDB", "DuckDB"),
    "lance": ("lance_engine", "Lance", "Lance 2.2"),
    "lance-zstd": ("lance_engine", "LanceZstd", "Lance 2.3 (unstable) zstd-3"),
    "vortex": ("vortex_engine", "Vortex", "Vortex"),
    "mds": ("mds", "MDS", "MosaicML streaming"),
    "copy": ("copy", "Copy", "memory copy"),
}


def label(name: str) -> str:
    return ENGINES[name][2]


def make(name: str, threads: int, package: str = __name__) -> Engine:
    """An engine in this process, which must have been started with the environment that worker.environment says.
    package is one whose ENGINES has the name."""
    module, cls, _, *given = importlib.import_module(package).ENGINES[name]
    return getattr(importlib.import_module(f".{module}", package), cls)(threads, *given)

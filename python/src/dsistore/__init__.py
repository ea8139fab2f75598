"""dsistore: training tables of recommendation models, read feature by feature and deduplicated into PyTorch.

    table = dsistore.open("/data/store").table("ads")
    for batch in table.torch(features=["user_*", "item_id"], labels=["click"], batch_size=4096):
        ...

The engine is linked into the process. See Table.torch for training, Table.scan for Arrow, Store.ingest for landing dumps.
"""

from ._version import VERSION
from .errors import (
    ConflictError,
    CorruptError,
    DsistoreError,
    DuplicateSourceError,
    ForkError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from .table import Feature, Scan, Snapshot, Store, Table, open

__version__ = VERSION

__all__ = [
    "ConflictError", "CorruptError", "DsistoreError", "DuplicateSourceError", "Feature", "ForkError", "NotFoundError",
    "Scan", "Snapshot", "Store", "Table", "UnsupportedError", "UsageError", "open",
]

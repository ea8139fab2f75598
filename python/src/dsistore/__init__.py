"""dsistore: training tables of recommendation models, read feature by feature and deduplicated into PyTorch.

    table = dsistore.open("/data/store").table("ads")
    for batch in table.torch(features=["user_*", "item_id"], labels=["click"], batch_size=4096):
        ...

open        a Store, which has tables, and takes new ones: Store.ingest
Table       one table at one snapshot: Table.features, Table.torch for training, Table.scan for Arrow
torch       what Table.torch gives (a module, imported when it is needed): TorchDataset, Batch, Shuffle, check
*Error      what goes wrong; all are DsistoreError
serve_metrics  Prometheus metrics of the process

The engine is linked into the process. Tensors and Arrow records share its memory, which is given back when the last of them is
gone. Nothing here needs PyTorch but Table.torch, nor pyarrow but what gives pyarrow's types.
"""

from ._metrics import serve_metrics
from ._select import SampleList
from ._version import VERSION
from .errors import (
    ConflictError,
    CorruptError,
    DsistoreError,
    DuplicateSourceError,
    ExistsError,
    ForkError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from .table import Feature, Samples, Scan, Snapshot, Store, Table, open

__version__ = VERSION

__all__ = [
    "ConflictError", "CorruptError", "DsistoreError", "DuplicateSourceError", "ExistsError", "Feature", "ForkError", "NotFoundError",
    "SampleList", "Samples", "Scan", "Snapshot", "Store", "Table", "UnsupportedError", "UsageError", "open", "serve_metrics",
]

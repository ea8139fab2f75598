"""dsistore: training tables of recommendation models, read feature by feature and deduplicated into PyTorch, NumPy and
Arrow.

    table = dsistore.open("/data/store").table("ads")
    for batch in table.torch(["user_*", "item_list_*"], labels="click", batch_size=4096):
        ...

open           a Store, which has tables and ingests new data: Store.ingest
Table          one table at one snapshot: Table.features; for training Table.torch, Table.numpy, Table.jax,
               Table.tensorflow and Table.grain; Table.scan for Arrow
Shuffle        the order of an epoch
torch          what Table.torch gives (a package, imported when it is needed): TorchDataset, Batch, check
numpy          what Table.numpy gives (a module, imported when it is needed): NumpyDataset, Ragged, Slices, Masked
jax, tensorflow, grain   what the methods of these names give: modules, imported when they are needed
*Error         what goes wrong; all are DsistoreError
serve_metrics  Prometheus metrics of the process

The engine is linked into the process. Arrays, tensors and Arrow records share its memory, which is given back when the
last of them is gone. Only Table.torch needs PyTorch, and only methods that return pyarrow's types need pyarrow.

Modules, each over those below it:

    table                                   Store, Table: what users call
    torch/  jax  tensorflow  grain          outputs: how a batch of the engine becomes theirs
    numpy                                   the output that jax and tensorflow are made of
    _arrow  _samples  _ingest  _dataset     Arrow streams; sample lists and keys; sources; what datasets share
    _epoch  _state  _rank                   an epoch's iterator; positions and state; ranks
    _plan  _select  _block  _stats          requests; what is selected; batches as NumPy arrays; measurements
    _engine  errors                         calls into the Go library
"""

from ._arrow import Scan
from ._metrics import serve_metrics
from ._plan import Feature
from ._samples import Samples
from ._select import SampleList, Shuffle
from ._stats import Stats
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
from .table import Snapshot, Store, Table, open

__version__ = VERSION

__all__ = [
    "ConflictError", "CorruptError", "DsistoreError", "DuplicateSourceError", "ExistsError", "Feature", "ForkError",
    "NotFoundError", "SampleList", "Samples", "Scan", "Shuffle", "Snapshot", "Stats", "Store", "Table",
    "UnsupportedError", "UsageError", "open", "serve_metrics",
]

"""Batches for PyTorch and TorchRec. This folder is all of the package that needs PyTorch.

    dataset = table.torch(["user_*", "item_id"], labels=["click"], batch_size=4096, shuffle="session", seed=7,
                          output="ikjt")
    for batch in torch.utils.data.DataLoader(dataset, batch_size=None):
        loss = model(batch.dense_features, batch.sparse_features, batch.labels)

The dataset prefetches in threads of the engine: DataLoader's num_workers=0 is the fast way.

    dataset    TorchDataset: batches of the engine become Batches
    batch      Batch: tensors, and KeyedJaggedTensors at first use
    block      the block of a batch as tensors; pages: where its pages are locked for a device
    lists      Jagged, DedupGroup: the lists of a batch, and which of them are deduplicated
    kjt        TorchRec's KeyedJaggedTensor from a Jagged
    support    check: which modules of TorchRec take deduplicated features
"""

from .batch import Batch
from .support import Support, check
from .dataset import TorchDataset
from .lists import DedupGroup, Jagged

__all__ = ["Batch", "DedupGroup", "Jagged", "Support", "TorchDataset", "check"]

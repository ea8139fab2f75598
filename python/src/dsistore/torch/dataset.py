"""The dataset of Table.torch."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Any, cast

import torch

from .._dataset import Dataset, Options
from .._descriptor import Mask, RawBatch
from .._epoch_start import EpochStart
from .._plan import TableRef
from .batch import Batch
from .lists import lists_of

if TYPE_CHECKING:
    from torch.types import Device


class SharedEpochStart(EpochStart):
    """An EpochStart that keeps its numbers in a tensor: torch moves one to shared memory when it is sent to a worker.
    So set_epoch reaches workers that persist."""

    def _store(self, values: list[int]) -> None:
        self._tensor = torch.tensor(values, dtype=torch.int64)

    def _numbers(self) -> MutableSequence[int]:
        # As NumPy's: an element of a tensor takes torch ten times as long. Not kept: the tensor moves when it is
        # shared.
        return cast(MutableSequence[int], self._tensor.numpy())

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "tensor": self._tensor}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._tensor = state["tensor"]


class TorchDataset(Dataset[Batch], torch.utils.data.IterableDataset[Batch]):
    """Training batches of a table, in an order that the arguments and the epoch decide alone: Table.torch makes it.

    features, labels and integers are names, globs or sets, as in Table.features. The labels of one name alone
    (labels="click") come as [B], those of a list as [B, L]. labels says which features are labels; without it the
    features with the role are. A feature with the role that is not among labels is an ordinary feature if features has
    its name, and an error if only a glob or a set selects it. integers are dense integers that come as they are stored,
    int64, in Batch.integers. Other dense features, and labels, come as float32, which holds every integer up to 2^24
    and few beyond: a batch that has another is a UsageError, which names the features. float64 is rounded to float32.
    partitions is a predicate over partition keys, filter one over features, sample_list a list of rows, and overlay
    names overlays (Table.scan).

    shuffle is None, "session", "row" or a Shuffle. output is "kjt" (every row has its lists) or "ikjt" (lists that rows
    share come once: Batch.groups). expand is names, globs or sets whose lists come one per row in "ikjt" too, in
    Batch.plain_sparse_features: those of items, for instance, which rows hardly ever share. transforms maps names or
    globs to chains of transforms: {"user_history_*": "first(50) | mod(1000000)"}.

    rank and world_size, given together, default to torch.distributed's, then to the environment's RANK and WORLD_SIZE.
    They are looked up in the process that iterates, or that makes the DataLoader: its workers get them, with any start
    method. shards is in how many shards an epoch is read at once (default: the world size): each rank reads its own
    where world_size divides it, and the order of the batches depends on it. A state_dict has it, so that a job with
    another world size goes on in the same order.

    drop_last leaves out a short batch, and at the end of an epoch batches that are too few for all ranks: each rank
    gives the same number, also where a job goes on with another world size, so that a collective never waits for a rank
    that is through. Without it each row is given once per epoch, and some ranks give a batch more than others: stop
    them together, or use torch's Join.

    presence adds masks that tell null from 0 and from the empty list: Batch.dense_present and the like, and
    Jagged.present. Batches are moved to device. prefetch bounds the batches made ahead, workers the engine's threads,
    memory the bytes of stripes in memory. job is the job's name in usage records: default, DSISTORE_JOB of the
    environment, else the name of the program. lease=False takes no lease while batches are read (Table.scan).

    It pickles to the plan, and opens what it reads in the process that iterates. A pickle has the rank of the process
    that made it, for DataLoader's workers; another process looks for its own first.
    """

    def __init__(self, table: TableRef, options: Options, device: Device = None):
        super().__init__(table, options, SharedEpochStart())
        self._device = device

    def _make(self, raw: RawBatch) -> Batch:
        names = self._names
        labels, labels_present = torch.from_numpy(raw.labels.values), _columns(raw.labels.mask())
        label_names, weight = [names[f] for f in raw.labels.features], None
        if self._weighted:  # the last of the labels
            weight, labels, label_names = labels[:, -1], labels[:, :-1], label_names[:-1]
            labels_present = None if labels_present is None else labels_present[:, :-1]
        if self._one_label:
            labels, labels_present = labels[:, 0], None if labels_present is None else labels_present[:, 0]
        integers: dict[str, torch.Tensor] = {}
        integers_present: dict[str, torch.Tensor] = {}
        keys: dict[str, Any] = {}
        for place, column in raw.columns.items():
            name, feature = names[place], self._plan.features[place]
            if name in self._integers:
                integers[name] = torch.from_numpy(column.numbers(feature["elem"]))
                if self._presence:
                    integers_present[name] = torch.from_numpy(column.mask())
            else:
                exact = column.exact(feature["kind"], feature["elem"])
                keys[name] = exact if isinstance(exact, list) else torch.from_numpy(exact)
        batch = Batch(
            index=raw.index, epoch=raw.epoch, rows=raw.rows, dense_names=[names[f] for f in raw.dense.features],
            dense=torch.from_numpy(
                raw.dense.values), label_names=label_names, labels=labels, sample_weight=weight, lists=lists_of(
                    raw, names), embeddings={names[m.features[0]]: torch.from_numpy(m.values)
                                             for m in raw.embeddings}, integers=integers, keys=keys,
            dense_present=_columns(raw.dense.mask()), labels_present=labels_present, embeddings_present={
                names[m.features[0]]: torch.from_numpy(mask[0])
                for m in raw.embeddings if (mask := m.mask()) is not None
            }, integers_present=integers_present,
        )
        return batch if self._device is None else batch.to(self._device)


def _columns(mask: Mask | None) -> torch.Tensor | None:
    """The presence of a matrix as [B, D]; None without features, or when nobody asked."""
    return None if mask is None else torch.from_numpy(mask).t().contiguous()

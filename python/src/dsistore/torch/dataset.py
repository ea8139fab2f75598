"""The dataset of Table.torch."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Any, cast

import torch

from .. import _worker
from .._block import Block, Schema
from .._dataset import Dataset, Options
from .._epoch import EpochIterator
from .._epoch_start import EpochStart
from .._plan import TableRef
from . import pages
from .batch import Batch, Features
from .block import Layout, TensorBlock

if TYPE_CHECKING:
    from torch.types import Device


class _Page:
    """A page of memory that a process shares with those that are forked from it. Tensors have places in it, one after
    the other and each once, and keep it alive: to map a page for each takes as long as to read 10,000 rows."""

    newest: _Page | None = None

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._places = itertools.count()

    @classmethod
    def numbers(cls, n: int) -> torch.Tensor:
        """[n] int64: zeros, always the same n."""
        while True:
            page = cls.newest
            if page is None:
                page = cls.newest = _Page()
            first = next(page._places) * n * 8
            if first + n * 8 <= mmap.PAGESIZE:
                return torch.frombuffer(page._memory, dtype=torch.int64, count=n, offset=first)
            cls.newest = None


def _forked() -> None:
    """A fork takes no places of its parent's page: both would take the same."""
    _Page.newest = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class SharedEpochStart(EpochStart):
    """An EpochStart that keeps its numbers in a tensor, in memory that forked processes share, and that torch replaces
    by shared memory when it is sent to a worker. So set_epoch reaches workers that persist, and workers say when an
    epoch is over."""

    def _store(self, values: list[int]) -> None:
        self._tensor = _Page.numbers(len(values))
        self._tensor.numpy()[:] = values

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
    """Training batches of a table, in an order that depends only on the arguments and the epoch. Made by Table.torch,
    which lists all arguments.

    Features: without labels, those of role label that features selects are labels. A feature with this role that is not
    among labels is an ordinary feature if features has its name, and an error if only a glob or a set selects it. The
    features of integers come as int64, in Batch.integers. Other dense features, and labels, come as float32, which
    holds every integer up to 2^24 but few beyond: a batch with an integer that float32 cannot hold is a UsageError,
    which names the features. float64 is rounded to float32.

    Lists: with output="ikjt", Batch.groups says which lists rows share; with output="partial", lists that are
    slices of others also share their values (Jagged). The lists of expand come one per row in any case, in
    Batch.expanded_sparse_features. This suits lists that rows hardly ever share, such as those of items.

    Ranks: rank and world_size are looked up in the process that iterates, or that makes the DataLoader: its workers
    get them, with any start method. An epoch is read in shards at once, by default as many as the world size at the
    start. If world_size divides shards, each rank reads its own. The order of the batches depends on shards; a
    state_dict has it, so that a job continues in the same order with another world size.

    Ends of epochs: with drop_last, every rank gives the same number of batches, so a collective operation never
    waits for a rank that has finished: a short batch, and batches that are too few for all ranks, are left out. Without
    it each row is given once per epoch, and some ranks give one batch more than others: stop them together, or use
    torch's Join.

    Devices: with a CUDA device, batches are made in page-locked memory and moved by one asynchronous copy; with
    output="kjt" only slots are moved, and the device expands them. pin_memory asks for page-locked memory without a
    device, for a pipeline that moves batches itself with Batch.to, which keeps the memory until the copy has finished.
    A tensor's own to(non_blocking=True) does not. DataLoader workers lock no pages: they copy batches to shared memory.

    Leases: a dataset has nothing to close. An iteration ends after its last batch, at an error, when its iterator is
    dropped, or with the iterator's ``close()``. ``dsi erase`` refuses to run while it has a lease, which ends a minute
    later at the most, or with the process. A worker that multiprocessing kills while this process goes on, as the end
    of ``with Pool()`` does, leaves its lease.

    Pickles: a pickle contains the plan; files are opened in the process that iterates. It also has the rank of the
    process that made it, for DataLoader workers; another process first looks for its own rank.
    """

    def __init__(self, table: TableRef, options: Options, device: Device = None, pin_memory: bool | None = None):
        super().__init__(table, options, SharedEpochStart())
        self._device = None if device is None else torch.device(device)
        self._locked = (self._device is not None and self._device.type == "cuda") if pin_memory is None else pin_memory
        self._options["page_locked"] = self._locked or None
        # What repeats travels once, and is expanded on the device.
        self._expands = options.dedup == "kjt" and self._device is not None and self._device.type != "cpu"
        self._options["keep_slots"] = self._expands or None
        self._known: tuple[Layout, Features] | None = None  # of the iterator that runs

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def _make(self, block: Block) -> Batch:
        known = self._known
        if known is None or known[0].schema is not block.schema:
            self._known = known = Layout.of(block.schema), self._features(block.schema)
        batch = Batch(TensorBlock(block, known[0], self._locked), known[1])
        return batch if self._device is None else batch.to(self._device, non_blocking=self._locked)

    def __iter__(self) -> EpochIterator[Batch]:
        if self._locked and _worker.info() is not None:  # in this process: see the class
            self._locked, self._options["page_locked"] = False, None
        if self._locked:
            pages.use(self._device)
        return super().__iter__()

    def _features(self, schema: Schema) -> Features:
        names, features = self._names, self._plan.features
        labels = [names[f] for f in schema.labels]
        return Features(
            names, [names[f] for f in schema.dense], labels[:-1] if self._weighted else labels,
            {kind: [names[f] for f in of.features] for kind, of in schema.lists.items()}, self._integers,
            [(i, names[f], features[f]["kind"], features[f]["elem"]) for i, f in enumerate(schema.columns)],
            self._one_label, self._weighted, self._presence, self._expands)

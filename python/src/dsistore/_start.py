"""Where the next pass over an epoch begins."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import get_worker_info


class Position(NamedTuple):
    """Where a job stands: the batches before ``batch`` of the epoch's global order have been given."""

    epoch: int
    batch: int


_EPOCH, _BATCH, _SHARDS, _SETS, _TAKEN = range(5)


class Start:
    """Where the next pass begins, known to the process that has the dataset and to its DataLoader's workers.

        [epoch, batch, shards or -1, how often it was set, the workers' pass that took the batch or 0]

    A pass begins at the batch once; the next one begins with the epoch's first batch. All workers of a DataLoader make one pass, but
    they begin it one after the other, perhaps when the loop was left already and another pass begins. So the first of them writes
    which pass took the batch, and workers of any other pass begin with the first batch.

    The numbers are a tensor because torch moves one to shared memory when it is sent to a worker: so set_epoch reaches
    workers that persist. A pickle has their values too: the pass that workers are started for begins where it did when they were
    started, however long that takes. A process that is no worker, such as one of the ranks that a program sends its dataset to, has
    numbers of its own, which begin with those values.
    """

    def __init__(self) -> None:
        self._numbers = torch.tensor([0, 0, -1, 0, 0], dtype=torch.int64)
        self._pid = os.getpid()
        self._sent: list[int] | None = None  # the values when they were sent to this process
        self._began: list[int] | None = None  # in a worker: those that the newest pass began with
        self._passes = 0  # that a worker began

    def __getstate__(self) -> dict[str, Any]:
        n = self._mine() if get_worker_info() is None else self._numbers.numpy()
        return {"numbers": self._numbers, "sent": n.tolist(), "pid": self._pid}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._numbers, self._sent, self._pid = state["numbers"], state["sent"], state["pid"]
        self._began, self._passes = None, 0

    def _mine(self) -> npt.NDArray[np.int64]:
        """The numbers of this process, which is no worker. As numpy's: an element of a tensor takes torch ten times as long."""
        if self._pid != os.getpid():
            self._numbers = self._numbers.clone() if self._sent is None else torch.tensor(self._sent, dtype=torch.int64)
            self._numbers[_TAKEN] = 0
            self._pid = os.getpid()
        return self._numbers.numpy()

    def _next(self) -> npt.NDArray[np.int64]:
        """The numbers that the next pass in this process begins with: of a worker perhaps a copy."""
        if get_worker_info() is None:
            return self._mine()
        if self._passes == 0 and self._sent is not None:
            return np.array(self._sent)
        return self._numbers.numpy()

    def set(self, at: Position, shards: int | None = None) -> None:
        """The next pass begins there; shards None leaves them."""
        n = self._mine()
        n[_EPOCH], n[_BATCH] = at
        if shards is not None:
            n[_SHARDS] = shards
        n[_SETS] += 1
        n[_TAKEN] = 0

    def epoch(self) -> int:
        """The epoch of the next pass."""
        return int(self._next()[_EPOCH])

    def shards(self) -> int | None:
        """Those that were set for the newest pass, or for the next one, or None."""
        shards = int(self._next()[_SHARDS]) if self._began is None else self._began[_SHARDS]
        return None if shards < 0 else shards

    def begin(self) -> Position:
        """Begins a pass. The one after it begins at the epoch's first batch, unless something else is set."""
        worker = get_worker_info()
        n = self._next()
        at = Position(int(n[_EPOCH]), int(n[_BATCH]))
        if worker is None:
            n[_BATCH] = 0
            return at if n[_TAKEN] == 0 else Position(at.epoch, 0)
        self._began = n.tolist()
        # Workers of a pass have a seed in common, besides their number, and those that persist have begun as many.
        this = 1 + (hash((worker.seed - worker.id, self._passes)) & (1 << 62) - 1)
        self._passes += 1
        now = self._numbers.numpy()
        if now[_SETS] == n[_SETS]:  # else they are for another pass by now
            if now[_TAKEN] == 0:
                now[_TAKEN] = this
            n = now
        return at if n[_TAKEN] in (0, this) else Position(at.epoch, 0)

    def in_workers(self) -> bool:
        """Whether workers have begun a pass since something was set."""
        return bool(self._mine()[_TAKEN])

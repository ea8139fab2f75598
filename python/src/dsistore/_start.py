"""Where the next pass over an epoch begins."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from . import errors

_MAX_WORKERS = 1024


class Position(NamedTuple):
    """Where a job stands: the batches before ``batch`` of the epoch's global order have been given."""

    epoch: int
    batch: int


class Start:
    """Where the next pass begins, known to the process that has the dataset and to its DataLoader's workers.

        [epoch, batch, shards or -1, a number for each worker: 1 once it has begun a pass there]

    The numbers are a tensor because torch moves one to shared memory when it is sent to a worker: so set_epoch reaches
    workers that persist. A worker writes its own number alone. A process of another kind that the dataset is sent to, as one
    rank of several, has numbers of its own from its first use on.
    """

    def __init__(self) -> None:
        self._numbers = torch.zeros(3 + _MAX_WORKERS, dtype=torch.int64)
        self._all()[2] = -1
        self._pid = os.getpid()

    def _all(self) -> npt.NDArray[np.int64]:
        """The numbers where they are now, for a moment: an element of a tensor takes torch ten times as long."""
        return self._numbers.numpy()

    def _mine(self) -> npt.NDArray[np.int64]:
        if self._pid != os.getpid():
            self._numbers, self._pid = self._numbers.clone(), os.getpid()
            self._numbers[3:] = 0
        return self._all()

    def set(self, at: Position, shards: int | None = None) -> None:
        """The next pass begins there; shards None leaves them."""
        n = self._mine()
        n[0], n[1] = at
        if shards is not None:
            n[2] = shards
        n[3:] = 0

    def shards(self) -> int | None:
        """Those that were set, or None."""
        shards = int(self._all()[2])
        return None if shards < 0 else shards

    def begin(self, worker: int | None = None) -> Position:
        """Begins a pass. The one after it begins at the epoch's first batch, unless something else is set."""
        if worker is None:
            n = self._mine()
            at = Position(int(n[0]), int(n[1]))
            n[1] = 0
            return at
        if worker >= _MAX_WORKERS:
            raise errors.UsageError(f"{worker + 1} workers: want {_MAX_WORKERS} at the most")
        n = self._all()
        at = Position(int(n[0]), 0 if n[3 + worker] else int(n[1]))
        n[3 + worker] = 1
        return at

    def in_workers(self) -> bool:
        """Whether workers have begun a pass since something was set."""
        return bool(self._mine()[3:].any())

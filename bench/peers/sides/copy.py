"""A copy of as many bytes as the tensors hold: what no reader can beat."""

from __future__ import annotations

import numpy as np

from .side import Side


class Copy(Side):
    """On one thread, from memory that no cache holds to a batch that is used again."""

    def __init__(self, threads: int):
        super().__init__(threads)
        self._from = np.empty(0, np.uint8)
        self._to = np.empty(0, np.uint8)

    def copy(self, total: int, batches: int) -> None:
        if len(self._from) < total:
            self._from = np.ones(total, np.uint8)
        size = -(-total // batches)
        if len(self._to) < size:
            self._to = np.ones(size, np.uint8)
        for at in range(0, total, size):
            part = self._from[at: min(at + size, total)]
            self._to[: len(part)] = part

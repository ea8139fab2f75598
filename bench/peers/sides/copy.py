"""A copy of as many bytes as the tensors hold: what no reader can beat."""

from __future__ import annotations

import mmap
import os
import time
from typing import Any

import numpy as np

from .side import Side


class Copy(Side):
    """On one thread, from memory that no cache holds to a batch that is used again."""

    def __init__(self, threads: int):
        super().__init__(threads)
        self._from = np.empty(0, np.uint8)
        self._to = np.empty(0, np.uint8)
        self._at = 0

    def copy(self, total: int, batches: int) -> float:
        """Copies total bytes in batches, and returns the seconds. It goes on where it was in memory larger than caches."""
        if len(self._from) < max(total, _MEMORY):
            self._from = np.ones(max(total, _MEMORY), np.uint8)
        size = -(-total // batches)
        if len(self._to) < size:
            self._to = np.ones(size, np.uint8)
        begin = time.perf_counter()
        for done in range(0, total, size):
            n = min(size, total - done)
            if self._at + n > len(self._from):
                self._at = 0
            self._to[:n] = self._from[self._at: self._at + n]
            self._at += n
        return time.perf_counter() - begin

    def limits(self, path: str) -> list[dict[str, Any]]:
        """Bytes a second of this machine: a copy in memory, and reads of a file from the system's cache and from the disk."""
        size = min(os.path.getsize(path), 512 << 20) // _BLOCK * _BLOCK or os.path.getsize(path)
        out = []
        out.append({"what": "memory copy", "seconds": self.copy(size, max(size // _BLOCK, 1)), "bytes": size})
        block = mmap.mmap(-1, _BLOCK)  # aligned, as O_DIRECT wants
        fd = os.open(path, os.O_RDONLY)
        for _ in range(2):  # the first fills the cache
            begin = time.perf_counter()
            for at in range(0, size, _BLOCK):
                os.preadv(fd, [block], at)
            seconds = time.perf_counter() - begin
        out.append({"what": "read from the system's cache", "seconds": seconds, "bytes": size})
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        begin = time.perf_counter()
        for at in range(0, size, _BLOCK):
            os.preadv(fd, [block], at)
        out.append({"what": "read from the disk, O_DIRECT", "seconds": time.perf_counter() - begin, "bytes": size})
        os.close(fd)
        return out


_BLOCK = 4 << 20
_MEMORY = 1 << 30

"""A copy of as many bytes as the tensors hold: what no reader can beat."""

from __future__ import annotations

import mmap
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .engine import Engine


class Copy(Engine):
    """From memory that no cache holds to a batch that is used again, each thread to one of its own."""

    def __init__(self, threads: int):
        super().__init__(threads)
        self._pool = ThreadPoolExecutor(threads)
        self._from = np.empty(0, np.uint8)
        self._to = [np.empty(0, np.uint8)] * threads
        self._at = 0

    def copy(self, total: int, batches: int) -> float:
        """Copies total bytes in batches, and returns the seconds. It goes on where it was in memory larger than
        caches."""
        if not len(self._from):
            self._from = np.ones(_MEMORY, np.uint8)
        size = -(-total // batches)
        if len(self._to[0]) < size:
            self._to = [np.ones(size, np.uint8) for _ in range(self.threads)]
        places = len(self._from) // size
        first, self._at = self._at, (self._at + batches) % places

        def some(thread: int) -> None:
            to = self._to[thread]
            for i in range(thread, batches, self.threads):
                n = min(size, total - i * size)
                at = (first + i) % places * size
                to[:n] = self._from[at: at + n]

        begin = time.perf_counter()
        if self.threads == 1:
            some(0)
        else:
            list(self._pool.map(some, range(self.threads)))
        return time.perf_counter() - begin

    def limits(self, path: str) -> list[dict[str, Any]]:
        """Bytes per second of this machine: a copy in memory and, on one thread, reads of a file from the page cache
        and the disk."""
        size = min(os.path.getsize(path), 512 << 20) // _BLOCK * _BLOCK or os.path.getsize(path)
        out = []
        what = "memory copy" if self.threads == 1 else f"memory copy, {self.threads} threads"
        out.append({"what": what, "seconds": self.copy(size, max(size // _BLOCK, 1)), "bytes": size})
        if self.threads > 1:
            return out
        block = mmap.mmap(-1, _BLOCK)  # aligned, as O_DIRECT wants
        fd = os.open(path, os.O_RDONLY)
        for _ in range(2):  # the first fills the cache
            begin = time.perf_counter()
            for at in range(0, size, _BLOCK):
                os.preadv(fd, [block], at)
            seconds = time.perf_counter() - begin
        out.append({"what": "read from the page cache", "seconds": seconds, "bytes": size})
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

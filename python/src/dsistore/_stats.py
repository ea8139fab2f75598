"""What an epoch did: whether the loader or the trainer is the slower one, and what was read for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from . import _engine, errors


@dataclass(frozen=True)
class Stats:
    """What one iteration of a dataset has done, in this process.

    If ``stall_seconds`` is nearly ``seconds``, the loader is the bottleneck: use fewer features or output="ikjt", or
    raise workers= if it is below the number of processors. If ``stall_seconds`` is nearly 0, the trainer is the
    bottleneck. The wait for the first batch is included.

    rows, batches      rows and batches given
    seconds            time from the start of the iteration to its end
    stall_seconds      time that the trainer waited for batches
    bytes_needed       bytes of the requested features
    bytes_unneeded     bytes of gaps between them, read because that was cheaper than another request
    requests           requests of the reader, including those that a cache on the local disk answered
    sent_reads         read requests sent to the object store, including retries: what is billed; 0 on a local disk
    sent_lists         list requests sent to the object store
    bytes_down         bytes received from the object store
    bytes_cached       bytes received from a cache on the local disk instead
    decode_seconds     time of all the engine's threads for checksums and decoding
    assemble_seconds   time of all the engine's threads for making batches
    dedupe_factor      rows per slot in the store, for the features that were read
    emitted_factor     rows per slot in the batches; 1 with output="kjt", unless a device expands the lists
    """

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    stall_seconds: float = 0.0
    bytes_needed: int = 0
    bytes_unneeded: int = 0
    requests: int = 0
    sent_reads: int = 0
    sent_lists: int = 0
    bytes_down: int = 0
    bytes_cached: int = 0
    decode_seconds: float = 0.0
    assemble_seconds: float = 0.0
    dedupe_factor: float = 1.0
    emitted_factor: float = 1.0

    @property
    def samples_per_second(self) -> float:
        """Rows per second, waiting included; 0 before the first row."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def stall_share(self) -> float:
        """The share of the time that the trainer waited, from 0 to 1."""
        return self.stall_seconds / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows in {self.batches:,} batches, {self.seconds:.2f} s "
            f"({self.samples_per_second:,.0f} samples/s); "
            f"waited {self.stall_seconds:.2f} s for batches ({self.stall_share:.0%}); "
            f"read {(self.bytes_needed + self.bytes_unneeded) / 1e6:.1f} MB in {self.requests:,} requests; "
            f"{self.dedupe_factor:.2f} rows/slot stored, {self.emitted_factor:.2f} emitted")


class Meter:
    """Stats of the iteration that began last. A copy in another process has measured nothing."""

    def __init__(self) -> None:
        self._handle: _engine.Handle | None = None
        self._began = 0.0
        self._last = Stats()

    def __reduce__(self) -> Any:
        return Meter, ()

    def begin(self, handle: _engine.Handle) -> None:
        """A loader was opened."""
        self._handle, self._began = handle, time.perf_counter()

    def end(self, handle: _engine.Handle, done: dict[str, Any]) -> None:
        """A loader was closed, and had done so much."""
        if handle == self._handle:
            self._last, self._handle = self._since(done), None

    def stats(self) -> Stats:
        """What the loader has done until now."""
        handle = self._handle
        if handle is None or not handle.usable():  # of a process that this one was forked from: nothing was done here
            return self._last
        try:
            return self._since(_engine.call("loader_stats", handle=handle.number))
        except errors.DsistoreError:
            for _ in range(100):  # another thread closes it, and then says what it has done
                if self._handle is not handle:
                    return self._last
                time.sleep(0.01)
            raise

    def _since(self, done: dict[str, Any]) -> Stats:
        return Stats(seconds=time.perf_counter() - self._began, **done)

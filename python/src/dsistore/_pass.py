"""One pass over an epoch: the iterator of a TorchDataset."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from . import _batch, _engine, errors
from ._start import Position

T = TypeVar("T")


class Pass(Iterator[T], Generic[T]):
    """Gives a rank's batches of one epoch, from a batch of the global order on.

    It opens the plan at the first batch, and closes it after the last, at an error, at close and when it is dropped. Then it
    is at its end. Batches that it gave stay valid. Several threads may take batches, each its own; close may come from any.

    options are those of loader_open. make turns a batch of the engine into what is given. moved is told where the job stands
    before each batch is given, and at the end.
    """

    # What __del__ reads, also of a Pass whose making failed.
    _handle: int | None = None

    def __init__(self, options: dict[str, Any], start: Position, world: int, make: Callable[[_batch.RawBatch], T],
                 moved: Callable[[Position], None]):
        self._options = options
        self._start = start
        self._world = world
        self._make = make
        self._moved = moved
        self._batches = 0  # of the epoch, for all ranks
        self._over = False
        self._opening = threading.RLock()  # guards the change of _handle: a signal's handler may close what is being opened

    def __next__(self) -> T:
        try:
            return self._next()
        except errors.DsistoreError:
            if self._over:  # another thread has closed it
                raise StopIteration from None
            self.close()
            raise
        except BaseException:
            self.close()
            raise

    def _next(self) -> T:
        words = None if self._over else _engine.next_batch(self._open())
        if words is None:
            if not self._over:
                self._moved(Position(self._start.epoch + 1, 0))
            raise StopIteration
        raw = _batch.read(words)
        # All ranks are through with the round that this batch is of when they ask for the next.
        after = (raw.index // self._world + 1) * self._world
        self._moved(Position(raw.epoch, after) if after < self._batches else Position(raw.epoch + 1, 0))
        return self._make(raw)

    def _open(self) -> int:
        if self._handle is None:
            with self._opening:
                if self._handle is None:
                    opened = _engine.call("loader_open", **self._options)
                    self._handle, self._batches = opened["handle"], opened["batches"]
                    _engine.call("loader_seek", handle=self._handle, epoch=self._start.epoch, batch=self._start.batch)
        handle = self._handle
        if handle is None or self._over:
            self.close()
            raise StopIteration
        return handle

    def close(self) -> None:
        """Ends the pass and waits until its engine has stopped. Closing it twice is nothing."""
        self._over = True
        if _engine.usable():  # in a forked child another thread's lock would never be released
            with self._opening:
                handle, self._handle = self._handle, None
            if handle is not None:
                _engine.close(handle)

    # close is bound here because a module's names may be gone when the interpreter ends. No lock: nobody else has it.
    def __del__(self, _close: Callable[[int], None] = _engine.close) -> None:
        if self._handle is not None:
            _close(self._handle)

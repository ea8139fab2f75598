"""The iterator over one epoch of a dataset."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from . import _engine, errors
from ._block import Block, Schema
from ._epoch_start import Position
from ._stats import Meter

T = TypeVar("T")


class EpochIterator(Iterator[T], Generic[T]):
    """Gives a rank's batches of one epoch, from a batch of the global order on.

    The job took up the epoch at the global batch ``begin``, and its ranks take turns from there: rank r takes each
    world-th from begin + r on. So all ranks have given as many batches whenever they are at the same position, whatever
    begin is:

        begin 4, world 3:   rank 0: 4 7 10   rank 1: 5 8 11   rank 2: 6 9     at 4, then 7, then 10, then the end

    It opens the plan at the first batch, and closes it after the last, at an error, at close and when it is dropped.
    Then it is at its end. An iterator that begins at the end gives no batch and opens nothing. Batches that it gave
    stay valid. Several threads may take batches, each its own; close may be called from any thread. In a process that
    was forked after that, it is a ForkError to go on, and to close it does nothing.

    The engine says where an epoch ends for all ranks: with drop_last before a round that is not full. A job that goes
    on there counts all batches as given.

    options are the parameters of loader_open. batches is how many an epoch has. make turns a batch of the engine into
    what is given. moved is called before each batch is given, and when there are no more: with the batch of the global
    order that the job goes on with (batches at the end), whether this rank has given its last batch, and whether the
    iterator is exhausted: was asked for one more.
    """

    # What __del__ reads, also where __init__ failed.
    _handle: _engine.Handle | None = None

    def __init__(self, options: dict[str, Any], start: Position, begin: int, batches: int, world: int,
                 make: Callable[[Block], T], moved: Callable[[int, bool, bool], None], meter: Meter):
        self._options = options
        self._start = start
        self._begin = begin
        self._batches = batches
        self._world = world
        self._make = make
        self._moved = moved
        self._meter = meter
        self._end = 0  # of the epoch, for all ranks: a batch of the global order
        self._last = -1  # the last batch of this rank; less than the start: there is none
        self._reached = -1  # the batch that moved was called with last; guarded by _moving
        self._moving = threading.RLock()
        self._over = False
        self._pid = os.getpid()
        self._opened = False  # until then the handle is the opening thread's alone
        # guards the change of _handle: a signal's handler may close what is being opened
        self._opening = threading.RLock()

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
        held = None if self._over or self._start.batch == self._batches else _engine.next_batch(self._open())
        if held is None:
            if not self._over:
                self._move(sys.maxsize, self._last < self._start.batch)
            raise StopIteration
        block = Block(self._schema, held)
        # All ranks are through with the round that this batch is of when they ask for the next.
        after = self._begin + ((block.index - self._begin) // self._world + 1) * self._world
        made = self._make(block)  # first: where it is interrupted, the batch is not given
        self._move(after, block.index == self._last)
        return made

    def _move(self, to: int, last: bool) -> None:
        """The job goes on at a batch, with sys.maxsize after the epoch; last: this rank has given all. Threads that
        make batches call it in any order."""
        with self._moving:
            if to > self._reached:
                self._reached = to
                self._moved(to if to < self._end else self._batches, last, to == sys.maxsize)

    def _open(self) -> _engine.Handle:
        if not self._opened:
            with self._opening:
                if not self._opened and not self._over:
                    opened = _engine.call("loader_open", epoch=self._start.epoch, batch=self._start.batch,
                                          begin=self._begin, **self._options)
                    self._handle, self._end = _engine.handle(opened["handle"]), opened["end"]
                    turns = range(self._begin + self._options["rank"], self._end, self._world)
                    self._last = turns[-1] if turns else -1
                    self._schema = Schema.of(opened["schema"])
                    self._meter.begin(self._handle)
                    self._opened = True
        handle = self._handle
        if handle is None or self._over:
            self.close()
            raise StopIteration
        return handle

    def close(self) -> None:
        """Ends the iteration and waits until its engine has stopped. A second call does nothing."""
        self._over = True
        # In a forked child the lock of another thread of the parent would never be released.
        if self._pid == os.getpid() if self._handle is None else self._handle.usable():
            with self._opening:
                handle, self._handle = self._handle, None
            if handle is not None:
                try:
                    self._meter.end(handle, _engine.call("loader_close", handle=handle.number))
                finally:  # a signal may interrupt the call
                    _engine.close(handle)
                _engine.flush_epoch()

    # Bound here because a module's names may be gone when the interpreter ends. No lock: nobody else has it.
    def __del__(self, _close: Callable[[_engine.Handle], None] = _engine.close,
                _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._handle is not None and self._handle.usable():
            try:
                if not _finalizing():
                    self._meter.end(self._handle, _engine.call("loader_close", handle=self._handle.number))
            finally:
                _close(self._handle)

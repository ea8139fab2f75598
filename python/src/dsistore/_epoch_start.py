"""Where the next epoch iterator begins."""

from __future__ import annotations

import multiprocessing
import os
import weakref
from collections.abc import MutableSequence
from typing import Any, NamedTuple

from . import _worker


class Position(NamedTuple):
    """A position of a job: the batches before ``batch`` of the epoch's global order have been given."""

    epoch: int
    batch: int


_EPOCH, _BATCH, _SHARDS, _SETS, _TAKEN, _FOLLOWING, _AFTER, _AFTER_SETS, _AFTER_SHARDS = range(9)


class EpochStart:
    """Where the next epoch iterator begins, in nine numbers:

        [epoch, batch, shards or -1, how often these were set, the workers' iteration that began at the batch, or 0,
         the epoch after the last one that workers gave whole, in which iteration, how often those before had been set
         then, and the shards that workers have loaded, or -1]

    An iterator begins at the batch once; the next one begins with the epoch's first batch. The workers of a DataLoader
    iterate together, but they begin one after the other, perhaps when the loop was left already and another iteration
    begins. So the first worker writes which iteration began at the batch, and workers of any other iteration begin with
    the first batch. The worker that gives the last batch of its rank says so in the three numbers after that, perhaps
    before others of its iteration begin. A worker that takes up an epoch which it has loaded, as torchdata's
    StatefulDataLoader does, says there that this epoch comes next, in no iteration: until one gives it whole. These
    count until something is set again; the shards that workers have loaded, until others are set.

    A pickle has the values of the numbers, and so has a fork: the iteration that workers are started for begins where
    it did when they were started, however long that takes. A process that is no worker, such as one of the ranks that a
    program sends its dataset to, has numbers of its own, which begin with those values: since it has set or begun
    something, was asked, or has forked.

    A subclass may keep the numbers where workers that persist see them change: see dsistore.torch.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        _all.add(self)
        self._keep([0, 0, -1, 0, 0, 0, 0, -1, -1])
        self._sent: list[int] | None = None  # the values when they were sent to this process
        self._sent_to = -1  # the process
        self._began: list[int] | None = None  # in a worker: those that its newest iterator began with
        self._iterations = 0  # that a worker began
        self._iteration = self._workers = 0  # the newest of them, and of how many workers it is

    def _keep(self, values: list[int]) -> None:
        """Keeps numbers of this process, and a copy, which a fork leaves as it is."""
        self._store(values)
        self._set = values

    def _store(self, values: list[int]) -> None:
        """Keeps numbers of this process, which begin with values."""
        self._list = values

    def _numbers(self) -> MutableSequence[int]:
        """The numbers that are kept: writing to them changes them."""
        return self._list

    def __getstate__(self) -> dict[str, Any]:
        n = self._own() if _worker.info() is None else self._numbers()
        return {"sent": list(map(int, n)), "pid": self._pid}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _all.add(self)
        self._sent, self._pid, self._sent_to = state["sent"], state["pid"], os.getpid()
        self._keep(list(state["sent"]))
        self._began, self._iterations, self._iteration, self._workers = None, 0, 0, 0

    def _own(self) -> MutableSequence[int]:
        """The numbers of this process, which is no worker."""
        if self._pid != os.getpid():
            values = self._handed() or list(map(int, self._numbers()))
            values[_TAKEN] = 0
            self._keep(values)
            self._pid = os.getpid()
        return self._numbers()

    def _next(self) -> MutableSequence[int]:
        """The numbers that the next iterator in this process begins with: in a worker perhaps a copy."""
        if _worker.info() is None:
            return self._own()
        return self._iterations == 0 and self._handed() or self._numbers()

    def _handed(self) -> list[int] | None:
        """The values when this was sent to this process, or when the process was forked; None: it was made here."""
        if self._sent is not None and self._sent_to == os.getpid():
            return list(self._sent)
        if self._pid != os.getpid():
            return [*self._set[:_TAKEN], *list(map(int, self._numbers()))[_TAKEN:]]
        return None

    def set(self, at: Position, shards: int | None = None) -> None:
        """The next iterator begins there; shards None leaves them."""
        n = self._own()
        n[_EPOCH], n[_BATCH] = at
        if shards is not None:
            n[_SHARDS], n[_AFTER_SHARDS] = shards, -1
        n[_SETS] += 1
        n[_TAKEN] = 0
        self._set = list(map(int, n))

    def epoch(self) -> int:
        """The epoch of the next iterator."""
        return _position(self._next()).epoch

    def given(self, epoch: int) -> None:
        """Says in a worker that its newest iterator, of an epoch, gave the last batch of this rank."""
        n = self._numbers()
        if self._began is not None and n[_SETS] == self._began[_SETS]:
            n[_FOLLOWING], n[_AFTER] = epoch + 1, self._iteration
            n[_AFTER_SETS] = self._began[_SETS]  # last: from here on they count

    def took_up(self, epoch: int, shards: int | None) -> None:
        """Says in a worker that its newest iterator goes on with an epoch that it has loaded, with its shards: an
        iteration that is left early is followed by one of the same epoch."""
        n = self._numbers()
        if self._began is None or n[_SETS] != self._began[_SETS]:
            return
        if shards is not None:
            n[_AFTER_SHARDS] = shards
        # Unless another worker of this iteration was through with the epoch already.
        if n[_AFTER_SETS] != n[_SETS] or abs(int(n[_AFTER]) - self._iteration) >= self._workers:
            n[_FOLLOWING], n[_AFTER] = epoch, 0
            n[_AFTER_SETS] = self._began[_SETS]

    def shards(self) -> int | None:
        """The shards that were set or loaded for the newest iterator, or for the next one, or None."""
        n = self._next() if self._began is None else self._began
        shards = int(n[_SHARDS] if n[_AFTER_SHARDS] < 0 else n[_AFTER_SHARDS])
        return None if shards < 0 else shards

    def begin(self) -> Position:
        """Begins an iteration. The one after it begins at the epoch's first batch, unless something else is set."""
        worker = _worker.info()
        n = self._next()
        if worker is None:
            at = _position(n)
            n[_BATCH] = 0
            self._set = list(map(int, n))
            return at
        self._began = list(map(int, n))
        this = _iteration(worker, self._iterations)
        self._iterations += 1
        self._iteration, self._workers = this, worker.num_workers
        now = self._numbers()
        if now[_SETS] == n[_SETS]:  # else they are for another iteration by now
            if now[_TAKEN] == 0:
                now[_TAKEN] = this
            n = now
        return _position(n, this, worker.num_workers)

    def in_workers(self) -> bool:
        """Whether workers have begun an iteration since something was set."""
        return bool(self._own()[_TAKEN])


# Those of this process. Before it forks they have numbers of their own: its workers would share them with those of
# other ranks, which were sent the same dataset.
_all: weakref.WeakSet[EpochStart] = weakref.WeakSet()


def _own_all() -> None:
    if _worker.info() is None:
        for start in list(_all):
            start._own()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_own_all)


def _iteration(worker: Any, before: int) -> int:
    """The iteration that a worker begins, which has begun so many before. Those of the workers of one iteration differ
    by less than their number, those of two iterations by as much or more.

    The workers of an iteration have a seed in common, besides their number, and workers that persist have begun as
    many. The seed is that of another iteration where a loop seeds torch alike before each epoch; but processes are
    numbered where they are made, one after the other, and later ones have higher numbers.
    """
    identity: tuple[int, ...] = getattr(multiprocessing.current_process(), "_identity", ())
    first = identity[-1] - worker.id if identity else 0  # but for processes that other threads make meanwhile
    common = hash((worker.seed - worker.id, worker.num_workers, before))
    return (1 + (common & (1 << 38) - 1) << 22) + (first & (1 << 22) - 1)


def _position(n: MutableSequence[int], this: int = 0, workers: int = 0) -> Position:
    """Where an iterator begins by these numbers; this is the iteration that it is of, of so many workers."""
    batch = int(n[_BATCH]) if n[_TAKEN] == 0 or abs(int(n[_TAKEN]) - this) < workers else 0
    if n[_AFTER_SETS] != n[_SETS]:
        return Position(int(n[_EPOCH]), batch)
    if abs(int(n[_AFTER]) - this) < workers:
        return Position(int(n[_FOLLOWING]) - 1, batch)
    return Position(int(n[_FOLLOWING]), 0)

"""Rows for Grain, JAX's loader: a RandomAccessDataSource over a table. Grain itself is not imported here.

    source = table.grain(["user_*", "age", "click"])
    positions = grain.MapDataset.range(len(source)).shuffle(seed=7)
    batches = positions.batch(4096).map(source.take).to_iter_dataset()

Grain shuffles, shards and saves its position by row positions; Table.jax gives whole batches, which is faster where the
engine's shuffle will do. ``grain.MapDataset.source(source)`` gives rows one by one, as any source. Rows that are
requested in the order of the table are read ahead. In any other order, rows that several of Grain's threads request at
the same time are read together; ``take`` with all rows of a batch still costs far less.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from . import _engine
from ._arrow import Records, need_pyarrow
from ._plan import TableRef
from ._select import names

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TableSource"]

Row = dict[str, Any]
Take = Callable[[Iterable[SupportsIndex]], list[Row]]

# Rows that are read ahead, and how far from the row before it one may be that is asked for in order: Grain's threads
# overtake one another, and its shards leave rows out.
_AHEAD, _NEAR = 256, 32

# Seconds that a call waits for another one to end, while more threads join it. Calls for rows in memory end sooner, and
# two at the same time would be no faster. A slow object store takes longer, and serves several at the same time.
_PATIENCE = 0.002


class _Call:
    """Rows that threads ask for at the same time. The first thread takes them for all."""

    __slots__ = ("at", "lock", "rows", "failed")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.lock = threading.Lock()  # held while the rows are taken
        self.rows: list[Row] | None = None
        self.failed = False  # then each thread takes its own row, since the error may be of another's


class _Threads:
    """What the threads that ask a source for rows share. It is of one process: in one that is forked, a thread that
    holds a lock may be missing."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._joining = threading.Lock()  # guards the next call, and its rows
        self._next = _Call()
        self._turn = threading.Lock()  # held by the call that is under way
        self._reading = threading.Lock()  # guards the change of what follows
        self._asked = -_AHEAD  # the row that was asked for last
        self._ahead: tuple[int, list[Row]] = 0, []  # rows that were read ahead, and the first one's position

    def row(self, at: int, of: int, take: Take) -> Row:
        """The row at a position, of so many. The dict is the caller's."""
        near, self._asked = 0 < abs(at - self._asked) <= _NEAR, at
        found = self._found(at)
        if found is None and near:
            with self._reading:
                found = self._found(at)  # another thread may have read it meanwhile
                if found is None:
                    first = max(0, at - _NEAR)
                    self._ahead = first, take(range(first, min(first + _AHEAD, of)))
                    found = self._found(at)
        return self._together(at, take) if found is None else found

    def _found(self, at: int) -> Row | None:
        """A row that was read ahead, or None."""
        first, rows = self._ahead
        return dict(rows[at - first]) if 0 <= at - first < len(rows) else None

    def _together(self, at: int, take: Take) -> Row:
        """The row, taken with those that other threads ask for meanwhile: 16 rows cost about twice as much as one."""
        with self._joining:
            call = self._next
            mine = len(call.at)
            call.at.append(at)
        with call.lock:
            if call.rows is None and not call.failed:
                in_turn = self._turn.acquire(timeout=_PATIENCE)
                try:
                    with self._joining:
                        if self._next is call:
                            self._next = _Call()
                    call.rows = take(call.at)
                except Exception:
                    if len(call.at) == 1:
                        raise
                    call.failed = True
                finally:
                    if in_turn:
                        self._turn.release()
        return take([at])[0] if call.rows is None else call.rows[mine]


class TableSource:
    """The rows of a table by their positions, in the order in which ``Table.scan`` gives them: a Grain
    RandomAccessDataSource. Made by Table.grain. len() is the number of rows.

    ``source[i]`` is a dict with an entry for each feature: a number, date or time as a NumPy scalar (a time of day as
    an integer), a list or embedding as an array, a weighted list as a pair of arrays (ids, weights), str and bytes
    unchanged; None for null. ``take`` reads the rows of a batch together, which is much faster than one by one in any
    order but the table's.

    It can be pickled, for Grain's processes, and repr() identifies its rows, for Grain's checkpoints. It needs pyarrow.
    """

    def __init__(self, table: TableRef, features: str | Sequence[str], overlay: str | Sequence[str], job: str,
                 memory: int | None, lease: bool):
        plan = table.plan(features=names(features), overlay=names(overlay) or None)
        self._rows = plan.rows
        self._hash = plan.hash
        self._table = table
        self._options = {
            "features": names(features), "overlay": names(overlay) or None, "memory": memory,
            "no_lease": not lease or None}
        self._job = job
        self._threads = _Threads()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_threads"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._threads = _Threads()

    def __repr__(self) -> str:
        return f"TableSource({self._table.uri!r}, {self._table.params['table']!r}, plan={self._hash})"

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: SupportsIndex) -> Row:
        at = row.__index__()
        if not 0 <= at < self._rows:
            return self.take([at])[0]
        threads = self._threads
        if threads.process != os.getpid():
            threads = self._threads = _Threads()
        return threads.row(at, self._rows, self.take)

    def take(self, rows: Iterable[SupportsIndex]) -> list[Row]:
        """The rows at positions, in their order. IndexError: there is no such row."""
        positions = np.fromiter((r.__index__() for r in rows), "<i8")
        if np.any(outside := (positions < -self._rows) | (positions >= self._rows)):
            raise IndexError(f"row {positions[outside][0]} of {self._rows}")
        positions[positions < 0] += self._rows
        if not len(positions):
            return []
        need_pyarrow()
        records = _engine.call("take", **self._table.params, **self._options, following=positions.tobytes(),
                               **_engine.recorded(self._job))
        out: list[Row] = []
        for batch in Records(records):
            columns = [_values(column) for column in batch.columns]
            out += [dict(zip(batch.schema.names, row)) for row in zip(*columns)]
        return out

    _getitems = take  # what Grain calls with all rows of a batch, where its batch_map_pushdown is on


def _values(column: pyarrow.Array) -> list[Any]:
    """The values of a column, a row each."""
    import pyarrow as pa

    if pa.types.is_time(column.type):  # NumPy has no time of day
        column = column.cast(pa.int32() if pa.types.is_time32(column.type) else pa.int64())
    kind, nulls = column.type, column.null_count
    if nulls == len(column):
        return [None] * nulls
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        ends = column.offsets.to_numpy()
        if pa.types.is_map(kind) or pa.types.is_struct(kind.value_type):
            pairs = [column.keys, column.items] if pa.types.is_map(kind) else [
                column.values.field(i) for i in range(2)]
            arrays = [_numbers(p) for p in pairs]
            values: list[Any] = [(arrays[0][a:b], arrays[1][a:b]) for a, b in zip(ends, ends[1:])]
        else:
            array = _numbers(column.values)
            values = [array[a:b] for a, b in zip(ends, ends[1:])]
    elif pa.types.is_fixed_size_list(kind):
        array = _numbers(column.values).reshape(-1, kind.list_size)[column.offset:]
        values = list(array)
    elif (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
          or pa.types.is_temporal(kind)):
        values = list(_numbers(column))
    else:
        values = column.to_pylist()
    return [v if there else None for v, there in zip(values, column.is_valid().to_pylist())] if nulls else values


def _numbers(array: pyarrow.Array) -> np.ndarray[Any, Any]:
    """A column of numbers, dates or times; null is 0."""
    import pyarrow as pa

    if array.null_count:
        array = array.fill_null(pa.scalar(False if pa.types.is_boolean(array.type) else 0, array.type))
    out: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
    out.flags.writeable = False  # rows share it, also where it is a copy
    return out

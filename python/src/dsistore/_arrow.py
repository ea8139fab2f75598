"""Arrow streams: PyCapsules of the engine's records, and of others'. pyarrow is imported only where its types are asked
for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _capsule, _engine
from ._plan import Plan

if TYPE_CHECKING:
    import pyarrow

# struct ArrowArrayStream of the Arrow C stream interface: four functions and a pointer.
_STREAM_BYTES = 5 * ctypes.sizeof(ctypes.c_void_p)
_NAME = b"arrow_array_stream"


def address(capsule: Any) -> int:
    """The address of the ArrowArrayStream in a capsule."""
    return _capsule.address(capsule, _NAME)


def _stream(records: int) -> Any:
    """A capsule with a new ArrowArrayStream of the engine's records."""
    # The capsule first: where the call is interrupted after the stream is there, the destructor ends it.
    capsule = _capsule.new(_STREAM_BYTES, _NAME, _engine.stream_destructor())
    _engine.stream(address(capsule), records)
    return capsule


class Records:
    """Records of the engine, for one reader."""

    def __init__(self, records: int):
        self._records = records

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _stream(self._records)


def need_pyarrow() -> None:
    """Raises what to install where pyarrow is missing. It comes before the engine opens records for it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as e:
        raise ImportError("to read rows here needs pyarrow: pip install 'dsistore[arrow]'") from e


def reader(stream: Any) -> pyarrow.RecordBatchReader:
    """A pyarrow reader of a stream."""
    need_pyarrow()
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(stream)


def to_table(stream: Any) -> pyarrow.Table:
    """All rows of a stream as a pyarrow Table."""
    batches = reader(stream)  # first: where pyarrow is missing it says what to install
    import pyarrow

    # By batches, and not read_all, so that the interpreter can be interrupted between two.
    return pyarrow.Table.from_batches(list(batches), batches.schema)


class Scan:
    """Rows as Arrow: anything that takes ``__arrow_c_stream__`` reads it (``pyarrow.table``, DuckDB,
    ``polars.DataFrame``), any number of times, each from the start.

    Record batches share the engine's memory, without a copy, and may outlive the scan. Errors while they are read are
    raised by the reader, in its own exceptions, with the engine's message.
    """

    def __init__(self, uri: str, plan: Plan, options: dict[str, Any], job: str):
        self._uri = uri
        self._plan = plan
        self._options = options
        self._job = job

    @property
    def rows(self) -> int:
        """How many rows a whole read gives."""
        return self._plan.rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule with a new ArrowArrayStream. requested_schema is ignored: the stream has the table's types."""
        options = {**self._options, **_engine.recorded(self._job)}
        records = _engine.call("records_open", uri=self._uri, hash=self._plan.hash, **options)
        if records is None:  # the engine, perhaps another process's, does not know the plan any more
            records = _engine.call("records_open", uri=self._uri, plan=self._plan.text, **options)
        return _stream(records)

    def reader(self) -> pyarrow.RecordBatchReader:
        """A pyarrow reader of the record batches."""
        return reader(self)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow Table."""
        return to_table(self)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        """The record batches, of batch_size rows but the last."""
        return iter(self.reader())

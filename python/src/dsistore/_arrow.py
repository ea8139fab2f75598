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


def need_pyarrow() -> None:
    """Raises what to install where pyarrow is missing. It comes before the engine opens records for it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as e:
        raise ImportError("to read rows here needs pyarrow: pip install 'dsistore[arrow]'") from e


class Records:
    """Records of the engine, which are read once."""

    def __init__(self, records: int):
        self._records = _engine.handle(records)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _stream(self._records.number)

    def reader(self) -> pyarrow.RecordBatchReader:
        """A pyarrow reader of the record batches."""
        need_pyarrow()
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self._batches(self.reader())

    def to_table(self) -> pyarrow.Table:
        """All rows as a pyarrow Table."""
        batches = self.reader()  # first: where pyarrow is missing it says what to install
        import pyarrow

        # By batches, and not read_all, so that the interpreter can be interrupted between two.
        return pyarrow.Table.from_batches(list(self._batches(batches)), batches.schema)

    def _batches(self, batches: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
        """The batches of this stream's reader. Where the engine has failed its own error is raised: pyarrow knows no
        more of it than the text."""
        try:
            yield from batches
        except OSError:
            error = _engine.records_error(self._records)
            if error is None:
                raise
            try:
                raise error from None
            finally:
                del error  # it has this frame, which would keep the batches of its callers until a collection


class Scan:
    """Rows as Arrow: anything that takes ``__arrow_c_stream__`` reads it (``pyarrow.table``, DuckDB,
    ``polars.DataFrame``), any number of times, each from the start.

    Record batches share the engine's memory, without a copy, and may outlive the scan. ``to_arrow`` and iteration raise
    the exceptions of this package. Other readers of the stream raise their own, with the same message: pyarrow an
    ``OSError``.
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
        return self._open().__arrow_c_stream__()

    def reader(self) -> pyarrow.RecordBatchReader:
        """A pyarrow reader of the record batches."""
        need_pyarrow()
        return self._open().reader()

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow Table."""
        need_pyarrow()
        return self._open().to_table()

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        """The record batches, of batch_size rows but the last."""
        need_pyarrow()
        return iter(self._open())

    def _open(self) -> Records:
        options = {**self._options, **_engine.recorded(self._job)}
        records = _engine.call("records_open", uri=self._uri, hash=self._plan.hash, **options)
        if records is None:  # the engine, perhaps another process's, does not know the plan any more
            records = _engine.call("records_open", uri=self._uri, plan=self._plan.text, **options)
        return Records(records)

"""Calls of the engine that read a source: paths, or anything that gives Arrow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import _arrow, _engine, errors

# (phase, rows, bytes done, bytes in all)
Progress = Callable[[str, int, int, int], None]


def path(p: str | os.PathLike[str] | None) -> str | None:
    """A path as the engine takes it, or None."""
    return None if p is None else os.fspath(p)


def read_source(method: str, source: Any, format: str, progress: Progress | None,
                params: dict[str, Any]) -> dict[str, Any]:
    """Runs a method of the engine that reads a source, and returns its report."""
    arrow = sys.modules.get("pyarrow")
    wrong: list[errors.UsageError] = []
    if arrow is not None and isinstance(source, arrow.RecordBatchReader):
        source = arrow.RecordBatchReader.from_batches(source.schema, _checked(source, wrong))
    if hasattr(source, "scanner"):  # a pyarrow Dataset
        source = source.scanner()
    if hasattr(source, "to_reader") and not hasattr(source, "__arrow_c_stream__"):  # a pyarrow Scanner
        source = source.to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        capsule = source.__arrow_c_stream__()
        started = _engine.begin_stream(method, _arrow.address(capsule), resident=_resident(source), **params)
    else:
        paths = source if isinstance(source, (list, tuple)) else [source]
        if not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
            raise errors.UsageError(
                f"source: {type(source).__name__}: want a path, a list of paths or an Arrow stream (of batches: "
                "pyarrow.RecordBatchReader.from_batches)")
        started = _engine.begin(
            method, paths=[os.fspath(p) for p in paths], format=None if format == "auto" else format, **params)
    try:
        return report(started, progress)
    except errors.DsistoreError:
        if wrong:
            raise wrong[0] from None
        raise


def _checked(reader: Any, wrong: list[errors.UsageError]) -> Iterator[Any]:
    """The batches of a pyarrow RecordBatchReader, up to one that has not the columns of its schema. pyarrow does not
    compare those of from_batches, and what goes through the C interface has no types of its own: the values would be
    read as others. wrong gets the error."""
    def columns(schema: Any) -> list[tuple[str, Any]]:
        return [(f.name, _layout(f.type)) for f in schema]

    want = columns(reader.schema)
    for i, batch in enumerate(reader):
        got = columns(batch.schema)
        if got != want:
            at = next((k for k, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            its, said = (f"{of.names[at]!r} of type {of.types[at]}" if at < len(of) else "no column"
                         for of in (batch.schema, reader.schema))
            wrong.append(errors.UsageError(
                f"source: batch {i} has {its} as column {at}, and the schema of the RecordBatchReader has {said}: make "
                "the batches with schema=, or cast them"))
            raise wrong[0]
        yield batch


def _layout(type: Any) -> Any:
    """A pyarrow type without what changes no layout: names of list items, and whether they may be null."""
    arrow = sys.modules["pyarrow"]
    is_ = arrow.types
    if is_.is_map(type):
        return "map", _layout(type.key_type), _layout(type.item_type)
    if is_.is_struct(type):
        return ("struct", *((f.name, _layout(f.type)) for f in type))
    for of in (is_.is_list, is_.is_large_list, is_.is_fixed_size_list):
        if of(type):
            return of.__name__, getattr(type, "list_size", None), _layout(type.value_type)
    return type


def report(started: _engine.Begun, progress: Progress | None = None) -> dict[str, Any]:
    """The report of a call that was begun. An interrupt cancels the call and waits for its end."""
    def told(state: dict[str, Any]) -> None:
        if progress is not None and state["phase"]:
            progress(state["phase"], state["rows"], state["bytes"], state["total_bytes"])

    out: dict[str, Any] = _engine.wait(started, None if progress is None else told, until_cancelled=True)
    return out


def _resident(source: Any) -> bool | None:
    """True when the rows of source are in memory whether or not they are read: those of a pyarrow Table or
    RecordBatch."""
    arrow = sys.modules.get("pyarrow")
    return True if arrow is not None and isinstance(source, (arrow.Table, arrow.RecordBatch)) else None

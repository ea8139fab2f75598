"""Calls of the engine that read a source: paths, or anything that gives Arrow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
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
    return report(started, progress)


def report(started: int, progress: Progress | None = None) -> dict[str, Any]:
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

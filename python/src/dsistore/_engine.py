"""The link to the engine: a Go library that is loaded at the first call, and never in a process that was forked after.

ctypes releases the GIL around every call.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

from . import errors

_FORKED = (
    "this process was forked from one that had used dsistore, whose engine does not survive a fork: "
    "use num_workers=0 (the loader prefetches by itself), or multiprocessing_context='spawn' or 'forkserver'"
)


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_int64)]


_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_pid: int | None = None


def _path() -> str:
    here = pathlib.Path(__file__).resolve().parent
    for name in ("libdsistore.so", "libdsistore.dylib"):
        if (here / name).exists():
            return str(here / name)
    raise ImportError(f"no engine in {here}: build the package with `pip install .` in python/, which needs Go and a C compiler")


def library() -> ctypes.CDLL:
    """The engine, loaded when first needed."""
    global _library, _pid
    if _library is not None:
        if _pid != os.getpid():
            raise errors.ForkError(_FORKED)
        return _library
    with _lock:
        if _library is None:
            lib = ctypes.CDLL(_path())
            lib.dsi_call.argtypes = [ctypes.c_char_p, ctypes.c_int64]
            lib.dsi_call.restype = _Text
            lib.dsi_free.argtypes = [ctypes.c_void_p]
            lib.dsi_free.restype = None
            lib.dsi_next.argtypes = [
                ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)),
                ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(_Text),
            ]
            lib.dsi_next.restype = ctypes.c_int32
            lib.dsi_release.argtypes = [ctypes.c_int64]
            lib.dsi_release.restype = ctypes.c_int32
            lib.dsi_stream.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
            lib.dsi_stream.restype = _Text
            lib.dsi_ingest_stream.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
            lib.dsi_ingest_stream.restype = _Text
            _pid = os.getpid()
            _library = lib
    return _library


def usable(_getpid: Callable[[], int] = os.getpid) -> bool:
    """Whether the engine is loaded and of this process: releasing something in a forked child must do nothing."""
    return _library is not None and _pid == _getpid()


def _take(lib: ctypes.CDLL, text: _Text) -> bytes:
    try:
        return ctypes.string_at(text.data, text.size) if text.size else b""
    finally:
        lib.dsi_free(text.data)


def _result(answer: bytes) -> Any:
    out = json.loads(answer)
    if "error" in out:
        raise errors.from_wire(out["error"])
    return out.get("result")


def call(method: str, **params: Any) -> Any:
    """Runs a method of the engine; parameters that are None are left out."""
    lib = library()
    given = {k: v for k, v in params.items() if v is not None}
    request = json.dumps({"method": method, "params": given}).encode()
    return _result(_take(lib, lib.dsi_call(request, len(request))))


def stream(address: int, **params: Any) -> None:
    """Fills the ArrowArrayStream at an address."""
    lib = library()
    request = json.dumps({k: v for k, v in params.items() if v is not None}).encode()
    answer = _take(lib, lib.dsi_stream(request, len(request), address))
    if answer:
        _result(answer)


def ingest_stream(address: int, **params: Any) -> int:
    """Starts an ingest of the ArrowArrayStream at an address, which it takes over, and returns the job's handle."""
    lib = library()
    request = json.dumps({k: v for k, v in params.items() if v is not None}).encode()
    return _result(_take(lib, lib.dsi_ingest_stream(request, len(request), address)))


# How long a call waits for a batch before the interpreter looks for signals.
_WAIT_MILLISECONDS = 50

_BATCH, _END, _TIMEOUT = 0, 1, 2


class Words:
    """The words of one batch, which is released with the last of the arrays that show it: see view."""

    def __init__(self, lib: ctypes.CDLL, words: list[int]):
        self._lib = lib
        self.words = words
        self._id = words[1]

    # usable is bound here because a module's names may be gone when the interpreter ends.
    def __del__(self, _usable: Callable[[], bool] = usable) -> None:
        if _usable():
            self._lib.dsi_release(self._id)


def next_batch(handle: int) -> Words | None:
    """The loader's next batch, None after the last. It lets the interpreter handle signals while it waits."""
    lib = library()
    words = ctypes.POINTER(ctypes.c_int64)()
    n = ctypes.c_int64()
    text = _Text()
    while True:
        status = lib.dsi_next(handle, _WAIT_MILLISECONDS, ctypes.byref(words), ctypes.byref(n), ctypes.byref(text))
        if status == _BATCH:
            return Words(lib, words[: n.value])
        if status == _END:
            return None
        if status != _TIMEOUT:
            _result(_take(lib, text))

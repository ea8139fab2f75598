"""Memory that a CUDA device reads by itself: its pages are locked.

The engine locks the blocks of a loader with CUDA's functions, which are looked up in this process. A block that is
being copied must not be given back before the copy is through: a copy that does not block is waited for here.
"""

from __future__ import annotations

import collections
import ctypes
import os
import threading
from typing import Any

import torch

from .. import _engine, errors

_lock = threading.Lock()
_ready: int | None = None  # the process in which the engine knows the functions


def use(device: torch.device | None = None) -> None:
    """Lets the engine lock pages for a device; default: the current one. It is called once in a process."""
    global _ready
    with _lock:
        if _ready == os.getpid():
            return
        if not torch.cuda.is_available():
            raise errors.UsageError("pin_memory, or a CUDA device: PyTorch finds no CUDA here")
        symbols = ctypes.CDLL(None)  # torch loads CUDA's runtime for all
        try:
            set_device, lock, unlock = (
                ctypes.cast(getattr(symbols, name), ctypes.c_void_p).value or 0
                for name in ("cudaSetDevice", "cudaHostRegister", "cudaHostUnregister"))
        except AttributeError as e:
            raise errors.UsageError(f"page-locked memory: this PyTorch has no CUDA runtime for others ({e}): give "
                                    "pin_memory=False") from None
        index = None if device is None else device.index
        _engine.use_locks(set_device, lock, unlock, torch.cuda.current_device() if index is None else index)
        _ready = os.getpid()


# What is being copied, the oldest first: an event after the copy, and what has the memory. Appending and taking from
# the left are atomic.
_copies: collections.deque[tuple[Any, Any]] = collections.deque()


def keep_until_copied(memory: Any, device: torch.device, stream: Any = None) -> None:
    """Keeps memory until what a stream, by default the device's current one, was told to do so far is done."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device) if stream is None else stream)
    _copies.append((event, memory))
    forget_copied()


def forget_copied() -> None:
    """Lets go of what was copied."""
    with _lock:
        while _copies and _copies[0][0].query():
            _copies.popleft()

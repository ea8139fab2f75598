"""PyCapsules with memory for the engine, and destructors that are C functions of the engine."""

from __future__ import annotations

import ctypes
from typing import Any

_api = ctypes.pythonapi
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyMem_RawCalloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_api.PyMem_RawCalloc.restype = ctypes.c_void_p

# What a destructor calls: the engine is not linked with the interpreter.
FUNCTIONS = tuple(ctypes.cast(f, ctypes.c_void_p) for f in (_api.PyCapsule_GetPointer, _api.PyMem_RawFree))


def new(size: int, name: bytes | None, destructor: int) -> Any:
    """A capsule with so many bytes, all 0, which its destructor frees. The name is not copied."""
    return _api.PyCapsule_New(_api.PyMem_RawCalloc(1, size), name, destructor)


def address(capsule: Any, name: bytes | None) -> int:
    """Where the bytes of a capsule of this name are."""
    at: int = _api.PyCapsule_GetPointer(capsule, name)
    return at
